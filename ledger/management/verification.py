"""Every invariant of the record, in the order in which it is best read."""

from __future__ import annotations

from ledger.management.invariants import (
    attempts,
    canaries,
    decisions,
    evidence,
    ingest,
    refold,
    running,
    storage,
    work_lists,
)
from ledger.management.invariants.base import Check
from ledger.management.invariants.transitions import Walk


def checks(*, clock_may_move: bool) -> tuple[Check, ...]:
    """Every invariant that is cheap enough to be asked at any time."""
    return (
        *attempts.CHECKS,
        *refold.CHECKS,
        *ingest.CHECKS,
        *storage.GUARDS,
        storage.functions_checked(clock_may_move=clock_may_move),
        *decisions.CHECKS,
        *storage.PARENTS,
    )


def further_checks() -> tuple[Check, ...]:
    """What `--all` asks besides: how each claim came to where it is, what it waits for, and what
    nobody should have written down."""
    return (
        *Walk().checks(),
        *evidence.CHECKS,
        *work_lists.CHECKS,
        *storage.WAYS_AROUND,
        *canaries.CHECKS,
        *running.CHECKS,
    )
