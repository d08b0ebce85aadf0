"""The parts of the call page that ask for a decision: the review, what is held, what waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.urls import reverse

from effects.access import ROLE_WORDS, Ability, DeskRequest, can
from effects.core.vocabulary import Role, Verdict
from reconcile import approve, asking, decide, queries, snoozes
from reconcile.action_rules import snooze_until
from reconcile.actions import Action, ActionName, action, find, safe_actions
from reconcile.asking import Fate
from reconcile.calls.runbook import reasons_in
from reconcile.confirm import CHOSEN, REVIEWED, confirmation
from reconcile.confirm import asking as asking_text
from reconcile.forms import ABOUT_THE_REST
from reconcile.queries import Call
from reconcile.reading import cut_to_shown
from reconcile.second_person import Team
from reconcile.situation import Situation
from reconcile.team import possible_approvers, team_of

TOLD_BYTES_MAX: Final = 16_000


def safe_actions_for(request: DeskRequest, seen: Call) -> tuple[tuple[Action, ...], Team]:
    team = team_of(request.workspace.pk, request.user.pk)
    return safe_actions(seen.situation, role=request.role, team=team), team


def actions_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """What is offered, what is not, and the acts beside the decisions."""
    actions, team = safe_actions_for(request, seen)
    aside = (ActionName.ASK, ActionName.SNOOZE, ActionName.SECOND_PERSON, ActionName.ALLOW)
    snooze = find(actions, ActionName.SNOOZE)
    asks = find(actions, ActionName.SECOND_PERSON)
    return {
        "ask": find(actions, ActionName.ASK),
        "offered": [one for one in actions if one.offered and one.name in CHOSEN],
        "unavailable": [
            one
            for one in actions
            if not one.offered
            and (one.name not in aside or one.name in {ActionName.SNOOZE, ActionName.SECOND_PERSON})
        ],
        "snooze": snooze if snooze.offered else None,
        "second_person": asks if asks.offered else None,
        "snoozed": snoozes.current(seen) if seen.beside.snooze else None,
        "may_allow": _allowable(request, seen, team),
        "may_close_case": can(request.role, Ability.CLOSE_CASE),
    }


def _allowable(request: DeskRequest, seen: Call, team: Team) -> set[int]:
    """The held requests whose review can be opened by this person."""
    found = set()
    for other in seen.others:
        if other.held_id is None or not other.may_be_allowed:
            continue
        situation = queries.for_held_request(seen, other.held_id)
        act = action(ActionName.ALLOW, situation, role=request.role, team=team)
        if act.offered or act.may_ask:
            found.add(other.held_id)
    return found


def held_part(seen: Call) -> dict[str, Any]:
    """The decision that is in its minute, and what it will do."""
    held = seen.held
    until = seen.claim.pending_at
    if held is None or until is None:
        return {"held": None}
    left = max(0.0, (until - seen.now).total_seconds())
    whole = max(1.0, (until - held.decided_at).total_seconds())
    longest = (until - held.decided_at).total_seconds() >= decide.HOLD_SECONDS_MAX
    return {
        "held": held,
        "held_until": until,
        "held_left": int(left) + (left > int(left)),
        "held_share": round(100 * left / whole, 1),
        "held_seconds": int(whole),
        "held_told": told_shown(queries.will_be_told(seen, Verdict(held.verdict), held.object)),
        "held_evidence": [item for item in seen.situation.evidence if item.number in held.evidence],
        "hold_longer_seconds": None if longest else decide.HOLD_LONGER_SECONDS,
        "hold_seconds_max": decide.HOLD_SECONDS_MAX,
    }


def requests_part(
    request: DeskRequest, seen: Call, answered: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The request that waits for a second person, as this person sees it, and the earlier ones.

    `answered` is what an answer held that has to be put right.
    """
    requests = asking.requests_of(seen) if seen.beside.proposals else []
    waiting = asking.open_request(requests)
    part: dict[str, Any] = {
        "requests": [one for one in requests if one is not waiting],
        "waiting": None,
    }
    if waiting is None:
        return part
    proposal, name = waiting.proposal, waiting.name
    situation = _situation_of(seen, name, proposal.held_request_id)
    own = proposal.proposed_by_id == request.user.pk
    refused = approve.refusal_for(waiting, user_id=request.user.pk, role=request.role)
    part["waiting"] = {
        "request": waiting,
        "proposal": proposal,
        "label": name.label,
        "text": confirmation(name, situation),
        "cited": [item for item in seen.situation.evidence if item.number in proposal.evidence],
        "cited_notes": [note for note in seen.notes if note.seq in proposal.evidence],
        "own": own,
        "live": waiting.fate is Fate.WAITING,
        "may_answer": waiting.fate is Fate.WAITING and not refused,
        "refused": "" if own else refused,
        "people": possible_approvers(request.workspace.pk, proposal.proposed_by_id, waiting.roles),
        "again": _again(request, seen, name, proposal.held_request_id),
        "errors": (answered or {}).get("errors", {}),
        "reason": (answered or {}).get("reason", ""),
        "answer": (answered or {}).get("answer", ""),
    }
    return part


