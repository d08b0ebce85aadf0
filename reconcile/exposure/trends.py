"""How unknown outcomes went, day by day: lines for a chart, which are rows of a table.

Days are those of the person's zone. A day without anything to measure has no value, not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from effects.models import Tool
from effects.times import duration_words
from reconcile.exposure.days import Days
from reconcile.exposure.words import percent_words

PERIODS: Final = (7, 30, 90)
PERIOD_USUAL: Final = 30
LINES_MAX: Final = 5
"""Most tools with a line of their own, those with the most calls; the others count in the first."""


class Unit(StrEnum):
    PERCENT = "percent"
    SECONDS = "seconds"
    CALLS = "calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One cell: a number, or None where there was nothing to measure, and how it came about."""

    value: float | None
    unit: Unit
    of: str = ""

    @property
    def raw(self) -> str:
        """The number as a script reads it."""
        return "" if self.value is None else f"{self.value:.6g}"

    @property
    def words(self) -> str:
        if self.value is None:
            return "nothing to measure"
        match self.unit:
            case Unit.PERCENT:
                return percent_words(self.value)
            case Unit.SECONDS:
                return duration_words(self.value)
            case Unit.CALLS:
                return f"{self.value:,.0f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: a heading for each line, and for each day a value of each. `total` is that of the
    whole period in words; `why` says what the figure is."""

    name: str
    title: str
    why: str
    unit: Unit
    headings: tuple[str, ...]
    rows: tuple[tuple[date, tuple[Value, ...]], ...]
    total: str

    @property
    def empty(self) -> bool:
        return all(cell.value is None for _, cells in self.rows for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class HowItWent:
    """Of some calls that were unknown. Seconds are from then to a person's decision, or to a rule's
    on a provider's answer; `raced` had a window that is over or that was beaten."""

    decided: int = 0
    by_person: int = 0
    median: float | None = None
    slow: float | None = None
    contradicted: int = 0
    raced: int = 0
    in_time: int = 0

    @property
    def in_time_percent(self) -> float | None:
        return 100 * self.in_time / self.raced if self.raced else None

    @property
    def contradicted_percent(self) -> float | None:
        return 100 * self.contradicted / self.decided if self.decided else None


def charts(workspace_id: int, days: Days, now: datetime) -> list[Chart]:
    """The five charts of a period, in four statements."""
    went = how_it_went(workspace_id, days, now)
    return [
        _unknown_rate(workspace_id, days),
        *_decisions(days, went),
        _backlog(workspace_id, days),
    ]


# How decisions went

_DECIDED: Final = """
SELECT width_bucket(u.ended_at, %(borders)s::timestamptz[]) AS n, count(*) AS decided,
       count(*) FILTER (WHERE u.by = 'person') AS by_person,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM u.ended_at - u.unknown_at))
         AS median,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM u.ended_at - u.unknown_at))
         AS slow,
       count(u.contradicted_at) AS contradicted
  FROM reconcile_unsurecall u
 WHERE u.workspace_id = %(workspace_id)s AND u.ended_at >= %(begins)s AND u.ended_at < %(ends)s
   AND u.by <> 'agent'
 GROUP BY GROUPING SETS ((1), ())
"""
# What is over is over when the key was lost or the call was settled; agents' own late reports are
# no decision, and settle the call all the same.
_RACED: Final = """
SELECT width_bucket(u.race_at, %(borders)s::timestamptz[]) AS n, count(*) AS raced,
       count(*) FILTER (WHERE u.ended_at <= u.window_until) AS in_time
  FROM reconcile_unsurecall u
 WHERE u.workspace_id = %(workspace_id)s AND u.race_at >= %(begins)s
   AND u.race_at < least(%(ends)s, %(now)s)
 GROUP BY GROUPING SETS ((1), ())
"""


def how_it_went(workspace_id: int, days: Days, now: datetime) -> dict[int | None, HowItWent]:
    """By the number of the day (the first is 1), and under None of the whole period."""
    asked = {
        "workspace_id": workspace_id,
        "borders": days.borders,
        "begins": days.begins,
        "ends": days.ends,
        "now": now,
    }
    found: dict[int | None, dict[str, Any]] = {None: {}}
    for statement in (_DECIDED, _RACED):
        for row in _rows(statement, asked):
            found.setdefault(row.pop("n"), {}).update(row)
    return {number: HowItWent(**said) for number, said in found.items()}


