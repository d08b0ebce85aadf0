"""Every invariant of the record, in the order in which it is best read."""

from __future__ import annotations

from ledger.management.invariants import attempts, decisions, ingest, refold, storage
from ledger.management.invariants.base import Check


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
