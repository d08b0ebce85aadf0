"""Which tools can double-fire: all of them on one page, the worst first, and as a file."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.exporting import Column, Kind, csv_response
from effects.pages.settings import shown_times
from ledger import queries
from reconcile.pages.tools.common import TOOLS_SHOWN_MAX, tools_of
from reconcile.registry.double_fire import RISK_MEANINGS, RISK_WORDS, Audit, Risk, audits
from reconcile.registry.measured import DAYS
from reconcile.registry.measuring import measured_of

COLUMNS: Final[tuple[Column[Audit], ...]] = (
    Column(name="tool", title="Tool", read=lambda one: one.tool.name),
    Column(name="owner", title="Owner", read=lambda one: one.tool.owner),
    Column(name="risk", title="Can it fire twice", read=lambda one: one.risk_words),
    Column(name="class", title="Class", read=lambda one: one.class_words),
    Column(name="why", title="What lets it", read=lambda one: "; ".join(one.against)),
    Column(name="holds", title="What stands in the way", read=lambda one: "; ".join(one.holds)),
    Column(name="on_the_wire", title="Key on the wire"),
    Column(name="window", title="Key window"),
    Column(name="contract", title="Contract"),
    Column(name="lookup", title="Look-up", read=lambda one: _yes(one.lookup)),
    Column(name="offline", title="Sent while ledger is away", read=lambda one: _yes(one.offline)),
    Column(name="repeated_inside", title="Requests that a library repeated", kind=Kind.NUMBER),
    Column(name="calls", title=f"Calls {DAYS} d", kind=Kind.NUMBER),
)


@require_safe
@membership_required
def double_fire(request: DeskRequest) -> HttpResponse:
    """The audit page."""
    found = _audits(request)
    counts = [
        {
            "risk": risk,
            "words": RISK_WORDS[risk],
            "meaning": RISK_MEANINGS[risk],
            "count": sum(one.risk is risk for one in found),
        }
        for risk in Risk
    ]
    context = {
        "now": queries.clock(),
        "audits": found,
        "counts": counts,
        "shown_max": TOOLS_SHOWN_MAX,
        "days": DAYS,
        "no_export": "" if can(request.role, Ability.EXPORT) else needs(Ability.EXPORT),
    }
    return render(request, "reconcile/tools_double_fire.html", context)


@require_safe
@membership_required
def double_fire_csv(request: DeskRequest) -> StreamingHttpResponse:
    """The same as a file."""
    require(request, Ability.EXPORT)
    found = _audits(request)
    audit.keep(
        request.workspace.pk,
        "tools.exported",
        user_id=request.user.pk,
        target="Which tools can double-fire",
        address="/tools/double-fire/",
        after={"rows": len(found)},
    )
    times = shown_times(request)
    return csv_response("tools-double-fire.csv", COLUMNS, found, times=times)


def _audits(request: DeskRequest) -> list[Audit]:
    return audits(tools_of(request), measured_of(request.workspace.pk))


def _yes(value: bool) -> str:  # noqa: FBT001 - a cell of a table.
    return "yes" if value else "no"
