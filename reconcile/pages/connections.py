"""The accounts at providers that look-ups ask: which there are, who uses them, how they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from effects.access import Ability, DeskRequest, membership_required, require
from effects.models import Connection, ConnectionChange, Tool
from effects.pages.problems import stale_page
from ledger import append, queries
from reconcile import pace
from reconcile.connecting import secrets_seen
from reconcile.connecting.form import KIND_WORDS, ConnectionForm
from reconcile.connecting.saving import ConnectionMoved, Saving, differences, save_connection
from reconcile.models import WebhookAddress

UNPROCESSABLE: Final = 422
CONNECTIONS_MAX: Final = 100
VERSIONS_SHOWN_MAX: Final = 50
LOOKUP_FIELDS: Final = ("base_url", "account", "secret_name", "secret_entered_at")
"""When one of these changes, claims that had nothing more to ask have something to ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One connection and how it stands. `secret_is_set`: a worker had it lately."""

    connection: Connection
    kind: str
    tools: tuple[Tool, ...]
    secret_is_set: bool
    reads: int
    standing: pace.Standing
    has_webhooks: bool


@require_safe
@membership_required
def connections(request: DeskRequest) -> HttpResponse:
    """The list: one line a connection."""
    require(request, Ability.EDIT_TOOLS)
    found = _found(request).order_by("name")[: CONNECTIONS_MAX + 1]
    rows = [_row(one) for one in found]
    context = {
        "now": queries.clock(),
        "rows": rows[:CONNECTIONS_MAX],
        "more": len(rows) > CONNECTIONS_MAX,
        "shown_max": CONNECTIONS_MAX,
        "workspace": request.workspace,
        "reads_days": pace.READS_DAYS,
    }
    return render(request, "reconcile/connections.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def new_connection(request: DeskRequest) -> HttpResponse:
    """A connection that nobody has entered yet."""
    require(request, Ability.EDIT_TOOLS)
    draft = Connection(workspace=request.workspace)
    form = ConnectionForm(
        request.POST if request.method == "POST" else None,
        instance=draft,
        workspace=request.workspace,
    )
    if request.method != "POST":
        return _form_page(request, form, None)
    if not form.is_valid():
        return _form_page(request, form, None, status=UNPROCESSABLE)
    if _found(request).count() >= CONNECTIONS_MAX:
        form.add_error(None, f"A workspace has at most {CONNECTIONS_MAX} connections.")
        return _form_page(request, form, None, status=UNPROCESSABLE)
    _save(request, form, read_version=None)
    messages.success(request, f"{draft.name} is there. A tool may now be asked about through it.")
    return redirect("connection", connection_id=draft.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def connection(request: DeskRequest, connection_id: int) -> HttpResponse:
    """One connection: its settings, the tools that use it, its reads, its versions."""
    require(request, Ability.EDIT_TOOLS)
    kept = _connection_or_404(request, connection_id)
    if request.method != "POST":
        return _form_page(request, ConnectionForm(instance=kept, workspace=request.workspace), kept)
    read_version = _number(request.POST, "version")
    form = ConnectionForm(
        request.POST,
        instance=_connection_or_404(request, connection_id),
        workspace=request.workspace,
    )
    if not form.is_valid():
        return _form_page(request, form, kept, status=UNPROCESSABLE)
    try:
        change = _save(request, form, read_version=read_version)
    except ConnectionMoved:
        return _moved(request, kept, read_version)
    messages.success(request, f"Version {change.version} of {form.instance.name} is saved.")
    return redirect("connection", connection_id=kept.pk)


# Inside


def _found(request: DeskRequest) -> Any:
    tools = Prefetch(
        "tool_set", queryset=Tool.objects.order_by("name"), to_attr="tools_that_use_it"
    )
    return Connection.objects.filter(workspace=request.workspace).prefetch_related(tools)


def _connection_or_404(request: DeskRequest, connection_id: int) -> Connection:
    kept: Connection | None = _found(request).filter(pk=connection_id).first()
    if kept is None:
        raise Http404("No connection of this workspace has this number.")
    return kept


def _row(kept: Connection) -> Row:
    now = queries.clock()
    return Row(
        connection=kept,
        kind=KIND_WORDS.get(Connection.Kind(kept.kind), kept.kind),
        tools=tuple(getattr(kept, "tools_that_use_it", ())),
        secret_is_set=secrets_seen.is_set(kept),
        reads=pace.reads_lately(kept.pk, now),
        standing=pace.standing(kept.pk, now),
        has_webhooks=WebhookAddress.objects.filter(connection=kept).exists(),
    )


def _form_page(
    request: DeskRequest, form: ConnectionForm, kept: Connection | None, *, status: int = 200
) -> HttpResponse:
    context = {
        "now": queries.clock(),
        "form": form,
        "connection": kept,
        "row": _row(kept) if kept else None,
        "versions": _versions(kept) if kept else [],
        "workspace": request.workspace,
        "reads_days": pace.READS_DAYS,
    }
    return render(request, "reconcile/connection.html", context, status=status)


def _versions(kept: Connection) -> list[dict[str, Any]]:
    changes = ConnectionChange.objects.filter(connection=kept).select_related("changed_by")
    return [
        {"change": change, "differences": differences(change.before, change.after)}
        for change in changes.order_by("-version")[:VERSIONS_SHOWN_MAX]
    ]


def _save(
    request: DeskRequest, form: ConnectionForm, *, read_version: int | None
) -> ConnectionChange:
    saving = Saving(
        read_version=read_version,
        user=request.user,
        reason=form.cleaned_data["reason"],
        secret=form.cleaned_data["secret"],
        now=queries.clock(),
    )
    change = save_connection(form.instance, saving)
    before = change.before
    if before and any(before.get(f) != change.after[f] for f in LOOKUP_FIELDS):
        for tool in Tool.objects.filter(connection=form.instance):
            append.resume_lookups(tool.workspace_id, tool.pk)
    return change


def _moved(request: DeskRequest, kept: Connection, read_version: int) -> HttpResponse:
    changes = ConnectionChange.objects.filter(connection=kept, version__gt=read_version)
    since = [
        f"Version {change.version}, {change.changed_by or 'the system'}: "
        + "; ".join(
            f"{one.field} {one.after}, was {one.before}"
            for one in differences(change.before, change.after)
        )
        for change in changes.select_related("changed_by").order_by("version")
    ]
    back = reverse("connection", args=[kept.pk])
    return stale_page(request, what=f"The connection {kept.name}", since=since, back=back)


def _number(data: QueryDict, name: str) -> int:
    text = data.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
