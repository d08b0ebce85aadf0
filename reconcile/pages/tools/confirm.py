"""What a change of a tool would do, shown before it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from effects.access import DeskRequest
from effects.core.vocabulary import EffectClass
from effects.models import Tool
from effects.tools import consequences, differences, is_weaker, snapshot
from ledger import queries
from reconcile.pages.tools.common import viewer_of
from reconcile.registry.consequences import OPEN_READ_MAX, of_change, of_next_calls
from reconcile.registry.measured import NOTHING
from reconcile.registry.measuring import measured_of
from reconcile.undecided import undecided_calls


def needs_a_look(tool: Tool, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether saving does anything to calls that are undecided now, or guards less than before, or
    registers what nobody had entered under another class than it counts as."""
    found = consequences(before, after, _undecided_of(tool))
    registers = not before["registered"] and before["effect_class"] != after["effect_class"]
    return registers or is_weaker(before, after) or any(one.count for one in found)


def confirm_page(request: DeskRequest, tool: Tool, changed: Tool) -> HttpResponse:
    """`tool` as it is kept, beside `changed`, which is not saved."""
    before, after = snapshot(tool), snapshot(changed)
    # Every value travels on as it was typed: nothing is kept on the server until it is saved.
    sent = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    seen = measured_of(request.workspace.pk, [tool.name]).get(tool.name, NOTHING)
    viewer = viewer_of(request, changed, seen)
    found = differences(before, after)
    context = {
        "now": queries.clock(),
        "tool": tool,
        "sent": sent,
        "differences": found,
        "class_change": next((one for one in found if one.field == "Class"), None),
        "consequences": consequences(before, after, _undecided_of(tool)),
        "shifts": of_change(tool, changed, viewer),
        "read_max": OPEN_READ_MAX,
        "next_calls": of_next_calls(tool, changed, viewer),
        "becomes_read": after["effect_class"] == EffectClass.READ,
        "weaker": is_weaker(before, after),
        "next_version": tool.version + 1,
        "reason": request.POST.get("reason", ""),
    }
    return render(request, "reconcile/tool_confirm.html", context)


def _undecided_of(tool: Tool) -> Mapping[EffectClass, int]:
    return undecided_calls(tool.workspace_id).get(tool.pk, {})
