"""Looking at a value that was hidden before it was stored: once, with a reason, and for the log."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from effects import audit
from effects.access import Ability, DeskRequest, membership_required, require
from effects.core.problems import ClaimNotFound
from ledger import queries as record
from ledger import redacting
from ledger.redacting import Hidden, Unrevealable
from reconcile.pages.call import clean_text
from reconcile.pages.hidden import NAME_WORDS

UNPROCESSABLE: Final = 422
VALUE_CHARACTERS_SHOWN_MAX: Final = 20_000


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def reveal(request: DeskRequest, claim_id: UUID, sealed_id: int, number: int) -> HttpResponse:
    """Asks for a reason; with one, shows the value in this answer and nowhere else."""
    try:
        record.claim(request.workspace.pk, claim_id)
        require(request, Ability.REVEAL)
        one = _listed(request, claim_id, sealed_id, number)
    except ClaimNotFound as missing:
        raise Http404("No call of this workspace has this id.") from missing
    reason = clean_text(request.POST.get("reason"))
    if request.method != "POST":
        return _page(request, claim_id, one)
    if not reason or len(reason) > audit.REASON_CHARACTERS_MAX:
        fault = (
            f"At most {audit.REASON_CHARACTERS_MAX} characters."
            if reason
            else "Say why you have to see it: the reason is kept in the audit log."
        )
        return _page(request, claim_id, one, fault=fault, reason=reason)
    with transaction.atomic():
        try:
            one, value = redacting.revealed(request.workspace.pk, claim_id, sealed_id, number)
        except Unrevealable as cannot:
            return _page(request, claim_id, one, fault=str(cannot), reason=reason)
        audit.keep(
            request.workspace.pk,
            "value.revealed",
            user_id=request.user.pk,
            target=f"{one.path} in the {NAME_WORDS.get(one.name, one.name)} of call {claim_id}",
            address=reverse("call", args=[claim_id]),
            reason=reason,
        )
    return _page(request, claim_id, one, value=value)


def _listed(request: DeskRequest, claim_id: UUID, sealed_id: int, number: int) -> Hidden:
    for one in redacting.hidden_values(request.workspace.pk, claim_id):
        if (one.sealed_id, one.number) == (sealed_id, number):
            return one
    raise Http404("This call has no such hidden value.")


def _page(
    request: DeskRequest,
    claim_id: UUID,
    one: Hidden,
    *,
    value: str | None = None,
    fault: str = "",
    reason: str = "",
) -> HttpResponse:
    context = {
        "claim_id": claim_id,
        "one": one,
        "in": NAME_WORDS.get(one.name, one.name),
        "value": None if value is None else value[:VALUE_CHARACTERS_SHOWN_MAX],
        "cut": value is not None and len(value) > VALUE_CHARACTERS_SHOWN_MAX,
        "fault": fault,
        "reason": reason,
    }
    status = UNPROCESSABLE if fault else 200
    response = render(request, "reconcile/reveal.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
