"""What befalls each call of a soak, decided by the seed and by nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

from reconcile.sandbox.faults import Fault

CLAIMS_MAX: Final = 10_000
AMOUNT_LEAST: Final = 1_000
AMOUNT_SPREAD: Final = 90_000


class Fate(StrEnum):
    """What happens to one call. In every case its agent can only say that it does not know."""

    ANSWER_LOST = "answer_lost"  # it happened
    ANSWER_CUT = "answer_cut"  # it happened
    NEVER_ARRIVED = "never_arrived"
    DIED_BEFORE_SENDING = "died_before_sending"  # and reports nothing
    DIED_AFTER_SENDING = "died_after_sending"  # it happened, and nothing is reported
    SERVER_ERROR = "server_error"  # nothing happened, and nothing says so
    LATE_AFTER_ERROR = "late_after_error"  # a 500 first, the effect later
    TURNED_AWAY = "turned_away"  # 429
    DECLINED = "declined"
    HAPPENED_TWICE = "happened_twice"  # sent twice, under two keys and one marker
    OTHER_AMOUNT = "other_amount"  # it happened, and is not what the ledger was told

    @property
    def fault(self) -> Fault:
        return _FAULTS.get(self, Fault.DROP_AFTER_COMMIT)

    @property
    def is_reported(self) -> bool:
        return self not in {Fate.DIED_BEFORE_SENDING, Fate.DIED_AFTER_SENDING}

    @property
    def is_sent(self) -> bool:
        return self is not Fate.DIED_BEFORE_SENDING


_FAULTS: Final = {
    Fate.ANSWER_CUT: Fault.CUT_MID_BODY,
    Fate.NEVER_ARRIVED: Fault.DROP_BEFORE,
    Fate.SERVER_ERROR: Fault.ERROR_500,
    Fate.LATE_AFTER_ERROR: Fault.ERROR_500_THEN_LATE_COMMIT,
    Fate.TURNED_AWAY: Fault.RATE_LIMIT_429,
    Fate.DECLINED: Fault.REFUSE_402,
}
SHARES: Final[Mapping[Fate, float]] = {
    Fate.ANSWER_LOST: 0.26,
    Fate.ANSWER_CUT: 0.06,
    Fate.NEVER_ARRIVED: 0.22,
    Fate.DIED_BEFORE_SENDING: 0.08,
    Fate.DIED_AFTER_SENDING: 0.09,
    Fate.SERVER_ERROR: 0.05,
    Fate.LATE_AFTER_ERROR: 0.07,
    Fate.TURNED_AWAY: 0.04,
    Fate.DECLINED: 0.04,
    Fate.HAPPENED_TWICE: 0.05,
    Fate.OTHER_AMOUNT: 0.04,
}
MISPLACED_SHARE: Final = 0.1
"""Calls whose look-ups ask the wrong account until somebody mends the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call: at which rail, how much, and what befalls it. `amount` is in minor units."""

    number: int
    rail: str
    fate: Fate
    misplaced: bool
    amount: int


def cast(claims: int, seed: int, rails: Sequence[str]) -> list[Case]:
    """The calls of a soak: every rail in turn, the fates by their shares.

    Raises ValueError for fewer calls than rails, and for more than the most.
    """
    if not len(rails) <= claims <= CLAIMS_MAX:
        raise ValueError(f"A soak has {len(rails)} to {CLAIMS_MAX:,} claims, not {claims:,}.")
    return [
        Case(
            number=number,
            rail=rails[number % len(rails)],
            fate=_drawn_fate(point(seed, "fate", number)),
            misplaced=point(seed, "misplaced", number) < MISPLACED_SHARE,
            amount=AMOUNT_LEAST + int(point(seed, "amount", number) * AMOUNT_SPREAD),
        )
        for number in range(claims)
    ]


def point(seed: int, what: str, number: int | str) -> float:
    """A number in [0, 1) that depends on the seed and the question alone."""
    digest = hashlib.sha256(f"{seed}\0{what}\0{number}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _drawn_fate(at: float) -> Fate:
    bounds = accumulate(SHARES.values())
    return next(
        (fate for fate, most in zip(SHARES, bounds, strict=True) if at < most),
        Fate(list(SHARES)[-1]),
    )
