"""A token bucket and a circuit breaker for each account: in Valkey for all, or in one process.

Both keep the same figures by the same rules. Valkey runs a rule as one script, so two workers never
spend the same token. Instants are whole microseconds of the ledger's clock, because both sides
compute in double precision, which is exact up to 2**53.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from reconcile.pacing.rules import NOTE, SPEND, TAKE

TIMEOUT_SECONDS: Final = 0.5
"""How long a question to Valkey may take. Without it the process's own, slower bucket counts."""
KEY: Final = "counterfoil:pace:{}"
KEPT_SECONDS: Final = 24 * 3600
"""An account that nobody asked about for so long has a full bucket and no failures."""
WHOLE: Final = 1 - 1e-9
"""A token that lacks no more than doubles round off is whole."""
MICROSECOND: Final = timedelta(microseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many questions a second on average, and how many at once after a quiet time."""

    per_second: float
    burst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """After `failures_max` in a row the account is left alone, for `first` and then twice as long
    each time, up to `longest`. Then one question tries it, and others wait `trial` for its answer.
    """

    failures_max: int
    first: timedelta
    longest: timedelta
    trial: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a question brought: `in_vain` counts as a failure, `hopeless` as all of them at once.
    `wait_until` is the instant before which the provider asked not to be asked."""

    in_vain: bool
    hopeless: bool = False
    why: str = ""
    wait_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The figures of one account. `tokens` were left at `at`; None: it is full."""

    tokens: float | None = None
    at: datetime | None = None
    failures: int = 0
    open_until: datetime | None = None
    why: str = ""

    def tokens_at(self, now: datetime, rate: Rate) -> float:
        if self.tokens is None or self.at is None:
            return rate.burst
        past = max(0.0, (now - self.at).total_seconds())
        return min(rate.burst, self.tokens + past * rate.per_second)


class Buckets(Protocol):
    """What keeps the figures. `take` answers None where the token was taken, else from when on one
    can be had; nothing is taken then."""

    def take(self, name: int, now: datetime, rate: Rate, breaker: Breaker) -> datetime | None: ...

    def spend(self, name: int, tokens: int, now: datetime, rate: Rate) -> None: ...

    def note(self, name: int, answered: Answered, now: datetime, breaker: Breaker) -> None: ...

    def kept(self, name: int) -> Kept: ...


def micros(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def _instant(text: Any) -> datetime | None:
    number = int(float(text)) if text else 0
    return EPOCH + number * MICROSECOND if number else None


# For all workers


class ValkeyBuckets:
    """Raises `redis.RedisError` or `OSError` where Valkey does not answer in time."""

    def __init__(self, url: str) -> None:
        self._client: Any = redis.Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # Whoever asks has a bucket of their own to go on with: a second try only takes time.
            retry=Retry(NoBackoff(), 0),
        )
        self._take = self._client.register_script(TAKE)
        self._spend = self._client.register_script(SPEND)
        self._note = self._client.register_script(NOTE)

    def take(self, name: int, now: datetime, rate: Rate, breaker: Breaker) -> datetime | None:
        trial = breaker.trial // MICROSECOND
        return _instant(
            self._take(
                keys=[KEY.format(name)],
                args=[*_timed(now, rate), breaker.failures_max, trial, KEPT_SECONDS],
            )
        )

    def spend(self, name: int, tokens: int, now: datetime, rate: Rate) -> None:
        self._spend(keys=[KEY.format(name)], args=[*_timed(now, rate), tokens, KEPT_SECONDS])

    def note(self, name: int, answered: Answered, now: datetime, breaker: Breaker) -> None:
        self._note(
            keys=[KEY.format(name)],
            args=[
                micros(now),
                int(answered.in_vain),
                int(answered.hopeless),
                answered.why,
                micros(answered.wait_until) if answered.wait_until else 0,
                breaker.failures_max,
                breaker.first // MICROSECOND,
                breaker.longest // MICROSECOND,
                KEPT_SECONDS,
            ],
        )

    def kept(self, name: int) -> Kept:
        row = self._client.hgetall(KEY.format(name))
        opens = (_instant(row.get("open_until")), _instant(row.get("limited_until")))
        return Kept(
            tokens=float(row["tokens"]) if "tokens" in row else None,
            at=_instant(row.get("at")),
            failures=int(row.get("failures", 0)),
            open_until=max((one for one in opens if one is not None), default=None),
            why=row.get("why", ""),
        )


def _timed(now: datetime, rate: Rate) -> list[int | float]:
    return [micros(now), rate.per_second / 1_000_000, rate.burst]


# For one process


@dataclass(slots=True)
class _Account:
    tokens: float | None = None
    at: int = 0
    failures: int = 0
    open_until: int = 0
    limited_until: int = 0
    why: str = ""


@dataclass(slots=True)
class LocalBuckets:
    """The same rules for one process; the scripts in `rules` say what each step is for."""

    _accounts: dict[int, _Account] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, name: int, now: datetime, rate: Rate, breaker: Breaker) -> datetime | None:
        with self._lock:
            one, at = self._account(name), micros(now)
            shut = max(one.open_until, one.limited_until)
            if shut > at:
                return _instant(shut)
            _fill(one, at, rate)
            assert one.tokens is not None
            if one.tokens < WHOLE:
                per_micro = rate.per_second / 1_000_000
                return _instant(one.at + math.ceil((1 - one.tokens) / per_micro))
            one.tokens -= 1
            if one.failures >= breaker.failures_max:
                one.open_until = at + breaker.trial // MICROSECOND
            return None

    def spend(self, name: int, tokens: int, now: datetime, rate: Rate) -> None:
        with self._lock:
            one = self._account(name)
            _fill(one, micros(now), rate)
            assert one.tokens is not None
            one.tokens = max(one.tokens - tokens, -60 * rate.per_second)

    def note(self, name: int, answered: Answered, now: datetime, breaker: Breaker) -> None:
        with self._lock:
            one = self._account(name)
            if answered.wait_until is not None:
                one.limited_until = max(one.limited_until, micros(answered.wait_until))
            if not answered.in_vain:
                one.failures, one.open_until = 0, 0
                one.why = one.why if one.limited_until > micros(now) else ""
                return
            one.failures += 1
            one.why = answered.why
            if answered.hopeless:
                one.failures = max(one.failures, breaker.failures_max)
            over = one.failures - breaker.failures_max
            if over >= 0:
                alone = min(breaker.first * 2 ** min(over, 10), breaker.longest)
                one.open_until = micros(now + alone)

    def kept(self, name: int) -> Kept:
        with self._lock:
            one = self._account(name)
            return Kept(
                tokens=one.tokens,
                at=_instant(one.at),
                failures=one.failures,
                open_until=_instant(max(one.open_until, one.limited_until)),
                why=one.why,
            )

    def _account(self, name: int) -> _Account:
        return self._accounts.setdefault(name, _Account())


def _fill(one: _Account, at: int, rate: Rate) -> None:
    if one.tokens is None:
        one.tokens, one.at = rate.burst, at
    elif at > one.at:
        filled = one.tokens + (at - one.at) * (rate.per_second / 1_000_000)
        one.tokens, one.at = min(rate.burst, filled), at
