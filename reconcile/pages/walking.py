"""Going through a view call by call: previous, next, and where one stands.

A link out of the list carries the view in its query string. What is done on a call's page leads
back to that page without it, so the way that somebody came to a call is kept in their session, for
that call alone: what is shown as next never decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict
from django.urls import reverse

from effects.access import DeskRequest
from reconcile import listing
from reconcile.views.filters import Filters, read_filters

IN_SESSION: Final = "walks"
REMEMBERED_MAX: Final = 30
"""Of how many calls a session knows by which view they were opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The way through a view, as a call's page shows it; addresses are empty where there is none.

    `position` is "7 of 214", or says that the call is in the view no more.
    """

    view: str
    narrowed: bool
    position: str
    list_address: str
    previous: str
    next: str


def walk_part(request: DeskRequest, claim_id: UUID, now: datetime) -> dict[str, Any]:
    """The walk for the context of a call's page."""
    filters = _filters(request, claim_id)
    found = listing.neighbours(request.workspace.pk, filters, claim_id, now)
    carried = filters.address()

    def address(neighbour: UUID | None) -> str:
        return reverse("call", args=[neighbour]) + carried if neighbour else ""

    left = f"not in this view, {found.total} {'is' if found.total == 1 else 'are'}"
    return {
        "walk": Walk(
            view=filters.view.label,
            narrowed=filters.narrowed,
            position=f"{found.number} of {found.total}" if found.listed else left,
            list_address=reverse("queue") + carried,
            previous=address(found.previous),
            next=address(found.next),
        )
    }


def _filters(request: DeskRequest, claim_id: UUID) -> Filters:
    """The view by which this person came to the call, or else all undecided calls."""
    known: dict[str, str] = request.session.get(IN_SESSION, {})
    kept = known.get(claim_id.hex, "")
    if "view" in request.GET:
        filters = read_filters(request.GET)
        said = filters.address(after=None)[1:]
        if said != kept:
            others = [pair for pair in known.items() if pair[0] != claim_id.hex]
            request.session[IN_SESSION] = dict([*others, (claim_id.hex, said)][-REMEMBERED_MAX:])
    else:
        filters = read_filters(QueryDict(kept))
    return replace(filters, after=None, user_id=request.user.pk)
