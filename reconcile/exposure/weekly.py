"""One week for those who were not there: duplicates, risk, decisions and missed windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, Final

from django.db.models import Count, F, Q, QuerySet, Window

from effects.money import Money
from reconcile import cards
from reconcile.duplicates.models import DuplicateAct, DuplicateGroup
from reconcile.exposure.days import Days
from reconcile.exposure.levels import ALL
from reconcile.exposure.models import ExposureLevel, UnsureCall
from reconcile.exposure.money import Tally, summed, tally_of
from reconcile.exposure.trends import HowItWent, how_it_went
from reconcile.models import Card

ROWS_MAX: Final = 100
"""Most rows of each table; the report says how many there are in all."""
FILE_ROWS_MAX: Final = 500
"""Most calls of a file: the arguments of each are read for it."""
LEVEL_WITHIN: Final = timedelta(hours=3)
"""How far before a border its level may have been measured."""

_Act = DuplicateAct.Act


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What was at risk at `at`: calls, and a sum for each currency. `at` None: nobody measured."""

    at: datetime | None
    calls: int = 0
    sums: tuple[Money, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A call of a table. `card` is None where its arguments are not read, or are gone."""

    call: UnsureCall
    tool: str
    card: Card | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`found` are the week's groups, `said` what people said in the week about any group.
    `running`: the week is not over, and the figures are those until now."""

    running: bool
    found: Tally
    said: Mapping[str, Tally]
    groups: tuple[DuplicateGroup, ...]
    begin: Risk
    end: Risk
    went: HowItWent
    missed: tuple[CallRow, ...]
    missed_in_all: int
    contradicted: tuple[CallRow, ...]
    contradicted_in_all: int


def read_report(workspace_id: int, days: Days, now: datetime) -> Report:
    """The report of the seven days as it is at `now`; the same number of statements always."""
    groups = found_in(workspace_id, days)
    missed = _first(missed_in(workspace_id, days, now))
    turned = _first(contradicted_in(workspace_id, days))
    rows = iter(rows_of(workspace_id, [*missed, *turned]))
    begin, end = _risks(workspace_id, days.begins, min(days.ends, now))
    return Report(
        running=days.begins <= now < days.ends,
        found=tally_of(groups),
        said=_said(workspace_id, days),
        groups=tuple(groups[:ROWS_MAX]),
        begin=begin,
        end=end,
        went=how_it_went(workspace_id, days, now)[None],
        missed=tuple(islice(rows, len(missed))),
        missed_in_all=_in_all(missed),
        contradicted=tuple(rows),
        contradicted_in_all=_in_all(turned),
    )


def _first(calls: QuerySet[UnsureCall]) -> list[Any]:
    """The first rows, each with how many there are in all."""
    return list(calls.annotate(in_all=Window(Count("*")))[:ROWS_MAX])


def _in_all(rows: Sequence[Any]) -> int:
    return rows[0].in_all if rows else 0


# Duplicates


def found_in(workspace_id: int, days: Days) -> QuerySet[DuplicateGroup]:
    """The groups that were found in these days, the oldest first."""
    found = DuplicateGroup.objects.filter(
        workspace_id=workspace_id, found_at__gte=days.begins, found_at__lt=days.ends
    )
    return found.select_related("owner").order_by("found_at", "pk")


def _said(workspace_id: int, days: Days) -> dict[str, Tally]:
    """By what was said. Who said two things about a group in the week counts in both."""
    acts = DuplicateAct.objects.filter(
        group__workspace_id=workspace_id, at__gte=days.begins, at__lt=days.ends
    ).exclude(act=_Act.OWN)
    groups: dict[str, dict[int, DuplicateGroup]] = {
        str(act): {} for act in (_Act.CONFIRM, _Act.NOT_A_DUPLICATE, _Act.REFUND_REQUESTED)
    }
    for act in acts.select_related("group"):
        groups.setdefault(act.act, {})[act.group_id] = act.group
    return {act: _tally(by_id.values()) for act, by_id in groups.items()}


def _tally(groups: Iterable[DuplicateGroup]) -> Tally:
    listed = list(groups)
    return Tally(
        count=len(listed), sums=summed(one.at_stake for one in listed if one.at_stake is not None)
    )


# What was at risk


def _risks(workspace_id: int, *borders: datetime) -> list[Risk]:
    """What was measured last before each border, in one statement."""
    kept = ExposureLevel.objects.filter(workspace_id=workspace_id)
    near = [
        kept.filter(at__lte=border, at__gt=border - LEVEL_WITHIN, bucket=ALL).order_by("-at")
        for border in borders
    ]
    last = reduce(or_, (Q(at=one.values("at")[:1]) for one in near))
    rows = list(kept.filter(last))
    return [
        _risk([row for row in rows if border - LEVEL_WITHIN < row.at <= border])
        for border in borders
    ]


def _risk(near: Sequence[ExposureLevel]) -> Risk:
    """The newest of the levels; they may be those of two borders that are near each other."""
    if not near:
        return Risk(at=None)
    at = max(row.at for row in near)
    rows = [row for row in near if row.at == at]
    return Risk(
        at=at,
        calls=sum(row.calls for row in rows if row.bucket == ALL),
        sums=summed(
            Money(amount=row.amount, currency=row.currency, places=row.places)
            for row in rows
            if row.currency and row.amount is not None
        ),
    )


# Calls


def missed_in(workspace_id: int, days: Days, now: datetime) -> QuerySet[UnsureCall]:
    """The calls whose window closed in these days before anything had settled them."""
    return (
        UnsureCall.objects.select_related("tool")
        .filter(
            Q(ended_at=None) | Q(ended_at__gt=F("window_until")),
            workspace_id=workspace_id,
            race_at__gte=days.begins,
            race_at__lt=min(days.ends, now),
        )
        .order_by("race_at", "claim_id")
    )


def contradicted_in(workspace_id: int, days: Days) -> QuerySet[UnsureCall]:
    """The calls that turned out otherwise in these days than had been decided."""
    return (
        UnsureCall.objects.select_related("tool")
        .filter(
            workspace_id=workspace_id,
            contradicted_at__gte=days.begins,
            contradicted_at__lt=days.ends,
        )
        .order_by("contradicted_at", "claim_id")
    )


def rows_of(workspace_id: int, calls: Iterable[UnsureCall]) -> list[CallRow]:
    """The calls with their tools and what their arguments say, in the same order."""
    listed = list(calls)
    ids = list({one.claim_id for one in listed})
    read = cards.cards_of(workspace_id, ids) if ids else {}
    return [CallRow(call=one, tool=one.tool.name, card=read.get(one.claim_id)) for one in listed]
