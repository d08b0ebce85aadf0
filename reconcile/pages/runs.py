"""Runs: the list, one run with its calls, and starting, stopping and repeating one."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.problems import ClaimNotFound
from effects.models import Connection, Tool
from ledger import queries
from reconcile import tasks
from reconcile.models import Run
from reconcile.queries import Call
from reconcile.runs import ending, listing, making
from reconcile.runs.making import CannotStart, NewRun, Scope

OFFERED_MAX: Final = 200
IDS_CHARACTERS_MAX: Final = 200_000
DIALOGS: Final = frozenset({"run", "dry"})

_ID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


@require_safe
@membership_required
def runs(request: DeskRequest) -> HttpResponse:
    """The list, newest first. `?dialog=run` opens the form that starts one."""
    return _runs_page(request, typed={})


def _runs_page(
    request: DeskRequest, *, typed: dict[str, Any], error: str = "", status: int = 200
) -> HttpResponse:
    workspace_id, now = request.workspace.pk, queries.clock()
    filters = listing.read_filters(request.GET, listing.TABS, "all")
    dialog = request.GET.get("dialog", "")
    may_run = can(request.role, Ability.RUN)
    ended = ending.listed(workspace_id)
    context = {
        "now": now,
        "page": listing.run_page(workspace_id, filters, now),
        "filters": filters,
        "newest": filters.address() if filters.before else "",
        "tabs": [
            {
                "words": words,
                "address": filters.address(show=word),
                "current": word == filters.show,
            }
            for word, (words, _) in listing.TABS.items()
        ],
        "connections": _connections(request),
        "tools": Tool.objects.filter(workspace_id=workspace_id)
        .exclude(lookup_kind="")
        .order_by("name")[:OFFERED_MAX],
        "spark": listing.backlog(workspace_id, now),
        "ended": ended,
        "ended_max": ending.LISTED_MAX,
        "may_run": may_run,
        "needs": needs(Ability.RUN),
        "dialog": may_run and (dialog in DIALOGS or bool(error)),
        "typed": {"dry": dialog == "dry", **typed, **_chosen(typed)},
        "error": error,
        "close": reverse("runs") + filters.address(),
        "items_max": making.ITEMS_MAX,
    }
    return render(request, "reconcile/runs.html", context, status=status)


@require_safe
@membership_required
def run(request: DeskRequest, run_id: int) -> HttpResponse:
    """One run; `?answers=failed` shows some of its calls, `?after=` continues them."""
    found = _found(request, run_id)
    asked_for = request.GET.get("answers", "")
    answers = asked_for if asked_for in listing.ANSWERS else "all"
    after = listing.number(request.GET.get("after"))
    rows, more = listing.item_page(found, answers, after)
    context = {
        **_progress(found),
        "rows": rows,
        "answers": answers,
        "kinds": [
            {"word": word, "words": words, "current": word == answers}
            for word, (words, _) in listing.ANSWERS.items()
        ],
        "older": f"?answers={answers}&after={more}" if more else "",
        "newer": f"?answers={answers}" if after else "",
        "may_run": can(request.role, Ability.RUN),
        "needs": needs(Ability.RUN),
    }
    return render(request, "reconcile/run.html", context)


@require_safe
@membership_required
def progress(request: DeskRequest, run_id: int) -> HttpResponse:
    """The part of the page that moves. It has the page loaded anew once the run has ended."""
    found = _found(request, run_id)
    response = render(request, "reconcile/_run_progress.html", _progress(found))
    if not found.is_open:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@membership_required
def start(request: DeskRequest) -> HttpResponse:
    """Starts the run that the form asks for, or shows the form with what has to be put right."""
    require(request, Ability.RUN)
    typed: dict[str, Any] = {
        "about": request.POST.get("about", ""),
        "ids": request.POST.get("ids", ""),
        "dry": request.POST.get("dry") == "on",
    }
    try:
        made = making.start(
            NewRun(
                workspace_id=request.workspace.pk,
                scope=_scope(typed["about"], typed["ids"]),
                user_id=request.user.pk,
                dry=typed["dry"],
            )
        )
    except CannotStart as error:
        return _runs_page(request, typed=typed, error=str(error), status=422)
    transaction.on_commit(lambda: tasks.start_now(made.pk))
    return redirect("run", made.pk)


@require_POST
@membership_required
def stop(request: DeskRequest, run_id: int) -> HttpResponse:
    """Has a run end after the reading that it is at. What was answered is kept."""
    require(request, Ability.RUN)
    found = _found(request, run_id)
    still = Run.objects.filter(
        pk=found.pk, state__in=[Run.State.WAITING, Run.State.RUNNING], stop_asked_at=None
    )
    if still.update(stop_asked_at=queries.clock(), stopped_by=request.user):
        messages.success(request, f"Run {found.pk} stops after the reading that it is at.")
        transaction.on_commit(lambda: tasks.start_now(found.pk))
    else:
        messages.info(request, f"Run {found.pk} has ended, or somebody is stopping it.")
    return redirect("run", found.pk)


@require_POST
@membership_required
def again(request: DeskRequest, run_id: int) -> HttpResponse:
    """A new run about what failed in this one."""
    require(request, Ability.RUN)
    found = _found(request, run_id)
    try:
        made = making.again(found, user_id=request.user.pk)
    except CannotStart as error:
        messages.error(request, str(error))
        return redirect("run", found.pk)
    transaction.on_commit(lambda: tasks.start_now(made.pk))
    return redirect("run", made.pk)


@require_POST
@membership_required
def restart(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Has the schedule begin anew about a call whose asking had ended."""
    require(request, Ability.ASK)
    try:
        begun = ending.restart(request.workspace.pk, claim_id, user_id=request.user.pk)
    except ClaimNotFound as missing:
        raise Http404("No call of this workspace has this id.") from missing
    if begun:
        messages.success(request, "The provider is asked about the call again, from now on.")
    else:
        messages.info(request, "Asking about this call goes on; it had not ended.")
    return redirect("call", claim_id)


