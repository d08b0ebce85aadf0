"""Geometry of the drawings, in their own units; the words beside them are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from effects.money import Money
from reconcile.exposure.levels import Bucket, Levels, money_of
from reconcile.exposure.measuring import Measured
from reconcile.views.filters import Filters, Sort, View

BAR_UNITS: Final = 400.0
SLIVER: Final = 3.0
"""What is there is drawn, however small it is beside the others."""
WINDOW_BEGINS: Final = 640.0
WINDOW_UNITS: Final = 520.0

# Where the calls of a bucket are listed. The queue has no list of open windows alone: they follow
# what closes soon in its usual order.
_LISTS: Final = {
    Bucket.OPEN: Filters(),
    Bucket.SOON: Filters(view=View.CLOSING),
    Bucket.CLOSED: Filters(view=View.LATE),
    Bucket.NONE: Filters(view=View.UNKEYED),
}
OLD_LIST: Final = Filters(sort=Sort.AGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bucket of one currency. `money` is None where the calls name no amount."""

    bucket: Bucket
    address: str
    width: str
    money: Money | None
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The four buckets of one currency; `currency` empty: of the calls that name no amount."""

    currency: str
    bars: tuple[Bar, ...]


def bars(levels: Levels) -> list[Bars]:
    """Four bars for each currency, on a scale of its own: currencies are never compared. Calls
    that name no amount come last, by their number."""
    found = []
    for currency in [*levels.currencies, *([""] if levels.nameless else [])]:
        sizes = {}
        for bucket in Bucket:
            level = levels.of(currency, bucket)
            amount = level.amount if level and currency else None
            sizes[bucket] = amount or Decimal(level.calls if level and not currency else 0)
        most = max(sizes.values()) or Decimal(1)
        found.append(
            Bars(
                currency=currency,
                bars=tuple(
                    _bar(levels, currency, bucket, float(sizes[bucket] / most))
                    for bucket in Bucket
                    if currency or sizes[bucket]
                ),
            )
        )
    return found


def _bar(levels: Levels, currency: str, bucket: Bucket, part: float) -> Bar:
    level = levels.of(currency, bucket)
    width = max(SLIVER, BAR_UNITS * part) if level and part > 0 else 0.0
    return Bar(
        bucket=bucket,
        address=_LISTS[bucket].address(),
        width=f"{width:.1f}",
        money=money_of([level]) if level and currency else None,
        calls=level.calls if level else 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The window of a tool to scale: the tool's time, and the gap after it."""

    begins: float
    latency_width: float
    gap_begins: float
    gap_width: float
    ends: float
    middle: float
    latency: float
    gap: float
    window: float


def picture(measured: Measured) -> Picture | None:
    """None where the window is not measured."""
    latency, gap, window = measured.latency.typical, measured.gap.typical, measured.window
    if latency is None or gap is None or window is None:
        return None
    wide = min(max(WINDOW_UNITS * latency / window, SLIVER), WINDOW_UNITS - SLIVER)
    return Picture(
        begins=WINDOW_BEGINS,
        latency_width=round(wide, 1),
        gap_begins=round(WINDOW_BEGINS + wide, 1),
        gap_width=round(WINDOW_UNITS - wide, 1),
        ends=WINDOW_BEGINS + WINDOW_UNITS,
        middle=WINDOW_BEGINS + WINDOW_UNITS / 2,
        latency=latency,
        gap=gap,
        window=window,
    )
