"""Every claim with its events, a batch at a time: what is verified never has to fit into memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q

from effects.core.fold import LoggedEvent
from ledger.models import Claim, Event
from ledger.queries import as_logged

CLAIMS_PER_BATCH: Final = 500
NO_CLAIM: Final = UUID(int=0)
_UNGRANTED: Final = ExpressionWrapper(Q(data__ungranted=True), output_field=BooleanField())


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One claim and its events by number. `learned_of`: the fences that this ledger never granted,
    because a ledger kept elsewhere told us of them."""

    claim: Claim
    events: list[LoggedEvent]
    learned_of: frozenset[int]


def histories() -> Iterator[History]:
    """Every claim, in the order of their ids."""
    after = NO_CLAIM
    while batch := _batch(after):
        yield from batch
        after = batch[-1].claim.pk


def _batch(after: UUID) -> list[History]:
    # One snapshot for both readings: agents go on writing while the record is verified, and a row
    # read before its newest event would look like a difference.
    with _snapshot():
        claims = list(Claim.objects.filter(pk__gt=after).order_by("pk")[:CLAIMS_PER_BATCH])
        events: defaultdict[UUID, list[LoggedEvent]] = defaultdict(list)
        learned_of: defaultdict[UUID, set[int]] = defaultdict(set)
        found = Event.objects.filter(claim_id__in=[claim.pk for claim in claims])
        # What is shown of an event may be long, and no law reads it.
        for event in found.defer("data").annotate(ungranted=_UNGRANTED).order_by("claim_id", "seq"):
            events[event.claim_id].append(as_logged(event))
            if event.kind == "granted" and event.ungranted:
                learned_of[event.claim_id].add(event.fence)
    return [
        History(
            claim=claim,
            events=events[claim.pk],
            learned_of=frozenset(learned_of[claim.pk]),
        )
        for claim in claims
    ]


@contextmanager
def _snapshot() -> Iterator[None]:
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
