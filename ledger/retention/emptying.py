"""Emptying in batches: a pass looks at every body of a kind once, and begins anew a day later.

Each batch is one short transaction. Whatever a pass finds undecided it leaves, and the next pass
looks again. Two workers never run one pass at once, and a stopped one goes on where it was.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F

from ledger.queries import clock
from ledger.retention.kinds import Kind
from ledger.retention.models import (
    RetentionFigure,
    RetentionPass,
    RetentionRule,
    RetentionRun,
)

BATCH_MAX: Final = 500
EVERY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one batch did. `ended`: it was the last one of its pass."""

    looked_at: int
    emptied: int
    ended: bool


def run(kinds: Sequence[Kind], *, seconds_max: float) -> int:
    """Goes on with the passes that are due, for `seconds_max` at most; says how much it emptied."""
    until = time.monotonic() + seconds_max
    emptied = 0
    for kind in kinds:
        if not RetentionRule.objects.filter(kind=kind.name).exists():
            continue
        while time.monotonic() < until:
            batch = one_batch(kind)
            if batch is None:
                break
            emptied += batch.emptied
            if batch.ended:
                break
    return emptied


def one_batch(kind: Kind) -> Batch | None:
    """The next batch of the kind's pass. None: the pass is over, or another worker runs it."""
    now = clock()
    RetentionPass.objects.get_or_create(
        kind=kind.name, defaults={"after": kind.first, "began_at": now}
    )
    with transaction.atomic():
        going = (
            RetentionPass.objects.select_for_update(skip_locked=True).filter(kind=kind.name).first()
        )
        if going is None:
            return None
        if going.ended_at is not None:
            if now < going.began_at + EVERY:
                return None
            going.after, going.began_at, going.ended_at = kind.first, now, None
        ids = [row[0] for row in _rows(kind.looked, after=going.after, limit=BATCH_MAX)]
        emptied = _empty(kind, ids, going.began_at, now) if ids else 0
        if ids:
            going.after = ids[-1]
        ended = len(ids) < BATCH_MAX
        going.ended_at = now if ended else None
        going.save()
    return Batch(looked_at=len(ids), emptied=emptied, ended=ended)


def _empty(kind: Kind, ids: list[str], began_at: datetime, now: datetime) -> int:
    by_days: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for one, workspace_id, size, days in _rows(kind.due, ids=ids, now=now):
        by_days[workspace_id, days].append((one, size))
    for (workspace_id, days), found in by_days.items():
        reason = f"Kept for {days} day{'' if days == 1 else 's'}, as the workspace says."
        for statement in kind.empty:
            _execute(statement, ids=[one for one, _ in found], now=now, reason=reason)
        size = sum(size for _, size in found)
        run, _ = RetentionRun.objects.get_or_create(
            workspace_id=workspace_id,
            kind=kind.name,
            began_at=began_at,
            defaults={"last_at": now},
        )
        RetentionRun.objects.filter(pk=run.pk).update(
            last_at=now,
            emptied=F("emptied") + len(found),
            emptied_bytes=F("emptied_bytes") + size,
        )
    return sum(len(found) for found in by_days.values())


def count(kinds: Sequence[Kind], workspace_id: int) -> None:
    """Counts what a workspace keeps of each kind, and what the next pass would empty."""
    for kind in kinds:
        now = clock()
        ((kept, size, oldest),) = _rows(kind.kept, workspace_id=workspace_id)
        ((due,),) = _rows(kind.due_now, workspace_id=workspace_id, now=now)
        RetentionFigure.objects.update_or_create(
            workspace_id=workspace_id,
            kind=kind.name,
            defaults={
                "kept": kept,
                "kept_bytes": size,
                "oldest_at": oldest,
                "due": due,
                "at": now,
            },
        )


def _rows(statement: str, **values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[Any] = cursor.fetchall()
    return found


def _execute(statement: str, **values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
