"""Taking a call: a person's lease, so that two people do not settle the same call unknowingly.

A take locks nothing: whoever may decide can decide without one, and is warned if somebody else has
the call. Opening a call takes nothing. Every judgement of time is by the database's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction

from ledger.queries import clock
from reconcile.models import Take

TAKE_SECONDS: Final = 600
REASON_CHARACTERS_MAX: Final = 500


class TakenBy(Exception):
    """Somebody else has the call; `take` is theirs."""

    def __init__(self, take: Take) -> None:
        super().__init__(str(take))
        self.take = take


def take(workspace_id: int, claim_id: UUID, *, user_id: int, reason: str = "") -> Take:
    """Takes the call, keeps one's own for ten more minutes, or, with a reason, takes it over.

    Raises `TakenBy` if somebody else has it and no reason is given.
    """
    try:
        with transaction.atomic():
            return _take(workspace_id, claim_id, user_id=user_id, reason=reason)
    except IntegrityError:
        # Two people pressed at once. Who came second meets the first one's row now.
        with transaction.atomic():
            return _take(workspace_id, claim_id, user_id=user_id, reason=reason)


def _take(workspace_id: int, claim_id: UUID, *, user_id: int, reason: str) -> Take:
    open_takes = Take.objects.select_for_update().filter(
        workspace_id=workspace_id, claim_id=claim_id, ended_at=None
    )
    found = open_takes.first()
    now = clock()
    until = now + timedelta(seconds=TAKE_SECONDS)
    if found is not None and found.until > now:
        if found.taken_by_id == user_id:
            found.until = until
            found.save(update_fields=["until"])
            return found
        if not reason:
            raise TakenBy(found)
        _end(found, Take.End.TAKEN_OVER, user_id=user_id, now=now, reason=reason)
    elif found is not None:
        _end(found, Take.End.RAN_OUT, user_id=None, now=found.until)
    return Take.objects.create(
        workspace_id=workspace_id,
        claim_id=claim_id,
        taken_by_id=user_id,
        taken_at=now,
        until=until,
    )


def keep(workspace_id: int, claim_id: UUID, *, user_id: int) -> Take | None:
    """Ten more minutes for one's own take. None: it ran out, or somebody took the call over; then
    nothing is taken, because taking is a person's own act."""
    with transaction.atomic():
        own = Take.objects.select_for_update().filter(
            workspace_id=workspace_id, claim_id=claim_id, ended_at=None, taken_by_id=user_id
        )
        found, now = own.first(), clock()
        if found is None or found.until <= now:
            return None
        found.until = now + timedelta(seconds=TAKE_SECONDS)
        found.save(update_fields=["until"])
        return found


def give_back(workspace_id: int, claim_id: UUID, *, user_id: int) -> bool:
    """Ends one's own take. False: the call was not with this person any more."""
    with transaction.atomic():
        own = Take.objects.select_for_update().filter(
            workspace_id=workspace_id, claim_id=claim_id, ended_at=None, taken_by_id=user_id
        )
        found, now = own.first(), clock()
        if found is None or found.until <= now:
            return False
        _end(found, Take.End.GIVEN_BACK, user_id=user_id, now=now)
        return True


def current(workspace_id: int, claim_id: UUID, now: datetime) -> Take | None:
    """Who has the call at this instant."""
    return current_of(workspace_id, [claim_id], now).get(claim_id)


def current_of(workspace_id: int, claim_ids: Sequence[UUID], now: datetime) -> dict[UUID, Take]:
    """Who has which of these calls at this instant, in one query."""
    found = Take.objects.select_related("taken_by").filter(
        workspace_id=workspace_id, claim_id__in=claim_ids, ended_at=None, until__gt=now
    )
    return {take.claim_id: take for take in found}


def _end(
    take: Take, how: Take.End, *, user_id: int | None, now: datetime, reason: str = ""
) -> None:
    take.ended_at, take.ended_how, take.ended_by_id = now, how, user_id
    take.reason = reason[:REASON_CHARACTERS_MAX]
    take.save(update_fields=["ended_at", "ended_how", "ended_by", "reason"])
