"""Times in words, and what is left of a window."""

from datetime import UTC, datetime, timedelta

import pytest

from effects.times import duration_words, relative_words, window_of

NOW = datetime(2026, 11, 29, 21, 40, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 m"),
        (34 * 60 + 59, "34 m"),
        (3600, "1 h"),
        (3600 + 6 * 60, "1 h 06 m"),
        (23 * 3600 + 59 * 60 + 59, "23 h 59 m"),
        (86_400, "1 d"),
        (2 * 86_400 + 4 * 3600, "2 d 4 h"),
        (30 * 86_400 + 3600, "30 d"),
        (-5, "0 s"),
    ],
)
def test_durations_are_cut_and_never_rounded_up(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@pytest.mark.parametrize(
    ("away", "words"),
    [
        (timedelta(minutes=34, seconds=4), "in 34 m"),
        (timedelta(seconds=-12), "12 s ago"),
        (timedelta(seconds=0.5), "now"),
        (timedelta(hours=-1, minutes=-6), "1 h 06 m ago"),
    ],
)
def test_distances_name_their_direction(away: timedelta, words: str) -> None:
    assert relative_words(NOW + away, NOW) == words


@pytest.mark.parametrize(
    ("keyed", "left", "kind"),
    [
        pytest.param(True, 20 * HOUR, "open", id="most of the day is left"),
        pytest.param(True, 6 * HOUR, "open", id="a quarter exactly is not yet soon"),
        pytest.param(True, 6 * HOUR - timedelta(seconds=1), "soon", id="less than a quarter"),
        pytest.param(True, timedelta(seconds=1), "soon", id="the last second"),
        pytest.param(True, timedelta(0), "gone", id="the last instant is too late"),
        pytest.param(True, -HOUR, "gone", id="closed an hour ago"),
        pytest.param(True, None, "unpub", id="a key whose life nobody published"),
        pytest.param(False, None, "none", id="no key"),
        pytest.param(False, 20 * HOUR, "none", id="no key, whatever else is stored"),
    ],
)
def test_windows_say_what_is_left(*, keyed: bool, left: timedelta | None, kind: str) -> None:
    until = None if left is None else NOW + left
    start = NOW - 4 * HOUR if until is None else until - 24 * HOUR
    assert window_of(keyed=keyed, start=start, until=until, now=NOW).kind == kind


def test_the_last_two_looks_are_notched() -> None:
    start = NOW - 4 * HOUR
    window = window_of(keyed=True, start=start, until=start + 24 * HOUR, now=NOW)
    assert window.share == pytest.approx(20 / 24)
    assert window.checks == pytest.approx((22 / 24, 23.75 / 24))


def test_a_short_window_has_no_notch_before_its_start() -> None:
    window = window_of(keyed=True, start=NOW, until=NOW + HOUR, now=NOW)
    assert window.checks == pytest.approx((0.75,))
