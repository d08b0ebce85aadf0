"""An admin has the chain of decisions verified."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from reconcile.audit import chain


@require_POST
@membership_required
def verify(request: DeskRequest) -> HttpResponse:
    """Verifies it now; what was found stands on the page that it leads back to."""
    require(request, Ability.VERIFY_CHAIN)
    check = chain.verify(request.workspace.pk, asked_by=request.user.pk)
    if check.fault:
        messages.error(request, f"The chain of decisions is broken. {check.fault}.")
    else:
        many = f"{check.decisions:,} decision{'s' if check.decisions != 1 else ''}"
        messages.success(request, f"The chain of {many} holds.")
    return HttpResponseRedirect(reverse("audit-log") + "#chain")
