"""The registry as a file: taken out as TOML, and brought in from TOML or from an MCP server's list.

Bringing in has two steps. The first shows what would change and saves nothing; the second sends the
same text again with the digest of what was shown, and saves it only if that is still what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.vocabulary import EffectClass
from effects.models import Tool
from effects.tools import CLASS_WORDS
from ledger import queries
from reconcile.pages.tools.common import UNPROCESSABLE, permission
from reconcile.pages.tools.form import resume_where_asked_anew
from reconcile.registry import importing, mcp_list, toml_file
from reconcile.registry.importing import Kind, Plan, PlanMoved, Wanted

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

CONFIRMED: Final = "confirmed"
NAME_CHARACTERS_MAX: Final = 100
PASTED: Final = {"toml": "pasted TOML", "list": "pasted tools/list"}


class _NoText(Exception):
    """Nothing that could be read was sent."""


@require_safe
@membership_required
def tools_file(request: DeskRequest) -> HttpResponse:
    """Where the registry is taken out and brought in."""
    return _start(request)


def _start(request: DeskRequest, *, status: int = 200, **said: Any) -> HttpResponse:
    context = {
        "now": queries.clock(),
        "total": Tool.objects.filter(workspace=request.workspace, registered=True).count(),
        "bytes_max": toml_file.BYTES_MAX,
        "tools_max": toml_file.TOOLS_MAX,
        "no_export": "" if can(request.role, Ability.EXPORT) else needs(Ability.EXPORT),
        **permission(request),
        **said,
    }
    return render(request, "reconcile/tools_file.html", context, status=status)


@require_safe
@membership_required
def export(request: DeskRequest) -> HttpResponse:
    """All registered tools as TOML."""
    require(request, Ability.EXPORT)
    found = Tool.objects.filter(workspace=request.workspace, registered=True)
    tools = list(found.select_related("connection"))
    audit.keep(
        request.workspace.pk,
        "tools.exported",
        user_id=request.user.pk,
        target="The registry",
        address="/tools/file/",
        after={"tools": len(tools)},
    )
    name = f"tools-{request.workspace.slug}.toml"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    text = toml_file.write(tools)
    return HttpResponse(text, content_type="application/toml; charset=utf-8", headers=headers)


# TOML


@require_POST
@membership_required
def import_file(request: DeskRequest) -> HttpResponse:
    """A registry file: first what it would do, then, confirmed, done."""
    require(request, Ability.EDIT_TOOLS)
    try:
        text, source = _sent(request, "toml", toml_file.BYTES_MAX)
    except _NoText as fault:
        return _start(request, status=UNPROCESSABLE, toml_fault=str(fault))
    try:
        entries = toml_file.read(text)
    except toml_file.CannotRead as fault:
        where = f"Line {fault.line}: " if fault.line else ""
        said = {"toml_fault": where + fault.reason, "toml_text": text}
        return _start(request, status=UNPROCESSABLE, **said)
    wanted = [importing.wanted_of(entry) for entry in entries]
    return _plan_or_save(request, wanted, kind="toml", text=text, source=source)


def _plan_or_save(
    request: DeskRequest, wanted: Sequence[Wanted], *, kind: str, text: str, source: str
) -> HttpResponse:
    made = importing.plan(request.workspace, wanted)
    if CONFIRMED not in request.POST or not made.can_be_saved:
        return _plan_page(request, made, kind=kind, text=text, source=source)
    if request.POST[CONFIRMED] != made.digest:
        return _moved(request, made, kind=kind, text=text, source=source)
    try:
        saved = importing.save(
            made,
            workspace=request.workspace,
            user=request.user,
            source=source,
            now=queries.clock(),
        )
    except PlanMoved:
        again = importing.plan(request.workspace, wanted)
        return _moved(request, again, kind=kind, text=text, source=source)
    for change in saved:
        resume_where_asked_anew(change)
    many = "1 tool is" if len(saved) == 1 else f"{len(saved)} tools are"
    messages.success(request, f"{many} saved by the import of {source}.")
    return redirect("tools")


def _moved(request: DeskRequest, made: Plan, **said: str) -> HttpResponse:
    return _plan_page(request, made, moved=True, status=409, **said)


def _plan_page(
    request: DeskRequest, made: Plan, *, moved: bool = False, status: int = 200, **said: str
) -> HttpResponse:
    context = {
        "now": queries.clock(),
        "plan": made,
        "groups": [(kind, made.of(kind)) for kind in Kind if made.of(kind)],
        "moved": moved,
        # What a person chose among several tools travels on with the text.
        "chosen": [
            (name, value)
            for name, value in request.POST.items()
            if name.startswith(("take-", "class-"))
        ],
        **said,
        **permission(request),
    }
    if made.of(Kind.REFUSED):
        status = UNPROCESSABLE
    return render(request, "reconcile/tools_plan.html", context, status=status)


# MCP


@require_POST
@membership_required
def import_list(request: DeskRequest) -> HttpResponse:
    """An MCP server's tools/list: first every tool with its hints, then what taking some would do,
    then, confirmed, done."""
    require(request, Ability.EDIT_TOOLS)
    try:
        text, source = _sent(request, "list", mcp_list.BYTES_MAX)
    except _NoText as fault:
        return _start(request, status=UNPROCESSABLE, list_fault=str(fault))
    try:
        offers = mcp_list.read(text)
    except mcp_list.CannotRead as fault:
        return _start(request, status=UNPROCESSABLE, list_fault=str(fault), list_text=text)
    chosen = _chosen(request, offers)
    if "choose" not in request.POST and CONFIRMED not in request.POST:
        return _offers_page(request, offers, text=text, source=source)
    if not chosen:
        said = {"text": text, "source": source, "fault": "Choose at least one tool."}
        return _offers_page(request, offers, status=UNPROCESSABLE, **said)
    return _plan_or_save(request, chosen, kind="list", text=text, source=source)


def _chosen(request: DeskRequest, offers: Sequence[mcp_list.Offer]) -> list[Wanted]:
    found = []
    for number, offer in enumerate(offers):
        if f"take-{number}" not in request.POST:
            continue
        word = request.POST.get(f"class-{number}", "")
        known = word in list(EffectClass)
        found.append(offer.wanted(EffectClass(word) if known else EffectClass.UNKEYED_WRITE))
    return found


def _offers_page(
    request: DeskRequest,
    offers: Sequence[mcp_list.Offer],
    *,
    status: int = 200,
    **said: str,
) -> HttpResponse:
    names = [offer.name for offer in offers]
    there = set(
        Tool.objects.filter(
            workspace=request.workspace, registered=True, name__in=names
        ).values_list("name", flat=True)
    )
    context = {
        "now": queries.clock(),
        "offers": [
            {"number": number, "offer": offer, "there": offer.name in there}
            for number, offer in enumerate(offers)
        ],
        "classes": CLASS_WORDS.items(),
        "default": EffectClass.UNKEYED_WRITE,
        "cursor": mcp_list.next_cursor(said["text"]),
        **said,
        **permission(request),
    }
    return render(request, "reconcile/tools_offers.html", context, status=status)


# What was sent


def _sent(request: DeskRequest, kind: str, bytes_max: int) -> tuple[str, str]:
    """The text, from a file or pasted, and what it is called. Raises `_NoText`."""
    uploaded = request.FILES.get("file")
    if uploaded is not None:
        return _of_file(uploaded, bytes_max)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        raise _NoText("Choose a file, or paste its text.")
    source = request.POST.get("source", "")[:NAME_CHARACTERS_MAX] or PASTED[kind]
    return text, source


def _of_file(uploaded: UploadedFile[Any], bytes_max: int) -> tuple[str, str]:
    if (uploaded.size or 0) > bytes_max:
        raise _NoText(f"The file is larger than {bytes_max:,} bytes (BYTES_MAX).")
    try:
        text = uploaded.read().decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise _NoText(f"The file is no UTF-8: byte {fault.start} is {fault.reason}.") from None
    name = "".join(c for c in uploaded.name or "" if c.isprintable())[:NAME_CHARACTERS_MAX]
    return text.replace("\r\n", "\n"), name or "a file"
