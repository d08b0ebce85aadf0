"""The answer to a request for a second person, and taking such a request back."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from reconcile import approve
from reconcile.approve import Answer, AnsweredBefore, NoSuchProposalError, Rejected
from reconcile.asking import Fate
from reconcile.decide import Incomplete, Made, Overtaken, Unavailable
from reconcile.pages import call as call_pages
from reconcile.pages.decision import UNPROCESSABLE, made_response, stale_page

APPROVE, REJECT = "approve", "reject"


@require_POST
@membership_required
def answer(request: DeskRequest, claim_id: UUID, proposal_id: int) -> HttpResponse:
    """Records the second person's yes or no: 422 for a form to be put right, 409 where the request
    is no longer what it was or is not theirs to answer."""
    seen = call_pages.found_call(request, claim_id)
    said = request.POST.get("answer", "")
    if said not in {APPROVE, REJECT}:
        return stale_page(request, seen, screen=None, why="This form was not made by this page.")
    form = Answer(
        proposal_id=proposal_id,
        claim_id=claim_id,
        user_id=request.user.pk,
        approve=said == APPROVE,
        reason=call_pages.clean_text(request.POST.get("reason")),
    )
    try:
        result = approve.answer(request.workspace.pk, form)
    except NoSuchProposalError as missing:
        raise Http404(str(missing)) from missing
    return _response(request, claim_id, form, result)


def _response(
    request: DeskRequest, claim_id: UUID, form: Answer, result: approve.Result
) -> HttpResponse:
    match result:
        case Made() as made:
            return made_response(request, claim_id, made)
        case Rejected() as rejected:
            already = " already" if rejected.again else ""
            messages.success(request, f"The request is rejected{already}. Its author sees why.")
            return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#sa")
        case Incomplete() as incomplete:
            answered = {
                "answer": APPROVE if form.approve else REJECT,
                "reason": form.reason,
                "errors": incomplete.errors,
            }
            return call_pages.call_page(
                request, incomplete.call, typed={}, answered=answered, status=UNPROCESSABLE
            )
        case Overtaken() as overtaken:
            why = "The request is out of date: it has to be asked anew."
            return stale_page(request, overtaken.call, screen=overtaken.screen, why=why)
        case Unavailable() as unavailable:
            why = f"{unavailable.action.label}: {unavailable.action.reason}"
            return stale_page(request, unavailable.call, screen=None, why=why)
        case AnsweredBefore() as before:
            return stale_page(request, before.call, screen=None, why=_who_answered(before))


def _who_answered(before: AnsweredBefore) -> str:
    proposal, fate = before.request.proposal, before.request.fate
    by = proposal.answered_by
    if by is None:
        done = {
            Fate.WITHDRAWN: "taken back by its author",
            Fate.REPLACED: "replaced by a newer one",
        }
        return f"The request was {done.get(fate, str(fate))}."
    name = by.get_full_name() or by.get_username()
    at = f" at {proposal.answered_at:%H:%M:%S} UTC" if proposal.answered_at else ""
    return f"The request was {fate} by {name}{at}."


@require_POST
@membership_required
def take_back(request: DeskRequest, claim_id: UUID, proposal_id: int) -> HttpResponse:
    """The author takes the request back. Too late is said, and is no error."""
    require(request, Ability.WITHDRAW)
    call_pages.found_call(request, claim_id)
    if approve.withdraw(request.workspace.pk, claim_id, proposal_id, request.user.pk):
        messages.success(request, "The request is taken back.")
    else:
        messages.info(request, "This request of yours waits no more; see what became of it below.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#sa")