def _again(request: DeskRequest, seen: Call, name: ActionName, held_id: int | None) -> str:
    """Where the same is asked anew, if this person may."""
    team = team_of(request.workspace.pk, request.user.pk)
    act = action(name, _situation_of(seen, name, held_id), role=request.role, team=team)
    if not act.offered and not act.may_ask:
        return ""
    held = f"&held={held_id}" if held_id else ""
    second = "" if act.needs_second else "&second=1"
    evidence = "".join(f"&ev={item.number}" for item in seen.situation.standing[:10])
    address = reverse("call", args=[seen.claim.pk])
    return f"{address}?dialog={name}{held}{second}{evidence}"


def _situation_of(seen: Call, name: ActionName, held_id: int | None) -> Situation:
    if name is ActionName.ALLOW:
        return queries.for_held_request(seen, held_id)
    return seen.situation


def review_part(
    request: DeskRequest, seen: Call, typed: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The open dialog, if the address or a form that came back asks for one."""
    asked = typed.get("action") or request.GET.get("dialog", "")
    close = reverse("call", args=[seen.claim.pk])
    if asked == ActionName.SNOOZE:
        return _snooze_dialog(request, seen, close)
    if asked == ActionName.SECOND_PERSON:
        return _second_person_dialog(request, seen, close)
    if asked not in {str(name) for name in REVIEWED}:
        return None
    name = ActionName(asked)
    held_id = typed.get("held_request") or number(request.GET.get("held"), default=0) or None
    situation = _situation_of(seen, name, held_id)
    team = team_of(request.workspace.pk, request.user.pk)
    act = action(name, situation, role=request.role, team=team)
    freely = bool(typed.get("ask_second") or request.GET.get("second") == "1")
    second = bool(act.needs_second) or (freely and act.may_ask)
    evidence = typed["evidence"] if typed else chosen_evidence(request, ())
    cited = [item for item in seen.situation.evidence if item.number in evidence]
    guess = next((item.objects[0] for item in cited if item.objects), "")
    return {
        "kind": "decision",
        "action": act,
        "open": act.offered or (second and act.may_ask),
        "text": asking_text(name, situation) if second else confirmation(name, situation),
        "harm": confirmation(name, situation).harm,
        "second": second,
        "ask_second": freely and act.may_ask,
        "people": possible_approvers(request.workspace.pk, request.user.pk, act.approvers),
        "role_words": " or ".join(ROLE_WORDS[role] for role in Role if role in act.approvers),
        "cited": cited,
        "cited_notes": [note.seq for note in seen.notes if note.seq in evidence],
        "asks_object": name is ActionName.HAPPENED,
        "settles": name is ActionName.SETTLE,
        "effects": seen.situation.effects,
        "abouts": ABOUT_THE_REST,
        "held_request": held_id,
        "object": typed.get("provider_object", guess),
        **{word: typed.get(word, "") for word in ("note", "reason", "about", "link", "typed")},
        "errors": typed.get("errors", {}),
        "token": typed.get("token") or decide.token_for(seen, request.user.pk),
        "told": _told(seen, name),
        "reasons": reasons_in(seen.tool.runbook),
        "close": close,
    }


def _told(seen: Call, name: ActionName) -> str:
    if name is ActionName.ALLOW or name.verdict is None:
        return ""
    return told_shown(queries.will_be_told(seen, name.verdict, None))


def _snooze_dialog(request: DeskRequest, seen: Call, close: str) -> dict[str, Any]:
    actions, _ = safe_actions_for(request, seen)
    return {
        "kind": "snooze",
        "action": find(actions, ActionName.SNOOZE),
        "until": snooze_until(seen.situation),
        "close": close,
    }


def _second_person_dialog(request: DeskRequest, seen: Call, close: str) -> dict[str, Any]:
    """The decisions that another person can be asked about, each with the address of its review."""
    actions, _ = safe_actions_for(request, seen)
    evidence = "".join(f"&ev={one}" for one in sorted(chosen_evidence(request, ())))
    return {
        "kind": "second_person",
        "action": find(actions, ActionName.SECOND_PERSON),
        "choices": [
            {
                "label": one.label,
                "reason": one.reason,
                "address": f"{close}?dialog={one.name}&second=1{evidence}",
            }
            for one in actions
            if one.may_ask and one.name in CHOSEN
        ],
        "close": close,
    }


def chosen_evidence(request: DeskRequest, usual: Iterable[int]) -> set[int]:
    if "dialog" not in request.GET and "ev" not in request.GET:
        return set(usual)
    return {number(text, default=0) for text in request.GET.getlist("ev")}


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def told_shown(value: Any) -> str:
    """What an agent is told, as much of it as a page holds: a result may be a megabyte."""
    whole = pretty(value)
    shown = cut_to_shown(whole, TOLD_BYTES_MAX)
    return shown if shown == whole else f"{shown}\n[cut: {len(whole) - len(shown)} more characters]"


def number(text: str | None, *, default: int) -> int:
    usable = text is not None and text.isascii() and text.isdigit() and len(text) < 12
    return int(text) if text is not None and usable else default
