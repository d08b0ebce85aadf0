"""The arithmetic of exposure: pure, without a clock and without a record.

A response that fails after a tool was dispatched leaves an effect that the repeated turn knows
nothing of. The window in which that can happen opens when the dispatcher is called and closes with
the response's terminal event, so it is as long as the tool takes plus the gap that the provider
leaves before that event: one comes after the other, so the two are added. How often it is hit is a
product: responses that fail x those of them that fail in the window x responses in a month.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BIN_RATIO: Final = 1.02
"""Each bin reaches 2 % further than the one before it, so its middle is at most 1 % off."""
MILLISECONDS_PER_SECOND: Final = 1000.0
MONTH_DAYS: Final = 30

TIMES_MIN: Final = 20
"""Fewer times than this have no 95th percentile worth a name."""
RESPONSES_MIN: Final = 100
"""Fewer ended responses than this say nothing of a rate that is usually below one in a hundred."""
FAILURES_MIN: Final = 10
"""Fewer failures than this say nothing of which share of them lies in a window."""
DAYS_MIN: Final = 7
"""Fewer days than this do not show a whole week, and so no month."""
WILSON_Z: Final = 1.959964
"""The normal quantile of a 95 % interval."""


# Times, kept as counts by bin


def bin_of(seconds: float) -> int:
    """The bin of a length of time; anything below a millisecond is in the first."""
    milliseconds = max(seconds * MILLISECONDS_PER_SECOND, 1.0)
    return math.floor(math.log(milliseconds) / math.log(BIN_RATIO))


def middle_of(number: int) -> float:
    """The seconds that stand for all times of a bin: its geometric middle."""
    return math.pow(BIN_RATIO, number + 0.5) / MILLISECONDS_PER_SECOND


def merged(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Several counts by bin as one."""
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """The smallest time that at least this share of all times does not exceed (nearest rank)."""
    total = sum(counts.values())
    rank = max(1, math.ceil(share * total))
    seen = 0
    for number in sorted(counts):
        seen += counts[number]
        if seen >= rank:
            return middle_of(number)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long something took, over `n` times; `typical` is the median, `slow` the 95th percentile.
    Both are None below TIMES_MIN."""

    n: int
    typical: float | None
    slow: float | None

    @property
    def enough(self) -> bool:
        return self.typical is not None

    @property
    def least(self) -> int:
        return TIMES_MIN


def times_of(counts: Mapping[int, int]) -> Times:
    n = sum(counts.values())
    if n < TIMES_MIN:
        return Times(n=n, typical=None, slow=None)
    return Times(n=n, typical=quantile(counts, 0.5), slow=quantile(counts, 0.95))


# Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`hits` out of `of`. `least` is how many there have to be before the share is a figure."""

    hits: int
    of: int
    least: int

    @property
    def enough(self) -> bool:
        return self.of >= self.least

    @property
    def share(self) -> float | None:
        """None where there were too few to say."""
        return self.hits / self.of if self.enough and self.of else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which shares the true one lies, at 95 %, however few there were."""
        return wilson(self.hits, self.of)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's score interval (E. B. Wilson, JASA 22, 1927): honest for rare events, and for none
    at all. Of nothing, everything is possible."""
    if of == 0:
        return 0.0, 1.0
    square = WILSON_Z**2
    share = hits / of
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = (
        WILSON_Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    )
    # At the ends the sum is exact on paper and a rounding error away from it here.
    low = 0.0 if hits == 0 else max(0.0, middle - reach)
    high = 1.0 if hits == of else min(1.0, middle + reach)
    return low, high


# The window and what it costs


def window(latency_seconds: float, gap_seconds: float) -> float:
    """How long a failure leaves an effect without a record: 0.82 s + 0.24 s are 1.06 s."""
    return latency_seconds + gap_seconds


def chance(failure_rate: float, share_in_window: float) -> float:
    """The part of all responses that fail inside the window: 0.6 % x 11 % are 0.066 %."""
    return failure_rate * share_in_window


