"""The tables of these pages as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from effects.exporting import Column, Kind
from reconcile.duplicates import listing as duplicates
from reconcile.exposure.facts import ToolRow
from reconcile.exposure.trends import Chart
from reconcile.exposure.weekly import CallRow
from reconcile.models import DuplicateGroup


def exact(number: float | None, places: int = 6) -> Decimal | None:
    """A measured number as a file holds it; None is an empty cell, never zero."""
    return None if number is None else Decimal(f"{number:.{places}f}")


TOOLS: Final[tuple[Column[ToolRow], ...]] = (
    Column(name="tool", read=lambda row: row.tool.name),
    Column(name="class", read=lambda row: row.tool.effect_class),
    Column(
        name="latency_median_seconds",
        kind=Kind.NUMBER,
        read=lambda row: exact(row.measured.latency.typical),
    ),
    Column(
        name="latency_p95_seconds",
        kind=Kind.NUMBER,
        read=lambda row: exact(row.measured.latency.slow),
    ),
    Column(name="latency_samples", kind=Kind.NUMBER, read=lambda row: row.measured.latency.n),
    Column(
        name="gap_median_seconds",
        kind=Kind.NUMBER,
        read=lambda row: exact(row.measured.gap.typical),
    ),
    Column(name="gap_p95_seconds", kind=Kind.NUMBER, read=lambda row: exact(row.measured.gap.slow)),
    Column(name="gap_samples", kind=Kind.NUMBER, read=lambda row: row.measured.gap.n),
    Column(name="window_seconds", kind=Kind.NUMBER, read=lambda row: exact(row.measured.window)),
    Column(name="responses_ended", kind=Kind.NUMBER, read=lambda row: row.measured.ended),
    Column(name="responses_failed", kind=Kind.NUMBER, read=lambda row: row.measured.failures),
    Column(name="failed_in_window", kind=Kind.NUMBER, read=lambda row: row.measured.in_window),
    Column(name="days", kind=Kind.NUMBER, read=lambda row: row.measured.days),
    Column(
        name="expected_a_month", kind=Kind.NUMBER, read=lambda row: exact(row.measured.expected)
    ),
    Column(name="absorbed_by", read=lambda row: str(row.measured.absorbs)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One value of one line on one day."""

    chart: str
    day: date
    line: str
    value: Decimal | None
    unit: str
    of: str


TRENDS: Final[tuple[Column[TrendRow], ...]] = (
    Column(name="chart"),
    Column(name="day"),
    Column(name="line"),
    Column(name="value", kind=Kind.NUMBER),
    Column(name="unit"),
    Column(name="of"),
)


def trend_rows(charts: Iterable[Chart]) -> Iterator[TrendRow]:
    for chart in charts:
        for day, cells in chart.rows:
            for heading, cell in zip(chart.headings, cells, strict=True):
                yield TrendRow(
                    chart=chart.name,
                    day=day,
                    line=heading,
                    value=exact(cell.value, 3),
                    unit=str(cell.unit),
                    of=cell.of,
                )


GROUPS: Final[tuple[Column[DuplicateGroup], ...]] = (
    Column(name="group", kind=Kind.NUMBER, read=lambda one: one.pk),
    Column(name="found_at", kind=Kind.TIME),
    Column(name="rule", read=lambda one: one.get_rule_display()),
    Column(name="tool"),
    Column(name="calls", read=lambda one: " ".join(map(str, one.claim_ids))),
    Column(
        name="at_stake",
        kind=Kind.NUMBER,
        read=lambda one: one.at_stake and one.at_stake.amount,
    ),
    Column(name="currency"),
    Column(name="customer"),
    Column(name="layers", read=duplicates.layer_words),
    Column(name="state", read=lambda one: one.get_state_display()),
)

CALLS: Final[tuple[Column[CallRow], ...]] = (
    Column(name="call", read=lambda row: str(row.call.claim_id)),
    Column(name="tool"),
    Column(name="summary", read=lambda row: row.card and row.card.summary),
    Column(
        name="amount",
        kind=Kind.NUMBER,
        read=lambda row: row.card and row.card.money and row.card.money.amount,
    ),
    Column(name="currency", read=lambda row: row.card and row.card.currency),
    Column(name="unknown_at", kind=Kind.TIME, read=lambda row: row.call.unknown_at),
    Column(name="window_until", kind=Kind.TIME, read=lambda row: row.call.window_until),
    Column(name="settled_at", kind=Kind.TIME, read=lambda row: row.call.ended_at),
    Column(name="settled_by", read=lambda row: row.call.get_by_display()),
    Column(name="contradicted_at", kind=Kind.TIME, read=lambda row: row.call.contradicted_at),
)
