"""A timeout of one tool, walked through without any call."""

from __future__ import annotations

import json

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from ledger import queries
from reconcile.pages.tools.common import permission, tool_or_404, viewer_of
from reconcile.registry.measured import NOTHING
from reconcile.registry.measuring import measured_of
from reconcile.registry.simulation import simulate


@require_safe
@membership_required
def simulation(request: DeskRequest, tool_id: int) -> HttpResponse:
    """What each moment leads to; nothing is asked, stored or sent."""
    kept = tool_or_404(request, tool_id)
    seen = measured_of(request.workspace.pk, [kept.name]).get(kept.name, NOTHING)
    viewer = viewer_of(request, kept, seen)
    now = queries.clock()
    context = {
        "now": now,
        "tool": kept,
        "money": viewer.money,
        "outlooks": [
            {"outlook": one, "told": json.dumps(one.for_model, indent=2, ensure_ascii=False)}
            for one in simulate(kept, viewer, now)
        ],
        **permission(request),
    }
    return render(request, "reconcile/tool_simulation.html", context)
