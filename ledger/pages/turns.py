"""The turn: one table of everything that is known of one response of a model and its calls."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from ledger import queries, turns
from ledger.items import visible
from ledger.paths import conversation_address, turn_address

DIGITS_MAX: Final = 10
NO_TURN: Final = "none"


@require_safe
@membership_required
def turn(request: DeskRequest, conversation: str, index: int) -> HttpResponse:
    """One turn's page."""
    around = {
        "earlier": turn_address(conversation, index - 1) if index else "",
        "later": turn_address(conversation, index + 1),
    }
    return _page(request, conversation, index, around)


def _page(
    request: DeskRequest, conversation: str, index: int | None, around: dict[str, str]
) -> HttpResponse:
    found = turns.turn(request.workspace.pk, conversation, index, now=queries.clock())
    context = {
        "turn": found,
        "calls_max": turns.CLAIMS_MAX,
        "name": visible(conversation),
        "every": conversation_address(conversation),
    }
    return render(request, "ledger/turn.html", context | around)


@require_safe
@membership_required
def conversation(request: DeskRequest) -> HttpResponse:
    """The turns of `?conversation=`; with `?turn=` that turn itself, and with `none` the calls that
    name no turn."""
    name, wanted = request.GET.get("conversation", ""), request.GET.get("turn", "")
    if name and wanted.isascii() and wanted.isdecimal() and len(wanted) < DIGITS_MAX:
        answer = turn(request, name, int(wanted))
        assert isinstance(answer, HttpResponse)
        return answer
    if name and wanted == NO_TURN:
        return _page(request, name, None, {})
    start = request.GET.get("from", "0")
    first = int(start) if start.isascii() and start.isdecimal() and len(start) < DIGITS_MAX else 0
    rows = turns.turns_of(request.workspace.pk, name, first) if name else []
    context = {
        "name": visible(name),
        "asked": name,
        "rows": [
            {"index": index, "claims": claims, "address": turn_address(name, index)}
            for index, claims in rows
        ],
        "turnless": turns.turnless(request.workspace.pk, name) if name else 0,
        "turnless_address": f"{conversation_address(name)}&turn={NO_TURN}",
        "first": first,
        "last": first + turns.TURNS_PER_PAGE - 1,
        "next": f"{conversation_address(name)}&from={first + turns.TURNS_PER_PAGE}",
    }
    return render(request, "ledger/conversation.html", context)
