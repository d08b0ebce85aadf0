"""What the page about ghosts shows, and what people say about one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import transaction
from django.db.models import Count, Prefetch, Q, QuerySet

from ledger import queries
from reconcile.models import Ghost, GhostSaid
from reconcile.runs.listing import Filters

ROWS_MAX: Final = 50
REASON_CHARACTERS_MAX: Final = 500
SAID_MAX: Final = 100
"""Most things that are said about one ghost."""

_State = Ghost.State
TABS: Final = {
    "new": ("Not explained", Q(state=_State.NEW)),
    "marked": ("With our marker", Q(state=_State.NEW) & ~Q(marker="")),
    "explained": ("Explained", Q(state=_State.EXPLAINED)),
    "linked": ("Call found since", Q(state=_State.LINKED)),
    "all": ("All", Q()),
}
"""Which ghosts a tab shows, by the word in its address."""
USUAL: Final = "new"


class CannotSay(Exception):
    """Why nothing was kept, in a sentence for the person."""


def of_workspace(workspace_id: int) -> QuerySet[Ghost]:
    return Ghost.objects.filter(connection__workspace_id=workspace_id)


def rows(workspace_id: int, filters: Filters) -> tuple[list[Ghost], str]:
    """The ghosts that the address asks for, newest first, and the address of the older ones."""
    found = of_workspace(workspace_id).filter(TABS[filters.show][1])
    if filters.connection is not None:
        found = found.filter(connection_id=filters.connection)
    if filters.before is not None:
        found = found.filter(pk__lt=filters.before)
    said = GhostSaid.objects.select_related("said_by").order_by("pk")
    found = found.select_related("connection").prefetch_related(Prefetch("said", said))
    listed = list(found.order_by("-pk")[: ROWS_MAX + 1])
    shown = listed[:ROWS_MAX]
    return shown, filters.address(before=shown[-1].pk) if len(listed) > ROWS_MAX else ""


def counts(workspace_id: int) -> Mapping[str, int]:
    """How many ghosts each tab has, in one question."""
    each = {word: Count("pk", filter=chosen) for word, (_, chosen) in TABS.items()}
    return of_workspace(workspace_id).aggregate(**each)


def say(ghost: Ghost, *, user_id: int, reason: str, dismissed: bool) -> None:
    """Keeps what a person says. `dismissed`: that explains it, else it stands on the list (again).

    Raises `CannotSay`.
    """
    reason = reason.replace("\x00", "").strip()
    if not reason:
        raise CannotSay("Nothing was kept: give a reason.")
    if len(reason) > REASON_CHARACTERS_MAX:
        raise CannotSay(f"A reason has at most {REASON_CHARACTERS_MAX} characters.")
    with transaction.atomic():
        kept = Ghost.objects.select_for_update().get(pk=ghost.pk)
        if kept.state == _State.LINKED:
            raise CannotSay("Nothing was kept: its call has been found since.")
        if kept.said.count() >= SAID_MAX:
            raise CannotSay(f"At most {SAID_MAX} things are said about one effect.")
        GhostSaid.objects.create(
            ghost=kept,
            said_at=queries.clock(),
            said_by_id=user_id,
            dismissed=dismissed,
            reason=reason,
        )
        kept.state = _State.EXPLAINED if dismissed else _State.NEW
        kept.save(update_fields=["state"])
