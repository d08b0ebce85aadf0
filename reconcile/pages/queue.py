"""The queue: the first page of everybody who settles calls."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.core.vocabulary import ClaimState
from effects.models import Tool
from effects.templatetags.desk import STATE_PARTS
from reconcile import listing, takes
from reconcile.assign import assignments
from reconcile.bulk.acts import BulkAction
from reconcile.bulk.selection import ITEMS_MAX, word_for
from reconcile.listing import QueuePage
from reconcile.queue import NEWEST_MAX
from reconcile.views.filters import Filters, Sort, View, read_filters

BULK_ICONS: Final = {
    BulkAction.ASK: "ask",
    BulkAction.SNOOZE: "snooze",
    BulkAction.ASSIGN: "people",
}
TOOLS_OFFERED_MAX: Final = 200
TABS: Final = (
    View.OPEN,
    View.MINE,
    View.MENTIONS,
    View.UNTAKEN,
    View.CLOSING,
    View.UNKEYED,
    View.SNOOZED,
    View.WAITING,
    View.HELD,
    View.RELEASED,
    View.CLOSED,
    View.RESOLVED,
    View.ALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    label: str
    address: str
    count: int | None
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A column that sorts: its address turns the list round by it."""

    address: str
    current: bool


@require_safe
@membership_required
def queue(request: DeskRequest) -> HttpResponse:
    """The list that the address asks for. `?after=` continues a list at its frozen instant."""
    filters = replace(read_filters(request.GET), user_id=request.user.pk)
    page = listing.queue_page(request.workspace.pk, filters)
    ids = [row.claim_id for row in page.rows]
    context = {
        "now": page.at,
        "page": page,
        "takes": takes.current_of(request.workspace.pk, ids, page.at),
        "assigned": assignments.current_of(request.workspace.pk, ids),
        **_bulk_bar(request, page),
        "filters": filters,
        "tabs": _tabs(page),
        "sorts": {
            sort: Heading(address=filters.address(sort=sort), current=filters.sort is sort)
            for sort in Sort
        },
        "views": {view: Filters(view=view).address() or "?" for view in View},
        "tags": _tags(filters),
        "tools": _tool_names(request.workspace.pk),
        "states": {state: STATE_PARTS[state][0] for state in ClaimState},
        "carried": filters.address(),
        "next_address": filters.address(after=page.next_place) if page.next_place else "",
        "first_address": reverse("queue") + filters.address(),
        "newest_max": f"{NEWEST_MAX:,}",
        "queue_count": page.figures.counts[View.OPEN],
        "elsewhere": _elsewhere(request.workspace.pk, page),
    }
    return render(request, "reconcile/queue.html", context)


def _bulk_bar(request: DeskRequest, page: QueuePage) -> dict[str, Any]:
    """What can be done with the rows that are selected, and the word of each row."""
    more = page.next_place is not None or page.filters.after is not None
    return {
        "bulk_acts": [
            {
                "act": act,
                "icon": BULK_ICONS.get(act, ""),
                "why_not": "" if act.allowed(request.role) else act.needs(),
            }
            for act in BulkAction
        ],
        "bulk_words": {row.claim_id: word_for(row, request.user.pk) for row in page.rows},
        "bulk_token": secrets.token_hex(16),
        "bulk_max": f"{ITEMS_MAX:,}",
        "counted_max": listing.COUNTED_MAX,
        "whole_view": page.matching if more and (page.matching or 0) <= ITEMS_MAX else None,
        "whole_view_is_too_large": more and (page.matching or 0) > ITEMS_MAX,
    }


def _tabs(page: QueuePage) -> list[Tab]:
    current = page.filters.view
    # A view that has a figure instead of a tab shows as one while it is open.
    shown = [view for view in View if view in TABS or view is current]
    return [
        Tab(
            label=view.label,
            address=reverse("queue") + Filters(view=view).address(),
            count=page.figures.counts.get(view),
            current=view is current,
        )
        for view in shown
    ]


def _tags(filters: Filters) -> list[dict[str, str]]:
    """The filters in force, each with the address of the list without it."""
    said = {
        "q": ("Search", filters.q),
        "tool": ("Tool", filters.tool),
        "state": ("State", STATE_PARTS[filters.state][0] if filters.state else ""),
    }
    return [
        {"label": label, "value": value, "address": "?" + filters.address(**{name: ""})[1:]}
        for name, (label, value) in said.items()
        if value
    ]


def _tool_names(workspace_id: int) -> list[str]:
    names = Tool.objects.filter(workspace_id=workspace_id).order_by("name")
    return list(names.values_list("name", flat=True)[:TOOLS_OFFERED_MAX])


def _elsewhere(workspace_id: int, page: QueuePage) -> str:
    """Where a search that found nothing here would find something, as an address, or nothing."""
    filters = page.filters
    if page.rows or not filters.narrowed or filters.view is View.ALL:
        return ""
    wider = Filters(view=View.ALL, q=filters.q, tool=filters.tool, state=filters.state)
    found = listing.queue_page(workspace_id, wider)
    return reverse("queue") + wider.address() if found.rows else ""
