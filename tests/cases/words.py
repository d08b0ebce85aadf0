"""The case files' words beside the product's, in one place.

`tests/cases/README.md` prints this table for people.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass

STATES: Final[dict[str, ClaimState]] = {
    "in_flight": ClaimState.IN_FLIGHT,
    "completed": ClaimState.COMPLETED,
    "failed": ClaimState.NOT_EXECUTED,  # definite: every attempt is proven to have done nothing
    "outcome_unknown": ClaimState.UNKNOWN,
    "not_applied_yet": ClaimState.UNKNOWN,  # a look-up's word; the claim stays unknown
    "partially_applied": ClaimState.UNKNOWN,
    "mismatch": ClaimState.UNKNOWN,
    "conflict_two_effects": ClaimState.CONFLICTED,
    "released": ClaimState.RELEASED,
    "closed": ClaimState.CLOSED,
}
NOT_RUN: Final = "not_run"
"""No claim was granted for it, or the claim's attempt is proven to have sent nothing."""

CLASSES: Final[dict[str, EffectClass]] = {str(one): one for one in EffectClass}

MAY_RUN: Final = frozenset({AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN})
SAME_OPERATION: Final = frozenset(
    {
        AnswerCode.REPLAYED,
        AnswerCode.IN_FLIGHT,
        AnswerCode.UNKNOWN,
        AnswerCode.CONFLICTED,
        AnswerCode.CLOSED,
        AnswerCode.ATTEMPTS_EXHAUSTED,
    }
)
"""Answers that call a claim a duplicate of the one they speak of."""

BESIDE: Final = ("origin", "step")
"""Members of events that say who repeats a call, for which a claim has no place."""

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def moment(said: object) -> datetime | None:
    """A sender's time, or None where it names no moment: no text, or without an offset."""
    if not isinstance(said, str):
        return None
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
