"""One page of the queue, read: rows with what people see in them, counts, and the five figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from effects.core.vocabulary import ClaimState
from effects.money import Money
from ledger import queries
from reconcile import cards, search
from reconcile.queue import (
    CLOSING_SOON,
    GROUP_WORDS,
    MENTIONED_LATELY,
    NEWEST_MAX,
    ROWS_PER_PAGE,
    UNCOUNTED,
    chosen_statement,
    count_statement,
    figures_statement,
    neighbours_statement,
    rows_statement,
)
from reconcile.views.filters import GROUPS, Filters, Place, Sort, View
from reconcile.views.rows import Placed, Row, Seen, ask, rows_of

COUNTED_MAX: Final = 1_001
"""How far a narrowed list is counted: more than a bulk can hold is only "more"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows under one heading; the heading is empty where the list is not sorted by window."""

    title: str
    note: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The five numbers and the numbers on the tabs. `unread`: calls whose card is missing, so that
    their amounts are in no sum yet."""

    counts: dict[View, int]
    unknown: int
    unread: int
    closes_next: datetime | None
    at_risk: tuple[Money, ...]
    at_risk_late: tuple[Money, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """`at` is the frozen instant of the list; `cards_missing` says that some amounts are still
    being read, so sorting and searching by them is not complete yet."""

    at: datetime
    filters: Filters
    sections: tuple[Section, ...]
    figures: Figures
    next_place: Place | None
    matching: int
    cards_missing: bool

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for section in self.sections for row in section.rows)


def queue_page(workspace_id: int, filters: Filters) -> QueuePage:
    """The page that the filters ask for, in as many statements for one row as for fifty."""
    now = queries.clock()
    figures = read_figures(workspace_id, now, filters.user_id)
    if figures.unread:
        cards.fill(workspace_id=workspace_id)
        now = queries.clock()
        figures = read_figures(workspace_id, now, filters.user_id)
    at = min(filters.after.at, now) if filters.after else now
    in_figures = not filters.narrowed and filters.view not in UNCOUNTED
    rows = _found(workspace_id, filters, at, limit=ROWS_PER_PAGE + 1, counted=not in_figures)
    found = [_place(row) for row in rows]
    shown, next_place = found[:ROWS_PER_PAGE], None
    if len(found) > ROWS_PER_PAGE:
        last = shown[-1]
        next_place = Place(
            at=at, group=last.group, first=last.first, second=last.second, claim_id=last.claim_id
        )
    return QueuePage(
        at=at,
        filters=filters,
        sections=tuple(_sections(workspace_id, shown, grouped=filters.sort is Sort.WINDOW)),
        figures=figures,
        next_place=next_place,
        matching=figures.counts[filters.view]
        if in_figures
        else max((row["matching"] for row in rows), default=0),
        cards_missing=figures.unread > 0,
    )


def count(workspace_id: int, filters: Filters, *, limit: int) -> int:
    """How many calls the filters match now, counted no further than `limit`."""
    searched = search.search_for(workspace_id, filters.q)
    parameters = _parameters(workspace_id, queries.clock(), filters)
    parameters |= searched.parameters | {"limit": limit}
    return int(ask(count_statement(filters, searched), parameters)[0]["matching"])


