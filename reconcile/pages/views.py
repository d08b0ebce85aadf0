"""Saved views: kept from the list, changed on a page of their own. Plain forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs
from ledger.queries import clock
from reconcile.views import saved
from reconcile.views.filters import read_filters
from reconcile.views.models import NAME_CHARACTERS_MAX, QUERY_CHARACTERS_MAX, SavedView
from reconcile.views.saved import CannotKeep

UNPROCESSABLE: Final = 422


@require_safe
@membership_required
def views(request: DeskRequest) -> HttpResponse:
    """The views of one's own and those that are shared, with what can be done to each."""
    return _page(request)


def _page(
    request: DeskRequest,
    *,
    errors: dict[str, str] | None = None,
    typed: dict[str, str] | None = None,
    about: int | None = None,
) -> HttpResponse:
    """The page; `about` names the view whose form has to be put right, None: the new one's."""
    user_id, workspace_id = request.user.pk, request.workspace.pk
    context = {
        "now": clock(),
        "rows": [
            {
                "view": view,
                "address": saved.address_of(view),
                "filters": saved.filters_of(view),
                "own": saved.may_change(view, user_id),
                "may_unshare": saved.may_unshare(view, user_id, request.role),
                "begins": view.begins,
                "errors": errors if errors and about == view.pk else {},
            }
            for view in saved.seen_by(workspace_id, user_id)
        ],
        "errors": errors if errors and about is None else {},
        "typed": typed or {},
        "no_sharing": "" if can(request.role, Ability.SHARE_VIEW) else needs(Ability.SHARE_VIEW),
        "own_max": saved.VIEWS_PER_PERSON_MAX,
        "shared_max": saved.SHARED_MAX,
        "name_max": NAME_CHARACTERS_MAX,
    }
    return render(request, "reconcile/queue_views.html", context, status=422 if errors else 200)


@require_POST
@membership_required
def new(request: DeskRequest) -> HttpResponse:
    """Keeps what the list asks for under a name: 422 with what was typed where that cannot be."""
    sent = request.POST
    query = sent.get("query", "")[: 2 * QUERY_CHARACTERS_MAX]
    filters = read_filters(QueryDict(query))
    try:
        view = saved.keep(
            request.workspace, filters, user_id=request.user.pk, name=sent.get("name", "")
        )
    except CannotKeep as cannot:
        typed = {"name": sent.get("name", ""), "query": query}
        return _page(request, errors=cannot.errors, typed=typed)
    if "share" in sent:
        try:
            saved.share(view, user_id=request.user.pk, role=request.role)
        except CannotKeep as cannot:
            messages.warning(request, f"Kept, for you alone. {cannot}")
            return HttpResponseRedirect(saved.address_of(view))
    messages.success(request, f"Kept as “{view.name}”.")
    return HttpResponseRedirect(saved.address_of(view))


@require_POST
@membership_required
def act(request: DeskRequest, view_id: int) -> HttpResponse:
    """One act on a view. A view that is neither one's own nor shared does not exist."""
    view = saved.seen_by(request.workspace.pk, request.user.pk).filter(pk=view_id).first()
    if view is None:
        raise Http404("No saved view of yours has this number. It may have been deleted.")
    word = request.POST.get("act", "")
    done = _ACTS.get(word)
    if done is None:
        messages.error(request, "Choose what is to be done with the view.")
        return HttpResponseRedirect(reverse("views"))
    try:
        said = done(request, view)
    except CannotKeep as cannot:
        typed = {"name": request.POST.get("name", "")}
        return _page(request, errors=cannot.errors, typed=typed, about=view.pk)
    messages.success(request, said)
    back = saved.address_of(view) if word == "change" else reverse("views")
    return HttpResponseRedirect(back)


def _rename(request: DeskRequest, view: SavedView) -> str:
    saved.rename(view, request.POST.get("name", ""), user_id=request.user.pk)
    return f"The view is called “{view.name}” now."


def _change(request: DeskRequest, view: SavedView) -> str:
    query = request.POST.get("query", "")[: 2 * QUERY_CHARACTERS_MAX]
    saved.change(view, read_filters(QueryDict(query)), user_id=request.user.pk)
    return f"“{view.name}” is this list now."


def _share(request: DeskRequest, view: SavedView) -> str:
    saved.share(view, user_id=request.user.pk, role=request.role)
    return f"Everybody of {request.workspace.name} sees “{view.name}” now."


def _unshare(request: DeskRequest, view: SavedView) -> str:
    saved.unshare(view, user_id=request.user.pk, role=request.role)
    return f"“{view.name}” is its owner's alone now."


def _begin(request: DeskRequest, view: SavedView) -> str:
    saved.begin_with(request.workspace, view, user_id=request.user.pk)
    return f"Your queue begins with “{view.name}” now."


def _end(request: DeskRequest, _view: SavedView) -> str:
    saved.begin_with(request.workspace, None, user_id=request.user.pk)
    return "Your queue begins with all undecided calls now."


def _delete(request: DeskRequest, view: SavedView) -> str:
    name = view.name
    saved.delete(view, user_id=request.user.pk)
    return f"“{name}” is deleted."


_ACTS: Final[dict[str, Callable[[Any, SavedView], str]]] = {
    "rename": _rename,
    "change": _change,
    "share": _share,
    "unshare": _unshare,
    "begin": _begin,
    "end": _end,
    "delete": _delete,
}