def _decisions(days: Days, went: dict[int | None, HowItWent]) -> Iterable[Chart]:
    whole = went[None]
    yield Chart(
        name="time-to-decision",
        title="Time to decision",
        why="from the moment a call became unknown until a person decided, or a rule did on a "
        "provider's answer; by the day of the decision",
        unit=Unit.SECONDS,
        headings=("Median", "95th percentile"),
        rows=_by_day(
            days,
            went,
            lambda one: (
                Value(value=one.median, unit=Unit.SECONDS, of=f"{one.decided:,} decided"),
                Value(value=one.slow, unit=Unit.SECONDS),
            ),
        ),
        total=f"{whole.decided:,} decided, {whole.by_person:,} of them by people"
        + (f"; median {duration_words(whole.median)}" if whole.median is not None else ""),
    )
    yield Chart(
        name="before-window",
        title="Settled while the key was honoured",
        why="of the calls whose window closed or that were settled before it did; by the day on "
        "which that was over",
        unit=Unit.PERCENT,
        headings=("Settled in time",),
        rows=_by_day(
            days,
            went,
            lambda one: (
                Value(
                    value=one.in_time_percent,
                    unit=Unit.PERCENT,
                    of=f"{one.in_time:,} of {one.raced:,}",
                ),
            ),
        ),
        total=_share_words(whole.in_time, whole.raced, whole.in_time_percent),
    )
    yield Chart(
        name="contradicted",
        title="Decisions that turned out otherwise",
        why="contradicted later by the provider or by the agent's late answer; by the day of the "
        "decision, so that recent days may still grow",
        unit=Unit.PERCENT,
        headings=("Contradicted",),
        rows=_by_day(
            days,
            went,
            lambda one: (
                Value(
                    value=one.contradicted_percent,
                    unit=Unit.PERCENT,
                    of=f"{one.contradicted:,} of {one.decided:,}",
                ),
            ),
        ),
        total=_share_words(whole.contradicted, whole.decided, whole.contradicted_percent),
    )


def _by_day(
    days: Days,
    went: dict[int | None, HowItWent],
    values: Callable[[HowItWent], tuple[Value, ...]],
) -> tuple[tuple[date, tuple[Value, ...]], ...]:
    nothing = HowItWent()
    return tuple(
        (day, values(went.get(number, nothing))) for number, day in enumerate(days.days, start=1)
    )


def _share_words(hits: int, of: int, percent: float | None) -> str:
    return (
        "nothing to measure"
        if percent is None
        else (f"{percent_words(percent)}, {hits:,} of {of:,}")
    )


# Unknown rate

_CALLS: Final = """
SELECT width_bucket(s.at, %(borders)s::timestamptz[]) AS n, s.tool_id, sum(s.calls)::int AS calls,
       sum(s.unknown)::int AS unknown
  FROM reconcile_toolslot s
 WHERE s.workspace_id = %(workspace_id)s AND s.at >= %(begins)s AND s.at < %(ends)s
 GROUP BY 1, 2
"""


def _unknown_rate(workspace_id: int, days: Days) -> Chart:
    asked = {
        "workspace_id": workspace_id,
        "borders": days.borders,
        "begins": days.begins,
        "ends": days.ends,
    }
    counted: dict[tuple[int, int], tuple[int, int]] = {}
    calls: dict[int, int] = {}
    for row in _rows(_CALLS, asked):
        counted[row["n"], row["tool_id"]] = (row["unknown"], row["calls"])
        calls[row["tool_id"]] = calls.get(row["tool_id"], 0) + row["calls"]
    busiest = sorted(calls, key=lambda tool_id: (-calls[tool_id], tool_id))[:LINES_MAX]
    names = dict(Tool.objects.filter(pk__in=busiest).values_list("pk", "name")) if busiest else {}

    def cells(number: int) -> tuple[Value, ...]:
        each = [counted.get((number, tool_id), (0, 0)) for tool_id in busiest]
        of_day = [counts for (day, _), counts in counted.items() if day == number]
        return tuple(map(_rate, [_added(of_day), *each]))

    unknown, all_calls = _added(counted.values())
    return Chart(
        name="unknown-rate",
        title="Unknown rate",
        why="of the calls that were granted on a day, those that have been unknown at any time",
        unit=Unit.PERCENT,
        headings=("All tools", *(names[tool_id] for tool_id in busiest)),
        rows=tuple((day, cells(number)) for number, day in enumerate(days.days, start=1)),
        total=_share_words(unknown, all_calls, _rate((unknown, all_calls)).value),
    )


def _added(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = list(counts)
    return sum(unknown for unknown, _ in listed), sum(calls for _, calls in listed)


def _rate(counts: tuple[int, int]) -> Value:
    unknown, calls = counts
    share = 100 * unknown / calls if calls else None
    return Value(value=share, unit=Unit.PERCENT, of=f"{unknown:,} of {calls:,}" if calls else "")


# Backlog

_BACKLOG: Final = """
SELECT width_bucket(b.at, %(borders)s::timestamptz[]) AS n, max(b.calls) AS most
  FROM reconcile_backlog b
 WHERE b.workspace_id = %(workspace_id)s AND b.at >= %(begins)s AND b.at < %(ends)s
 GROUP BY 1
"""


def _backlog(workspace_id: int, days: Days) -> Chart:
    asked = {
        "workspace_id": workspace_id,
        "borders": days.borders,
        "begins": days.begins,
        "ends": days.ends,
    }
    most = {row["n"]: float(row["most"]) for row in _rows(_BACKLOG, asked)}
    peak = max(most.values(), default=None)
    return Chart(
        name="backlog",
        title="Unknown backlog",
        why="calls that were unknown at the beginning of an hour, the most of the day",
        unit=Unit.CALLS,
        headings=("Unknown calls",),
        rows=tuple(
            (day, (Value(value=most.get(number), unit=Unit.CALLS),))
            for number, day in enumerate(days.days, start=1)
        ),
        total="nothing to measure" if peak is None else f"{peak:,.0f} at most",
    )


def _rows(statement: str, asked: dict[str, Any]) -> Sequence[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, asked)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
