"""Exposure, trends and the weekly report, and their tables as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.exporting import Column, csv_response
from effects.pages.settings import shown_times
from ledger import queries
from reconcile.duplicates import listing as duplicates
from reconcile.exposure import files, levels, measuring, money, trends, weekly
from reconcile.exposure.days import Days, Week, last_days, read_week, week_of
from reconcile.exposure.drawing import OLD_LIST, bars, picture
from reconcile.exposure.facts import read_facts
from reconcile.ghosts import listing as ghosts


@require_safe
@membership_required
def exposure(request: DeskRequest) -> HttpResponse:
    """What is at risk now, and the window of each tool as it was measured."""
    workspace_id = request.workspace.pk
    now, at_risk = levels.read_filled(workspace_id)
    facts = read_facts(workspace_id, now)
    days = last_days(trends.PERIOD_USUAL, now, _zone(request))
    context = {
        "now": now,
        "levels": at_risk,
        "sums": at_risk.sums(),
        "old_sums": at_risk.old_sums(),
        "old_days": levels.OLD_DAYS,
        "old_list": OLD_LIST.address(),
        "bars": bars(at_risk),
        "suspected": money.suspected(workspace_id),
        "ghosts": ghosts.counts(workspace_id)[ghosts.USUAL],
        "facts": facts,
        "shown": facts.slowest or facts.busiest,
        "times_min": measuring.TIMES_MIN,
        "days_min": measuring.DAYS_MIN,
        "picture": picture(facts.slowest.measured) if facts.slowest else None,
        "went": trends.how_it_went(workspace_id, days, now)[None],
        **_export(request),
    }
    return render(request, "reconcile/exposure.html", context)


@require_safe
@membership_required
def exposure_csv(request: DeskRequest) -> StreamingHttpResponse:
    """The window of each tool."""
    require(request, Ability.EXPORT)
    facts = read_facts(request.workspace.pk, queries.clock())
    return _file(request, "exposure", files.TOOLS, facts.rows, address=reverse("exposure"))


# Trends


@require_safe
@membership_required
def trends_page(request: DeskRequest) -> HttpResponse:
    """The lines of the last 7, 30 or 90 days (`?days=`), by the days of the person's zone."""
    now = queries.clock()
    days = _period(request, now)
    context = {
        "now": now,
        "charts": trends.charts(request.workspace.pk, days, now),
        "days": len(days.days),
        "periods": trends.PERIODS,
        "zone": days.zone,
        "first": days.days[0],
        "last": days.days[-1],
        **_export(request),
    }
    return render(request, "reconcile/exposure_trends.html", context)


@require_safe
@membership_required
def trends_csv(request: DeskRequest) -> StreamingHttpResponse:
    """Every value of every line."""
    require(request, Ability.EXPORT)
    now = queries.clock()
    days = _period(request, now)
    rows = files.trend_rows(trends.charts(request.workspace.pk, days, now))
    address = f"{reverse('trends')}?days={len(days.days)}"
    return _file(request, "trends", files.TRENDS, list(rows), address=address)


def _period(request: DeskRequest, now: Any) -> Days:
    said = request.GET.get("days", "")
    count = int(said) if said in map(str, trends.PERIODS) else trends.PERIOD_USUAL
    return last_days(count, now, _zone(request))


# The weekly report


@require_safe
@membership_required
def weekly_report(request: DeskRequest) -> HttpResponse:
    """The report of `?week=2026-W48`, by default of the week that runs."""
    now = queries.clock()
    week = _week(request, now)
    days = week.days(_zone(request))
    this = week_of(last_days(1, now, days.zone).days[0])
    context = {
        "now": now,
        "week": week,
        "shop": request.workspace.name,
        "zone": days.zone,
        "first": days.days[0],
        "last": days.days[-1],
        "earlier": week.moved(-1),
        "later": week.moved(1) if week.monday < this.monday else None,
        "report": weekly.read_report(request.workspace.pk, days, now),
        "rows_max": weekly.ROWS_MAX,
        **_export(request),
    }
    return render(request, "reconcile/exposure_weekly.html", context)


@require_safe
@membership_required
def weekly_report_csv(request: DeskRequest) -> StreamingHttpResponse:
    """One table of the report: `?table=duplicates`, `missed` or `contradicted`."""
    require(request, Ability.EXPORT)
    now, workspace_id = queries.clock(), request.workspace.pk
    week = _week(request, now)
    days = week.days(_zone(request))
    table = request.GET.get("table", "duplicates")
    name = f"{table}-{week.word}"
    address = f"{reverse('weekly-report')}?week={week.word}"
    match table:
        case "duplicates":
            groups = weekly.found_in(workspace_id, days)[: duplicates.EXPORT_MAX]
            return _file(request, name, files.GROUPS, groups, address=address)
        case "missed":
            calls = weekly.missed_in(workspace_id, days, now)
        case "contradicted":
            calls = weekly.contradicted_in(workspace_id, days)
        case _:
            raise Http404("The report has no such table.")
    rows = weekly.rows_of(workspace_id, calls[: weekly.FILE_ROWS_MAX])
    return _file(request, name, files.CALLS, rows, address=address)


def _week(request: DeskRequest, now: Any) -> Week:
    """The week that the address names, or this one. Raises Http404 for a week that there is not."""
    said = request.GET.get("week", "")
    if not said:
        return week_of(last_days(1, now, _zone(request)).days[0])
    week = read_week(said)
    if week is None:
        raise Http404("There is no such week. Write it as 2026-W48.")
    return week


# Inside


def _zone(request: DeskRequest) -> str:
    return shown_times(request).exact_zone


def _export(request: DeskRequest) -> Mapping[str, Any]:
    return {"may_export": can(request.role, Ability.EXPORT), "needs_export": needs(Ability.EXPORT)}


def _file[Row](
    request: DeskRequest,
    name: str,
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    address: str,
) -> StreamingHttpResponse:
    """The rows as a file, and the audit entry that it was taken."""
    audit.keep(
        request.workspace.pk,
        "exposure.exported",
        user_id=request.user.pk,
        target=f"{name} as CSV",
        address=address,
    )
    return csv_response(f"{name}.csv", columns, rows, times=shown_times(request))
