"""Days and weeks as a person counts them: in the zone that they have set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
YEARS: Final = range(2000, 2101)


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Some days in a row; `borders` are the instants at which they begin, and the end of the last.

    A day is 23 or 25 hours long where clocks are changed.
    """

    zone: str
    days: tuple[date, ...]

    @property
    def borders(self) -> list[datetime]:
        after = self.days[-1] + timedelta(days=1)
        return [begin_of(day, self.zone) for day in (*self.days, after)]

    @property
    def begins(self) -> datetime:
        return self.borders[0]

    @property
    def ends(self) -> datetime:
        return self.borders[-1]


def begin_of(day: date, zone: str) -> datetime:
    """The first instant of the day, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def last_days(count: int, now: datetime, zone: str) -> Days:
    """The last days, today among them."""
    today = now.astimezone(ZoneInfo(zone)).date()
    first = today - timedelta(days=count - 1)
    return Days(zone=zone, days=tuple(first + timedelta(days=n) for n in range(count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """A week of ISO 8601: it begins on Monday and belongs to the year of its Thursday."""

    year: int
    number: int

    @property
    def word(self) -> str:
        return f"{self.year}-W{self.number:02}"

    @property
    def monday(self) -> date:
        return date.fromisocalendar(self.year, self.number, 1)

    def days(self, zone: str) -> Days:
        return Days(zone=zone, days=tuple(self.monday + timedelta(days=n) for n in range(7)))

    def moved(self, weeks: int) -> Week:
        return week_of(self.monday + timedelta(weeks=weeks))


def week_of(day: date) -> Week:
    year, number, _ = day.isocalendar()
    return Week(year=year, number=number)


def read_week(word: str) -> Week | None:
    """The week that "2026-W48" means, or None: there is no 53rd in most years."""
    said = _WEEK.fullmatch(word)
    if said is None or int(said[1]) not in YEARS:
        return None
    try:
        return week_of(date.fromisocalendar(int(said[1]), int(said[2]), 1))
    except ValueError:
        return None