def asking_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """What a call's page says where asking about it has ended."""
    ended = seen.beside.asking_ended
    return {
        "asking": ending.of_call(request.workspace.pk, seen.claim.pk) if ended else None,
        "may_ask_anew": can(request.role, Ability.ASK),
        "needs_ask_anew": needs(Ability.ASK),
    }


# Inside


def _found(request: DeskRequest, run_id: int) -> Run:
    runs = Run.objects.select_related("connection", "started_by", "stopped_by", "again_of")
    found = runs.filter(workspace=request.workspace, pk=run_id).first()
    if found is None:
        raise Http404("No run of this workspace has this number.")
    return found


def _progress(found: Run) -> dict[str, Any]:
    now = queries.clock()
    return {
        "now": now,
        "run": found,
        "counts": listing.counts_of([found])[found.pk],
        "took": listing.took(found, now),
    }


def _connections(request: DeskRequest) -> Any:
    return Connection.objects.filter(workspace=request.workspace).order_by("name")[:OFFERED_MAX]


def _chosen(typed: dict[str, Any]) -> dict[str, int]:
    """The tool or the connection that the form had chosen, by its number."""
    kind, _, said = str(typed.get("about", "")).partition("-")
    chosen = listing.number(said)
    return {kind: chosen} if chosen is not None else {}


def _scope(about: str, ids: str) -> Scope:
    """What the form chose. Raises `CannotStart` for what cannot be meant."""
    kind, _, said = about.partition("-")
    chosen = listing.number(said)
    match kind:
        case "all":
            return Scope()
        case "tool" if chosen is not None:
            return Scope(tool_id=chosen)
        case "connection" if chosen is not None:
            return Scope(connection_id=chosen)
        case "ids":
            return Scope(claim_ids=_ids(ids))
        case _:
            raise CannotStart("Nothing was started: say which calls the run is about.")


def _ids(text: str) -> tuple[UUID, ...]:
    if len(text) > IDS_CHARACTERS_MAX:
        raise CannotStart(
            f"Nothing was started: a run has at most {making.ITEMS_MAX:,} calls, and the list of "
            f"ids at most {IDS_CHARACTERS_MAX:,} characters."
        )
    words = text.replace(",", " ").replace(";", " ").split()
    odd = [word for word in words if not _ID.fullmatch(word)]
    if odd:
        raise CannotStart(f"Nothing was started: {odd[0][:60]!r} is no id of a call.")
    if not words:
        raise CannotStart("Nothing was started: enter the ids of the calls.")
    return tuple(UUID(word) for word in words)
