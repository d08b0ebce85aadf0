"""A note and the people whom it names: they find the call under "Mentions"."""

from __future__ import annotations

from uuid import UUID

from django.urls import reverse

from effects.models import Membership
from ledger import append
from ledger.queries import clock
from reconcile.assign import tasks
from reconcile.models import Mention
from reconcile.notes.markdown import names_in


def people_here(workspace_id: int) -> dict[str, str]:
    """The addresses of the workspace's active people by the lower-case name they sign in with."""
    found = Membership.objects.filter(workspace_id=workspace_id, user__is_active=True)
    return {
        login.lower(): reverse("person", args=[member_id])
        for member_id, login in found.values_list("pk", "user__username")
    }


def keep_note(workspace_id: int, claim_id: UUID, *, user_id: int, text: str) -> int:
    """Writes a note and files whom it names; answers the number of its event."""
    # Not one transaction: the record tries a lost race again only outside of one.
    seq = append.note(workspace_id, claim_id, user_id, text)
    file_mentions(workspace_id, claim_id, seq, user_id=user_id, text=text)
    return seq


def file_mentions(
    workspace_id: int, claim_id: UUID, seq: int, *, user_id: int, text: str
) -> list[int]:
    """Files the people whom a note names, once each; answers their numbers. A name of nobody here
    is only text."""
    names = names_in(text)
    if not names:
        return []
    members = Membership.objects.filter(workspace_id=workspace_id, user__is_active=True)
    named = [
        one.user_id
        for one in members.select_related("user")
        if one.user.get_username().lower() in names
    ]
    now = clock()
    for one in named:
        _, is_new = Mention.objects.get_or_create(
            claim_id=claim_id,
            seq=seq,
            user_id=one,
            defaults={"workspace_id": workspace_id, "by_id": user_id, "at": now},
        )
        if is_new:
            tasks.tell(workspace_id, claim_id, user_id=one, by_id=user_id, why="mentioned")
    return named
