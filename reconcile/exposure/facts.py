"""What was measured in the last thirty days, read from the sums of its days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.db.models import Count, Max, Min, Q, Sum

from effects.core.vocabulary import EffectClass
from effects.models import Tool
from reconcile.exposure.measuring import (
    MONTH_DAYS,
    Measured,
    Wire,
    merged,
    slowest,
    times_of,
)
from reconcile.exposure.models import RolledDay, StreamDay, ToolDay

TOOLS_MAX: Final = 200
"""Most write tools that the page lists, in the order of their names."""
_SUMS: Final = ("responses", "in_window", "wire_same", "wire_other", "wire_missing")
_ENDS: Final = ("success", "incomplete", "error_event", "cut")
"""Ends that count as ended: a response that its own reader cancelled neither ended nor failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The responses of the period by how they ended, over `days` days from the first of them."""

    success: int = 0
    incomplete: int = 0
    error_event: int = 0
    cut: int = 0
    cancelled: int = 0
    without_end: int = 0
    in_window: int = 0
    days: int = 0

    @property
    def ended(self) -> int:
        return self.success + self.incomplete + self.failed

    @property
    def failed(self) -> int:
        return self.error_event + self.cut

    @property
    def seen(self) -> int:
        return self.ended + self.cancelled + self.without_end


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    tool: Tool
    measured: Measured
    wire: Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`rows` are the write tools, the longest window first; `slowest` defines the exposure.
    `behind` days of the period have not been summed up yet; `rolled_at` is when today was."""

    streams: Streams
    rows: tuple[ToolRow, ...]
    slowest: ToolRow | None
    behind: int
    rolled_at: datetime | None

    @property
    def busiest(self) -> ToolRow | None:
        """The tool that most responses called, for where no window is measured."""
        called = [row for row in self.rows if row.measured.announced]
        return max(called, key=lambda row: row.measured.announced, default=None)


def read_facts(workspace_id: int, now: datetime) -> Facts:
    """The period that ends at `now`, in four statements whatever the number of tools and calls."""
    today = now.astimezone(UTC).date()
    since = today - timedelta(days=MONTH_DAYS - 1)
    streams = _streams(workspace_id, since, today)
    sums = _tool_days(workspace_id, since)
    tools = Tool.objects.filter(workspace_id=workspace_id).exclude(effect_class=EffectClass.READ)
    rows = [_row(tool, sums[tool.pk], streams) for tool in tools.order_by("name")[:TOOLS_MAX]]
    longest = slowest({number: row.measured.window for number, row in enumerate(rows)})
    rolled = RolledDay.objects.filter(day__gte=since).aggregate(
        behind=Count("day", filter=Q(rolled_at=None)), at=Max("rolled_at", filter=Q(day=today))
    )
    return Facts(
        streams=streams,
        rows=tuple(sorted(rows, key=_by_window)),
        slowest=None if longest is None else rows[longest],
        behind=rolled["behind"],
        rolled_at=rolled["at"],
    )


def _by_window(row: ToolRow) -> tuple[float, int, str]:
    window = row.measured.window
    return (0.0 if window is None else -window, -row.measured.announced, row.tool.name)


def _streams(workspace_id: int, since: date, today: date) -> Streams:
    counted = (*_ENDS, "cancelled", "without_end", "in_window")
    found = StreamDay.objects.filter(workspace_id=workspace_id, day__gte=since).aggregate(
        first=Min("day"), **{name: Sum(name, default=0) for name in counted}
    )
    first = found.pop("first")
    return Streams(days=(today - first).days + 1 if first else 0, **found)


@dataclass(slots=True)
class _ToolSums:
    counts: dict[str, int]
    latency: list[Mapping[int, int]]
    gap: list[Mapping[int, int]]


def _tool_days(workspace_id: int, since: date) -> defaultdict[int, _ToolSums]:
    sums: defaultdict[int, _ToolSums] = defaultdict(
        lambda: _ToolSums(counts=dict.fromkeys(_SUMS, 0), latency=[], gap=[])
    )
    for day in ToolDay.objects.filter(workspace_id=workspace_id, day__gte=since):
        of = sums[day.tool_id]
        for name in _SUMS:
            of.counts[name] += getattr(day, name)
        of.latency.append(_numbered(day.latency))
        of.gap.append(_numbered(day.gap))
    return sums


def _numbered(counts: Mapping[str, int]) -> dict[int, int]:
    """Counts by bin as JSON keeps them, whose names are texts."""
    return {int(number): n for number, n in counts.items()}


def _row(tool: Tool, sums: _ToolSums, streams: Streams) -> ToolRow:
    wire = Wire(
        same=sums.counts["wire_same"],
        other=sums.counts["wire_other"],
        missing=sums.counts["wire_missing"],
    )
    measured = Measured(
        latency=times_of(merged(sums.latency)),
        gap=times_of(merged(sums.gap)),
        failures=streams.failed,
        ended=streams.ended,
        in_window=sums.counts["in_window"],
        announced=sums.counts["responses"],
        days=streams.days,
        absorbs=wire.absorbs(keyed=tool.effect_class == EffectClass.KEYED_WRITE),
    )
    return ToolRow(tool=tool, measured=measured, wire=wire)
