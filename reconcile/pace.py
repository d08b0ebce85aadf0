"""How fast one provider account is asked, and when it is left alone for a while.

Kept in the database, because every worker asks the same account. A provider limits reads for the
whole account, the agents' own included (https://docs.stripe.com/rate-limits), so ours stay few.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import connection as database
from django.db import transaction
from django.db.models import Sum

from effects.core.vocabulary import SightingWord
from reconcile.models import ConnectionPace, ConnectionReads

BETWEEN: Final = timedelta(seconds=0.2)
"""Least time between the starts of two look-ups at one account."""
FAILURES_MAX: Final = 5
"""So many look-ups in a row that brought nothing, and the account is left alone."""
ALONE_FIRST: Final = timedelta(seconds=30)
ALONE_MAX: Final = timedelta(minutes=15)

IN_VAIN: Final = frozenset(
    {SightingWord.LOOKUP_FAILED, SightingWord.MISCONFIGURED, SightingWord.RATE_LIMITED}
)

READS_DAYS: Final = 30
READS_MIN: Final = 10_000
"""What Stripe lets every account read in 30 days, whatever its transactions are: 500 for each of
them, and no less than this (https://docs.stripe.com/rate-limits)."""

_COUNT_READS: Final = """
INSERT INTO reconcile_connectionreads AS kept (connection_id, day, reads) VALUES (%s, %s, %s)
ON CONFLICT (connection_id, day) DO UPDATE SET reads = kept.reads + excluded.reads
"""


def count_reads(connection_id: int, reads: int, now: datetime) -> None:
    """Add the requests of one look-up to its account's day."""
    if reads:
        with database.cursor() as cursor:
            cursor.execute(_COUNT_READS, [connection_id, now.date(), reads])


def reads_lately(connection_id: int, now: datetime) -> int:
    """How many requests our look-ups made at the account in the last READS_DAYS days."""
    since = now.date() - timedelta(days=READS_DAYS)
    counted = ConnectionReads.objects.filter(connection_id=connection_id, day__gt=since)
    return counted.aggregate(total=Sum("reads"))["total"] or 0


def may_ask(connection_id: int, now: datetime) -> datetime:
    """From when on the account may be asked. `now` or earlier: at once, and the turn is taken."""
    with transaction.atomic():
        pace = _locked(connection_id, now)
        if pace.alone_until is not None and pace.alone_until > now:
            return pace.alone_until
        if pace.next_at > now + BETWEEN * FAILURES_MAX:
            return pace.next_at
        pace.next_at = max(pace.next_at, now) + BETWEEN
        pace.save(update_fields=["next_at"])
        return now


def note(connection_id: int, word: SightingWord, now: datetime) -> None:
    """Count what the provider answered; after too many in vain the account is left alone.

    A secret that is refused, or an account that is not the right one, ends it at once: that mends
    only by people, and every further question would be one more wrong one.
    """
    with transaction.atomic():
        pace = _locked(connection_id, now)
        if word not in IN_VAIN:
            pace.failures, pace.alone_until = 0, None
        else:
            pace.failures += 1
            if word is SightingWord.MISCONFIGURED:
                pace.failures = max(pace.failures, FAILURES_MAX)
            over = pace.failures - FAILURES_MAX
            if over >= 0:
                pace.alone_until = now + min(ALONE_FIRST * 2 ** min(over, 10), ALONE_MAX)
        pace.save(update_fields=["failures", "alone_until"])


def _locked(connection_id: int, now: datetime) -> ConnectionPace:
    ConnectionPace.objects.get_or_create(connection_id=connection_id, defaults={"next_at": now})
    return ConnectionPace.objects.select_for_update().get(connection_id=connection_id)
