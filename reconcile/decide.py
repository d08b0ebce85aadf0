"""A person's decision: checked again where it counts, written once, held for a minute.

A form carries a signed token of the screen that its author had before them. The decision is made
only if that picture still holds; the record then compares the version once more as it writes. The
same form sent twice (a double click, Enter and a click, Back and again) finds the decision, or the
request for a second person, that it made the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from effects.core.problems import NotOffered, Stale
from effects.core.vocabulary import Role
from ledger import append
from ledger.append import Consent, NewAllowance, NewDecision
from reconcile import asking, queries
from reconcile.actions import Action, ActionName, action
from reconcile.audit import submissions
from reconcile.forms import (
    NOTE_CHARACTERS_MAX,
    OBJECT_CHARACTERS_MAX,
    REASON_CHARACTERS_MAX,
    Form,
    Screen,
    faults,
    is_own_note,
    picture_holds,
    read_token,
    token_for,
)
from reconcile.notes.mentions import keep_note
from reconcile.queries import Call
from reconcile.situation import Situation, instant_words
from reconcile.team import team_of

__all__ = [
    "NOTE_CHARACTERS_MAX",
    "OBJECT_CHARACTERS_MAX",
    "REASON_CHARACTERS_MAX",
    "Asked",
    "Form",
    "Incomplete",
    "Made",
    "Overtaken",
    "Result",
    "Screen",
    "Unavailable",
    "decide",
    "hold_longer",
    "read_token",
    "token_for",
    "undo",
]

TRIES_MAX: Final = 3
"""How often a decision is offered to the record while only the clock moves the claim under it."""
HOLD_LONGER_SECONDS: Final = 120
HOLD_SECONDS_MAX: Final = 600
"""A held decision can be held this long in all: whoever needs more time takes it back."""

_LOCK_CLASS: Final = 1667657328  # with the claim: one form at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The decision that the form made; `again` where an earlier copy of the form had made it."""

    decision_id: int
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request for a second person that the form made. Nothing is decided yet."""

    proposal_id: int
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """The picture no longer holds. Nothing was decided."""

    call: Call
    screen: Screen

    @property
    def because(self) -> str:
        """Who came first, or how much has happened, in one sentence."""
        return overtaken_words(self.call, self.screen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """The picture holds, and the action is not offered. Nothing was decided."""

    call: Call
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """Something has to be put right: one sentence for each field."""

    call: Call
    errors: dict[str, str]


Result = Made | Asked | Overtaken | Unavailable | Incomplete


def decide(workspace_id: int, form: Form, *, role: Role) -> Result:
    """Makes the form's decision, asks a second person for it, or says why neither.

    Raises `ClaimNotFound`.
    """
    with one_form_at_a_time(form.screen.claim_id):
        result = _decided(workspace_id, form, role=role)
        _keep(workspace_id, form, result)
    return result


def _decided(workspace_id: int, form: Form, *, role: Role) -> Result:
    for _ in range(TRIES_MAX):
        call = queries.call(workspace_id, form.screen.claim_id)
        result = _try(workspace_id, form, call, role)
        if result is not None:
            return result
    return Overtaken(call=queries.call(workspace_id, form.screen.claim_id), screen=form.screen)


def _keep(workspace_id: int, form: Form, result: Result) -> None:
    """The form and its fate go into the record of what was sent; one that is put right does not."""
    kept = submissions.Outcome
    match result:
        case Made():
            submissions.keep(workspace_id, form, kept.MADE, decision_id=result.decision_id)
        case Asked():
            submissions.keep(workspace_id, form, kept.ASKED)
        case Overtaken():
            submissions.keep(workspace_id, form, kept.OVERTAKEN, said=result.because)
        case Unavailable():
            submissions.keep(workspace_id, form, kept.UNAVAILABLE, said=result.action.reason)
        case Incomplete():
            return


def overtaken_words(call: Call, screen: Screen) -> str:
    """Why a picture holds no more: whose decision came first and when, else how much is new."""
    last = call.last_decision
    if last is not None and last.claim_version >= screen.version:
        by = last.decided_by
        name = (by.get_full_name() or by.get_username()) if by else f"The rule {last.rule}"
        label = next((one.label for one in ActionName if one.verdict == last.verdict), "a decision")
        when = instant_words(last.decided_at, call.now)
        return f"{name} decided \u201c{label}\u201d at {when}."
    new = call.claim.version - screen.version
    if new:
        return f"{new} new event{'s' if new != 1 else ''} since it was looked at."
    return "The clock has moved it to another state since it was looked at."


def undo(workspace_id: int, claim_id: UUID, decision_id: int, user_id: int) -> bool:
    """Takes a held decision back. False: it is in force already, or it is held no more."""
    return append.withdraw(workspace_id, claim_id, decision_id, user_id)


def hold_longer(
    workspace_id: int, claim_id: UUID, decision_id: int, user_id: int
) -> datetime | None:
    """Holds a decision longer, within `HOLD_SECONDS_MAX`; answers until when. None: too late."""
    return append.hold_longer(
        workspace_id,
        claim_id,
        decision_id,
        user_id,
        by_seconds=HOLD_LONGER_SECONDS,
        seconds_max=HOLD_SECONDS_MAX,
    )


def action_for(
    workspace_id: int, call: Call, form: Form, *, role: Role
) -> tuple[Action, Situation]:
    """The form's action as its author may do it now, and the situation that it is judged by: an
    allowance is about the held request's own amount."""
    situation = call.situation
    if form.action is ActionName.ALLOW:
        situation = queries.for_held_request(call, form.held_request)
    team = team_of(workspace_id, form.screen.user_id)
    return action(form.action, situation, role=role, team=team), situation


