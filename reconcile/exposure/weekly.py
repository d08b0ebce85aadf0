"""One week for those who were not there: duplicates, risk, decisions and missed windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet

from effects.models import Tool
from effects.money import Money
from reconcile import cards
from reconcile.duplicates.models import DuplicateAct, DuplicateGroup
from reconcile.exposure.days import Days
from reconcile.exposure.levels import ALL
from reconcile.exposure.models import ExposureLevel, UnsureCall
from reconcile.exposure.money import Tally, summed
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
    missed, contradicted = missed_in(workspace_id, days, now), contradicted_in(workspace_id, days)
    shown, turned = list(missed[:ROWS_MAX]), list(contradicted[:ROWS_MAX])
    rows = _with_cards(workspace_id, [*shown, *turned])
    return Report(
        running=days.begins <= now < days.ends,
        found=_tally(groups),
        said=_said(workspace_id, days),
        groups=tuple(groups[:ROWS_MAX]),
        begin=_risk(workspace_id, days.begins),
        end=_risk(workspace_id, min(days.ends, now)),
        went=how_it_went(workspace_id, days, now)[None],
        missed=tuple(rows[one.claim_id] for one in shown),
        missed_in_all=missed.count(),
        contradicted=tuple(rows[one.claim_id] for one in turned),
        contradicted_in_all=contradicted.count(),
    )


# Duplicates


def found_in(workspace_id: int, days: Days) -> Sequence[DuplicateGroup]:
    """The groups that were found in these days, the oldest first."""
    found = DuplicateGroup.objects.filter(
        workspace_id=workspace_id, found_at__gte=days.begins, found_at__lt=days.ends
    )
    return list(found.select_related("owner").order_by("found_at", "pk"))


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


def _risk(workspace_id: int, border: datetime) -> Risk:
    kept = ExposureLevel.objects.filter(workspace_id=workspace_id)
    near = kept.filter(at__lte=border, at__gt=border - LEVEL_WITHIN, bucket=ALL).order_by("-at")
    rows = list(kept.filter(at=near.values("at")[:1]))
    if not rows:
        return Risk(at=None)
    return Risk(
        at=rows[0].at,
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
    return UnsureCall.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=F("window_until")),
        workspace_id=workspace_id,
        race_at__gte=days.begins,
        race_at__lt=min(days.ends, now),
    ).order_by("race_at", "claim_id")


def contradicted_in(workspace_id: int, days: Days) -> QuerySet[UnsureCall]:
    """The calls that turned out otherwise in these days than had been decided."""
    return UnsureCall.objects.filter(
        workspace_id=workspace_id,
        contradicted_at__gte=days.begins,
        contradicted_at__lt=days.ends,
    ).order_by("contradicted_at", "claim_id")


def rows_of(workspace_id: int, calls: Iterable[UnsureCall]) -> list[CallRow]:
    """The calls with their tools and what their arguments say, in the same order."""
    listed = list(calls)
    rows = _with_cards(workspace_id, listed)
    return [rows[one.claim_id] for one in listed]


def _with_cards(workspace_id: int, calls: Sequence[UnsureCall]) -> dict[UUID, CallRow]:
    ids = list({one.claim_id for one in calls})
    read = cards.cards_of(workspace_id, ids) if ids else {}
    tools = Tool.objects.filter(pk__in={one.tool_id for one in calls})
    names = dict(tools.values_list("pk", "name")) if calls else {}
    return {
        one.claim_id: CallRow(call=one, tool=names[one.tool_id], card=read.get(one.claim_id))
        for one in calls
    }
