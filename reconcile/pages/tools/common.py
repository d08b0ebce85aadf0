"""What the registry's pages share."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404

from effects import registry
from effects.access import ROLE_WORDS, Ability, DeskRequest, can, needs
from effects.models import Tool
from reconcile.lookups import LOOKUPS
from reconcile.registry.arguments import samples_of
from reconcile.registry.measured import Measured
from reconcile.registry.simulation import Viewer
from reconcile.team import team_of

UNPROCESSABLE: Final = 422
TOOLS_SHOWN_MAX: Final = 500
"""Most tools on a page; a workspace with more is told so and has the search of its browser."""
LOOKUP_KINDS: Final = {"": "none", **{kind: lookup.label for kind, lookup in LOOKUPS.items()}}


def tool_or_404(request: DeskRequest, tool_id: int) -> Tool:
    found = Tool.objects.filter(workspace=request.workspace, pk=tool_id)
    kept = found.select_related("connection").first()
    if kept is None:
        raise Http404("No tool of this workspace has this number.")
    return kept


def tools_of(request: DeskRequest) -> list[Tool]:
    """The tools of the workspace by name, as many as a page shows."""
    found = Tool.objects.filter(workspace=request.workspace).select_related("connection")
    return list(found.order_by("name")[:TOOLS_SHOWN_MAX])


def permission(request: DeskRequest) -> dict[str, Any]:
    """What a page must know to show who may change a tool."""
    return {
        "may_edit": can(request.role, Ability.EDIT_TOOLS),
        "needs": needs(Ability.EDIT_TOOLS),
        "role": ROLE_WORDS[request.role],
    }


def viewer_of(request: DeskRequest, tool: Tool, measured: Measured) -> Viewer:
    """For whom actions are worked out: this person, and the money of the tool's newest call."""
    samples = samples_of(request.workspace.pk, measured.recent[:1])
    money = registry.amount(tool, samples[0].text) if samples else None
    team = team_of(request.workspace.pk, request.user.pk)
    return Viewer(role=request.role, team=team, money=money)
