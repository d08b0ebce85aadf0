"""The page of one call: what is known, what it rests on, and what may be done now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.problems import ClaimNotFound
from ledger import append
from ledger import queries as record
from reconcile import queries, tasks
from reconcile.actions import ActionName, find
from reconcile.calls.runbook import runbook_of
from reconcile.customer import texts
from reconcile.notes.mentions import keep_note
from reconcile.pages.call_parts import (
    asked_part,
    attempts_part,
    evidence_part,
    history_part,
    notes_part,
    trace_of,
)
from reconcile.pages.hidden import hidden_part
from reconcile.pages.review import (
    actions_part,
    chosen_evidence,
    held_part,
    number,
    requests_part,
    review_part,
    safe_actions_for,
)
from reconcile.pages.runs import asking_part
from reconcile.pages.taken import assign_part, take_part
from reconcile.pages.walking import walk_part
from reconcile.queries import Call
from reconcile.verdict import verdict

ASK_SECONDS_MAX: Final = 60
"""How long the page itself keeps looking for an answer that a person asked for."""


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
        "address_of_call": record.link(seen.claim.pk),
        "trace": trace_of(request, seen),
        "may_export": can(request.role, Ability.EXPORT),
        "crumb": request.GET.get("in", ""),
        "may_note": can(request.role, Ability.NOTE),
        "needs_note": needs(Ability.NOTE),
        "asked": _asked(request, seen),
        **asking_part(request, seen),
        **walk_part(request, seen.claim.pk, seen.now),
        "runbook": runbook_of(seen.tool),
        **asked_part(seen),
        **hidden_part(request, seen),
        **attempts_part(request, seen),
        **evidence_part(request, seen),
        **history_part(request, seen),
        **notes_part(request, seen),
        **held_part(seen),
        **requests_part(request, seen, answered),
        **take_part(request, seen),
        **assign_part(request, seen),
        "review": review_part(request, seen, typed),
    }
    return render(request, "reconcile/call.html", context, status=status)


# Asking the provider, and notes


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
