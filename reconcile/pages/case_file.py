"""A call as a case file: on paper, with everything in its order, and as exact JSON."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects import audit
from effects.access import (
    ROLE_WORDS,
    Ability,
    DeskRequest,
    membership_required,
    require,
    shown_name,
)
from effects.core.vocabulary import EventKind
from effects.pages.settings import shown_times
from ledger import excerpts
from ledger import queries as record
from reconcile import asking
from reconcile.audit import chain, submissions
from reconcile.calls import exporting
from reconcile.calls.extract import EVENTS_READ_MAX
from reconcile.calls.names import names_of
from reconcile.customer import texts
from reconcile.history import line_of
from reconcile.notes.mentions import people_here
from reconcile.pages.call import found_call
from reconcile.pages.call_parts import asked_part, cards_of, note_of
from reconcile.queries import Call
from reconcile.verdict import verdict

ATTEMPTS_PRINTED_MAX: Final = 200
LINES_PRINTED_MAX: Final = 500


@require_safe
@membership_required
def case_file(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Everything that is known about the call, in its order, to be printed. Bodies are digests."""
    seen = found_call(request, claim_id)
    box = verdict(seen.situation)
    context = {
        "now": seen.now,
        "call": seen,
        "claim": seen.claim,
        "situation": seen.situation,
        "box": box,
        "tell": texts.words_for(seen, box.kind),
        "address": record.link(seen.claim.pk),
        "printed_by": shown_name(request.user),
        "role": ROLE_WORDS[request.role],
        "zone": shown_times(request).exact_zone,
        "requests": asking.requests_of(seen),
        "chain_check": chain.last_check(seen.claim.workspace_id),
        "refused_forms": submissions.refused(seen),
        "decision_rows": [
            {"decision": one, "fate": seen.fates.get(one.pk, "")} for one in seen.decisions
        ],
        **asked_part(seen),
        **_attempts(seen),
        **_evidence(seen),
        **_history(seen),
    }
    return render(request, "reconcile/call_print.html", context)


def _attempts(seen: Call) -> dict[str, Any]:
    last = min(seen.claim.fence, ATTEMPTS_PRINTED_MAX)
    rows = excerpts.attempts(seen.claim, first=1, last=last)
    return {"attempts": rows, "attempts_left_out": seen.claim.fence - last}


def _evidence(seen: Call) -> dict[str, Any]:
    """The newest answers in the order in which they came."""
    left_out = seen.extract.sighting_count - len(seen.sightings)
    return {"cards": cards_of(seen, list(seen.sightings[::-1])), "evidence_left_out": left_out}


def _history(seen: Call) -> dict[str, Any]:
    events = list(seen.events)
    if len(events) == EVENTS_READ_MAX:
        version = seen.claim.version + 1
        events = excerpts.stretch(seen.claim, before=version, limit=LINES_PRINTED_MAX)
    names = names_of([*events, *seen.notes], seen.decisions)
    people = people_here(seen.claim.workspace_id) if seen.notes else {}
    return {
        "lines": [line_of(event, names) for event in events if event.kind != EventKind.NOTED],
        "lines_before": events[0].seq - 1 if events else 0,
        "notes": [note_of(event, names, people) for event in seen.notes],
        "notes_left_out": seen.extract.note_count - len(seen.notes),
    }


@require_safe
@membership_required
def export(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """The call as one JSON document, every digit as it was received; that it was taken is kept."""
    require(request, Ability.EXPORT)
    seen = found_call(request, claim_id)
    audit.keep(
        request.workspace.pk,
        "call.exported",
        user_id=request.user.pk,
        target=f"call {claim_id}",
        address=reverse("call", args=[claim_id]),
        after={"version": seen.claim.version},
    )
    response = HttpResponse(exporting.document(seen), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="call-{claim_id}.json"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"
    return response
