"""The sandbox's account: what the provider really did beside what the ledger says it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.core.vocabulary import ClaimState
from reconcile.sandbox import reading, scoreboard
from reconcile.sandbox.scoreboard import Row
from reconcile.sandbox.seed import WORKSPACE_SLUG

OPERATIONS_SHOWN_MAX: Final = 200

SHOWN: Final[Mapping[str, tuple[str, Callable[[Row], bool]]]] = {
    "all": ("All operations", lambda _: True),
    "disagreeing": ("Disagreeing", lambda row: bool(row.disagreements)),
    "unknown": ("Unknown", lambda row: _has(row, ClaimState.UNKNOWN)),
    "people": ("Need a person", lambda row: any(claim.needs_person for claim in row.claims)),
    "rules": ("Settled by a look-up", lambda row: any(claim.by_rule for claim in row.claims)),
}
"""Which operations a tab shows, by the word in its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    word: str
    words: str
    count: int
    current: bool


@require_safe
@membership_required
def sandbox(request: DeskRequest) -> HttpResponse:
    """Operation by operation; an installation without the sandbox says how to get it."""
    folder = Path(settings.COUNTERFOIL_VAR) / reading.PROVIDER_FOLDER
    if request.workspace.slug != WORKSPACE_SLUG or not folder.exists():
        return render(request, "reconcile/sandbox.html", {"is_here": False})
    board = reading.read_board(request.workspace.pk, folder)
    context = _account(board, request.GET.get("show", ""))
    context["counters"] = reading.read_counters(folder)
    return render(request, "reconcile/sandbox.html", context)


def _account(board: Sequence[Row], asked_for: str) -> dict[str, Any]:
    shown = asked_for if asked_for in SHOWN else "all"
    rows = [row for row in reversed(board) if SHOWN[shown][1](row)]
    rows.sort(key=lambda row: not row.disagreements)  # what disagrees is never below the fold
    states = Counter(claim.state for row in board for claim in row.claims)
    return {
        "is_here": True,
        "figures": scoreboard.summary(board),
        "kinds": Counter(str(effect["kind"]) for row in board for effect in row.effects).items(),
        "states": [(state, states[state]) for state in ClaimState if states[state]],
        "tabs": [
            Tab(word=word, words=words, count=sum(map(fits, board)), current=word == shown)
            for word, (words, fits) in SHOWN.items()
        ],
        "rows": rows[:OPERATIONS_SHOWN_MAX],
        "found": len(rows),
        "shown_max": OPERATIONS_SHOWN_MAX,
    }


def _has(row: Row, state: ClaimState) -> bool:
    return any(claim.state is state for claim in row.claims)
