"""How much is at risk now, by currency and by how long the provider still honours the key.

The queue's own common table is asked, so that the figures here and the lists they lead to agree.
Beside what the queue lists, a call counts that a person stopped without knowing what became of it,
and one that was released and has not run yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from effects.models import Workspace
from effects.money import Money
from ledger import queries
from reconcile import cards
from reconcile.exposure.models import ExposureLevel
from reconcile.queue import CLOSING_SOON, NEEDS_A_PERSON, seen_for
from reconcile.views.filters import View

OLD_DAYS: Final = 7
"""From this age on an undecided call has a tile of its own."""
ALL: Final = "all"
"""The bucket of a row that counts every call, whatever its currency."""


class Bucket(StrEnum):
    """How long the key of a call is still honoured, from the most to the least room."""

    OPEN = "open"
    SOON = "soon"
    CLOSED = "closed"
    NONE = "none"

    @property
    def label(self) -> str:
        return {
            "open": "Open",
            "soon": "Closing within 2 h",
            "closed": "Window closed",
            "none": "No key or not published",
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The calls of one currency in one bucket. `currency` empty: their arguments name no amount.
    `stopped` of them a person closed; `old` are undecided for more than OLD_DAYS."""

    currency: str
    places: int
    bucket: Bucket
    calls: int
    amount: Decimal | None
    stopped: int
    old: int
    old_amount: Decimal | None
    unread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Everything at risk at one instant."""

    rows: tuple[Level, ...]

    @property
    def calls(self) -> int:
        return sum(row.calls for row in self.rows)

    @property
    def stopped(self) -> int:
        return sum(row.stopped for row in self.rows)

    @property
    def old(self) -> int:
        return sum(row.old for row in self.rows)

    @property
    def unread(self) -> int:
        """Calls whose amount is not read yet, so that it is in no sum."""
        return sum(row.unread for row in self.rows)

    @property
    def nameless(self) -> int:
        """Calls that name no amount."""
        return sum(row.calls for row in self.rows if not row.currency)

    @property
    def currencies(self) -> list[str]:
        """Those with an amount, the one of the most calls first."""
        calls: dict[str, int] = {}
        for row in self.rows:
            if row.currency:
                calls[row.currency] = calls.get(row.currency, 0) + row.calls
        return sorted(calls, key=lambda currency: (-calls[currency], currency))

    def sums(self) -> list[Money]:
        return [
            money_of(row for row in self.rows if row.currency == one) for one in self.currencies
        ]

    def old_sums(self) -> list[Money]:
        found = [
            (one, sum(row.old_amount or Decimal(0) for row in self.rows if row.currency == one))
            for one in self.currencies
        ]
        places = {row.currency: row.places for row in self.rows}
        return [
            Money(amount=Decimal(amount).normalize(), currency=one, places=places[one])
            for one, amount in found
            if amount
        ]

    def of(self, currency: str, bucket: Bucket) -> Level | None:
        found = (row for row in self.rows if row.currency == currency and row.bucket is bucket)
        return next(found, None)


def money_of(rows: Any) -> Money:
    """The sum of rows of one currency. Raises ValueError without a row."""
    listed: Sequence[Level] = list(rows)
    if not listed:
        raise ValueError("no row, no currency")
    total = sum((row.amount or Decimal(0) for row in listed), Decimal(0))
    return Money(amount=total.normalize(), currency=listed[0].currency, places=listed[0].places)


_LEVELS: Final = f"""WITH {seen_for(View.OPEN)}
SELECT coalesce(s.currency, '') AS currency,
  CASE WHEN s.effect_class = 'unkeyed_write' OR s.window_until IS NULL THEN 'none'
       WHEN s.window_until <= %(at)s THEN 'closed'
       WHEN s.window_until <= %(soon)s THEN 'soon' ELSE 'open' END AS bucket,
  coalesce(max(s.places), 2) AS places, count(*) AS calls, sum(s.amount) AS amount,
  count(*) FILTER (WHERE s.state = 'closed') AS stopped,
  count(*) FILTER (WHERE s.granted_at < %(old)s AND s.state <> 'closed') AS old,
  sum(s.amount) FILTER (WHERE s.granted_at < %(old)s AND s.state <> 'closed') AS old_amount,
  count(*) FILTER (WHERE s.unread) AS unread
FROM seen s WHERE {NEEDS_A_PERSON} OR s.state IN ('closed', 'released')
GROUP BY 1, 2"""  # noqa: S608 - no word of it is typed


def read_levels(workspace_id: int, now: datetime) -> Levels:
    """What is at risk at `now`, in one statement over the work lists."""
    asked: dict[str, Any] = {
        "workspace_id": workspace_id,
        "at": now,
        "soon": now + CLOSING_SOON,
        "old": now - timedelta(days=OLD_DAYS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_LEVELS, asked)
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    levels = (Level(**row | {"bucket": Bucket(row["bucket"])}) for row in rows)
    return Levels(
        rows=tuple(sorted(levels, key=lambda row: (row.currency, list(Bucket).index(row.bucket))))
    )


def read_filled(workspace_id: int) -> tuple[datetime, Levels]:
    """The same as of now, the amounts that can be read in a moment read first."""
    now = queries.clock()
    levels = read_levels(workspace_id, now)
    if levels.unread and cards.fill(workspace_id=workspace_id):
        now = queries.clock()
        levels = read_levels(workspace_id, now)
    return now, levels


def keep_hour() -> int:
    """Keeps what is at risk, once in an hour for each workspace; answers how many were kept."""
    now = queries.clock()
    hour = now.replace(minute=0, second=0, microsecond=0)
    kept = ExposureLevel.objects.filter(at=hour, bucket=ALL).values("workspace_id")
    workspaces = list(Workspace.objects.exclude(pk__in=kept).values_list("pk", flat=True))
    for workspace_id in workspaces:
        levels = read_levels(workspace_id, now)
        rows = [
            ExposureLevel(
                workspace_id=workspace_id,
                at=hour,
                currency=row.currency,
                bucket=str(row.bucket),
                calls=row.calls,
                amount=row.amount,
                places=row.places,
            )
            for row in levels.rows
        ]
        rows.append(
            ExposureLevel(workspace_id=workspace_id, at=hour, bucket=ALL, calls=levels.calls)
        )
        ExposureLevel.objects.bulk_create(rows, ignore_conflicts=True)
    return len(workspaces)
