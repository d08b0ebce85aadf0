"""Days of the record, summed up: in ranges of its indexes, and as often as it takes.

A day is rolled as a whole: what was summed up of it is replaced by what the record says now, in one
transaction, so that doing it again gives the same, and what came late is in the next time. Today is
rolled each time; then days that were never rolled, those with a call that was settled since, and
last the one that was rolled longest ago. So every day of the horizon comes round again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from ledger import queries
from reconcile.exposure import rolling
from reconcile.exposure.models import (
    ExposureLevel,
    RolledDay,
    StreamDay,
    ToolDay,
    ToolSlot,
    UnsureCall,
)

HORIZON_DAYS: Final = 100
"""How far back days are rolled again; a page shows at most ninety of them."""
KEPT_DAYS: Final = 400
"""How long sums are kept, so that a weekly report of last year can be read."""
DAYS_AT_ONCE_MAX: Final = 8
SECONDS_AT_ONCE_MAX: Final = 20.0
"""A day of many claims takes a part of a second; what is left waits for the next minute."""


def roll_due() -> int:
    """Rolls what is due, today first; answers how many days that were."""
    started, rolled = time.monotonic(), 0
    today = queries.clock().astimezone(UTC).date()
    _note_days(today)
    for day in _due_days(today):
        if time.monotonic() - started > SECONDS_AT_ONCE_MAX:
            break
        rolled += roll(day)
    _forget(today)
    return rolled


def roll(day: date) -> bool:
    """Replaces what is kept of one day of UTC. False: somebody else is at it."""
    with transaction.atomic():
        RolledDay.objects.get_or_create(day=day)
        mine = RolledDay.objects.select_for_update(skip_locked=True).filter(day=day).first()
        if mine is None:
            return False
        mine.rolled_at = queries.clock()
        mine.save(update_fields=["rolled_at"])
        for model in (ToolDay, StreamDay, ToolSlot, UnsureCall):
            model.objects.filter(day=day).delete()
        asked = range_of(day)
        for statement in (rolling.UNSURE, rolling.SLOTS):
            _run(statement, asked)
        sums = _Sums()
        sums.take_streams(_run(rolling.STREAMS, asked))
        sums.take_tools(asked)
        StreamDay.objects.bulk_create(sums.of_streams(day))
        ToolDay.objects.bulk_create(sums.of_tools(day))
    return True


@dataclass(slots=True)
class _Sums:
    """What one day's statements answered, by workspace and by tool of it."""

    streams: list[dict[str, Any]] = field(default_factory=list)
    tools: defaultdict[tuple[int, int], dict[str, Any]] = field(
        default_factory=lambda: defaultdict(lambda: {"latency": {}, "gap": {}})
    )

    def take_streams(self, rows: Iterable[dict[str, Any]]) -> None:
        self.streams.extend(rows)

    def take_tools(self, asked: dict[str, Any]) -> None:
        for statement in (rolling.ANNOUNCED, rolling.WIRE):
            for row in _run(statement, asked):
                self._of(row).update(row)
        for name, statement in (("latency", rolling.LATENCY), ("gap", rolling.GAP)):
            for row in _run(statement, asked):
                self._of(row)[name][row["bin"]] = row["n"]

    def _of(self, row: dict[str, Any]) -> dict[str, Any]:
        return self.tools[row.pop("workspace_id"), row.pop("tool_id")]

    def of_streams(self, day: date) -> Iterator[StreamDay]:
        return (StreamDay(day=day, **row) for row in self.streams)

    def of_tools(self, day: date) -> Iterator[ToolDay]:
        for (workspace_id, tool_id), said in self.tools.items():
            yield ToolDay(workspace_id=workspace_id, tool_id=tool_id, day=day, **said)


# Which days


_NOTE: Final = """
INSERT INTO reconcile_rolledday (day)
SELECT d::date FROM generate_series(
    greatest(%(today)s::date - %(horizon)s::int,
             (SELECT min(created_at AT TIME ZONE 'UTC')::date FROM effects_workspace)),
    %(today)s::date, interval '1 day') d
ON CONFLICT DO NOTHING
"""
# A claim's id says when it was made (RFC 9562, version 7), so a day's claims are a range of ids.
_SETTLED_SINCE: Final = """
SELECT DISTINCT r.day
  FROM ledger_due d
  JOIN reconcile_rolledday r
    ON r.day = (uuid_extract_timestamp(d.claim_id) AT TIME ZONE 'UTC')::date
 WHERE d.why = 'settled' AND d.at >= r.rolled_at
"""


def _note_days(today: date) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, {"today": today, "horizon": HORIZON_DAYS})


def _due_days(today: date) -> list[date]:
    with connection.cursor() as cursor:
        cursor.execute(_SETTLED_SINCE)
        settled = [day for (day,) in cursor.fetchall()]
    known = RolledDay.objects.filter(day__gt=today - timedelta(days=HORIZON_DAYS))
    new = known.filter(rolled_at=None).order_by("-day").values_list("day", flat=True)
    oldest = known.exclude(rolled_at=None).order_by("rolled_at").values_list("day", flat=True)
    wanted = [today, *new[:DAYS_AT_ONCE_MAX], *sorted(settled, reverse=True), *oldest[:1]]
    return list(dict.fromkeys(wanted))[:DAYS_AT_ONCE_MAX]


def _forget(today: date) -> None:
    old = today - timedelta(days=KEPT_DAYS)
    if RolledDay.objects.filter(day__lt=old).exists():
        for model in (ToolDay, StreamDay, ToolSlot, UnsureCall, RolledDay):
            model.objects.filter(day__lt=old).delete()
        ExposureLevel.objects.filter(
            at__lt=datetime(old.year, old.month, old.day, tzinfo=UTC)
        ).delete()


# Inside


def range_of(day: date) -> dict[str, Any]:
    """A day of UTC as a range of instants and as one of claim ids; both ends as "from" and
    "before"."""
    begins = datetime(day.year, day.month, day.day, tzinfo=UTC)
    ends = begins + timedelta(days=1)
    return {
        "day": day,
        "begins": begins,
        "ends": ends,
        "first": _first_id(begins),
        "beyond": _first_id(ends),
    }


def _first_id(instant: datetime) -> UUID:
    """The smallest id that a claim of this instant or a later one can have."""
    milliseconds = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return UUID(int=milliseconds << 80)


def _run(statement: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, asked)
        if cursor.description is None:
            return []
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