def matching(workspace_id: int, filters: Filters, *, limit: int) -> list[Seen]:
    """The calls that the filters match now, in the order of the list, at most `limit` of them."""
    wanted = replace(filters, after=None)
    return [
        Seen(claim_id=place.claim_id, version=place.version, state=place.state)
        for place in placed_rows(workspace_id, wanted, queries.clock(), limit=limit)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Where a call stands in a list: it is the `number`-th of `total`, if it is `listed` at all.

    A call that is in the list no more stands where it stood; `number` is then how many are before
    it. `next` is the next one that is not decided already.
    """

    number: int
    total: int
    listed: bool
    previous: UUID | None
    next: UUID | None


def neighbours(workspace_id: int, filters: Filters, claim_id: UUID, now: datetime) -> Neighbours:
    """What stands beside a call in the list that the filters ask for, in one statement."""
    searched = search.search_for(workspace_id, filters.q)
    parameters = _parameters(workspace_id, now, filters) | searched.parameters
    parameters |= {"walk_id": claim_id}
    (row,) = ask(neighbours_statement(filters, searched), parameters)
    return Neighbours(
        number=row["before"] + bool(row["listed"]),
        total=row["total"],
        listed=bool(row["listed"]),
        previous=row["previous"],
        next=row["next"],
    )


def read_figures(workspace_id: int, now: datetime, user_id: int = 0) -> Figures:
    """Counts and sums over everything undecided, at `now`."""
    rows = ask(figures_statement(), _parameters(workspace_id, now, Filters(user_id=user_id)))
    counted = [view for view in View if view not in UNCOUNTED]
    next_ones = [row["closes_next"] for row in rows if row["closes_next"] is not None]
    return Figures(
        counts={view: sum(row[view] for row in rows) for view in counted},
        unknown=sum(row["unknown"] for row in rows),
        unread=sum(row["unread"] for row in rows),
        closes_next=min(next_ones, default=None),
        at_risk=_sums(rows, "at_risk"),
        at_risk_late=_sums(rows, "at_risk_late"),
    )


def _sums(rows: list[dict[str, Any]], column: str) -> tuple[Money, ...]:
    """One sum a currency, the one with the most calls first; currencies are never added up."""
    return tuple(
        Money(amount=row[column].normalize(), currency=row["currency"], places=row["places"])
        for row in sorted(rows, key=lambda row: -row[View.OPEN])
        if row["currency"] and row[column]
    )


def placed_rows(
    workspace_id: int, filters: Filters, at: datetime, *, limit: int = ROWS_PER_PAGE + 1
) -> list[Placed]:
    """One more than a page holds, so that it is known whether another page follows."""
    return [_place(row) for row in _found(workspace_id, filters, at, limit=limit)]


def _found(
    workspace_id: int, filters: Filters, at: datetime, *, limit: int, counted: bool = False
) -> list[dict[str, Any]]:
    searched = search.search_for(workspace_id, filters.q)
    after = filters.after
    parameters = _parameters(workspace_id, at, filters) | searched.parameters
    parameters |= {"limit": limit, "count_max": COUNTED_MAX}
    if after is not None:
        parameters |= {
            "after_group": after.group,
            "after_first": after.first,
            "after_second": after.second,
            "after_id": after.claim_id,
        }
    return ask(rows_statement(filters, searched, counted=counted), parameters)


def placed_by_id(workspace_id: int, ids: Sequence[UUID], at: datetime) -> list[Placed]:
    """These calls of the workspace, whatever they are like, in the usual order."""
    parameters = _parameters(workspace_id, at, Filters()) | {"ids": list(ids)}
    return [_place(row) for row in ask(chosen_statement(), parameters)]


def _place(row: dict[str, Any]) -> Placed:
    return Placed(
        claim_id=row["id"],
        version=row["version"],
        state=ClaimState(row["state"]),
        group=row["grp"],
        first=row["first"],
        second=row["second"],
        held=row["held"],
        waiting=row["waiting"],
    )


def _parameters(workspace_id: int, at: datetime, filters: Filters) -> dict[str, Any]:
    return {
        "workspace_id": workspace_id,
        "user_id": filters.user_id,
        "tool": filters.tool,
        "state": filters.state,
        "effect_class": filters.effect_class,
        "strength": filters.strength,
        "who": int(filters.who) if filters.who.isdigit() else 0,
        "amount_from": filters.amount_from,
        "amount_to": filters.amount_to,
        "currency": filters.currency,
        "older_seconds": filters.older_seconds,
        "at": at,
        "soon": at + CLOSING_SOON,
        "newest_max": NEWEST_MAX,
        "mentioned_since": at - MENTIONED_LATELY,
        "midnight": at.replace(hour=0, minute=0, second=0, microsecond=0),
    }


def _sections(workspace_id: int, placed: Sequence[Placed], *, grouped: bool) -> Iterator[Section]:
    rows = rows_of(workspace_id, placed)
    if not grouped:
        yield Section(title="", note="", rows=tuple(rows))
        return
    pairs = zip(placed, rows, strict=True)
    for group, members in groupby(pairs, key=lambda pair: pair[0].group):
        title, note = GROUP_WORDS[GROUPS[group]]
        yield Section(title=title, note=note, rows=tuple(row for _, row in members))
