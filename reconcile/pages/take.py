"""Taking a call, keeping it, giving it back, taking it over with a reason: plain forms."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from reconcile import takes
from reconcile.pages import call as call_pages

CONFLICT = 409


@require_POST
@membership_required
def take(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Takes the call or keeps it; with a reason it is taken over from somebody else."""
    require(request, Ability.TAKE)
    call_pages.found_call(request, claim_id)
    reason = call_pages.clean_text(request.POST.get("reason"))
    try:
        takes.take(request.workspace.pk, claim_id, user_id=request.user.pk, reason=reason)
    except takes.TakenBy as taken:
        user = taken.take.taken_by
        name = user.get_full_name() or user.get_username()
        messages.error(request, f"{name} has this call. Taking it over needs a reason.")
    else:
        messages.success(request, "The call is with you for 10 minutes.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#take")


@require_POST
@membership_required
def keep(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """An open page says that somebody is at it: 200 with until when, 409 where it is not theirs."""
    require(request, Ability.TAKE)
    call_pages.found_call(request, claim_id)
    kept = takes.keep(request.workspace.pk, claim_id, user_id=request.user.pk)
    if kept is None:
        return JsonResponse({"until": None}, status=CONFLICT)
    return JsonResponse({"until": kept.until.isoformat()})


@require_POST
@membership_required
def give_back(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Ends one's own take."""
    require(request, Ability.TAKE)
    call_pages.found_call(request, claim_id)
    if takes.give_back(request.workspace.pk, claim_id, user_id=request.user.pk):
        messages.success(request, "The call is with nobody now.")
    else:
        messages.info(request, "The call was not with you any more.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]))