def expected(failure_rate: float, share_in_window: float, volume: float) -> float:
    """Duplicates to be expected where `volume` responses are asked for: the chance, that often."""
    return chance(failure_rate, share_in_window) * volume


def a_month(count: int, days: int) -> float:
    """What `count` in so many days are in thirty. Raises ValueError without a day."""
    if days < 1:
        raise ValueError("nothing was measured on no day")
    return count * MONTH_DAYS / days


class Absorbs(StrEnum):
    """What stands between a repeated turn and a second effect, besides the claim in the ledger."""

    KEY = "key"  # the provider was seen to get the granted key, the same every time
    NOT_SEEN = "not_seen"  # a key is granted, and nobody's record shows it on the wire
    BROKEN = "broken"  # requests were seen without the key, or with another one
    NOTHING = "nothing"  # the tool has no key


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Requests of a tool that somebody's record shows: with the granted key, another, or none."""

    same: int = 0
    other: int = 0
    missing: int = 0

    def absorbs(self, *, keyed: bool) -> Absorbs:
        if not keyed:
            return Absorbs.NOTHING
        if self.other or self.missing:
            return Absorbs.BROKEN
        return Absorbs.KEY if self.same else Absorbs.NOT_SEEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured about one tool, over `days` days.

    `failures` and `ended` count responses of the whole workspace: one that dies before it announces
    a call cannot be put down to a tool, so the share in the window is one of all failures, and the
    volume is that of all responses. `announced` are those that called this tool.
    """

    latency: Times
    gap: Times
    failures: int
    ended: int
    in_window: int
    announced: int
    days: int
    absorbs: Absorbs

    @property
    def window(self) -> float | None:
        """The typical window in seconds; None while one of its two parts is not measured."""
        if self.latency.typical is None or self.gap.typical is None:
            return None
        return window(self.latency.typical, self.gap.typical)

    @property
    def slow_window(self) -> float | None:
        """With both parts at their 95th percentile: an upper figure, seldom are both slow."""
        if self.latency.slow is None or self.gap.slow is None:
            return None
        return window(self.latency.slow, self.gap.slow)

    @property
    def failure_rate(self) -> Rate:
        return Rate(hits=self.failures, of=self.ended, least=RESPONSES_MIN)

    @property
    def share_in_window(self) -> Rate:
        return Rate(hits=self.in_window, of=self.failures, least=FAILURES_MIN)

    @property
    def volume(self) -> float | None:
        """Responses in a month; None where less than DAYS_MIN days were measured."""
        return a_month(self.ended, self.days) if self.days >= DAYS_MIN else None

    @property
    def chance(self) -> float | None:
        """The part of all responses that leaves a duplicate where nothing absorbs it. None where a
        factor has too few to say, and of a tool that no response called: that says nothing."""
        rate, share = self.failure_rate.share, self.share_in_window.share
        if not self.announced or rate is None:
            return None
        if rate == 0:
            return 0.0  # A share of no failures cannot be measured, and need not be.
        return None if share is None else chance(rate, share)

    @property
    def one_in(self) -> int | None:
        """The same as "one response in so many"."""
        return round(1 / self.chance) if self.chance else None

    @property
    def expected(self) -> float | None:
        """Duplicates a month that nothing absorbs; None where a factor has too few to say."""
        if self.chance is None or self.volume is None:
            return None
        return self.chance * self.volume

    @property
    def expected_bounds(self) -> tuple[float, float] | None:
        """Between which figures that lies at 95 %. It needs no minimum of failures: few of them
        make it wide. None where the volume is not known or too few responses were seen."""
        if self.volume is None or not self.failure_rate.enough or not self.announced:
            return None
        low, high = wilson(self.in_window, self.ended)
        return low * self.volume, high * self.volume


def slowest[Key](windows: Mapping[Key, float | None]) -> Key | None:
    """The tool whose window is the longest, because it and not the average defines the exposure."""
    known = {key: length for key, length in windows.items() if length is not None}
    return max(known, key=lambda key: known[key]) if known else None
