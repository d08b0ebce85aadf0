"""The part of the call page that says who has the call."""

from __future__ import annotations

from typing import Any

from effects.access import Ability, DeskRequest, can, needs_and_whom
from reconcile import takes
from reconcile.queries import Call


def take_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """Who has the call, and what this person may do about that."""
    current = takes.current(request.workspace.pk, seen.claim.pk, seen.now)
    may = can(request.role, Ability.TAKE)
    return {
        "take": current,
        "take_is_mine": current is not None and current.taken_by_id == request.user.pk,
        "may_take": may,
        "needs_take": "" if may else needs_and_whom(request.workspace.pk, Ability.TAKE),
    }
