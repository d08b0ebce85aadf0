"""The page that says whether this installation does its work."""

from __future__ import annotations

import platform

import django
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from ledger import queries
from reconcile.health import reading
from reconcile.health.judging import Standing, worst


@require_safe
@membership_required
def health(request: DeskRequest) -> HttpResponse:
    """Each part, the worst first among equals in the order in which data passes them."""
    now = queries.clock()
    found = reading.health(request.workspace.pk, now=now)
    order = list(Standing)[::-1]
    context = {
        "now": now,
        "health": found,
        "parts": sorted(found.parts, key=lambda part: order.index(part.standing)),
        "standing": worst(found.parts),
        "workspace": request.workspace,
        "versions": {
            "Python": platform.python_version(),
            "Django": django.get_version(),
            "PostgreSQL": _postgres(),
        },
    }
    return render(request, "reconcile/health.html", context)


def _postgres() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])
