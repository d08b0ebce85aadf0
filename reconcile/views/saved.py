"""Saved views: kept, renamed, shared, made one's first page, deleted.

A view is its owner's. A shared one is seen by everybody of the workspace, and an admin may take it
out of sharing. Whatever others see of a view is kept in the audit log.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from effects import audit
from effects.access import Ability, can, needs
from effects.core.vocabulary import Role
from effects.models import Membership, Workspace
from ledger.queries import clock
from reconcile.views.filters import UNSTORABLE, Filters, read_filters
from reconcile.views.models import NAME_CHARACTERS_MAX, QUERY_CHARACTERS_MAX, DefaultView, SavedView

VIEWS_PER_PERSON_MAX: Final = 50
"""Most views that one person keeps in one workspace."""
SHARED_MAX: Final = 50
"""Most shared views of one workspace: a menu with more is read by nobody."""


class CannotKeep(Exception):
    """The view is not kept as it was asked for; `errors` has a sentence for each field."""

    def __init__(self, **errors: str) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


def seen_by(workspace_id: int, user_id: int) -> QuerySet[SavedView]:
    """The views that a person sees: their own and the shared ones, by name.

    `begins` on each: whether this person's queue begins with it.
    """
    own_or_shared = Q(owner_id=user_id) | Q(shared=True)
    found = SavedView.objects.filter(own_or_shared, workspace_id=workspace_id)
    chosen = DefaultView.objects.filter(
        workspace_id=workspace_id, user_id=user_id, view=OuterRef("pk")
    )
    # By a mapping, because the model declares the member that this fills.
    begins = {"begins": Exists(chosen)}
    return found.annotate(**begins).select_related("owner").order_by("name", "pk")


def filters_of(view: SavedView) -> Filters:
    """What the view asks for, as it is understood today."""
    return read_filters({**dict(parse_qsl(view.query)), "saved": str(view.pk)})


def address_of(view: SavedView) -> str:
    """The link of a view: it shows the view as it is when somebody follows it."""
    return f"{reverse('queue')}?saved={view.pk}"


def keep(workspace: Workspace, filters: Filters, *, user_id: int, name: str) -> SavedView:
    """Keeps what a list asks for under a name. Raises `CannotKeep`."""
    name, query = _name(name), _query(filters)
    now = clock()
    try:
        with transaction.atomic():
            # One at a time for one person, so that the limit is one.
            Membership.objects.select_for_update().get(workspace=workspace, user_id=user_id)
            own = SavedView.objects.filter(workspace=workspace, owner_id=user_id)
            if own.count() >= VIEWS_PER_PERSON_MAX:
                raise CannotKeep(
                    name=f"You have {VIEWS_PER_PERSON_MAX} views, the most that one person can "
                    "keep. Delete one first."
                )
            return SavedView.objects.create(
                workspace=workspace,
                owner_id=user_id,
                name=name,
                query=query,
                made_at=now,
                changed_at=now,
            )
    except IntegrityError as taken:
        raise _taken(name) from taken


def rename(view: SavedView, name: str, *, user_id: int) -> None:
    """Gives a view of one's own another name. Raises `CannotKeep`."""
    _own(view, user_id)
    name = _name(name)
    try:
        with transaction.atomic():
            _change(view, user_id=user_id, act="view.renamed", name=name)
    except IntegrityError as taken:
        raise _taken(name) from taken


def change(view: SavedView, filters: Filters, *, user_id: int) -> None:
    """Has a view of one's own ask for something else. Raises `CannotKeep`."""
    _own(view, user_id)
    with transaction.atomic():
        _change(view, user_id=user_id, act="view.changed", query=_query(filters))


