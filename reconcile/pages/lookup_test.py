"""A look-up is tried on a past call before anybody relies on it: nothing is kept or decided."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection as database
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from effects.access import Ability, DeskRequest, membership_required, require
from effects.models import Connection, LookupTrial, Tool
from ledger import queries
from reconcile.connecting import tasks
from reconcile.connecting.trial import (
    RAW_SHOWN_MAX,
    TRIAL_SECONDS_MAX,
    CannotTry,
    Settings,
    entry_of,
    order,
    settings_of,
)
from reconcile.lookups import LOOKUPS

UNPROCESSABLE: Final = 422
UNAVAILABLE: Final = 503
NUMBER_CHARACTERS_MAX: Final = 18
WAITS_MAX: Final = timedelta(seconds=100)
"""How long the page waits: a worker may be busy, and a provider slow."""
CALLS_OFFERED_MAX: Final = 10
SETTINGS_CHARACTERS_MAX: Final = 20_000
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
CALLS_LOOKED_AT_MAX: Final = 20_000
"""Among so many newest calls of all tools this tool's are looked for: ids are ordered by time, and
no index is kept for this page alone."""
_NEWEST: Final = """
SELECT id, state::text, granted_at
  FROM (SELECT id, workspace_id, tool_id, state, granted_at FROM ledger_claim
         ORDER BY id DESC LIMIT %s) newest
 WHERE workspace_id = %s AND tool_id = %s ORDER BY id DESC LIMIT %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A past call of the tool that may be tried."""

    id: UUID
    state: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class _Typed:
    """What stands in the form. `call` is as it was pasted."""

    kind: str
    connection: Connection | None
    lookup: str
    call: str = ""
    fault: str = ""


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def lookup_test(request: DeskRequest, tool_id: int) -> HttpResponse:
    """The form, and with `?trial=` how far a worker has got with it.

    A POST without a call comes from the tool's own form, with settings that are not saved.
    """
    require(request, Ability.EDIT_TOOLS)
    tool = _tool_or_404(request, tool_id)
    if request.method != "POST":
        return _shown(request, tool)
    typed = _typed(request)
    if "call" not in request.POST:
        return _page(request, tool, typed)
    try:
        trial = order(tool, _call_id(typed.call), _settings(typed), user=request.user)
    except CannotTry as error:
        typed.fault = str(error)
        return _page(request, tool, typed, status=UNPROCESSABLE)
    if not tasks.begin(trial.pk):
        trial.delete()
        typed.fault = "No worker can be reached, because the broker is away. Try again soon."
        return _page(request, tool, typed, status=UNAVAILABLE)
    return redirect(f"{reverse('tool-lookup', args=[tool.pk])}?trial={trial.pk}#result")


@require_safe
@membership_required
def lookup_answer(request: DeskRequest, tool_id: int, trial_id: int) -> HttpResponse:
    """The part of the page that waits. It has the page loaded anew once there is an answer."""
    require(request, Ability.EDIT_TOOLS)
    tool = _tool_or_404(request, tool_id)
    trial = _trial(request, tool, str(trial_id))
    if trial is None:
        raise Http404("Nothing of yours is tried under this number.")
    context = {"tool": tool, "trial": trial, "waits": _waits(trial)}
    response = render(request, "reconcile/_lookup_waits.html", context)
    if trial.answer:
        response["HX-Refresh"] = "true"
    return response


# Inside


def _tool_or_404(request: DeskRequest, tool_id: int) -> Tool:
    found = Tool.objects.filter(workspace=request.workspace, pk=tool_id)
    tool = found.select_related("connection").first()
    if tool is None:
        raise Http404("No tool of this workspace has this number.")
    return tool


def _trial(request: DeskRequest, tool: Tool, number: str) -> LookupTrial | None:
    """The person's own trial of this number, as long as it is kept."""
    if not (number.isascii() and number.isdigit() and len(number) < NUMBER_CHARACTERS_MAX):
        return None
    own = LookupTrial.objects.filter(workspace=request.workspace, user=request.user, tool=tool)
    return own.filter(pk=int(number)).first()


