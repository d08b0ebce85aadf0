"""Assigning a call to a person, and taking it from them again: plain forms."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from reconcile.assign import assignments, tasks
from reconcile.pages import call as call_pages
from reconcile.pages.review import number


@require_POST
@membership_required
def assign(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Gives the call to the person whom the form names."""
    require(request, Ability.ASSIGN)
    call_pages.found_call(request, claim_id)
    note = call_pages.clean_text(request.POST.get("note"))
    to_id = number(request.POST.get("to"), default=0)
    if len(note) > assignments.NOTE_CHARACTERS_MAX:
        messages.error(
            request,
            f"Not assigned: a note has at most {assignments.NOTE_CHARACTERS_MAX} characters.",
        )
        return _back(claim_id)
    try:
        given = assignments.assign(
            request.workspace.pk, claim_id, to_id=to_id, by_id=request.user.pk, note=note
        )
    except assignments.NobodyToAssign as nobody:
        messages.error(request, f"Not assigned. {nobody}")
        return _back(claim_id)
    to = given.assignment.assigned_to
    name = "you" if to.pk == request.user.pk else to.get_full_name() or to.get_username()
    if given.again:
        messages.info(request, f"The call is with {name} already.")
    else:
        tasks.tell(
            request.workspace.pk, claim_id, user_id=to.pk, by_id=request.user.pk, why="assigned"
        )
        messages.success(request, f"The call is assigned to {name}.")
    return _back(claim_id)


@require_POST
@membership_required
def unassign(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Gives the call to nobody."""
    require(request, Ability.ASSIGN)
    call_pages.found_call(request, claim_id)
    if assignments.unassign(request.workspace.pk, claim_id, by_id=request.user.pk):
        messages.success(request, "The call is assigned to nobody.")
    else:
        messages.info(request, "The call was assigned to nobody already.")
    return _back(claim_id)


def _back(claim_id: UUID) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#take")
