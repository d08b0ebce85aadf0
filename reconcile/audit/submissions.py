"""Every form of a decision that was sent is kept, with what became of it: the refused ones too."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from ledger.queries import clock
from reconcile.audit.models import Submission
from reconcile.forms import Form
from reconcile.queries import Call

Outcome = Submission.Outcome
SHOWN_MAX: Final = 20
SAID_CHARACTERS_MAX: Final = 500


def keep(
    workspace_id: int,
    form: Form,
    outcome: Outcome,
    *,
    said: str = "",
    decision_id: int | None = None,
) -> None:
    """Writes the form down. A second copy of it finds the row of the first, which stays."""
    Submission.objects.get_or_create(
        claim_id=form.screen.claim_id,
        form=form.screen.form,
        action=str(form.action),
        defaults={
            "workspace_id": workspace_id,
            "version": form.screen.version,
            "screen_hash": form.screen.digest,
            "session": form.session,
            "sent_by_id": form.screen.user_id,
            "sent_at": clock(),
            "outcome": outcome,
            "said": said[:SAID_CHARACTERS_MAX],
            "decision_id": decision_id,
        },
    )


def refused(call: Call) -> QuerySet[Submission]:
    """The newest forms about a call that were refused, newest first."""
    found = Submission.objects.filter(
        workspace_id=call.claim.workspace_id,
        claim_id=call.claim.pk,
        outcome__in=[Outcome.OVERTAKEN, Outcome.UNAVAILABLE],
    )
    return found.select_related("sent_by").order_by("-pk")[:SHOWN_MAX]
