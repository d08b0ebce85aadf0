"""Ghosts: effects at a provider that no call accounts for, and what people say about them."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.models import Connection
from ledger import queries
from reconcile.ghosts import listing, noting
from reconcile.ghosts.listing import CannotSay
from reconcile.runs.listing import read_filters

CONNECTIONS_MAX: Final = 100


@require_safe
@membership_required
def ghosts(request: DeskRequest) -> HttpResponse:
    """The list, newest first."""
    workspace_id = request.workspace.pk
    filters = read_filters(request.GET, listing.TABS, listing.USUAL)
    rows, older = listing.rows(workspace_id, filters)
    counts = listing.counts(workspace_id)
    connections = Connection.objects.filter(workspace_id=workspace_id).order_by("name")
    context = {
        "now": queries.clock(),
        "rows": rows,
        "older": older,
        "newer": filters.address() if filters.before else "",
        "tabs": [
            {
                "words": words,
                "address": filters.address(show=word),
                "count": counts[word],
                "current": word == filters.show,
            }
            for word, (words, _) in listing.TABS.items()
        ],
        "filters": filters,
        "connections": [
            {"name": one.name, "address": filters.address(connection=one.pk), "pk": one.pk}
            for one in connections[:CONNECTIONS_MAX]
        ],
        "everywhere": filters.address(connection=None),
        "carried": filters.address(),
        "full": counts["new"] >= noting.OPEN_MAX,
        "open_max": noting.OPEN_MAX,
        "may_explain": can(request.role, Ability.EXPLAIN_GHOST),
        "needs": needs(Ability.EXPLAIN_GHOST),
        "reason_max": listing.REASON_CHARACTERS_MAX,
    }
    return render(request, "reconcile/ghosts.html", context)


@require_POST
@membership_required
def say(request: DeskRequest, ghost_id: int) -> HttpResponse:
    """Keeps a note about a ghost, and takes it off the list if that explains it."""
    require(request, Ability.EXPLAIN_GHOST)
    ghost = listing.of_workspace(request.workspace.pk).filter(pk=ghost_id).first()
    if ghost is None:
        raise Http404("No ghost of this workspace has this number.")
    dismissed = request.POST.get("does") == "dismiss"
    try:
        listing.say(
            ghost,
            user_id=request.user.pk,
            reason=request.POST.get("reason", ""),
            dismissed=dismissed,
        )
    except CannotSay as error:
        messages.error(request, str(error))
    else:
        done = "is explained" if dismissed else "stands on the list"
        messages.success(request, f"{ghost.noun} {ghost.object_id} {done}.")
    filters = read_filters(request.GET, listing.TABS, listing.USUAL)
    return redirect(f"{reverse('ghosts')}{filters.address()}")