def _waits(trial: LookupTrial) -> bool:
    return not trial.answer and queries.clock() - trial.asked_at < WAITS_MAX


def _shown(request: DeskRequest, tool: Tool) -> HttpResponse:
    trial = _trial(request, tool, request.GET.get("trial", ""))
    if trial is None:
        typed = _as_typed(settings_of(tool), call=request.GET.get("call", ""))
        if request.GET.get("trial"):
            typed.fault = "What was tried is no longer kept. Try it again."
        return _page(request, tool, typed)
    typed = _as_typed(entry_of(trial), call=str(trial.claim_id))
    found: dict[str, Any] = json.loads(trial.answer) if trial.answer else {}
    typed.fault = found.get("fault", "")
    return _page(request, tool, typed, trial=trial, found=found if "word" in found else None)


def _as_typed(saved: Settings, *, call: str = "") -> _Typed:
    text = json.dumps(saved.lookup, indent=2, ensure_ascii=False) if saved.lookup else ""
    return _Typed(kind=saved.kind, connection=saved.connection, lookup=text, call=call)


def _typed(request: DeskRequest) -> _Typed:
    number = request.POST.get("connection", "")
    chosen = Connection.objects.filter(workspace=request.workspace)
    return _Typed(
        kind=request.POST.get("lookup_kind", ""),
        connection=chosen.filter(pk=int(number)).select_related("workspace").first()
        if number.isascii() and number.isdigit() and len(number) < 10
        else None,
        lookup=request.POST.get("lookup", "")[:SETTINGS_CHARACTERS_MAX],
        call=request.POST.get("call", "").strip(),
    )


def _settings(typed: _Typed) -> Settings:
    try:
        lookup = json.loads(typed.lookup or "{}")
    except (ValueError, RecursionError) as error:
        raise CannotTry(f"The settings are no JSON: {error}.") from None
    if not isinstance(lookup, dict):
        raise CannotTry("The settings are one JSON object, in braces.")
    return Settings(kind=typed.kind, connection=typed.connection, lookup=lookup)


def _call_id(text: str) -> UUID:
    """The id in what was pasted: an id, or the address of a call's page."""
    found = _UUID.search(text)
    if found is None:
        raise CannotTry("Choose a past call, or paste its id or the address of its page.")
    return UUID(found[0])


def _offered(tool: Tool) -> list[Offered]:
    with database.cursor() as cursor:
        cursor.execute(
            _NEWEST, [CALLS_LOOKED_AT_MAX, tool.workspace_id, tool.pk, CALLS_OFFERED_MAX]
        )
        return [Offered(id=id_, state=state, at=at) for id_, state, at in cursor.fetchall()]


def _page(
    request: DeskRequest,
    tool: Tool,
    typed: _Typed,
    *,
    trial: LookupTrial | None = None,
    found: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    connections = Connection.objects.filter(workspace=request.workspace).order_by("name")
    saved = _as_typed(settings_of(tool))
    context: dict[str, Any] = {
        "now": queries.clock(),
        "tool": tool,
        "typed": typed,
        "is_edited": (typed.kind, typed.connection, typed.lookup.split())
        != (saved.kind, saved.connection, saved.lookup.split()),
        "kinds": [(kind, lookup.label) for kind, lookup in LOOKUPS.items()],
        "routes": LOOKUPS[typed.kind].routes if typed.kind in LOOKUPS else (),
        "connections": connections,
        "offered": _offered(tool),
        "trial": trial,
        "waits": trial is not None and _waits(trial),
        "found": found,
        "found_at": datetime.fromisoformat(found["asked_at"]) if found else None,
        "seconds_max": TRIAL_SECONDS_MAX,
        "raw_shown_max": RAW_SHOWN_MAX,
    }
    return render(request, "reconcile/lookup_test.html", context, status=status)