def _try(workspace_id: int, form: Form, call: Call, role: Role) -> Result | None:
    """One attempt; None where the record moved in between and should be read again."""
    made = _made_already(form, call)
    if made is not None:
        return made
    if not picture_holds(call, form.screen, note=form.note):
        return Overtaken(call=call, screen=form.screen)
    act, situation = action_for(workspace_id, call, form, role=role)
    if not act.offered and not (form.ask_second and act.may_ask):
        return Unavailable(call=call, action=act)
    errors = faults(form, call, act)
    if errors:
        return Incomplete(call=call, errors=errors)
    return _write(workspace_id, form, call, act, situation)


def _made_already(form: Form, call: Call) -> Made | Asked | Overtaken | None:
    asked = asking.asked_by(form.screen)
    if asked is not None:
        same = asked.action == form.action
        return (
            Asked(proposal_id=asked.pk, again=True)
            if same
            else Overtaken(call=call, screen=form.screen)
        )
    for decision in call.decisions:
        author = decision.decided_by_id == form.screen.user_id
        if author and bytes(decision.screen_hash or b"") == form.screen.digest:
            return _same_or_overtaken(form, call, decision)
    return None


def _same_or_overtaken(form: Form, call: Call, decision: Any) -> Made | Overtaken | None:
    if form.action is ActionName.ALLOW or decision.verdict == ActionName.ALLOW.verdict:
        # An allowance moves no claim: the next one is made on the same picture.
        same = decision.held_request_id == form.held_request and form.action is ActionName.ALLOW
        return Made(decision_id=decision.pk, again=True) if same else None
    if decision.verdict == form.action.verdict:
        return Made(decision_id=decision.pk, again=True)
    return Overtaken(call=call, screen=form.screen)


def _write(
    workspace_id: int, form: Form, call: Call, act: Action, situation: Situation
) -> Result | None:
    version, evidence = call.claim.version, form.evidence
    if form.note:
        number = _note_number(workspace_id, form, call)
        if number > version + 1:
            return None  # Something was written in between: look again before deciding.
        version, evidence = max(version, number), (*evidence, number)
    if act.needs_second or form.ask_second:
        return _ask(workspace_id, form, call, act, situation, version=version, evidence=evidence)
    consent = Consent(typed=form.typed or None, alone=act.alone)
    try:
        made = write_verdict(
            workspace_id, call, form, version=version, evidence=evidence, consent=consent
        )
    except Stale:
        return None
    except NotOffered as refused:
        return refused_by_record(workspace_id, form.screen.claim_id, form.action, refused)
    if made is None:
        return Unavailable(call=call, action=_answered_meanwhile(form.action))
    return Made(decision_id=made)


