"""Giving a call to a person, or to nobody: it stays theirs until somebody changes that.

A take says "I am on it now" and runs out; an assignment says whose it is. Neither locks anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from effects.access import ABILITIES, Ability
from effects.models import Membership
from ledger.queries import clock
from reconcile.assign.models import Assignment

NOTE_CHARACTERS_MAX: Final = 500
PEOPLE_OFFERED_MAX: Final = 500
"""As many as a workspace has members at most."""
SHOWN_MAX: Final = 20


class NobodyToAssign(Exception):
    """The person cannot look after calls of this workspace; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an assignment did. `again`: the call was with this person already, nothing changed."""

    assignment: Assignment
    again: bool = False


def assign(workspace_id: int, claim_id: UUID, *, to_id: int, by_id: int, note: str = "") -> Given:
    """Gives the call to a person; the one who had it before has it no more.

    The caller has seen to it that the call is one of this workspace. Raises `NobodyToAssign`.
    """
    if not may_be_given(workspace_id, to_id):
        raise NobodyToAssign(
            "Calls are assigned to active people of this workspace who may take one."
        )
    try:
        return _assign(workspace_id, claim_id, to_id=to_id, by_id=by_id, note=note)
    except IntegrityError:
        # Two people gave it away at once. Who came second meets the first one's row now.
        return _assign(workspace_id, claim_id, to_id=to_id, by_id=by_id, note=note)


@transaction.atomic
def _assign(workspace_id: int, claim_id: UUID, *, to_id: int, by_id: int, note: str) -> Given:
    found = _open(workspace_id, claim_id)
    if found is not None and found.assigned_to_id == to_id and note in {"", found.note}:
        return Given(assignment=found, again=True)
    now = clock()
    if found is not None:
        _end(found, by_id=by_id)
    made = Assignment.objects.create(
        workspace_id=workspace_id,
        claim_id=claim_id,
        assigned_to_id=to_id,
        assigned_by_id=by_id,
        at=now,
        note=note[:NOTE_CHARACTERS_MAX],
    )
    return Given(assignment=made)


@transaction.atomic
def unassign(workspace_id: int, claim_id: UUID, *, by_id: int) -> bool:
    """Gives the call to nobody. False: it was with nobody already."""
    found = _open(workspace_id, claim_id)
    if found is None:
        return False
    _end(found, by_id=by_id)
    return True


def current(workspace_id: int, claim_id: UUID) -> Assignment | None:
    """Whose call it is now."""
    return current_of(workspace_id, [claim_id]).get(claim_id)


def current_of(workspace_id: int, claim_ids: Sequence[UUID]) -> dict[UUID, Assignment]:
    """Whose calls these are now, in one query."""
    found = Assignment.objects.select_related("assigned_to", "assigned_by").filter(
        workspace_id=workspace_id, claim_id__in=claim_ids, ended_at=None
    )
    return {kept.claim_id: kept for kept in found}


def earlier(workspace_id: int, claim_id: UUID) -> list[Assignment]:
    """Whose call it was before, newest first; at most `SHOWN_MAX`."""
    found = Assignment.objects.filter(
        workspace_id=workspace_id, claim_id=claim_id, ended_at__isnull=False
    )
    return list(found.select_related("assigned_to", "assigned_by").order_by("-pk")[:SHOWN_MAX])


def people(workspace_id: int) -> list[User]:
    """Who can be given a call, by the name that they sign in with."""
    found = _able(workspace_id).select_related("user").order_by("user__username")
    return [one.user for one in found[:PEOPLE_OFFERED_MAX]]


def may_be_given(workspace_id: int, user_id: int) -> bool:
    return _able(workspace_id).filter(user_id=user_id).exists()


def _able(workspace_id: int) -> QuerySet[Membership]:
    roles = [str(role) for role in ABILITIES[Ability.TAKE]]
    return Membership.objects.filter(
        workspace_id=workspace_id, user__is_active=True, role__in=roles
    )


def _open(workspace_id: int, claim_id: UUID) -> Assignment | None:
    found = Assignment.objects.select_for_update().filter(
        workspace_id=workspace_id, claim_id=claim_id, ended_at=None
    )
    return found.first()


def _end(assignment: Assignment, *, by_id: int) -> None:
    assignment.ended_at, assignment.ended_by_id = clock(), by_id
    assignment.save(update_fields=["ended_at", "ended_by"])
