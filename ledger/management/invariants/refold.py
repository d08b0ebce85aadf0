"""The record against its own events: the row of every claim is what its events amount to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from effects.core.fold import LoggedEvent, fold
from effects.core.vocabulary import ClaimState
from ledger.management.invariants.base import Check, Difference
from ledger.management.invariants.batches import histories
from ledger.models import Claim


def refolded() -> Iterator[Difference]:
    """Every claim whose row differs from the fold of its events, in the order of their ids."""
    for history in histories():
        yield from compare(history.claim, history.events)


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
