"""The registry's pages: which tools there are, what they promise, and how that changed.

They stand on this floor, not on the ground where the tools are kept, because a change is shown with
what it does to calls that are undecided now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from effects.access import (
    ROLE_WORDS,
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs,
    require,
)
from effects.contracts import Terms, compared, contract_of
from effects.core.vocabulary import EffectClass
from effects.models import Tool, ToolChange
from effects.pages.problems import stale_page
from effects.tool_form import ToolForm
from effects.tools import (
    Lint,
    ToolMoved,
    can_double_fire,
    consequences,
    differences,
    is_weaker,
    lint,
    promise_of,
    save_tool,
    snapshot,
)
from ledger import append, queries
from reconcile.duplicates import on_the_wire
from reconcile.lookups import LOOKUPS, fault_of
from reconcile.undecided import undecided_calls

UNPROCESSABLE: Final = 422
TOOLS_SHOWN_MAX: Final = 500
"""Most tools on the list; a workspace with more is told so and has the search of its browser."""
VERSIONS_SHOWN_MAX: Final = 50

LOOKUP_KINDS: Final = {"": "none", **{kind: lookup.label for kind, lookup in LOOKUPS.items()}}
LOOKUP_FIELDS: Final = ("connection", "lookup_kind", "lookup")
"""When one of these changes, claims that had nothing more to ask have something to ask again."""
CONFIRMED: Final = "confirmed"
BACK_TO_FORM: Final = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool of the list with what is said about it."""

    tool: Tool
    lint: tuple[Lint, ...]
    undecided: int
    lookup: str
    terms: Terms | None

    @property
    def can_double_fire(self) -> bool:
        return can_double_fire(self.tool)


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
    now = queries.clock()
    rows = _rows(request.workspace.pk)
    show = request.GET.get("show", "all")
    if show not in _TABS:
        show = "all"
    kept = {word: [row for row in rows if _belongs(row, word)] for word in _TABS}
    tabs = [
        Tab(word=word, words=words, count=len(kept[word]), current=word == show)
        for word, words in _TABS.items()
    ]
    context = {
        "now": now,
        "rows": kept[show],
        "tabs": tabs,
        "unregistered": [row.tool for row in kept["unregistered"]],
        "double_fire_count": len(kept["double"]),
        "total": len(rows),
        "shown_max": TOOLS_SHOWN_MAX,
        "may_edit": can(request.role, Ability.EDIT_TOOLS),
        "needs": needs(Ability.EDIT_TOOLS),
    }
    return render(request, "reconcile/tools.html", context)


