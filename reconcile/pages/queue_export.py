"""The queue as a file: a whole view, or the calls that are selected in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.contrib import messages
from django.http import HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from effects import audit
from effects.access import Ability, DeskRequest, membership_required, require
from effects.exporting import ROWS_MAX, csv_response, json_lines_response
from effects.pages.settings import shown_times
from ledger.queries import clock
from reconcile import listing
from reconcile.bulk import selection
from reconcile.bulk.selection import Unusable
from reconcile.views import export
from reconcile.views.filters import Filters, read_filters
from reconcile.views.rows import Placed

FORMATS: Final = {"csv": "CSV", "jsonl": "JSON lines"}


@require_http_methods(["GET", "POST"])
@membership_required
def export_queue(request: DeskRequest) -> HttpResponseBase:
    """The calls of the view that the address says, at most `ROWS_MAX`, in the order of the list.

    Posted from the list it is the calls that are selected there; unset means the narrowest: only
    the word for the whole view takes all of it.
    """
    require(request, Ability.EXPORT)
    sent = request.POST if request.method == "POST" else request.GET
    view = QueryDict(sent.get("view", "").lstrip("?")[:1000]) if request.POST else request.GET
    filters = replace(read_filters(view), after=None, user_id=request.user.pk)
    back = HttpResponseRedirect(reverse("queue") + filters.address())
    word = sent.get("format", "csv")
    if word not in FORMATS:
        messages.error(request, f"“{word}” is no format of files here: choose CSV or JSON lines.")
        return back
    chosen = request.method == "POST" and sent.get("scope") != "view"
    try:
        calls, more = _calls(request, filters, chosen=chosen)
    except Unusable as unusable:
        messages.error(request, str(unusable))
        return back
    _keep(request, filters, word, calls=len(calls), more=more, chosen=chosen)
    now = clock()
    stem = f"queue-{'selected' if chosen else filters.view}-{now:%Y%m%dT%H%M%SZ}"
    # A file that is not all of it says so by its name, wherever it is sent.
    name = f"{stem}{f'-first-{ROWS_MAX}' if more else ''}.{word}"
    rows = export.rows(request.workspace.pk, calls, now)
    if word == "csv":
        return csv_response(name, export.COLUMNS, rows, times=shown_times(request))
    return json_lines_response(name, export.COLUMNS, rows)


def _calls(
    request: DeskRequest, filters: Filters, *, chosen: bool
) -> tuple[Sequence[Placed], bool]:
    """The calls, and whether there are more than a file takes. Raises `Unusable`."""
    workspace_id = request.workspace.pk
    if chosen:
        seen = selection.read_words(request.POST.getlist("call")[:ROWS_MAX], request.user.pk)
        if not seen:
            raise Unusable("No call is selected. Select at least one, then choose what to do.")
        return listing.placed_by_id(workspace_id, [one.claim_id for one in seen], clock()), False
    found = listing.placed_rows(workspace_id, filters, clock(), limit=ROWS_MAX + 1)
    return found[:ROWS_MAX], len(found) > ROWS_MAX


def _keep(
    request: DeskRequest, filters: Filters, word: str, *, calls: int, more: bool, chosen: bool
) -> None:
    audit.keep(
        request.workspace.pk,
        "queue.exported",
        user_id=request.user.pk,
        target=f"{'Selected calls' if chosen else filters.view.label} as {FORMATS[word]}",
        address=reverse("queue") + filters.address(saved=None)[:400],
        after={"calls": calls, "all": not more, "filters": filters.to_keep()},
    )
