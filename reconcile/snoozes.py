"""A call that is put off: out of the queue until its time comes, or until something is learnt."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction

from effects.core.vocabulary import Role
from reconcile import queries
from reconcile.action_rules import snooze_until
from reconcile.actions import Action, ActionName, action
from reconcile.models import Snooze
from reconcile.news import is_news
from reconcile.queries import Call
from reconcile.second_person import Team

REASON_CHARACTERS_MAX: Final = 500


def snooze(
    workspace_id: int, claim_id: UUID, *, user_id: int, role: Role, reason: str
) -> datetime | Action:
    """Puts the call off; answers until when, or the action with why not. Twice is once."""
    call = queries.call(workspace_id, claim_id)
    act = action(ActionName.SNOOZE, call.situation, role=role, team=Team())
    if not act.offered:
        return act
    until = snooze_until(call.situation)
    with transaction.atomic():
        _end(claim_id, user_id=user_id, now=call.now)
        Snooze.objects.create(
            workspace_id=workspace_id,
            claim_id=claim_id,
            claim_version=call.claim.version,
            until=until,
            reason=reason[:REASON_CHARACTERS_MAX],
            snoozed_by_id=user_id,
            at=call.now,
        )
    return until


def wake(workspace_id: int, claim_id: UUID, *, user_id: int) -> bool:
    """Brings the call back now. False: it was back already. Raises `ClaimNotFound`."""
    call = queries.call(workspace_id, claim_id)
    sleeping = current(call) is not None
    _end(claim_id, user_id=user_id, now=call.now)
    return sleeping


def current(call: Call) -> Snooze | None:
    """The snooze that is in force: not over, and nothing was learnt since."""
    found = Snooze.objects.filter(claim_id=call.claim.pk, ended_at=None, until__gt=call.now)
    kept = found.select_related("snoozed_by").first()
    if kept is None or any(
        is_news(event) for event in call.events if event.seq > kept.claim_version
    ):
        return None
    return kept


def _end(claim_id: UUID, *, user_id: int, now: datetime) -> None:
    Snooze.objects.filter(claim_id=claim_id, ended_at=None).update(
        ended_at=now, ended_by_id=user_id
    )