def share(view: SavedView, *, user_id: int, role: Role) -> None:
    """Shows a view of one's own to everybody of the workspace. Raises `CannotKeep`."""
    _own(view, user_id)
    if not can(role, Ability.SHARE_VIEW):
        raise CannotKeep(share=needs(Ability.SHARE_VIEW))
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=view.workspace_id)
        shared = SavedView.objects.filter(workspace_id=view.workspace_id, shared=True)
        if shared.exclude(pk=view.pk).count() >= SHARED_MAX:
            raise CannotKeep(
                share=f"This workspace has {SHARED_MAX} shared views, the most there can be. "
                "Somebody has to stop sharing one first."
            )
        if not view.shared:
            view.shared = True
            _change(view, user_id=user_id, act="view.shared")


def unshare(view: SavedView, *, user_id: int, role: Role) -> None:
    """Leaves a view to its owner alone. Raises `CannotKeep`."""
    _own_or_admin(view, user_id, role)
    if view.shared:
        before = _words(view)
        with transaction.atomic():
            view.shared = False
            view.save(update_fields=["shared"])
            DefaultView.objects.filter(view=view).exclude(user_id=view.owner_id).delete()
            _tell(view, "view.unshared", user_id=user_id, before=before, after=_words(view))


def delete(view: SavedView, *, user_id: int) -> None:
    """Deletes a view of one's own; whose queue began with it, begins with all undecided calls.

    Raises `CannotKeep`.
    """
    _own(view, user_id)
    with transaction.atomic():
        if view.shared:
            _tell(view, "view.deleted", user_id=user_id, before=_words(view))
        view.delete()


def begin_with(workspace: Workspace, view: SavedView | None, *, user_id: int) -> None:
    """Has a person's queue begin with a view, or again with all undecided calls."""
    if view is None:
        DefaultView.objects.filter(workspace=workspace, user_id=user_id).delete()
    else:
        DefaultView.objects.update_or_create(
            workspace=workspace, user_id=user_id, defaults={"view": view}
        )


def may_change(view: SavedView, user_id: int) -> bool:
    return view.owner_id == user_id


def may_unshare(view: SavedView, user_id: int, role: Role) -> bool:
    return view.shared and (may_change(view, user_id) or can(role, Ability.EDIT_WORKSPACE))


def _own(view: SavedView, user_id: int) -> None:
    if not may_change(view, user_id):
        raise CannotKeep(view="Only its owner changes a view. Save your own under another name.")


def _own_or_admin(view: SavedView, user_id: int, role: Role) -> None:
    if not may_change(view, user_id) and not can(role, Ability.EDIT_WORKSPACE):
        raise CannotKeep(view="Only its owner or an admin stops the sharing of a view.")


def _change(view: SavedView, *, user_id: int, act: str, **members: str) -> None:
    """Changes a view; what others see of it is told to the audit log."""
    before = _words(SavedView.objects.select_for_update().get(pk=view.pk))
    for member, value in members.items():
        setattr(view, member, value)
    view.changed_at = clock()
    view.save()
    if view.shared:
        _tell(view, act, user_id=user_id, before=before, after=_words(view))


def _words(view: SavedView) -> dict[str, Any]:
    return {"name": view.name, "query": view.query, "shared": view.shared}


def _tell(view: SavedView, act: str, *, user_id: int, before: Any, after: Any = None) -> None:
    audit.keep(
        view.workspace_id,
        act,
        user_id=user_id,
        target=f"View {view.name}",
        address=address_of(view),
        before=before,
        after=after,
    )


def _name(text: str) -> str:
    name = " ".join(UNSTORABLE.sub("", text).split())
    if not name:
        raise CannotKeep(name="Give the view a name.")
    if len(name) > NAME_CHARACTERS_MAX:
        raise CannotKeep(name=f"At most {NAME_CHARACTERS_MAX} characters.")
    return name


def _taken(name: str) -> CannotKeep:
    return CannotKeep(name=f"You have a view called “{name}” already. Take another name.")


def _query(filters: Filters) -> str:
    query = filters.to_keep()
    if len(query) > QUERY_CHARACTERS_MAX:
        raise CannotKeep(name="The filters are too long to be kept. Shorten the search.")
    return query
