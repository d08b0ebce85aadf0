"""Days and weeks are those of the person's zone, and a week that there is not is none."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.pages.settings import zone_names
from reconcile.exposure.days import Week, begin_of, last_days, read_week, week_of

QUARTER_SECONDS = 900


@pytest.mark.parametrize(
    ("word", "monday"),
    [
        ("2026-W48", date(2026, 11, 23)),
        ("2026-W01", date(2025, 12, 29)),  # the year is that of its Thursday
        ("2026-W53", date(2026, 12, 28)),
        ("2025-W53", None),  # 2025 has 52 weeks
        ("2026-W00", None),
        ("2026-W54", None),
        ("2026-48", None),
        ("2026-W4", None),
        ("9999-W01", None),
        ("1999-W01", None),
        ("٢٠٢٦-W48", None),
        ("", None),
    ],
)
def test_weeks_by_their_words(word: str, monday: date | None) -> None:
    week = read_week(word)
    assert (week.monday if week else None) == monday
    if week is not None:
        assert week.word == word


def test_the_next_week_of_the_last_is_in_the_next_year() -> None:
    assert Week(year=2026, number=53).moved(1).word == "2027-W01"
    assert Week(year=2026, number=1).moved(-1).word == "2025-W52"


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("UTC", date(2026, 3, 29), 24),
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
    ],
)
def test_a_day_is_as_long_as_its_zone_has_it(zone: str, day: date, hours: int) -> None:
    days = last_days(1, begin_of(day, zone), zone)
    assert days.days == (day,)
    assert days.ends - days.begins == timedelta(hours=hours)


def test_today_is_among_the_last_days_and_begins_at_midnight_there() -> None:
    late = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
    assert last_days(7, late, "UTC").days[-1] == date(2026, 11, 30)
    tokyo = last_days(7, late, "Asia/Tokyo")
    assert tokyo.days[-1] == date(2026, 12, 1)
    assert tokyo.borders[-2] == datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
    assert len(tokyo.days) == 7
    assert len(tokyo.borders) == 8


@given(
    zone=st.sampled_from(zone_names()),
    day=st.dates(min_value=date(2020, 1, 1), max_value=date(2035, 12, 31)),
)
def test_every_zones_day_begins_at_a_quarter_of_an_hour(zone: str, day: date) -> None:
    """So sums by quarters add up to the days of any zone."""
    begins = begin_of(day, zone)
    assert begins.timestamp() % QUARTER_SECONDS == 0
    assert begins.astimezone(ZoneInfo(zone)).date() in {day, day - timedelta(days=1)}
    assert week_of(day).monday <= day < week_of(day).moved(1).monday
