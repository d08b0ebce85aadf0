"""Who was told something that turned out otherwise, until somebody says that they know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from ledger import queries
from reconcile import cards
from reconcile.late import alerts
from reconcile.models import Alert

ROWS_MAX: Final = 50
COUNTED_DAYS: Final = 90
TABS: Final = {"open": ("Still to tell", True), "seen": ("Told", False), "all": ("All", None)}
"""Which alerts a tab shows: those that nobody has marked, the others, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    word: str
    words: str
    current: bool
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    alert: Alert
    summary: str


@require_safe
@membership_required
def told_otherwise(request: DeskRequest) -> HttpResponse:
    """The alerts, newest first, and how often decisions turned out wrong."""
    asked_for = request.GET.get("show", "")
    show = asked_for if asked_for in TABS else "open"
    found = alerts.alerts_since(request.workspace.pk).order_by("-pk")
    if (is_open := TABS[show][1]) is not None:
        found = found.filter(seen_at__isnull=is_open)
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        found = found.filter(pk__lt=int(before))
    rows = list(found[: ROWS_MAX + 1])
    now = queries.clock()
    context = {
        "now": now,
        "tabs": _tabs(request, show),
        "show": show,
        "rows": _rows(request, rows[:ROWS_MAX]),
        "older": f"?show={show}&before={rows[ROWS_MAX - 1].pk}" if len(rows) > ROWS_MAX else "",
        "newer": f"?show={show}" if before else "",
        "share": alerts.later_contradicted(
            request.workspace.pk, since=now - timedelta(days=COUNTED_DAYS)
        ),
        "counted_days": COUNTED_DAYS,
        "may_mark": can(request.role, Ability.NOTE),
        "needs": needs(Ability.NOTE),
    }
    return render(request, "reconcile/told_otherwise.html", context)


@require_POST
@membership_required
def seen(request: DeskRequest, alert_id: int) -> HttpResponse:
    """Whoever was told otherwise knows by now."""
    require(request, Ability.NOTE)
    if not Alert.objects.filter(workspace=request.workspace, pk=alert_id).exists():
        raise Http404
    assert request.user.pk is not None
    if alerts.mark_seen(request.workspace.pk, alert_id, request.user.pk):
        messages.success(request, "Marked as told. It stays in the list of those who were told.")
    else:
        messages.info(request, "Somebody had marked it before.")
    return redirect("told-otherwise")


def _tabs(request: DeskRequest, show: str) -> list[Tab]:
    count = alerts.open_count(request.workspace.pk)
    return [
        Tab(word=word, words=words, current=word == show, count=count if is_open else None)
        for word, (words, is_open) in TABS.items()
    ]


def _rows(request: DeskRequest, found: list[Alert]) -> list[Row]:
    claims = [alert.contradiction.claim_id for alert in found]
    known = cards.cards_of(request.workspace.pk, claims)
    return [
        Row(alert=alert, summary=known[alert.contradiction.claim_id].summary) for alert in found
    ]
