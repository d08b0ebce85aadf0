"""A turn as a drawing: where every bar, dot, label and tick stands.

Pure: instants come in as seconds since the turn began (or as numbers of events), places go out in
the units of the drawing. Idle time may be left out: where nothing happened for long, the axis has a
gap of one width, however long it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

from effects.times import duration_words

WIDTH: Final = 1260.0
LEFT: Final = 116.0
RIGHT: Final = 1236.0
TOP: Final = 40.0
ROW_HEIGHT: Final = 30.0
BAR_HEIGHT: Final = 22.0
LETTERS_BELOW_MIDDLE: Final = 4.0
LANE_PAD: Final = 6.0
LANE_GAP: Final = 8.0
AXIS_HEIGHT: Final = 40.0

IDLE_SECONDS_MIN: Final = 10.0
"""Nothing shorter is idle. What is, is also longer than all the busy time together."""
GAP_WIDTH: Final = 56.0
STRETCH_WIDTH_MIN: Final = 40.0
BAR_WIDTH_MIN: Final = 8.0
GAPS_SHARE_MAX: Final = 0.7
DOT_STEP_MIN: Final = 24.0
DOT_RADIUS: Final = 9.0
TICK_STEP_MIN: Final = 78.0
CHARACTER_WIDTH: Final = 6.3
"""A little more than the mean of the sans-serif fonts at the drawing's 11.5 units."""
LABEL_CHARACTERS_MAX: Final = 60
LABEL_GAP: Final = 8.0
_NICE: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60),
    *(120, 300, 600, 1800, 3600, 7200, 21_600, 86_400),
)

Shape = Literal["disc", "ring", "ring-dot", "diamond", "dashed", "person"]


