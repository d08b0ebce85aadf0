"""How fast one provider account is asked, and when it is left alone for a while.

Every worker asks the same account, so the count is kept in Valkey. A provider limits reads for the
whole account, the agents' own included (https://docs.stripe.com/rate-limits), so ours stay few.
While Valkey is away each process counts for itself and asks a tenth as often: many processes
together then still ask no more than one bucket would let them, and asking never stops.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import redis
from django.conf import settings
from django.db import connection as database
from django.db.models import Sum

from effects.contracts import contract_of
from effects.core.vocabulary import SightingWord
from reconcile.models import ConnectionReads
from reconcile.pacing.buckets import (
    Answered,
    Breaker,
    Buckets,
    Kept,
    LocalBuckets,
    Rate,
    ValkeyBuckets,
)

logger = logging.getLogger(__name__)

OUR_SHARE: Final = 5
"""Of the tightest limit that a provider publishes for a minute or less, a fifth is ours: the agents
ask at the same account. The figures stand in `effects/contracts/data`."""
BRIEF_SECONDS: Final = 60
RATE: Final = Rate(per_second=5.0, burst=5)
"""Where no limit is published: requests a second on average, and after a quiet time at once."""
ALONE_SHARE: Final = 10
"""A process that counts for itself asks this many times more slowly."""
AWAY_SECONDS: Final = 5.0
"""How long a process goes on by itself before it looks for Valkey again."""

FAILURES_MAX: Final = 5
"""So many look-ups in a row that brought nothing, and the account is left alone."""
ALONE_FIRST: Final = timedelta(seconds=30)
ALONE_MAX: Final = timedelta(minutes=15)
TRIAL: Final = timedelta(seconds=30)
"""How long the others wait for the one look-up that tries an account which was left alone."""
RETRY_AFTER_MAX: Final = timedelta(days=1)
"""A longer Retry-After is taken for this one: a mistyped header must not end the asking."""

IN_VAIN: Final = frozenset(
    {SightingWord.LOOKUP_FAILED, SightingWord.MISCONFIGURED, SightingWord.RATE_LIMITED}
)
_WHY: Final = {
    SightingWord.LOOKUP_FAILED: "It gave no answer.",
    SightingWord.MISCONFIGURED: "It refused the look-up, or is not the account that was meant.",
    SightingWord.RATE_LIMITED: "It asked for fewer questions.",
}

READS_DAYS: Final = 30
READS_MIN: Final = 10_000
"""What Stripe lets every account read in 30 days, whatever its transactions are: 500 for each of
them, and no less than this (https://docs.stripe.com/rate-limits)."""
READS_PER_TRANSACTION: Final = 500
READS_SLOW_FROM: Final = 0.8
"""From this share of the allowance on, what is left of it has to last for a day."""
DAY_SECONDS: Final = 24 * 3600
ALLOWED_KINDS: Final = frozenset({"stripe"})
"""The kinds of connections whose provider publishes an allowance of reads."""

BREAKER: Final = Breaker(
    failures_max=FAILURES_MAX, first=ALONE_FIRST, longest=ALONE_MAX, trial=TRIAL
)
_CONTRACTS: Final = {"stripe": "stripe.v1"}
"""The contract of a kind of connection, where it has another name."""

_COUNT_READS: Final = """
INSERT INTO reconcile_connectionreads AS kept (connection_id, day, reads) VALUES (%s, %s, %s)
ON CONFLICT (connection_id, day) DO UPDATE SET reads = kept.reads + excluded.reads
"""
_READS_OF_KIND: Final = """
SELECT c.kind, coalesce(sum(r.reads), 0) FROM effects_connection c
LEFT JOIN reconcile_connectionreads r ON r.connection_id = c.id AND r.day > %s
WHERE c.id = %s GROUP BY c.kind
"""
# Ids are ordered by time. Only as many are counted as change the answer.
_TRANSACTIONS: Final = """
SELECT count(*) FROM (
  SELECT FROM ledger_claim k JOIN effects_tool t ON t.id = k.tool_id
  WHERE t.connection_id = %s AND k.state = 'completed' AND k.id > uuidv7(%s::interval)
  LIMIT %s) counted
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How many of its reads an account has used up in READS_DAYS days. `reads_max` may be more than
    is said: counting ends where more would not matter."""

    reads: int
    reads_max: int

    @property
    def left(self) -> int:
        return max(0, self.reads_max - self.reads)

    @property
    def slows(self) -> bool:
        return self.reads >= self.reads_max * READS_SLOW_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an account is asked at this moment, for a page.

    `tokens` of `rate.burst` are there; `open_until`: it is left alone until then, and `why` says
    for what. `shared`: the figures are those of all workers, not of this process alone. `allowance`
    is None where the provider publishes none.
    """

    rate: Rate
    tokens: float
    failures: int
    open_until: datetime | None
    why: str
    shared: bool
    allowance: Allowance | None

    @property
    def slowed_by_allowance(self) -> bool:
        return self.allowance is not None and self.allowance.slows


# Asking


def may_ask(connection_id: int, now: datetime, *, urgent: bool = False) -> datetime:
    """From when on the account may be asked. `now` or earlier: at once, and the turn is taken.

    `urgent`: a window is closing or a person waits, so an allowance that runs out slows nothing.
    """
    rate = rate_of(connection_id, now, urgent=urgent)

    def take(buckets: Buckets, share: int) -> datetime | None:
        return buckets.take(connection_id, now, _shared_out(rate, share), BREAKER)

    return _counted(take) or now


def note(
    connection_id: int,
    word: SightingWord,
    now: datetime,
    *,
    retry_after_seconds: int | None = None,
) -> None:
    """Count what the provider answered; after too many in vain the account is left alone.

    A secret that is refused, or an account that is not the right one, ends it at once: that mends
    only by people, and every further question would be one more wrong one. A Retry-After is obeyed
    by everybody.
    """
    wait = timedelta(seconds=max(0, retry_after_seconds or 0))
    answered = Answered(
        in_vain=word in IN_VAIN,
        hopeless=word is SightingWord.MISCONFIGURED,
        why=_WHY.get(word, ""),
        wait_until=now + min(wait, RETRY_AFTER_MAX) if wait else None,
    )
    # The process keeps count as well, so that it knows what to leave alone when Valkey goes away.
    _own().note(connection_id, answered, now, BREAKER)
    _counted(lambda buckets, _: buckets.note(connection_id, answered, now, BREAKER), own=False)


def spend(connection_id: int, requests: int, now: datetime) -> None:
    """Pay for the requests of a reading beyond the first, for which `may_ask` took the token."""
    if requests > 0:
        rate = rate_of(connection_id, now)
        _counted(lambda buckets, _: buckets.spend(connection_id, requests, now, rate))


# Reading the figures


def standing(connection_id: int, now: datetime) -> Standing:
    """How the account is asked at this moment."""
    rate = rate_of(connection_id, now)
    shared: list[bool] = []

    def read(buckets: Buckets, share: int) -> tuple[Kept, Rate]:
        shared.append(share == 1)
        return buckets.kept(connection_id), _shared_out(rate, share)

    kept, rate = _counted(read)
    shut = kept.open_until is not None and kept.open_until > now
    return Standing(
        rate=rate,
        tokens=max(0.0, kept.tokens_at(now, rate)),
        failures=kept.failures,
        open_until=kept.open_until if shut else None,
        why=kept.why if shut or kept.failures else "",
        shared=shared[-1],
        allowance=allowance(connection_id, now),
    )


def left_alone(connection_ids: Iterable[int]) -> dict[int, str]:
    """The accounts whose newest questions were all in vain, so that they are left alone, and why.

    It stays so until one question is answered, also while one tries the account. Asks no database.
    """
    wanted = list(connection_ids)
    kept = _counted(lambda buckets, _: {one: buckets.kept(one) for one in wanted})
    return {one: found.why for one, found in kept.items() if found.failures >= FAILURES_MAX}


def rate_of(connection_id: int, now: datetime, *, urgent: bool = False) -> Rate:
    """How fast the account may be asked. What is not urgent is slowed by an allowance that runs
    out: what is left of it has to last for a day, and is spread anew on the next one."""
    kind, reads = _kind_and_reads(connection_id, now)
    published = _published(kind)
    used = None if urgent else _allowance(connection_id, kind, reads)
    if used is None or not used.slows:
        return published
    # Never quite nothing: an account that is never asked would never be known to have recovered.
    return Rate(per_second=min(published.per_second, max(used.left, 1) / DAY_SECONDS), burst=1)


@cache
def _published(kind: str) -> Rate:
    terms = contract_of(_CONTRACTS.get(kind, kind))
    limits = terms.limits if terms else ()
    brief = [one.requests / one.seconds for one in limits if one.seconds <= BRIEF_SECONDS]
    return Rate(per_second=min(brief) / OUR_SHARE, burst=RATE.burst) if brief else RATE


# The allowance


def count_reads(connection_id: int, reads: int, now: datetime) -> None:
    """Add the requests of one look-up to its account's day."""
    if reads:
        with database.cursor() as cursor:
            cursor.execute(_COUNT_READS, [connection_id, now.date(), reads])


def reads_lately(connection_id: int, now: datetime) -> int:
    """How many requests our look-ups made at the account in the last READS_DAYS days."""
    counted = ConnectionReads.objects.filter(connection_id=connection_id, day__gt=_since(now))
    return counted.aggregate(total=Sum("reads"))["total"] or 0


def allowance(connection_id: int, now: datetime) -> Allowance | None:
    """What the account has read of what it may, or None where no allowance is published.

    Calls of this desk that happened count as its transactions; it may have many more, which only
    makes us more careful than we had to be.
    """
    return _allowance(connection_id, *_kind_and_reads(connection_id, now))


def _kind_and_reads(connection_id: int, now: datetime) -> tuple[str, int]:
    with database.cursor() as cursor:
        cursor.execute(_READS_OF_KIND, [_since(now), connection_id])
        kind, reads = cursor.fetchone() or ("", 0)
    return kind, int(reads)


def _allowance(connection_id: int, kind: str, reads: int) -> Allowance | None:
    if kind not in ALLOWED_KINDS:
        return None
    used = Allowance(reads=reads, reads_max=READS_MIN)
    if not used.slows:
        return used
    enough = int(reads / READS_SLOW_FROM / READS_PER_TRANSACTION) + 1
    with database.cursor() as cursor:
        cursor.execute(_TRANSACTIONS, [connection_id, f"-{READS_DAYS} days", enough])
        (transactions,) = cursor.fetchone()
    return replace(used, reads_max=max(READS_MIN, READS_PER_TRANSACTION * transactions))


def _since(now: datetime) -> Any:
    return now.date() - timedelta(days=READS_DAYS)


# Valkey, or this process


@cache
def _own() -> LocalBuckets:
    return LocalBuckets()


@cache
def _valkey(url: str) -> ValkeyBuckets:
    return ValkeyBuckets(url)


_away_until = [0.0]
"""By this process's own running clock: until when it does not look for Valkey."""


def look_for_valkey() -> None:
    """Has the next question look for Valkey, however lately it was away."""
    _away_until[0] = 0.0


def _counted[T](ask: Callable[[Buckets, int], T], *, own: bool = True) -> T:
    """The answer of the shared buckets; where they are away, that of this process's own."""
    url = settings.COUNTERFOIL_VALKEY_URL
    if url and time.monotonic() >= _away_until[0]:
        try:
            return ask(_valkey(url), 1)
        except (redis.RedisError, OSError) as failure:
            _away_until[0] = time.monotonic() + AWAY_SECONDS
            logger.warning("Valkey is away, each worker asks more slowly by itself: %s", failure)
    return ask(_own() if own else LocalBuckets(), ALONE_SHARE)


def _shared_out(rate: Rate, share: int) -> Rate:
    return rate if share == 1 else Rate(per_second=rate.per_second / share, burst=1)
