"""A turn as a drawing: where every bar, dot, label and tick stands.

Pure: instants come in as seconds since the turn began (or as numbers of events), places go out in
the units of the drawing. Idle time may be left out: where nothing happened for long, the axis has a
gap of one width, however long it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

from ledger.turn_parts.axis import (
    LEFT,
    RIGHT,
    TICK_STEP_MIN,
    Axis,
    axis_of,
    offset_words,
    round_numbers,
)

WIDTH: Final = 1260.0
TOP: Final = 40.0
ROW_HEIGHT: Final = 30.0
BAR_HEIGHT: Final = 22.0
LETTERS_BELOW_MIDDLE: Final = 4.0
LANE_PAD: Final = 6.0
LANE_GAP: Final = 8.0
AXIS_HEIGHT: Final = 40.0

BAR_WIDTH_MIN: Final = 8.0
DOT_STEP_MIN: Final = 24.0
DOT_RADIUS: Final = 9.0
CHARACTER_WIDTH: Final = 6.3
"""A little more than the mean of the sans-serif fonts at the drawing's 11.5 units."""
LABEL_CHARACTERS_MAX: Final = 60
LABEL_GAP: Final = 8.0
LINE_LABELS_Y: Final = (14.0, 28.0)

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
    outside: bool = False

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
        lines=tuple(_lines(lines, axis)),
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
            x = round(one.right + LABEL_GAP, 1)
            yield replace(one, label=text, label_x=x, outside=True)
            free_from = max(free_from, one.right + LABEL_GAP + width)
            continue
        elif one.path and left - width >= free_from:
            x = round(left, 1)
            yield replace(one, label=text, label_x=x, label_end=True, outside=True)
        else:
            yield one
        free_from = max(free_from, one.right)


def _lines(lines: Sequence[Line], axis: Axis) -> Iterator[PlacedLine]:
    """Each line with its words above the lanes, in one of two rows: never over each other's. `now`
    begins below, so that it crosses no words."""
    taken: list[tuple[float, float]] = []
    for line in lines:
        x, width = axis.place(line.at), LABEL_GAP + len(line.words) * CHARACTER_WIDTH
        end = x + width > WIDTH
        reach = (x - width, x) if end else (x, x + width)
        free = all(reach[1] < left or right < reach[0] for left, right in taken)
        high = free and line.kind != "now"
        if high:
            taken.append(reach)
        yield PlacedLine(
            kind=line.kind,
            words=line.words,
            x=x,
            label_y=LINE_LABELS_Y[0 if high else 1],
            label_x=round(x - LABEL_GAP if end else x + LABEL_GAP, 1),
            label_end=end,
        )


def _ticks(axis: Axis, clock: Callable[[float], str] | None) -> Iterator[Tick]:
    """Where a stretch begins, and round numbers inside it, as far as there is room for words. A
    stretch after idle time counts from its own beginning."""
    first = axis.stretches[0].start
    wanted: list[tuple[float, str, str]] = []
    for stretch in axis.stretches:
        words = f"{stretch.start:g}" if clock is None else offset_words(stretch.start - first)
        time = "" if clock is None else clock(stretch.start)
        wanted.append((stretch.start, words, time))
    for stretch in axis.stretches:
        origin = 0.0 if clock is None else stretch.start
        plus = "" if stretch.start == first else "+"
        for at in round_numbers(stretch, origin, whole=clock is None):
            words = f"{at:g}" if clock is None else f"{plus}{offset_words(at - origin)}"
            wanted.append((at, words, ""))
    kept: list[Tick] = []
    for at, words, time in wanted:
        x = axis.place(at)
        if all(abs(x - other.x) >= TICK_STEP_MIN for other in kept):
            kept.append(Tick(x=x, offset=words, clock=time))
    yield from sorted(kept, key=lambda tick: tick.x)
