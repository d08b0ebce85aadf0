"""The axis of a turn's drawing: where an instant stands, with idle time left out. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from effects.times import duration_words

IDLE_SECONDS_MIN: Final = 10.0
"""Nothing shorter is idle. What is, is also longer than all the busy time together."""
GAP_WIDTH: Final = 56.0
STRETCH_WIDTH_MIN: Final = 40.0
GAPS_SHARE_MAX: Final = 0.7
TICK_STEP_MIN: Final = 78.0
_NICE: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60),
    *(120, 300, 600, 1800, 3600, 7200, 21_600, 86_400),
)
LEFT: Final = 116.0
RIGHT: Final = 1236.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    start: float
    end: float
    x: float
    width: float

    def place(self, at: float) -> float:
        length = self.end - self.start
        return self.x + self.width * ((at - self.start) / length if length else 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Places for instants, in busy stretches with gaps between them."""

    stretches: tuple[Stretch, ...]

    def place(self, at: float) -> float:
        for stretch in self.stretches:
            if at <= stretch.end:
                return round(stretch.place(max(at, stretch.start)), 1)
        last = self.stretches[-1]
        return round(last.place(last.end), 1)

    @property
    def gaps(self) -> tuple[float, ...]:
        pairs = itertools.pairwise(self.stretches)
        return tuple(round((one.x + one.width + two.x) / 2, 1) for one, two in pairs)


def axis_of(instants: Iterable[float], *, idle: bool) -> Axis:
    """The axis for these instants; with `idle` every second is as long as any other."""
    points = sorted(set(instants)) or [0.0]
    busy = [[points[0], points[0]]]
    idle_after = _idle_after(points) if not idle else float("inf")
    for before, point in itertools.pairwise(points):
        if point - before > idle_after:
            busy.append([point, point])
        busy[-1][1] = point
    room = RIGHT - LEFT
    gap = min(GAP_WIDTH, room * GAPS_SHARE_MAX / max(len(busy) - 1, 1))
    least = min(STRETCH_WIDTH_MIN, room * (1 - GAPS_SHARE_MAX) / len(busy))
    spare = room - gap * (len(busy) - 1) - least * len(busy)
    seconds = sum(end - start for start, end in busy)
    stretches, x = [], LEFT
    for start, end in busy:
        width = least + (spare * (end - start) / seconds if seconds else spare / len(busy))
        stretches.append(Stretch(start=start, end=end, x=x, width=width))
        x += width + gap
    return Axis(stretches=tuple(stretches))


def _idle_after(points: Sequence[float]) -> float:
    steps = [later - earlier for earlier, later in itertools.pairwise(points)]
    return max(IDLE_SECONDS_MIN, sum(step for step in steps if step <= IDLE_SECONDS_MIN))


def round_numbers(stretch: Stretch, origin: float, *, whole: bool) -> Iterator[float]:
    """Round numbers inside a stretch, counted from `origin`, as far apart as words need; with
    `whole` no fractions."""
    length = stretch.end - stretch.start
    if not length or stretch.width < TICK_STEP_MIN:
        return
    wanted = length * TICK_STEP_MIN / stretch.width
    step = next((n for n in _NICE if n >= wanted and not (whole and n < 1)), wanted)
    number = int((stretch.start - origin) // step) + 1
    while origin + number * step <= stretch.end:
        yield origin + number * step
        number += 1


def offset_words(seconds: float) -> str:
    """How long after the turn's beginning: "0.5 s", "4 s", "21 m", "1 h 05 m"."""
    if 0 < seconds < IDLE_SECONDS_MIN:
        return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds:.2g} s"
    return duration_words(seconds)
