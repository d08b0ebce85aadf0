"""A look-up of one call is a run of one call, written down when it is over."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db import transaction

from ledger import queries
from reconcile.models import Run, RunItem
from reconcile.runs import recording

if TYPE_CHECKING:
    from reconcile.investigate import Asking, Looked, Question

_TRIGGERS: Final = frozenset(Run.Trigger.values)


def record(
    question: Question, asking: Asking, looked: Looked, *, began: datetime, reads: int
) -> None:
    """Keeps the look-up. One that belongs to a run already is kept there."""
    if asking.run_id is not None:
        return
    claim, now = question.read.claim, queries.clock()
    person = asking.user_id if asking.by_a_person else None
    with transaction.atomic():
        run = Run.objects.create(
            workspace_id=claim.workspace_id,
            connection=question.connection,
            trigger=asking.trigger if asking.trigger in _TRIGGERS else Run.Trigger.SCHEDULE,
            scope={"ids": [str(claim.pk)]},
            words=f"{question.read.tool.name[:150]}, 1 call",
            state=Run.State.DONE,
            started_by_id=person,
            made_at=began,
            started_at=began,
            ended_at=now,
            reads=reads,
        )
        item = RunItem.objects.create(run=run, claim_id=claim.pk)
        recording.record(run.pk, looked, item, now, dry=False)
