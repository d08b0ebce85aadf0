"""What is done beside deciding: putting a call off, waking it, closing a case with a note."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from ledger import append
from reconcile import snoozes
from reconcile.actions import Action, instant_words
from reconcile.pages import call as call_pages


@require_POST
@membership_required
def snooze(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Puts the call off, as long as its window allows."""
    require(request, Ability.SNOOZE)
    seen = call_pages.found_call(request, claim_id)
    done = snoozes.snooze(
        request.workspace.pk,
        claim_id,
        user_id=request.user.pk,
        role=request.role,
        reason=call_pages.clean_text(request.POST.get("reason")),
    )
    if isinstance(done, Action):
        messages.error(request, f"Not snoozed. {done.reason}")
    else:
        until = instant_words(done, seen.now)
        messages.success(
            request, f"Snoozed until {until}. It comes back at once if the provider answers."
        )
    return HttpResponseRedirect(reverse("call", args=[claim_id]))


@require_POST
@membership_required
def wake(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Brings a call back into the queue now."""
    require(request, Ability.SNOOZE)
    call_pages.found_call(request, claim_id)
    if snoozes.wake(request.workspace.pk, claim_id, user_id=request.user.pk):
        messages.success(request, "The call is back in the queue.")
    else:
        messages.info(request, "The call was back in the queue already.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]))


@require_POST
@membership_required
def close_case(request: DeskRequest, claim_id: UUID, case_id: int) -> HttpResponse:
    """Closes a case with what a person found out about it. Asked again, it is open again."""
    require(request, Ability.CLOSE_CASE)
    seen = call_pages.found_call(request, claim_id)
    text = call_pages.clean_text(request.POST.get("note"))
    known = any(other.case_id == case_id for other in seen.others)
    if not known:
        messages.error(request, "No such case belongs to this call.")
    elif not text:
        messages.error(request, "Say what it was: a case is closed with a note.")
    elif len(text) > append.NOTE_CHARACTERS_MAX:
        messages.error(request, f"A note has at most {append.NOTE_CHARACTERS_MAX} characters.")
    elif append.close_case(request.workspace.pk, case_id, request.user.pk, text):
        messages.success(request, "The case is closed.")
    else:
        messages.info(request, "The case was closed already.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#others")
