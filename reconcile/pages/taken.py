"""The part of the call page that says who has the call, and whose it is."""

from __future__ import annotations

from typing import Any

from effects.access import Ability, DeskRequest, can, needs_and_whom
from reconcile import takes
from reconcile.assign import assignments
from reconcile.queries import Call


def take_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """Who has the call, and what this person may do about that."""
    current = None
    if seen.beside.take:
        current = takes.current(request.workspace.pk, seen.claim.pk, seen.now)
    may = can(request.role, Ability.TAKE)
    return {
        "take": current,
        "take_is_mine": current is not None and current.taken_by_id == request.user.pk,
        "may_take": may,
        "needs_take": "" if may else needs_and_whom(request.workspace.pk, Ability.TAKE),
    }


def assign_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """Whose call it is, whose it was, and to whom this person may give it."""
    may = can(request.role, Ability.ASSIGN)
    workspace_id, claim_id = request.workspace.pk, seen.claim.pk
    ever = seen.beside.assignments
    return {
        "assignment": assignments.current(workspace_id, claim_id) if ever else None,
        "assigned_before": assignments.earlier(workspace_id, claim_id) if ever else [],
        "assignable": assignments.people(workspace_id) if may else [],
        "may_assign": may,
        "needs_assign": "" if may else needs_and_whom(workspace_id, Ability.ASSIGN),
    }
