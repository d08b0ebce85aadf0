"""Duplicates: groups of calls, each side by side with what decided, and what people say of them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.diagnosis import DEFAULTS, Layer
from effects.core.diagnosis.bands import SOURCES
from effects.core.problems import ClaimNotFound
from effects.exporting import csv_response
from effects.pages.settings import shown_times
from ledger import queries
from reconcile.duplicates import (
    acting,
    constants,
    export,
    finding,
    grouping,
    listing,
    on_the_wire,
    words,
)
from reconcile.duplicates.acting import CannotSay, Seen
from reconcile.duplicates.constants import CannotChange
from reconcile.duplicates.models import REASON_CHARACTERS_MAX
from reconcile.models import DuplicateAct, DuplicateGroup, RetryConstants

UNPROCESSABLE: Final = 422
VERSIONS_SHOWN_MAX: Final = 20
FIGURES: Final = {
    "sdk_backoff_min": "Library: shortest pause before a retry",
    "sdk_backoff_max": "Library: longest pause before a retry",
    "client_timeout": "Client: longest wait for an answer",
    "gateway_timeout": "Gateway: longest wait for a server",
    "step_backoff_min": "Step: shortest pause before it runs again",
    "redelivery": "Queue and platform: times after which a job is handed out again",
}


@require_safe
@membership_required
def duplicates(request: DeskRequest) -> HttpResponse:
    """The list, newest first."""
    workspace_id = request.workspace.pk
    filters = listing.read_filters(request.GET)
    groups, older = listing.rows(workspace_id, filters)
    counts = listing.counts(workspace_id, filters)
    context = {
        "now": queries.clock(),
        "rows": [
            {"group": one, "layer": listing.layer_words(one), "confidence": listing.confidence(one)}
            for one in groups
        ],
        "older": older,
        "newer": filters.address() if filters.before else "",
        "tabs": [
            {
                "words": said,
                "address": filters.address(show=word),
                "count": counts[word],
                "current": word == filters.show,
            }
            for word, (said, _) in listing.TABS.items()
        ],
        "filters": filters,
        "carried": filters.address(),
        "rules": listing.RULES,
        "layers": {str(layer): said for layer, said in words.LAYERS.items()},
        "tools": sorted(
            listing.of_workspace(workspace_id).values_list("tool", flat=True).distinct()[:200]
        ),
        "minutes": finding.SAME_AMOUNT_MINUTES,
        "alarms": on_the_wire.alarms(workspace_id),
        "no_export": "" if can(request.role, Ability.EXPORT) else needs(Ability.EXPORT),
    }
    return render(request, "reconcile/duplicates.html", context)


@require_safe
@membership_required
def duplicates_csv(request: DeskRequest) -> StreamingHttpResponse:
    """Every group that the filters of the address choose, up to `EXPORT_MAX`."""
    require(request, Ability.EXPORT)
    filters = listing.read_filters(request.GET)
    groups = listing.chosen(request.workspace.pk, filters)[: listing.EXPORT_MAX]
    audit.keep(
        request.workspace.pk,
        "duplicates.exported",
        user_id=request.user.pk,
        target="Duplicates as CSV",
        address=reverse("duplicates") + filters.address(),
        after={"groups": len(groups)},
    )
    times = shown_times(request)
    return csv_response("duplicates.csv", export.COLUMNS, groups, times=times)


@require_safe
@membership_required
def duplicate(request: DeskRequest, group_id: int) -> HttpResponse:
    """One group, side by side, as it is now."""
    group = _group(request, group_id)
    try:
        weighed = grouping.refresh(group)
    except ClaimNotFound as missing:
        raise Http404("A call of this group is not in the record any more.") from missing
    shown, lines = listing.side_by_side(weighed.executions)
    context = {
        "now": queries.clock(),
        "group": group,
        "layer": listing.layer_words(group),
        "confidence": listing.confidence(group),
        "claims": weighed.claims,
        "executions": shown,
        "hidden": len(weighed.executions) - len(shown),
        "lines": lines,
        "pairs": listing.compared(weighed),
        "acts": group.acts.select_related("by").order_by("-pk"),
        "offered": acting.offered(group),
        "seen": Seen.of(group),
        "asks_for_a_link": DuplicateAct.Act.REFUND_REQUESTED,
        "may_judge": can(request.role, Ability.JUDGE_DUPLICATE),
        "needs": needs(Ability.JUDGE_DUPLICATE),
        "reason_max": REASON_CHARACTERS_MAX,
        "undetermined": str(Layer.UNDETERMINED) in group.layers,
    }
    return render(request, "reconcile/duplicate.html", context)


@require_POST
@membership_required
def say(request: DeskRequest, group_id: int) -> HttpResponse:
    """Keeps what a person says about a group. Nothing is sent to anybody."""
    require(request, Ability.JUDGE_DUPLICATE)
    group = _group(request, group_id)
    said = request.POST
    version = said.get("version", "")
    try:
        kept = acting.say(
            group,
            said.get("act", ""),
            user_id=request.user.pk,
            reason=said.get("reason", ""),
            link=said.get("link", ""),
            seen=Seen(
                version=int(version) if version.isascii() and version.isdigit() else -1,
                shown=said.get("shown", ""),
            ),
        )
    except CannotSay as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Kept. The group is now: {kept.get_state_display().lower()}.")
    return redirect("duplicate", group_id=group.pk)


def _group(request: DeskRequest, group_id: int) -> DuplicateGroup:
    group = listing.of_workspace(request.workspace.pk).filter(pk=group_id).first()
    if group is None:
        raise Http404("No group of this workspace has this number.")
    return group


# The tenant's own figures


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def retry_constants(request: DeskRequest) -> HttpResponse:
    """The figures that a gap is compared with: in force, by default, and where those come from."""
    workspace_id = request.workspace.pk
    if request.method != "POST":
        return _figures_page(request, constants.current(workspace_id))
    require(request, Ability.EDIT_RETRY_CONSTANTS)
    typed = request.POST
    try:
        figures = constants.read(_typed_figures(request))
        version = typed.get("version", "")
        constants.change(
            workspace_id,
            figures,
            user_id=request.user.pk,
            reason=typed.get("reason", ""),
            version=int(version) if version.isascii() and version.isdigit() else -1,
        )
    except CannotChange as error:
        page = _figures_page(request, constants.current(workspace_id), error=error)
        page.status_code = UNPROCESSABLE
        return page
    messages.success(request, "Kept. Every group is diagnosed anew with these figures.")
    return redirect(reverse("duplicate-constants"))


def _typed_figures(request: HttpRequest) -> dict[str, Any]:
    """What was typed, as numbers where it is one. Raises `CannotChange`."""
    figures: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name in FIGURES:
        written = request.POST.get(name, "")
        try:
            numbers = [float(one) for one in written.replace(",", " ").split()]
        except ValueError:
            faults[name] = "Write seconds as a number, such as 30 or 0.5."
            continue
        if name == "redelivery":
            figures[name] = numbers
        elif len(numbers) == 1:
            figures[name] = numbers[0]
        else:
            faults[name] = "Write one number of seconds."
    if faults:
        raise CannotChange("Some figures cannot be read.", faults)
    return figures


def _figures_page(
    request: DeskRequest, current: RetryConstants | None, *, error: CannotChange | None = None
) -> HttpResponse:
    in_force = DEFAULTS.model_dump() if current is None else current.figures
    faults = error.faults if error else {}
    context = {
        "now": queries.clock(),
        "current": current,
        "version": current.version if current else 0,
        "fields": [
            {
                "name": name,
                "words": said,
                "value": request.POST[name]
                if error and name in request.POST
                else written(in_force[name]),
                "default": written(DEFAULTS.model_dump()[name]),
                "source": SOURCES[name],
                "fault": faults.get(name, ""),
            }
            for name, said in FIGURES.items()
        ],
        "error": error,
        "reason": request.POST.get("reason", "") if error else "",
        "reason_fault": faults.get("reason", ""),
        "reason_max": REASON_CHARACTERS_MAX,
        "versions": RetryConstants.objects.filter(workspace_id=request.workspace.pk)
        .select_related("changed_by")
        .order_by("-version")[:VERSIONS_SHOWN_MAX],
        "may_edit": can(request.role, Ability.EDIT_RETRY_CONSTANTS),
        "needs": needs(Ability.EDIT_RETRY_CONSTANTS),
    }
    return render(request, "reconcile/retry_constants.html", context)


def written(figure: Any) -> str:
    """Seconds as they are typed: without needless zeros, several with spaces between."""
    if isinstance(figure, list | tuple):
        return " ".join(written(one) for one in figure)
    return f"{float(figure):g}"
