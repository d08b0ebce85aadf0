"""For how long bodies are kept, what is kept now, and what was emptied; admins change it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from effects.access import (
    ROLE_WORDS,
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs_and_whom,
    require,
)
from ledger.queries import clock
from ledger.retention import rules
from ledger.retention.models import (
    RetentionFigure,
    RetentionPass,
    RetentionRule,
    RetentionRun,
)
from reconcile.pages.call import clean_text
from reconcile.retention import EVERY_KIND, tasks

UNPROCESSABLE: Final = 422
RUNS_SHOWN_MAX: Final = 20
COUNTED_AGAIN_AFTER: Final = timedelta(seconds=10)
"""Whoever presses twice has it counted once."""


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def retention(request: DeskRequest) -> HttpResponse:
    """What is kept for how long; a POST changes it for one kind."""
    if request.method != "POST":
        return _page(request, {}, {})
    require(request, Ability.EDIT_RETENTION)
    typed, errors = request.POST.dict(), {}
    kind = next((one for one in EVERY_KIND if one.name == typed.get("kind")), None)
    days, fault = _days(typed.get("days", ""))
    reason = clean_text(typed.get("reason"))
    if kind is None:
        errors["kind"] = "Choose a kind from the list."
    if fault:
        errors["days"] = fault
    if not reason or len(reason) > rules.REASON_CHARACTERS_MAX:
        errors["reason"] = (
            f"Say why, in {rules.REASON_CHARACTERS_MAX} characters at most: it is kept in the "
            "audit log."
        )
    if kind is None or errors:
        return _page(request, typed, errors, status=UNPROCESSABLE)
    changed = rules.keep_for(request.workspace, kind, days, user=request.user, reason=reason)
    words = "are kept" if days is None else f"are kept for {days} day{'' if days == 1 else 's'}"
    if changed:
        tasks.count.delay(request.workspace.pk)
        messages.success(request, f"{kind.word} {words} from now on.")
    else:
        messages.info(request, f"{kind.word} {words} already.")
    return HttpResponseRedirect(reverse("retention"))


@require_POST
@membership_required
def count(request: DeskRequest) -> HttpResponse:
    """Has a worker count anew."""
    require(request, Ability.EDIT_RETENTION)
    newest = RetentionFigure.objects.filter(workspace=request.workspace).order_by("-at").first()
    if newest is None or newest.at < clock() - COUNTED_AGAIN_AFTER:
        tasks.count.delay(request.workspace.pk)
    messages.info(request, "A worker counts; load the page again in a moment.")
    return HttpResponseRedirect(reverse("retention"))


def _days(text: str) -> tuple[int | None, str]:
    """The days that were typed; empty: kept."""
    text = text.strip()
    if not text:
        return None, ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 0
    if not 1 <= number <= rules.DAYS_MAX:
        return None, f"Write a number of days from 1 to {rules.DAYS_MAX}, or nothing to keep them."
    return number, ""


def _page(
    request: DeskRequest, typed: dict[str, str], errors: dict[str, str], *, status: int = 200
) -> HttpResponse:
    mine = {"workspace": request.workspace}
    kept = {
        one.kind: one for one in RetentionRule.objects.filter(**mine).select_related("changed_by")
    }
    figures = {one.kind: one for one in RetentionFigure.objects.filter(**mine)}
    going = {one.kind: one for one in RetentionPass.objects.all()}
    runs = RetentionRun.objects.filter(**mine).order_by("-last_at")[:RUNS_SHOWN_MAX]
    words = {kind.name: kind.word for kind in EVERY_KIND}
    context: dict[str, Any] = {
        "kinds": [
            {
                "kind": kind,
                "rule": kept.get(kind.name),
                "figure": figures.get(kind.name),
                "going": going.get(kind.name),
            }
            for kind in EVERY_KIND
        ],
        "runs": [{"run": run, "word": words.get(run.kind, run.kind)} for run in runs],
        "counted_at": min((one.at for one in figures.values()), default=None),
        "now": clock(),
        "typed": typed,
        "errors": errors,
        "days_max": rules.DAYS_MAX,
        "may_edit": can(request.role, Ability.EDIT_RETENTION),
        "needs": needs_and_whom(request.workspace.pk, Ability.EDIT_RETENTION),
        "role": ROLE_WORDS[request.role],
    }
    return render(request, "reconcile/retention.html", context, status=status)
