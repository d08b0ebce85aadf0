"""A turn's drawing: where bars, dots, labels and ticks stand, as tables and as laws."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.turn_lanes import (
    BAR_WIDTH_MIN,
    CHARACTER_WIDTH,
    DOT_STEP_MIN,
    WIDTH,
    Drawing,
    Lane,
    Line,
    Mark,
    Placed,
    draw,
)
from ledger.turn_parts.axis import LEFT, RIGHT, axis_of, offset_words

DAY = 86_400.0


def clock(seconds: float) -> str:
    return f"{seconds:g}"


def bar(at: float, until: float, label: str = "x", row: str = "a", **more: object) -> Mark:
    usual = {"lane": Lane.CALLS, "row": row, "at": at, "until": until}
    return Mark(**{**usual, "label": label, "says": label, **more})  # type: ignore[arg-type]  # a mark's own


def dot(at: float, label: str = "absent") -> Mark:
    return Mark(lane=Lane.EVIDENCE, row="", at=at, label=label, says=label)


def drawn(
    *marks: Mark, lines: tuple[Line, ...] = (), idle: bool = False, most: int = 60
) -> Drawing:
    return draw(marks, lines, idle=idle, marks_max=most, clock=clock)


@pytest.mark.parametrize(
    ("instants", "gaps"),
    [
        pytest.param([0, 2, 6.2], 0, id="a busy turn has no gap"),
        pytest.param([0, 6, 34], 1, id="28 s after 6 busy ones are idle"),
        pytest.param([0, 6, 34, 1260, 79_200], 3, id="each long wait is one gap"),
        pytest.param([0, 9, 18, 27, 36], 0, id="waits of 9 s are no idle time"),
        pytest.param([0, 11], 1, id="11 s of nothing are"),
        pytest.param([*range(0, 300, 5), 400], 0, id="100 s after 5 busy minutes are not"),
        pytest.param([0, 30, 60, 90], 3, id="nothing but waits: all of one width"),
        pytest.param([5], 0, id="one instant"),
    ],
)
def test_idle_time_is_left_out_where_it_is_long_beside_the_busy_time(instants, gaps):
    axis = axis_of([float(at) for at in instants], idle=False)
    assert len(axis.gaps) == gaps
    assert axis_of([float(at) for at in instants], idle=True).gaps == ()


def test_with_idle_time_every_second_is_as_long_as_any_other():
    axis = axis_of([0.0, 1.0, 100.0], idle=True)
    assert axis.place(0.0) == LEFT
    assert axis.place(100.0) == RIGHT
    assert axis.place(50.0) == pytest.approx((LEFT + RIGHT) / 2)


SPANS = st.lists(st.floats(0, 20 * 365 * DAY), min_size=1, max_size=80)


@given(SPANS, st.booleans())
@settings(deadline=None)
def test_what_came_later_never_stands_further_left_and_nothing_leaves_the_drawing(instants, idle):
    axis = axis_of(instants, idle=idle)
    places = [axis.place(at) for at in sorted(instants)]
    assert places == sorted(places)
    assert all(LEFT - 0.1 <= place <= RIGHT + 0.1 for place in places)
    assert all(one < two for one, two in itertools.pairwise(axis.gaps))


@given(
    st.lists(st.tuples(st.floats(0, DAY), st.floats(0, DAY), st.text(max_size=80)), max_size=25),
    st.lists(st.floats(0, DAY), max_size=25),
)
@settings(deadline=None)
def test_no_label_lies_over_another_mark_of_its_row(bars, dots):
    marks = [
        *(bar(at, at + long, text, row=str(n % 4)) for n, (at, long, text) in enumerate(bars)),
        *(dot(at) for at in dots),
    ]
    rows: dict[float, list[Placed]] = {}
    for placed in drawn(*marks).marks:
        rows.setdefault(placed.y, []).append(placed)
    for row in rows.values():
        for placed, other in itertools.permutations(row, 2):
            if placed.label and placed.outside:
                width = len(placed.label) * CHARACTER_WIDTH
                left = placed.label_x - width if placed.label_end else placed.label_x
                assert left + width <= WIDTH + 0.1
                # Bars that overlap each other leave no room that is their own.
                assert apart((left, left + width), (other.x, other.right)) or not apart(
                    (placed.x, placed.right), (other.x, other.right)
                )


def apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] <= other[0] + 0.1 or other[1] <= one[0] + 0.1


def test_a_torn_bar_ends_jagged_and_a_whole_one_round():
    torn, whole = drawn(bar(0, 5, torn=True), bar(0, 5, row="b")).marks
    assert re.search(r"H[\d.]+l-5 ", torn.path)
    assert "l-5" not in whole.path


def test_the_shortest_bar_can_still_be_seen_and_hit():
    (placed, _) = drawn(bar(0, 0), bar(0, 100, row="b"), idle=True).marks
    assert placed.right - placed.x == BAR_WIDTH_MIN


def test_dots_at_one_instant_stand_beside_each_other():
    places = [placed.x for placed in drawn(dot(1), dot(1), dot(1), dot(5)).marks]
    steps = [two - one for one, two in itertools.pairwise(places)]
    assert min(steps) >= DOT_STEP_MIN


def test_a_label_stands_inside_its_bar_or_beside_it():
    long, short = drawn(bar(0, 10, "charge"), bar(0, 0.1, "mail", row="b")).marks
    assert (long.label, long.outside) == ("charge", False)
    assert (short.label, short.outside, short.label_end) == ("mail", True, False)
    (last,) = (
        one
        for one in drawn(bar(0, 1), bar(9.9, 10, "a mail", row="b")).marks
        if one.mark.row == "b"
    )
    assert last.label_end, "there is no room to its right"


def test_more_marks_than_are_drawn_are_counted():
    drawing = drawn(*(bar(at, at + 1, row=str(at)) for at in range(8)), most=5)
    assert (len(drawing.marks), drawing.left_out) == (5, 3)


def test_lanes_without_marks_are_left_out_and_the_others_keep_their_order():
    names = [lane.name for lane in drawn(dot(1), bar(0, 1)).lanes]
    assert names == ["Calls", "Evidence"]


def test_the_words_of_lines_do_not_lie_over_each_other():
    lines = (
        Line(at=1.0, words="point of no return, +1 s", kind="ponr"),
        Line(at=1.1, words="first key is forgotten", kind="winend"),
        Line(at=1.2, words="now", kind="now"),
    )
    heights = [line.label_y for line in drawn(bar(0, 10), lines=lines).lines]
    assert heights[0] < heights[1]
    assert heights[2] > heights[0]


def test_a_stretch_after_idle_time_says_its_offset_and_its_time_of_day():
    ticks = drawn(bar(0, 6), dot(3600)).ticks
    assert (ticks[0].offset, ticks[0].clock) == ("0 s", "0")
    assert (ticks[-1].offset, ticks[-1].clock) == ("1 h", "3600")


def test_without_a_clock_the_axis_counts_events_in_whole_numbers():
    drawing = draw([bar(1, 8)], idle=True, marks_max=9)
    assert all(tick.offset.isdigit() for tick in drawing.ticks)
    assert drawing.gaps == ()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.05, "0.05 s"),
        (0.512, "0.51 s"),
        (4.15, "4.15 s"),
        (34.2, "34 s"),
        (3900, "1 h 05 m"),
    ],
)
def test_offsets_are_as_exact_as_they_are_short(seconds, words):
    assert offset_words(seconds) == words
