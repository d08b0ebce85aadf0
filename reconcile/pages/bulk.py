"""Pages of bulks: freezing a selection, looking at it before it starts, following it to its end."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, require
from ledger import queries as record
from reconcile import cards
from reconcile.assign import assignments
from reconcile.bulk import running, selection, tasks
from reconcile.bulk.acts import BulkAction, Outcome
from reconcile.bulk.models import Bulk, BulkItem
from reconcile.bulk.selection import Chosen, Unusable
from reconcile.forms import session_digest
from reconcile.pages.call import clean_text
from reconcile.pages.review import number
from reconcile.views.filters import read_filters

UNPROCESSABLE: Final = 422
ROWS_PER_PAGE: Final = 100
BULKS_SHOWN_MAX: Final = 50
AT_ONCE_MAX: Final = 50
"""How many calls are taken before the answer; more are left to a worker."""
SELECTION_WORDS_MAX: Final = 500
"""Most rows that a form names one by one; a page of the list has fewer."""

OUTCOME_WORDS: Final = {
    Outcome.WAITING: "Waiting",
    Outcome.DONE: "Done",
    Outcome.REFUSED: "Refused",
    Outcome.CHANGED: "Skipped, changed",
    Outcome.STOPPED: "Not begun",
    Outcome.UNDONE: "Taken back",
}


@require_POST
@membership_required
def freeze(request: DeskRequest) -> HttpResponse:
    """Freezes the selection. Taking and asking begin at once; the rest is looked at first."""
    require(request, Ability.ASK)  # whoever may not even ask may do nothing to many calls
    view = QueryDict(request.POST.get("view", "").lstrip("?")[:1000])
    filters = read_filters(view)
    back = HttpResponseRedirect(reverse("queue") + filters.address())
    word = request.POST.get("action", "")
    if word not in list(BulkAction):
        messages.error(request, "Choose what is to be done with the selected calls.")
        return back
    act = BulkAction(word)
    if not act.allowed(request.role):
        messages.error(request, f"{act.label}: {act.needs()}")
        return back
    try:
        bulk = selection.freeze(
            request.workspace.pk, _chosen(request, act, view), user_id=request.user.pk
        )
    except Unusable as unusable:
        messages.error(request, str(unusable))
        return back
    if not act.at_once:
        return HttpResponseRedirect(reverse("bulk", args=[bulk.pk]))
    _begin(request, bulk)
    return back


def _begin(request: DeskRequest, bulk: Bulk) -> None:
    """Begins what needs no second look, and says what became of it or where that is seen."""
    act, many = BulkAction(bulk.action), bulk.items.count()
    began = running.start(bulk, reason="")
    if act is BulkAction.TAKE and many <= AT_ONCE_MAX:
        # A page of rows is taken while one looks: nobody asks a worker for ten minutes of work.
        running.run(bulk.pk)
    elif began:
        tasks.begin(bulk.pk)
    counted = running.counts(bulk)
    about = f"{many} call{'s' if many != 1 else ''}"
    said = f"Asking about {about}." if act is BulkAction.ASK else f"Taking {about}."
    if not counted.left:
        done = counted.of(Outcome.DONE)
        said = f"{done} of {about} {'is' if done == 1 else 'are'} with you for 10 minutes."
    whole = counted.of(Outcome.DONE, Outcome.WAITING) == many
    (messages.success if whole else messages.warning)(
        request,
        format_html(
            '{} <a href="{}">Bulk {} shows each</a>',
            said,
            reverse("bulk", args=[bulk.pk]),
            bulk.pk,
        ),
    )


def _chosen(request: DeskRequest, act: BulkAction, view: QueryDict) -> Chosen:
    whole = request.POST.get("scope") == "view"
    words = request.POST.getlist("call")
    if len(words) > SELECTION_WORDS_MAX:
        raise Unusable(f"At most {SELECTION_WORDS_MAX:,} calls can be selected.")
    return Chosen(
        action=act,
        filters=replace(read_filters(view), user_id=request.user.pk),
        # Unset means the narrowest: without the word for the whole view only what is named counts.
        named=() if whole else selection.read_words(words, request.user.pk),
        whole_view=whole,
        form=hashlib.sha256(request.POST.get("token", "").encode()).digest(),
        session=session_digest(request.session.session_key),
    )


@require_safe
@membership_required
def bulks(request: DeskRequest) -> HttpResponse:
    """The newest bulks of the workspace; drafts are seen by their author alone."""
    found = Bulk.objects.filter(workspace=request.workspace).select_related("made_by")
    started = found.exclude(started_at=None).order_by("-pk")[:BULKS_SHOWN_MAX]
    context = {
        "now": record.clock(),
        "rows": [_row(bulk) for bulk in started],
        "drafts": [
            _row(bulk)
            for bulk in found.filter(started_at=None, made_by=request.user).order_by("-pk")[:10]
        ],
    }
    return render(request, "reconcile/bulks.html", context)


def _row(bulk: Bulk) -> dict[str, Any]:
    return {"bulk": bulk, "name": BulkAction(bulk.action).label, "counts": running.counts(bulk)}


@require_safe
@membership_required
def bulk(request: DeskRequest, bulk_id: int) -> HttpResponse:
    """One bulk: before its start what it will do, after it what became of each call."""
    return _page(request, _found(request, bulk_id))


def _found(request: DeskRequest, bulk_id: int) -> Bulk:
    """The bulk of this workspace. Raises Http404; a draft is nobody's but its author's."""
    found = Bulk.objects.select_related("made_by", "stopped_by").filter(
        pk=bulk_id, workspace=request.workspace
    )
    kept = found.first()
    if kept is None or (kept.started_at is None and kept.made_by_id != request.user.pk):
        raise Http404("No bulk of this workspace has this number.")
    return kept


def _page(
    request: DeskRequest,
    bulk: Bulk,
    *,
    errors: dict[str, str] | None = None,
    typed: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    act = BulkAction(bulk.action)
    counted = running.counts(bulk)
    wanted = request.GET.get("outcome", "")
    items = bulk.items.order_by("number")
    if wanted in list(Outcome):
        items = items.filter(outcome=wanted)
    page = Paginator(items, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    shown: list[BulkItem] = list(page.object_list)
    card_of = cards.cards_of(request.workspace.pk, [item.claim_id for item in shown])
    context = {
        "now": record.clock(),
        "bulk": bulk,
        "act": act,
        "counts": counted,
        "done_share": round(370 * (1 - counted.left / max(counted.total, 1)), 1),
        "figures": [
            (OUTCOME_WORDS[one], str(one), counted.of(one)) for one in Outcome if counted.of(one)
        ],
        "wanted": wanted,
        "words": OUTCOME_WORDS,
        "rows": [(item, card_of.get(item.claim_id)) for item in shown],
        "page": page,
        "running": bulk.started_at is not None and bulk.ended_at is None,
        "may_undo": can(request.role, Ability.WITHDRAW)
        and bulk.items.filter(outcome=Outcome.DONE, decision_id__isnull=False).exists(),
        "view": read_filters(QueryDict(bulk.view.lstrip("?"))),
        "people": assignments.people(request.workspace.pk) if act is BulkAction.ASSIGN else [],
        "given_to": _given_to(bulk),
        "errors": errors or {},
        "typed": typed or {},
    }
    return render(request, "reconcile/bulk.html", context, status=status)


def _given_to(bulk: Bulk) -> User | None:
    return User.objects.filter(pk=bulk.options.get("to", 0)).first()


@require_POST
@membership_required
def start(request: DeskRequest, bulk_id: int) -> HttpResponse:
    """Starts a draft: 422 for a form to be put right. Sent twice it is started once."""
    kept = _found(request, bulk_id)
    act = BulkAction(kept.action)
    require(request, Ability(act))
    address = reverse("bulk", args=[kept.pk])
    if kept.made_by_id != request.user.pk or not act.allowed(request.role):
        messages.error(request, f"Not started. {act.needs()} A draft is started by its author.")
        return HttpResponseRedirect(address)
    sent = {name: clean_text(request.POST.get(name)) for name in ("reason", "typed", "to")}
    options = {"to": number(sent["to"], default=0)}
    try:
        began = running.start(kept, reason=sent["reason"], typed=sent["typed"], options=options)
    except running.NotStarted as faulty:
        return _page(request, kept, errors=faulty.errors, typed=sent, status=UNPROCESSABLE)
    if began:
        tasks.begin(kept.pk)
    else:
        messages.info(request, "It was started already; nothing was started twice.")
    return HttpResponseRedirect(address)


@require_POST
@membership_required
def stop(request: DeskRequest, bulk_id: int) -> HttpResponse:
    """What has not begun is left out."""
    require(request, Ability.WITHDRAW)
    kept = _found(request, bulk_id)
    if running.stop(kept, user_id=request.user.pk):
        messages.success(request, "Stopped. What was done stands; nothing more is begun.")
    else:
        messages.info(request, "There was nothing to stop any more.")
    return HttpResponseRedirect(reverse("bulk", args=[kept.pk]))


@require_POST
@membership_required
def undo(request: DeskRequest, bulk_id: int) -> HttpResponse:
    """Takes the decisions back, or that of one call, as long as each is held."""
    require(request, Ability.WITHDRAW)
    kept = _found(request, bulk_id)
    item_id = number(request.POST.get("item"), default=0) or None
    back, late = running.undo(kept, user_id=request.user.pk, item_id=item_id)
    said = f"{back} decision{'s' if back != 1 else ''} taken back."
    if late:
        said += f" Too late for {late}: no longer held."
    (messages.error if late else messages.success)(request, said)
    return HttpResponseRedirect(reverse("bulk", args=[kept.pk]))