def _rows(workspace_id: int) -> list[Row]:
    undecided = undecided_calls(workspace_id)
    found = Tool.objects.filter(workspace_id=workspace_id).select_related("connection")
    return [
        Row(
            tool=tool,
            lint=lint(tool),
            undecided=sum(undecided.get(tool.pk, {}).values()),
            lookup=LOOKUP_KINDS.get(tool.lookup_kind, tool.lookup_kind),
            terms=contract_of(tool.contract),
        )
        for tool in found.order_by("name")[:TOOLS_SHOWN_MAX]
    ]


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


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def new_tool(request: DeskRequest) -> HttpResponse:
    """A tool that nobody has entered yet."""
    tool = Tool(workspace=request.workspace)
    if request.method != "POST":
        # An unkeyed write is what an unknown tool counts as, so it is what the form begins with.
        return _form_page(request, tool, _form(request, tool))
    require(request, Ability.EDIT_TOOLS)
    form = _form(request, tool, data=request.POST)
    if not form.is_valid():
        return _form_page(request, tool, form, status=UNPROCESSABLE)
    change = _save(request, form, read_version=None)
    messages.success(request, f"{change.tool.name} is registered.")
    return redirect("tool", tool_id=change.tool.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def tool(request: DeskRequest, tool_id: int) -> HttpResponse:
    """One tool: its settings, its lint, its versions. A change is looked at before it is saved."""
    kept = _tool_or_404(request, tool_id)
    if request.method != "POST":
        return _form_page(request, kept, _form(request, kept))
    require(request, Ability.EDIT_TOOLS)
    read_version = _number(request.POST, "version")
    if read_version != kept.version:
        return _moved(request, kept, read_version)
    return _change(request, kept, read_version)


def _change(request: DeskRequest, kept: Tool, read_version: int) -> HttpResponse:
    before = snapshot(kept)
    form = _form(request, kept, data=request.POST)
    if not form.is_valid():
        return _form_page(request, kept, form, status=UNPROCESSABLE)
    if BACK_TO_FORM in request.POST:
        return _form_page(request, kept, form)
    after = snapshot(form.instance)
    if CONFIRMED not in request.POST and _needs_a_look(kept, before, after):
        return _confirm_page(request, kept, before, after)
    try:
        change = _save(request, form, read_version=read_version)
    except ToolMoved:
        return _moved(request, kept, read_version)
    messages.success(request, f"Version {change.version} of {kept.name} is saved.")
    return redirect("tool", tool_id=kept.pk)


# Inside


def _tool_or_404(request: DeskRequest, tool_id: int) -> Tool:
    found = Tool.objects.filter(workspace=request.workspace, pk=tool_id)
    kept = found.select_related("connection").first()
    if kept is None:
        raise Http404("No tool of this workspace has this number.")
    return kept


def _form(request: DeskRequest, tool: Tool, *, data: QueryDict | None = None) -> ToolForm:
    return ToolForm(
        data,
        instance=tool,
        workspace=request.workspace,
        lookup_kinds=LOOKUP_KINDS,
        check_lookup=fault_of,
    )


def _form_page(
    request: DeskRequest, tool: Tool, form: ToolForm, *, status: int = 200
) -> HttpResponse:
    # Lint speaks of what is kept, not of what was just typed and refused.
    kept = _tool_or_404(request, tool.pk) if tool.pk else None
    terms = contract_of(kept.contract) if kept and kept.effect_class != EffectClass.READ else None
    context = {
        "now": queries.clock(),
        "tool": kept,
        "terms": terms,
        "compared": compared(promise_of(kept), terms) if kept and terms else (),
        "form": form,
        "lint": lint(kept) if kept else (),
        "wire": on_the_wire.of_tool(kept) if kept else None,
        "versions": _versions(kept) if kept else [],
        "undecided": sum(undecided_calls(request.workspace.pk).get(kept.pk, {}).values())
        if kept
        else 0,
        "classes": _CLASS_CARDS,
        "chosen_class": form["effect_class"].value(),
        "may_edit": can(request.role, Ability.EDIT_TOOLS),
        "needs": needs(Ability.EDIT_TOOLS),
        "role": ROLE_WORDS[request.role],
    }
    return render(request, "reconcile/tool.html", context, status=status)


_CLASS_CARDS: Final = (
    ("read", "Changes nothing", "May run any number of times. No claim is made."),
    (
        "keyed_write",
        "Changes something, with a key",
        "While the window is open, the provider answers a repeat with its first answer.",
    ),
    ("unkeyed_write", "Changes something, no key", "Every repeat is a new effect."),
)


def _versions(tool: Tool) -> list[dict[str, Any]]:
    changes = ToolChange.objects.filter(tool=tool).select_related("changed_by")
    return [
        {"change": change, "differences": differences(change.before, change.after)}
        for change in changes.order_by("-version")[:VERSIONS_SHOWN_MAX]
    ]


def _needs_a_look(tool: Tool, before: dict[str, Any], after: dict[str, Any]) -> bool:
    found = consequences(before, after, _undecided_of(tool))
    return is_weaker(before, after) or any(one.count for one in found)


def _confirm_page(
    request: DeskRequest, tool: Tool, before: dict[str, Any], after: dict[str, Any]
) -> HttpResponse:
    # Every value travels on as it was typed: nothing is kept on the server until it is saved.
    sent = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    context = {
        "now": queries.clock(),
        "tool": tool,
        "sent": sent,
        "differences": differences(before, after),
        "consequences": consequences(before, after, _undecided_of(tool)),
        "weaker": is_weaker(before, after),
        "next_version": tool.version + 1,
        "reason": request.POST.get("reason", ""),
    }
    return render(request, "reconcile/tool_confirm.html", context)


def _undecided_of(tool: Tool) -> Mapping[EffectClass, int]:
    return undecided_calls(tool.workspace_id).get(tool.pk, {})


def _save(request: DeskRequest, form: ToolForm, *, read_version: int | None) -> ToolChange:
    change = save_tool(
        form.instance,
        read_version=read_version,
        user=request.user,
        reason=form.cleaned_data["reason"],
        now=queries.clock(),
    )
    if change.before and any(change.before[f] != change.after[f] for f in LOOKUP_FIELDS):
        append.resume_lookups(form.instance.workspace_id, form.instance.pk)
    return change


def _moved(request: DeskRequest, tool: Tool, read_version: int) -> HttpResponse:
    changes = ToolChange.objects.filter(tool=tool, version__gt=read_version)
    since = [
        f"Version {change.version}, {change.changed_by or 'the system'}: "
        + "; ".join(
            f"{one.field} {one.after}, was {one.before}"
            for one in differences(change.before, change.after)
        )
        for change in changes.select_related("changed_by").order_by("version")
    ]
    back = reverse("tool", args=[tool.pk])
    return stale_page(request, what=f"The tool {tool.name}", since=since, back=back)


def _number(data: QueryDict, name: str) -> int:
    text = data.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
