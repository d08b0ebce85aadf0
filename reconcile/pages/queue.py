"""The queue: the first page of everybody who settles calls."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs
from effects.core.vocabulary import ClaimState, EffectClass
from effects.exporting import ROWS_MAX
from effects.models import Tool
from effects.templatetags.desk import CLASS_PARTS, STATE_PARTS
from effects.times import write_duration
from reconcile import listing, search, takes
from reconcile.assign import assignments
from reconcile.bulk.acts import BulkAction
from reconcile.bulk.selection import ITEMS_MAX, word_for
from reconcile.listing import QueuePage
from reconcile.queue import NEWEST_MAX, UNCOUNTED
from reconcile.views import saved
from reconcile.views.filters import (
    COLUMNS,
    ME,
    NO_EVIDENCE,
    NOBODY,
    STRENGTHS,
    Filters,
    Sort,
    View,
    is_bare,
    names_saved_alone,
    read_filters,
)
from reconcile.views.models import NAME_CHARACTERS_MAX, SavedView
from reconcile.views.standing import first_claim, standing_of

BULK_ICONS: Final = {
    BulkAction.TAKE: "people",
    BulkAction.ASK: "ask",
    BulkAction.SNOOZE: "snooze",
}
BULK_KEYS: Final = {BulkAction.TAKE: "t", BulkAction.ASK: "a", BulkAction.SNOOZE: "s"}
TOOLS_OFFERED_MAX: Final = 200
TABS: Final = tuple(view for view in View if view is not View.LATE)
"""The views that are tabs; the one that is left has a figure."""
STRENGTH_WORDS: Final = {word: word.replace("_", " ") for word in STRENGTHS} | {
    NO_EVIDENCE: "nobody asked yet"
}


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
    """The list that the address asks for. `?after=` continues a list at its frozen instant.

    An address that says nothing is where the person's own view begins; one that names a saved view
    alone shows the view as it is today.
    """
    workspace_id = request.workspace.pk
    views = list(saved.seen_by(workspace_id, request.user.pk))
    begins = next((view for view in views if view.begins), None)
    # An open page that only looks again stays what it is.
    if begins is not None and is_bare(request.GET) and "X-Live" not in request.headers:
        return HttpResponseRedirect(saved.address_of(begins))
    filters = read_filters(request.GET)
    current = next((view for view in views if view.pk == filters.saved), None)
    if names_saved_alone(request.GET):
        if current is None:
            raise Http404("No saved view of yours has this number. It may have been deleted.")
        filters = saved.filters_of(current)
    filters = replace(filters, user_id=request.user.pk, saved=current.pk if current else None)
    page = listing.queue_page(workspace_id, filters)
    ids = [row.claim_id for row in page.rows]
    tools = _tool_names(workspace_id)
    context = {
        "now": page.at,
        "page": page,
        "takes": takes.current_of(workspace_id, ids, page.at),
        "assigned": assignments.current_of(workspace_id, ids),
        **_bulk_bar(request, page),
        **_saved_part(request, filters, views, current),
        **_filter_part(request, filters, tools),
        **_empty_part(request, page),
        "filters": filters,
        "tabs": _tabs(page),
        "sorts": {
            sort: Heading(address=filters.address(sort=sort), current=filters.sort is sort)
            for sort in Sort
        },
        "views": {view: Filters(view=view).address() for view in View},
        "carried": filters.address(),
        "next_address": filters.address(after=page.next_place) if page.next_place else "",
        "first_address": reverse("queue") + filters.address(),
        "newest_max": f"{NEWEST_MAX:,}",
        "queue_count": page.figures.counts[View.OPEN],
        "export_max": f"{ROWS_MAX:,}",
        "no_export": "" if can(request.role, Ability.EXPORT) else needs(Ability.EXPORT),
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
                "key": BULK_KEYS.get(act, ""),
                "why_not": "" if act.allowed(request.role) else act.needs(),
            }
            for act in BulkAction
        ],
        "bulk_words": {row.claim_id: word_for(row, request.user.pk) for row in page.rows},
        "bulk_token": secrets.token_hex(16),
        "bulk_max": f"{ITEMS_MAX:,}",
        "counted_max": listing.COUNTED_MAX,
        "whole_view": page.matching if more and page.matching <= ITEMS_MAX else None,
        "whole_view_is_too_large": more and page.matching > ITEMS_MAX,
    }


def _saved_part(
    request: DeskRequest, filters: Filters, views: list[SavedView], current: SavedView | None
) -> dict[str, Any]:
    """The menu of saved views: which there are, which this is, and what can be kept."""
    listed = [
        {
            "view": view,
            "address": saved.address_of(view),
            "current": view == current,
            "own": saved.may_change(view, request.user.pk),
        }
        for view in views
    ]
    strayed = current is not None and saved.filters_of(current).to_keep() != filters.to_keep()
    return {
        "saved_views": [one for one in listed if one["own"]],
        "shared_views": [one for one in listed if not one["own"]],
        "saved_view": current,
        "saved_is_own": current is not None and saved.may_change(current, request.user.pk),
        "saved_strayed": strayed,
        "saved_lost": filters.saved is None and "saved" in request.GET,
        "to_keep": filters.to_keep(),
        "view_name_max": NAME_CHARACTERS_MAX,
        "may_share": can(request.role, Ability.SHARE_VIEW),
    }


def _filter_part(request: DeskRequest, filters: Filters, tools: list[str]) -> dict[str, Any]:
    """The filter bar: what can be chosen, what is in force, and what could not be read."""
    people = assignments.people(request.workspace.pk)
    faults = {fault.name: fault for fault in filters.faults}
    names = {str(one.pk): one.get_full_name() or one.get_username() for one in people}
    said = filters.said()
    # What could not be read stands in its field as it was typed.
    typed = {
        name: faults[name].typed if name in faults else said.get(name, "")
        for name in ("from", "to", "currency", "older")
    }
    return {
        "tags": _tags(filters, names),
        "tools": tools,
        "tool_is_gone": bool(filters.tool) and filters.tool not in tools,
        "states": {state: STATE_PARTS[state][0] for state in ClaimState},
        "classes": {
            word: CLASS_PARTS[word][0] for word in EffectClass if word is not EffectClass.READ
        },
        "strengths": STRENGTH_WORDS,
        "people": names,
        "typed": typed,
        "faults": faults,
        "columns": COLUMNS,
        # What is in force is said by its tag; only what could not be read has to be seen at once.
        "more_open": bool(faults),
    }


def _tags(filters: Filters, people: dict[str, str]) -> list[dict[str, str]]:
    """The filters in force, each with the address of the list without it."""
    who = {ME: "me", NOBODY: "nobody"}.get(filters.who) or people.get(filters.who, "somebody else")
    older = write_duration(filters.older_seconds) if filters.older_seconds else ""
    tags = (
        ("Search", filters.q, {"q": ""}),
        ("Tool", filters.tool, {"tool": ""}),
        ("State", STATE_PARTS[filters.state][0] if filters.state else "", {"state": ""}),
        (
            "Class",
            CLASS_PARTS[filters.effect_class][0] if filters.effect_class else "",
            {"effect_class": ""},
        ),
        ("Evidence", STRENGTH_WORDS.get(filters.strength, ""), {"strength": ""}),
        ("With", who if filters.who else "", {"who": ""}),
        ("Amount", _range_words(filters), {"amount_from": None, "amount_to": None, "currency": ""}),
        ("Older than", older, {"older_seconds": 0}),
        ("Hidden", ", ".join(COLUMNS[name] for name in filters.hide), {"hide": ()}),
    )
    return [
        {"label": label, "value": value, "address": filters.address(**without)}
        for label, value, without in tags
        if value
    ]


def _range_words(filters: Filters) -> str:
    """The amounts that are wanted: "from 10 to 99.50 EUR"."""
    words = [
        f"{word} {amount:,f}"
        for word, amount in (("from", filters.amount_from), ("to", filters.amount_to))
        if amount is not None
    ]
    return " ".join([*words, filters.currency]).strip()


def _empty_part(request: DeskRequest, page: QueuePage) -> dict[str, Any]:
    """What an empty list says: what was understood, what is true all the same, where to begin."""
    filters = page.filters
    if page.rows or filters.after:
        return {}
    if filters.narrowed:
        understood = search.search_for(request.workspace.pk, filters.q).understood
        plain = Filters(view=filters.view, sort=filters.sort, hide=filters.hide)
        counted = filters.view not in UNCOUNTED
        return {
            "understood": understood,
            "in_view": page.figures.counts[filters.view] if counted else None,
            "cleared_address": plain.address(),
            "elsewhere": _elsewhere(request.workspace.pk, filters),
        }
    if filters.view is not View.OPEN:
        return {}
    return {
        "standing": standing_of(request.workspace.pk),
        "first_claim": first_claim(),
        "may_issue": can(request.role, Ability.EDIT_TOKENS),
        "needs_token": needs(Ability.EDIT_TOKENS),
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


def _tool_names(workspace_id: int) -> list[str]:
    names = Tool.objects.filter(workspace_id=workspace_id).order_by("name")
    return list(names.values_list("name", flat=True)[:TOOLS_OFFERED_MAX])


def _elsewhere(workspace_id: int, filters: Filters) -> str:
    """Where a search that found nothing here would find something, as an address, or nothing."""
    if filters.view is View.ALL:
        return ""
    wider = replace(filters, view=View.ALL, saved=None)
    found = listing.count(workspace_id, wider, limit=1)
    return reverse("queue") + wider.address() if found else ""
