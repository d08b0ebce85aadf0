"""The page of one call: what is known, what it rests on, and what may be done now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.identity import marker
from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import Verdict
from ledger import append
from ledger import queries as record
from reconcile import listing, queries, tasks
from reconcile.actions import ActionName, find
from reconcile.audit import chain, submissions
from reconcile.customer import texts
from reconcile.history import Line, Names, drawing, line_of
from reconcile.notes.markdown import rendered
from reconcile.notes.mentions import keep_note, people_here
from reconcile.pages.review import (
    actions_part,
    chosen_evidence,
    held_part,
    number,
    pretty,
    requests_part,
    review_part,
    safe_actions_for,
)
from reconcile.pages.runs import asking_part
from reconcile.pages.taken import assign_part, take_part
from reconcile.queries import Call
from reconcile.reading import RAW_CHARACTERS_SHOWN_MAX, argument_rows
from reconcile.verdict import verdict

if TYPE_CHECKING:
    from ledger.models import Decision, Event

ATTEMPTS_SHOWN: Final = 20
EVIDENCE_SHOWN: Final = 10
LINES_SHOWN: Final = 30
ASK_SECONDS_MAX: Final = 60
"""How long the page itself keeps looking for an answer that a person asked for."""
DOWNLOADS: Final = frozenset({"arguments", "raw", "result"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceCard:
    """One answer with its details. `raw` is the beginning of the provider's own bytes."""

    event: Event
    data: dict[str, Any]
    strength: str
    differences: tuple[dict[str, Any], ...]
    raw: queries.RawPreview | None
    rejected: bool


def found_call(request: DeskRequest, claim_id: UUID) -> Call:
    """The call of this workspace. Raises Http404 for another's as for one that never was."""
    try:
        return queries.call(request.workspace.pk, claim_id)
    except ClaimNotFound as missing:
        raise Http404("No call of this workspace has this id.") from missing


