"""One tool: registered, looked at and changed."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from effects.contracts import compared, contract_of
from effects.core.redaction import Where
from effects.core.vocabulary import EffectClass
from effects.models import Tool, ToolChange
from effects.pages.problems import stale_page
from effects.redaction.rules import in_force
from effects.tool_form import ToolForm
from effects.tools import ToolMoved, differences, promise_of, save_tool, snapshot
from ledger import append, queries
from reconcile.duplicates import on_the_wire
from reconcile.lookups import fault_of
from reconcile.notes.markdown import rendered
from reconcile.pages.tools import confirm
from reconcile.pages.tools.common import LOOKUP_KINDS, UNPROCESSABLE, permission, tool_or_404
from reconcile.registry import preview
from reconcile.registry.arguments import names_of, samples_of
from reconcile.registry.lint import lint
from reconcile.registry.measured import Measured
from reconcile.registry.measuring import measured_of
from reconcile.undecided import undecided_calls

VERSIONS_SHOWN_MAX: Final = 50
LOOKUP_FIELDS: Final = ("connection", "lookup_kind", "lookup")
"""When one of these changes, claims that had nothing more to ask have something to ask again."""
CONFIRMED: Final = "confirmed"
BACK_TO_FORM: Final = "back"
PREVIEW: Final = "preview"


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def new_tool(request: DeskRequest) -> HttpResponse:
    """A tool that nobody has entered yet; `?name=` is one that was seen in traffic."""
    name = request.GET.get("name", "")[:255]
    tool = Tool(workspace=request.workspace, name=name)
    if request.method != "POST":
        # An unkeyed write is what an unknown tool counts as, so it is what the form begins with.
        return _form_page(request, tool, _form(request, tool))
    require(request, Ability.EDIT_TOOLS)
    form = _form(request, tool, data=request.POST)
    if PREVIEW in request.POST:
        return _form_page(request, tool, form)
    if not form.is_valid():
        return _form_page(request, tool, form, status=UNPROCESSABLE)
    change = _save(request, form, read_version=None)
    messages.success(request, f"{change.tool.name} is registered.")
    return redirect("tool", tool_id=change.tool.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def tool(request: DeskRequest, tool_id: int) -> HttpResponse:
    """One tool: its settings, its lint, its versions. A change is looked at before it is saved."""
    kept = tool_or_404(request, tool_id)
    if request.method != "POST":
        return _form_page(request, kept, _form(request, kept))
    require(request, Ability.EDIT_TOOLS)
    read_version = _number(request.POST, "version")
    if read_version != kept.version:
        return _moved(request, kept, read_version)
    return _change(request, kept, read_version)


@require_POST
@membership_required
def preview_fields(request: DeskRequest, tool_id: int) -> HttpResponse:
    """How the newest real calls would read with what is typed; nothing is saved."""
    kept = tool_or_404(request, tool_id)
    seen = measured_of(request.workspace.pk, [kept.name]).get(kept.name)
    typed = preview.typed(request.POST.dict(), name=kept.name)
    context = {"preview": preview.preview_of(kept, typed, seen), "now": queries.clock()}
    return render(request, "reconcile/_tool_preview.html", context)


def _change(request: DeskRequest, kept: Tool, read_version: int) -> HttpResponse:
    before, as_it_is = snapshot(kept), tool_or_404(request, kept.pk)
    form = _form(request, kept, data=request.POST)
    if PREVIEW in request.POST:
        return _form_page(request, kept, form)
    if not form.is_valid():
        return _form_page(request, kept, form, status=UNPROCESSABLE)
    if BACK_TO_FORM in request.POST:
        return _form_page(request, kept, form)
    after = snapshot(form.instance)
    if CONFIRMED not in request.POST and confirm.needs_a_look(kept, before, after):
        return confirm.confirm_page(request, as_it_is, form.instance)
    try:
        change = _save(request, form, read_version=read_version)
    except ToolMoved:
        return _moved(request, kept, read_version)
    messages.success(request, f"Version {change.version} of {kept.name} is saved.")
    return redirect("tool", tool_id=kept.pk)


# Inside


def _form(request: DeskRequest, tool: Tool, *, data: QueryDict | None = None) -> ToolForm:
    return ToolForm(
        data,
        instance=tool,
        initial={} if tool.registered and tool.pk else _offered(tool),
        workspace=request.workspace,
        lookup_kinds=LOOKUP_KINDS,
        check_lookup=fault_of,
    )


def _offered(tool: Tool) -> dict[str, str]:
    """Fields that the newest arguments suggest, where nobody has entered the tool."""
    if not tool.name or tool.amount_field or tool.customer_field:
        return {}
    seen = measured_of(tool.workspace_id, [tool.name]).get(tool.name)
    samples = samples_of(tool.workspace_id, seen.recent[:1]) if seen else []
    return preview.suggested(names_of(samples[0].text)) if samples else {}


def _form_page(
    request: DeskRequest, tool: Tool, form: ToolForm, *, status: int = 200
) -> HttpResponse:
    # Lint speaks of what is kept, not of what was just typed and refused.
    kept = tool_or_404(request, tool.pk) if tool.pk else None
    name = kept.name if kept else tool.name
    seen = measured_of(request.workspace.pk, [name]).get(name) if name else None
    context = {
        "now": queries.clock(),
        "tool": kept,
        "stranger": name if name and not (kept and kept.registered) else "",
        "measured": seen,
        "form": form,
        "preview": _preview(tool, form, seen),
        "classes": _CLASS_CARDS,
        "chosen_class": form["effect_class"].value(),
        **permission(request),
        **(_about(kept, seen) if kept else {"lint": (), "versions": (), "undecided": 0}),
    }
    return render(request, "reconcile/tool.html", context, status=status)


def _about(kept: Tool, seen: Measured | None) -> dict[str, Any]:
    """What is said of a tool that is there."""
    redactions = in_force(kept.workspace_id)
    terms = contract_of(kept.contract) if kept.effect_class != EffectClass.READ else None
    return {
        "terms": terms,
        "compared": compared(promise_of(kept), terms) if terms else (),
        "lint": lint(kept, seen, redactions.redaction(Where.ARGUMENTS, kept.name)),
        "wire": on_the_wire.of_tool(kept),
        "versions": _versions(kept),
        "undecided": sum(undecided_calls(kept.workspace_id).get(kept.pk, {}).values()),
        "runbook": rendered(kept.runbook, {}) if kept.runbook else "",
    }


def _preview(tool: Tool, form: ToolForm, seen: Measured | None) -> preview.Preview:
    shown = {name: str(form[name].value() or "") for name in (*preview.FIELDS, "contract")}
    minor = {"amount_is_minor": "on"} if form["amount_is_minor"].value() else {}
    return preview.preview_of(tool, preview.typed(shown | minor, name=tool.name), seen)


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


def _save(request: DeskRequest, form: ToolForm, *, read_version: int | None) -> ToolChange:
    change = save_tool(
        form.instance,
        read_version=read_version,
        user=request.user,
        reason=form.cleaned_data["reason"],
        now=queries.clock(),
    )
    resume_where_asked_anew(change)
    return change


def resume_where_asked_anew(change: ToolChange) -> None:
    """Undecided calls are asked about again once their tool's look-up is another."""
    if change.before and any(change.before[f] != change.after[f] for f in LOOKUP_FIELDS):
        append.resume_lookups(change.tool.workspace_id, change.tool.pk)


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
