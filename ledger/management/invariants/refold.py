"""The record against its own events: the row of every claim is what its events amount to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from effects.core.fold import LoggedEvent, fold
from effects.core.vocabulary import ClaimState
from ledger.management.invariants.base import Check, Difference
from ledger.models import Claim, Event
from ledger.queries import as_logged

CLAIMS_PER_BATCH: Final = 500
NO_CLAIM: Final = UUID(int=0)


def refolded() -> Iterator[Difference]:
    """Every claim whose row differs from the fold of its events, in the order of their ids."""
    after = NO_CLAIM
    while batch := _claims_with_events(after):
        for claim, events in batch:
            yield from compare(claim, events)
        after = batch[-1][0].pk


def _claims_with_events(after: UUID) -> list[tuple[Claim, list[LoggedEvent]]]:
    # One snapshot for both readings: agents go on writing while the record is verified, and a row
    # read before its newest event would look like a difference.
    with _snapshot():
        claims = list(Claim.objects.filter(pk__gt=after).order_by("pk")[:CLAIMS_PER_BATCH])
        events = defaultdict(list)
        found = Event.objects.filter(claim_id__in=[claim.pk for claim in claims])
        for event in found.order_by("claim_id", "seq"):
            events[event.claim_id].append(as_logged(event))
    return [(claim, events[claim.pk]) for claim in claims]


@contextmanager
def _snapshot() -> Iterator[None]:
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def compare(claim: Claim, events: list[LoggedEvent]) -> Iterator[Difference]:
    """One row against what its events amount to."""
    if not events:
        yield Difference(of=str(claim.pk), says="the claim has no event")
        return
    folded = fold(events)
    granted = [event for event in events if event.kind == "granted"]
    newest = max(granted, key=lambda event: event.fence)
    pairs: dict[str, tuple[object, object]] = {
        "state": (claim.state, folded.state),
        "fresh_key": (claim.fresh_key, folded.fresh_key),
        "open_truth": (claim.open_truth, bool(folded.open_attempts)),
        "version": (claim.version, max(event.seq for event in events)),
        "fence": (claim.fence, newest.fence),
        # An attempt from a ledger kept elsewhere has a key of its own: a negative generation.
        "generation": (claim.generation, max([1, *(event.generation for event in granted)])),
        "completed_at is set": (
            claim.completed_at is not None,
            folded.state is ClaimState.COMPLETED,
        ),
    }
    for name, (row, law) in pairs.items():
        if row != law:
            yield Difference(of=str(claim.pk), says=f"{name} is {row}, its events say {law}")


CHECKS: Final = (
    Check(
        id="I10",
        sentence="The row of every claim is the fold of its events.",
        find=refolded,
    ),
)