@require_safe
@membership_required
def call(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """The page; `?dialog=happened&ev=5` opens the review of a decision on it."""
    return call_page(request, found_call(request, claim_id), typed={})


def call_page(
    request: DeskRequest,
    seen: Call,
    *,
    typed: Mapping[str, Any],
    answered: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Renders the page. `typed` and `answered` are what a form held that has to be put right: that
    of a decision, and that of the answer to a request for a second person."""
    names = names_of(seen)
    box = verdict(seen.situation)
    context = {
        "now": seen.now,
        "call": seen,
        "claim": seen.claim,
        "situation": seen.situation,
        "box": box,
        "tell": texts.words_for(seen, box.kind),
        "may_edit_texts": can(request.role, Ability.EDIT_CUSTOMER_TEXTS),
        "chosen_evidence": chosen_evidence(request, box.cites),
        **actions_part(request, seen),
        "here": request.path,
        "crumb": request.GET.get("in", ""),
        "may_note": can(request.role, Ability.NOTE),
        "needs_note": needs(Ability.NOTE),
        "asked": _asked(request, seen),
        **asking_part(request, seen.claim.pk),
        "next": listing.next_after(request.workspace.pk, seen.claim.pk),
        **_asked_words(seen),
        **_attempts(request, seen),
        **_evidence(request, seen),
        **_history(request, seen, names),
        **held_part(seen),
        **requests_part(request, seen, answered),
        **take_part(request, seen),
        **assign_part(request, seen.claim.pk),
        "review": review_part(request, seen, typed),
    }
    return render(request, "reconcile/call.html", context, status=status)


# Parts of the page


def _asked_words(seen: Call) -> dict[str, Any]:
    text = record.arguments_text(seen.claim)
    keyed = seen.situation.keyed
    return {
        "arguments": argument_rows(text),
        "arguments_text": None if text is None else text[:RAW_CHARACTERS_SHOWN_MAX],
        "arguments_cut": text is not None and len(text) > RAW_CHARACTERS_SHOWN_MAX,
        "arguments_size": None if text is None else len(text.encode()),
        "arguments_digest": bytes(seen.claim.arguments_digest),
        "forwarded_key": seen.claim.key_sent(seen.claim.generation) if keyed else "",
        "marker": marker(seen.claim.pk, seen.claim.generation),
        "marker_reached": [attempt.marker_sent for attempt in seen.attempts][:1],
        "told": pretty(seen.told.for_model),
    }


def _attempts(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The newest attempts, or those before `?before=`."""
    before = number(request.GET.get("before"), default=seen.claim.fence + 1)
    if before <= seen.claim.fence:
        after = max(0, before - 1 - ATTEMPTS_SHOWN)
        older = record.attempts(seen.claim, after_fence=after)
        rows = [attempt for attempt in older if attempt.fence < before][::-1]
    else:
        rows = list(seen.attempts[:ATTEMPTS_SHOWN])
    oldest = rows[-1].fence if rows else 1
    return {"attempts": rows, "older_attempts": oldest if oldest > 1 else None}


def _evidence(request: DeskRequest, seen: Call) -> dict[str, Any]:
    sightings = seen.sightings
    every = request.GET.get("evidence") == "all"
    shown = sightings if every else sightings[:EVIDENCE_SHOWN]
    previews = queries.raw_previews(seen.claim, [event.seq for event in shown])
    rejected = {item.number for item in seen.situation.evidence if item.rejected}
    strength = {item.number: item.strength for item in seen.situation.evidence}
    return {
        "cards": [
            EvidenceCard(
                event=event,
                data=event.data or {},
                strength=strength[event.seq],
                differences=tuple(_differences(event.data or {})),
                raw=previews.get(event.seq),
                rejected=event.seq in rejected,
            )
            for event in shown
        ],
        "evidence_count": len(sightings),
        "evidence_hidden": len(sightings) - len(shown),
    }


def _differences(data: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Requested beside found, field by field; a field that only one side names still shows."""
    requested, found = _texts(data.get("requested")), _texts(data.get("found"))
    for name in dict.fromkeys((*requested, *found)):
        asked, seen = requested.get(name), found.get(name)
        yield {
            "name": name,
            "requested": asked,
            "found": seen,
            "comparable": asked is not None and seen is not None,
            "same": asked == seen,
        }


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(name): str(text) for name, text in value.items()}


def _history(request: DeskRequest, seen: Call, names: Names) -> dict[str, Any]:
    every = request.GET.get("history") == "all"
    events = seen.events if every else seen.events[-LINES_SHOWN:]
    people = people_here(seen.claim.workspace_id) if seen.notes else {}
    lines: list[Line] = [line_of(event, names) for event in events]
    return {
        "lines": lines,
        "lines_hidden": len(seen.events) - len(lines),
        "drawing": drawing(seen.situation),
        "notes": [
            {
                "number": event.seq,
                "at": event.at,
                "html": rendered(str((event.data or {}).get("text", "")), people),
                "by": names.people.get((event.data or {}).get("user_id") or 0, "somebody"),
            }
            for event in seen.notes
        ],
        "chain_check": chain.last_check(seen.claim.workspace_id),
        "refused_forms": submissions.refused(seen),
        "decision_rows": [
            {"decision": made, "fate": seen.fates.get(made.pk, "")}
            for made in reversed(seen.decisions)
        ],
    }


def names_of(seen: Call) -> Names:
    ids = {(event.data or {}).get("user_id") for event in seen.events}
    people = User.objects.filter(pk__in=[pk for pk in ids if isinstance(pk, int)])
    return Names(
        people={user.pk: user.get_full_name() or user.get_username() for user in people},
        authors={made.pk: _author(made) for made in seen.decisions},
        verdicts={made.pk: Verdict(made.verdict) for made in seen.decisions},
    )


def _author(made: Decision) -> str:
    """Who decided: one person, two, one alone where two were needed, or a rule."""
    if made.decided_by is None:
        return f"rule {made.rule}"
    first = made.decided_by.get_full_name() or made.decided_by.get_username()
    if made.approved_by is not None:
        second = made.approved_by.get_full_name() or made.approved_by.get_username()
        return f"{first}, approved by {second}"
    return f"{first}, alone" if made.alone else first


# Asking the provider, notes, and bodies to download


@require_POST
@membership_required
def ask(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Has the provider asked, by a worker. The page then looks for the answer by itself."""
    require(request, Ability.ASK)
    seen = found_call(request, claim_id)
    actions, _ = safe_actions_for(request, seen)
    action = find(actions, ActionName.ASK)
    if not action.offered:
        messages.error(request, f"Nobody was asked. {action.reason}")
        return HttpResponseRedirect(reverse("call", args=[claim_id]))
    tasks.ask_now(request.workspace.pk, claim_id, user_id=request.user.pk)
    query = urlencode({"asked": seen.claim.version, "at": int(seen.now.timestamp())})
    return HttpResponseRedirect(f"{reverse('call', args=[claim_id])}?{query}#answer")


def _asked(request: DeskRequest, seen: Call) -> dict[str, Any] | None:
    """How far the question is that this person has just asked."""
    version = number(request.GET.get("asked"), default=-1)
    if version < 0:
        return None
    answers = [
        event
        for event in seen.sightings
        if event.seq > version and (event.data or {}).get("trigger") == "person"
    ]
    asked_at = number(request.GET.get("at"), default=0)
    waited = int(seen.now.timestamp()) - asked_at
    return {
        "answer": answers[0] if answers else None,
        "waiting": not answers and 0 <= waited <= ASK_SECONDS_MAX,
        "address": f"{reverse('call-answer', args=[seen.claim.pk])}?"
        + urlencode({"asked": version, "at": asked_at}),
    }


@require_safe
@membership_required
def answer(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """The part of the page that waits. It has the page loaded anew once there is something new."""
    seen = found_call(request, claim_id)
    asked = _asked(request, seen)
    if asked is None:
        held_over = seen.held is None
        response = HttpResponse(status=204)
        if held_over:
            response["HX-Refresh"] = "true"
        return response
    context = {"asked": asked, "situation": seen.situation, "now": seen.now}
    response = render(request, "reconcile/_call_answer.html", context)
    if asked["answer"]:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@membership_required
def note(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Adds a person's note: evidence of source "person"."""
    require(request, Ability.NOTE)
    seen = found_call(request, claim_id)
    text = clean_text(request.POST.get("note"))
    again = any(
        (kept.data or {}) == {"text": text, "user_id": request.user.pk} for kept in seen.notes[-1:]
    )
    if not text:
        messages.error(request, "The note was empty, so nothing was kept.")
    elif len(text) > append.NOTE_CHARACTERS_MAX:
        messages.error(request, f"A note has at most {append.NOTE_CHARACTERS_MAX} characters.")
    elif not again:  # The same note sent twice in a row is one note.
        keep_note(request.workspace.pk, claim_id, user_id=request.user.pk, text=text)
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#notes")


def clean_text(text: str | None) -> str:
    """What a person typed, fit to be stored: PostgreSQL keeps no U+0000."""
    return (text or "").replace("\x00", "").replace("\r\n", "\n").strip()


@require_safe
@membership_required
def body(request: DeskRequest, claim_id: UUID, seq: int, name: str) -> HttpResponse:
    """A body as it was received, to keep: never shown by the browser as a page of ours."""
    if name not in DOWNLOADS:
        raise Http404("There is no such body.")
    try:
        claim = record.claim(request.workspace.pk, claim_id)
    except ClaimNotFound as missing:
        raise Http404("No call of this workspace has this id.") from missing
    kept = record.payload(claim, seq, name)
    inline = claim.arguments if name == "arguments" and seq == 0 else None
    if kept is None and inline is None:
        raise Http404("There is no such body.")
    if kept is not None and kept.body is None and inline is None:
        raise Http404(f"This body was emptied: {kept.emptied_reason or 'no reason was kept'}.")
    content = inline.encode() if inline is not None else bytes(kept.body or b"") if kept else b""
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}-{claim_id}-{seq}.txt"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
