"""The list of tools: one line each, with its traffic and everything that can be said about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.contracts import Terms, contract_of
from effects.core.redaction import Where
from effects.core.vocabulary import EffectClass
from effects.models import Tool, ToolMeasured
from effects.redaction.rules import in_force
from effects.tools import Lint
from ledger import queries
from reconcile.pages.tools.common import LOOKUP_KINDS, TOOLS_SHOWN_MAX, permission, tools_of
from reconcile.registry import second_persons
from reconcile.registry.double_fire import audit
from reconcile.registry.lint import lint
from reconcile.registry.measured import NOTHING, Measured
from reconcile.registry.measuring import measured_of
from reconcile.second_person import Rule
from reconcile.team import rules_in_force
from reconcile.undecided import undecided_calls

STRANGERS_SHOWN_MAX: Final = 200
"""Most tools that nobody entered on one page: models make up names without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool of the list with what is said about it."""

    tool: Tool
    measured: Measured | None
    lint: tuple[Lint, ...]
    undecided: int
    lookup: str
    second_person: str
    terms: Terms | None
    can_double_fire: bool

    @property
    def unknown_percent(self) -> float | None:
        return self.measured.unknown_percent if self.measured else None

    @property
    def bar(self) -> float:
        """The length of the rate's bar, full at a tenth: above that the figure says enough."""
        return min(100.0, 10 * (self.unknown_percent or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A tool that calls came for and nobody entered, with what was seen of it."""

    name: str
    address: str
    calls: int
    announced: int
    keys: str
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    word: str
    words: str
    count: int
    current: bool


_TABS: Final = {
    "all": "All",
    "double": "Can double-fire",
    "keyed": "Keyed writes",
    "reads": "Reads",
    "lint": "With lint",
    "unregistered": "Not registered",
}


@require_safe
@membership_required
def tools(request: DeskRequest) -> HttpResponse:
    """The list: one line a tool, with lint; `?show=` narrows it."""
    workspace_id = request.workspace.pk
    measured = measured_of(workspace_id)
    kept_tools = tools_of(request)
    rows = _rows(workspace_id, kept_tools, measured)
    strangers = strangers_of(kept_tools, measured)
    show = request.GET.get("show", "all")
    if show not in _TABS:
        show = "all"
    kept = {word: [row for row in rows if _belongs(row, word)] for word in _TABS}
    counts = {word: len(found) for word, found in kept.items()} | {"unregistered": len(strangers)}
    context = {
        "now": queries.clock(),
        "rows": kept[show],
        "tabs": [
            Tab(word=word, words=words, count=counts[word], current=word == show)
            for word, words in _TABS.items()
        ],
        "show": show,
        "strangers": strangers[:STRANGERS_SHOWN_MAX],
        "strangers_total": len(strangers),
        "double_fire_count": counts["double"],
        "total": len(rows),
        "shown_max": TOOLS_SHOWN_MAX,
        "measured_at": _measured_at(workspace_id),
        **permission(request),
    }
    return render(request, "reconcile/tools.html", context)


def _measured_at(workspace_id: int) -> datetime | None:
    newest = ToolMeasured.objects.filter(workspace_id=workspace_id).order_by("-measured_at")
    return newest.values_list("measured_at", flat=True).first()


def _rows(workspace_id: int, tools: Sequence[Tool], measured: dict[str, Measured]) -> list[Row]:
    undecided = undecided_calls(workspace_id)
    rules = rules_in_force(workspace_id)
    hidden = in_force(workspace_id)
    return [
        _row(
            tool,
            measured.get(tool.name),
            lint(tool, measured.get(tool.name), hidden.redaction(Where.ARGUMENTS, tool.name)),
            sum(undecided.get(tool.pk, {}).values()),
            rules,
        )
        for tool in tools
    ]


def _row(
    tool: Tool, seen: Measured | None, said: tuple[Lint, ...], undecided: int, rules: Sequence[Rule]
) -> Row:
    return Row(
        tool=tool,
        measured=seen,
        lint=said,
        undecided=undecided,
        lookup=LOOKUP_KINDS.get(tool.lookup_kind, tool.lookup_kind),
        second_person=second_persons.words(tool, rules),
        terms=contract_of(tool.contract),
        can_double_fire=audit(tool, seen).can_double_fire,
    )


def strangers_of(tools: Sequence[Tool], measured: dict[str, Measured]) -> list[Stranger]:
    """The tools that nobody entered, the busiest first: those that claims made a row for, and those
    that only streams named."""
    rows = {tool.name: tool for tool in tools}
    names = {name for name, tool in rows.items() if not tool.registered}
    # With more tools than a page shows, a name without a row may have one all the same.
    if len(rows) < TOOLS_SHOWN_MAX:
        names |= measured.keys() - rows.keys()
    found = [_stranger(name, rows.get(name), measured.get(name, NOTHING)) for name in names]
    return sorted(found, key=lambda one: (-one.calls, -one.announced, one.name))


def _stranger(name: str, tool: Tool | None, seen: Measured) -> Stranger:
    new = reverse("tool-new") + "?" + urlencode({"name": name})
    keys = "no request shown"
    if seen.requests:
        keys = f"{seen.keyed_requests} of {seen.requests} requests"
    return Stranger(
        name=name,
        address=reverse("tool", args=[tool.pk]) if tool else new,
        calls=seen.calls,
        announced=seen.announced,
        keys=keys,
        first_at=seen.first_at,
        last_at=seen.last_at,
    )


def _belongs(row: Row, tab: str) -> bool:
    match tab:
        case "double":
            return row.can_double_fire
        case "keyed":
            return row.tool.effect_class == EffectClass.KEYED_WRITE
        case "reads":
            return row.tool.effect_class == EffectClass.READ
        case "lint":
            return bool(row.lint)
        case "unregistered":
            return not row.tool.registered
        case _:
            return True
