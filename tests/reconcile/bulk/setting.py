"""Bulks as a person makes them: rows of a list are selected, the set is frozen, started and run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from effects.models import Tool, Workspace
from reconcile import listing
from reconcile.bulk import running, selection
from reconcile.bulk.acts import BulkAction
from reconcile.bulk.models import Bulk
from reconcile.bulk.selection import Chosen
from reconcile.views.filters import Filters


def select(
    workspace: Workspace,
    user: User,
    action: BulkAction,
    claim_ids: Sequence[UUID] = (),
    **changes: Any,
) -> Bulk:
    """Freezes these calls as the list shows them now, or all that match the filters."""
    rows = {row.claim_id: row for row in listing.queue_page(workspace.pk, Filters()).rows}
    words = [selection.word_for(rows[claim_id], user.pk) for claim_id in claim_ids]
    usual: dict[str, Any] = {
        "action": action,
        "filters": Filters(),
        "named": selection.read_words(words, user.pk),
        "form": secrets.token_bytes(8),
        "session": b"session",
    }
    return selection.freeze(workspace.pk, Chosen(**(usual | changes)), user_id=user.pk)


def start(bulk: Bulk, **changes: Any) -> Bulk:
    """Starts a frozen set as its author confirms it."""
    usual: dict[str, Any] = {"reason": "Asked the bank.", "typed": str(bulk.items.count())}
    assert running.start(bulk, **(usual | changes))
    bulk.refresh_from_db()
    return bulk


def run(bulk: Bulk) -> dict[UUID, tuple[str, str]]:
    """Runs it to its end; answers the outcome of each call and what was said of it."""
    assert not running.run(bulk.pk)
    bulk.refresh_from_db()
    return {item.claim_id: (item.outcome, item.said) for item in bulk.items.all()}


def outcomes(bulk: Bulk) -> list[str]:
    """What became of each call, in the order of the list."""
    return list(bulk.items.order_by("number").values_list("outcome", flat=True))


def lost_calls(tool: Tool, many: int, lose: Any) -> list[UUID]:
    with transaction.atomic():
        return [lose(tool) for _ in range(many)]