class Lane(StrEnum):
    """In the order in which they are drawn."""

    STREAM = "Stream"
    CALLS = "Calls"
    EVIDENCE = "Evidence"
    PEOPLE = "People"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing to draw. With `until` it is a bar from `at`, else a dot. `row`: marks of one lane
    with the same row stand beside each other. `label` is seen, `says` is its accessible name.

    `style` is the class of its colour. `torn`: it broke off there. `unsure`: nobody said that it
    was sent. `tick`: a moment of its own before it, when it was claimed. Dots and labels of agents
    are texts: they are escaped where they are shown.
    """

    lane: Lane
    row: str
    at: float
    until: float | None = None
    tick: float | None = None
    style: str = "b-plain"
    ink: str = ""
    label: str = ""
    says: str
    href: str = ""
    torn: bool = False
    unsure: bool = False
    shape: Shape = "disc"
    inside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A moment that concerns everything: the point of no return, a window's end, now."""

    at: float
    words: str
    kind: Literal["ponr", "winend", "now"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A mark with its place. `path` is the outline of a bar, which ends at `right`; `y` is the
    middle of its row, `tick` the place of the moment before it."""

    mark: Mark
    x: float
    y: float
    right: float
    path: str = ""
    tick: float | None = None
    label: str = ""
    label_x: float = 0.0
    label_end: bool = False

    @property
    def top(self) -> float:
        return self.y - BAR_HEIGHT / 2

    @property
    def base(self) -> float:
        """Where the letters of a label stand."""
        return self.y + LETTERS_BELOW_MIDDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLane:
    name: str
    y: float
    height: float

    @property
    def base(self) -> float:
        return self.y + LANE_PAD + ROW_HEIGHT / 2 + LETTERS_BELOW_MIDDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLine:
    kind: str
    words: str
    x: float
    label_y: float
    label_x: float
    label_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """`clock` is the time of day, said where a stretch begins."""

    x: float
    offset: str
    clock: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """`gaps` are the places where idle time was left out; `left_out` counts marks not drawn."""

    height: float
    lanes: tuple[PlacedLane, ...]
    marks: tuple[Placed, ...]
    lines: tuple[PlacedLine, ...]
    ticks: tuple[Tick, ...]
    gaps: tuple[float, ...]
    bottom: float
    left_out: int
    width: float = WIDTH
    top: float = TOP

    @property
    def axis_y(self) -> float:
        return self.bottom + 17

    @property
    def clock_y(self) -> float:
        return self.bottom + 32


# The axis


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
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

    stretches: tuple[_Stretch, ...]

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
        stretches.append(_Stretch(start=start, end=end, x=x, width=width))
        x += width + gap
    return Axis(stretches=tuple(stretches))


def _idle_after(points: Sequence[float]) -> float:
    steps = [later - earlier for earlier, later in itertools.pairwise(points)]
    return max(IDLE_SECONDS_MIN, sum(step for step in steps if step <= IDLE_SECONDS_MIN))


# The drawing


def draw(
    marks: Sequence[Mark],
    lines: Sequence[Line] = (),
    *,
    idle: bool,
    marks_max: int,
    clock: Callable[[float], str] | None = None,
) -> Drawing:
    """The drawing of these marks, at most `marks_max` of them: the first in their given order.

    `clock` gives the time of day of an instant; without it the axis counts events.
    """
    drawn = marks[:marks_max]
    instants = [at for mark in drawn for at in (mark.tick, mark.at, mark.until) if at is not None]
    axis = axis_of([*instants, *(line.at for line in lines)], idle=idle or clock is None)
    lanes, rows, bottom = _lanes(drawn)
    placed = [_placed(mark, axis, rows[mark.lane, _row(mark)]) for mark in drawn]
    return Drawing(
        height=bottom + AXIS_HEIGHT,
        lanes=lanes,
        marks=tuple(one for row in _by_row(placed) for one in _labelled(_apart(row))),
        lines=tuple(_line(line, axis, n) for n, line in enumerate(lines)),
        ticks=tuple(_ticks(axis, clock)),
        gaps=axis.gaps,
        bottom=bottom,
        left_out=len(marks) - len(drawn),
    )


def _row(mark: Mark) -> str:
    """Evidence and people have one row each; the others one for each stream or call."""
    return mark.row if mark.lane in {Lane.STREAM, Lane.CALLS} else ""


def _lanes(
    marks: Sequence[Mark],
) -> tuple[tuple[PlacedLane, ...], dict[tuple[Lane, str], float], float]:
    """The lanes, the middle of every row, and where the lowest lane ends."""
    lanes, rows, y = [], {}, TOP
    for lane in Lane:
        names = list(dict.fromkeys(_row(mark) for mark in marks if mark.lane is lane))
        if not names:
            continue
        height = len(names) * ROW_HEIGHT + 2 * LANE_PAD
        for number, name in enumerate(names):
            rows[lane, name] = y + LANE_PAD + ROW_HEIGHT * (number + 0.5)
        lanes.append(PlacedLane(name=str(lane), y=y, height=height))
        y += height + LANE_GAP
    return tuple(lanes), rows, y - LANE_GAP


def _placed(mark: Mark, axis: Axis, y: float) -> Placed:
    x = axis.place(mark.at)
    tick = None if mark.tick is None else axis.place(mark.tick)
    if mark.until is None:
        return Placed(mark=mark, x=x, y=y, right=x + DOT_RADIUS, tick=tick)
    width = max(axis.place(max(mark.until, mark.at)) - x, BAR_WIDTH_MIN)
    path = bar_path(x, y, width, torn=mark.torn)
    return Placed(mark=mark, x=x, y=y, right=round(x + width, 1), path=path, tick=tick)


def bar_path(x: float, middle: float, width: float, *, torn: bool) -> str:
    """The outline of a bar with round corners, or with a jagged right end where it broke off."""
    top, right, step = middle - BAR_HEIGHT / 2, round(x + width, 1), BAR_HEIGHT / 4
    if torn:
        end = f"H{right}l-5 {step:g} 6 {step:g}-6 {step:g} 5 {step:g}"
    else:
        end = f"H{round(right - 4, 1)}a4 4 0 0 1 4 4v{BAR_HEIGHT - 8:g}a4 4 0 0 1-4 4"
    left = f"H{x + 4:g}a4 4 0 0 1-4-4V{top + 4:g}a4 4 0 0 1 4-4z"
    return f"M{x + 4:g} {top:g}{end}{left}"


def _by_row(placed: Iterable[Placed]) -> Iterator[list[Placed]]:
    rows: dict[float, list[Placed]] = {}
    for one in placed:
        rows.setdefault(one.y, []).append(one)
    for row in rows.values():
        yield sorted(row, key=lambda one: one.x)


def _apart(row: list[Placed]) -> list[Placed]:
    """Dots that would lie on each other are moved to the right, in their order, while there is
    room."""
    moved: list[Placed] = []
    for one in row:
        least = moved[-1].x + DOT_STEP_MIN if moved else one.x
        if one.path or one.x >= least or least > RIGHT:
            moved.append(one)
        else:
            moved.append(replace(one, x=least, right=least + DOT_RADIUS))
    return moved


def _labelled(row: list[Placed]) -> Iterator[Placed]:
    """Each label inside its bar, or right of it, or left of it, or nowhere: never over another."""
    free_from = LEFT
    for number, one in enumerate(row):
        until = row[number + 1].x - LABEL_GAP if number + 1 < len(row) else WIDTH
        text = one.mark.label[:LABEL_CHARACTERS_MAX]
        width = len(text) * CHARACTER_WIDTH
        left = (one.x if one.tick is None else min(one.tick, one.x)) - LABEL_GAP
        if one.path and width + 2 * LABEL_GAP <= one.right - one.x:
            yield replace(one, label=text, label_x=round(one.x + LABEL_GAP, 1))
        elif one.right + LABEL_GAP + width <= until:
            yield replace(one, label=text, label_x=round(one.right + LABEL_GAP, 1))
            free_from = one.right + LABEL_GAP + width
            continue
        elif one.path and left - width >= free_from:
            yield replace(one, label=text, label_x=round(left, 1), label_end=True)
        else:
            yield one
        free_from = one.right


def _line(line: Line, axis: Axis, number: int) -> PlacedLine:
    x = axis.place(line.at)
    end = x + 12 + len(line.words) * CHARACTER_WIDTH > WIDTH
    return PlacedLine(
        kind=line.kind,
        words=line.words,
        x=x,
        label_y=14.0 + 14 * (number % 2),
        label_x=round(x - LABEL_GAP if end else x + LABEL_GAP, 1),
        label_end=end,
    )


def _ticks(axis: Axis, clock: Callable[[float], str] | None) -> Iterator[Tick]:
    """Where a stretch begins, and round numbers inside it, as far as there is room for words."""
    origin = axis.stretches[0].start if clock is not None else 0.0
    firm = [(s.start, clock(s.start) if clock is not None else "") for s in axis.stretches]
    soft = [(at, "") for s in axis.stretches for at in _round_numbers(s, origin)]
    kept: list[Tick] = []
    for at, time in [*firm, *soft]:
        x = axis.place(at)
        if all(abs(x - other.x) >= TICK_STEP_MIN for other in kept):
            words = offset_words(at - origin) if clock is not None else f"{at:g}"
            kept.append(Tick(x=x, offset=words, clock=time))
    yield from sorted(kept, key=lambda tick: tick.x)


def _round_numbers(stretch: _Stretch, origin: float) -> Iterator[float]:
    length = stretch.end - stretch.start
    if not length or stretch.width < TICK_STEP_MIN:
        return
    wanted = length * TICK_STEP_MIN / stretch.width
    step = next((nice for nice in _NICE if nice >= wanted), wanted)
    number = int((stretch.start - origin) // step) + 1
    while origin + number * step <= stretch.end:
        yield origin + number * step
        number += 1


def offset_words(seconds: float) -> str:
    """How long after the turn's beginning: "0.5 s", "4 s", "21 m", "1 h 05 m"."""
    if 0 < seconds < IDLE_SECONDS_MIN:
        return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds:.2g} s"
    return duration_words(seconds)