def _ask(  # noqa: PLR0913 - all of it is what a request is bound to
    workspace_id: int,
    form: Form,
    call: Call,
    act: Action,
    situation: Situation,
    *,
    version: int,
    evidence: tuple[int, ...],
) -> Result:
    try:
        proposal = asking.ask(
            workspace_id, form, call, act, situation, version=version, evidence=evidence
        )
    except asking.AnotherWaitsError as waits:
        return Unavailable(
            call=call, action=Action(name=form.action, offered=False, reason=str(waits))
        )
    return Asked(proposal_id=proposal.pk)


def write_verdict(
    workspace_id: int,
    call: Call,
    form: Form,
    *,
    version: int,
    evidence: tuple[int, ...],
    consent: Consent,
) -> int | None:
    """The one place where a person's verdict reaches the record. None: the held request of an
    allowance was answered meanwhile. Raises `Stale` and `NotOffered`."""
    verdict = form.action.verdict
    assert verdict is not None, "only verdicts are offered to this function"
    if form.action is ActionName.ALLOW:
        assert form.held_request is not None, "an allowance names its request"
        allowance = NewAllowance(
            claim_version=version,
            user_id=form.screen.user_id,
            reason=form.full_reason,
            evidence=evidence,
            screen_hash=form.screen.digest,
            consent=consent,
        )
        return append.allow(workspace_id, form.held_request, allowance)
    decision = NewDecision(
        verdict=verdict,
        claim_version=version,
        reason=form.full_reason,
        evidence=evidence,
        provider_object=form.provider_object or None,
        objects=form.effects or call.situation.effects if form.action is ActionName.SETTLE else (),
        screen_hash=form.screen.digest,
        user_id=form.screen.user_id,
        hold_seconds=call.situation.hold_seconds,
        consent=consent,
    )
    return append.decide(workspace_id, form.screen.claim_id, decision).decision_id


def _note_number(workspace_id: int, form: Form, call: Call) -> int:
    """The event number of the form's note, which an earlier copy of the form may have written."""
    for event in call.events:
        if event.seq > form.screen.version and is_own_note(event, form.note, form.screen.user_id):
            return event.seq
    return keep_note(
        workspace_id, form.screen.claim_id, user_id=form.screen.user_id, text=form.note
    )


_RECORD_SAYS: Final = {
    "state": "The claim is in another state by now.",
    "no_window": "No window is known, so nobody can say that a second send is safe.",
    "window_closed": "The window, less its margin, has closed.",
    "key_burnt": "The provider has stored a refusal under this key.",
    "sibling": "Another call for the same thing is open or was done later.",
    "effects_not_named": "Not every known effect was named.",
    "running": "An attempt is still running.",
    "second_person": "It needs a second person: another active one, with the role, at this moment.",
    "not_alone": "Somebody else could approve it by now, so it is not decided alone.",
}


def refused_by_record(
    workspace_id: int, claim_id: UUID, name: ActionName, refused: NotOffered
) -> Unavailable:
    said = _RECORD_SAYS.get(str(refused.facts.get("why")), refused.detail)
    refusal = Action(name=name, offered=False, reason=said)
    return Unavailable(call=queries.call(workspace_id, claim_id), action=refusal)


def _answered_meanwhile(name: ActionName) -> Action:
    return Action(name=name, offered=False, reason="The held request was answered meanwhile.")


@contextmanager
def one_form_at_a_time(claim_id: UUID) -> Iterator[None]:
    """Two copies of one form wait for each other, so the second finds what the first has done."""
    name: tuple[int, str] = (_LOCK_CLASS, str(claim_id))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", name)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", name)
