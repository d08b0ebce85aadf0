"""Situations for the tests of what people may do and are told: a call like any other, changed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from effects.core.vocabulary import ClaimState, EffectClass, Outcome, SightingWord
from reconcile.situation import AttemptSeen, Evidence, Sibling, Situation, Strength

NOW = datetime(2026, 11, 29, 21, 40, 3, tzinfo=UTC)
SENT_AT = NOW - timedelta(hours=1)
OTHER_CLAIM = UUID("01936000-0000-7000-8000-000000000002")

LOST_ANSWER = AttemptSeen(
    fence=1, granted_at=SENT_AT, outcome=Outcome.UNKNOWN, ended_at=SENT_AT + timedelta(seconds=30)
)


def a_situation(**changes: Any) -> Situation:
    """A keyed call whose answer was lost an hour ago, with 23 hours of its window left."""
    usual: dict[str, Any] = {
        "now": NOW,
        "claim_id": UUID("01936000-0000-7000-8000-000000000001"),
        "state": ClaimState.UNKNOWN,
        "effect_class": EffectClass.KEYED_WRITE,
        "version": 2,
        "fence": 1,
        "budget": 3,
        "attempts": (LOST_ANSWER,),
        "lease_until": SENT_AT + timedelta(seconds=90),
        "lease_seconds": 90,
        "window_until": SENT_AT + timedelta(hours=24),
        "margin_seconds": 140,
        "attempt_seconds_max": 600,
        "can_look_up": True,
        "provider": "Stripe",
    }
    return Situation(**(usual | changes))


def in_flight(**changes: Any) -> Situation:
    """A call that a worker took ten seconds ago."""
    granted_at = NOW - timedelta(seconds=10)
    usual: dict[str, Any] = {
        "state": ClaimState.IN_FLIGHT,
        "attempts": (AttemptSeen(fence=1, granted_at=granted_at),),
        "lease_until": granted_at + timedelta(seconds=90),
    }
    return a_situation(**(usual | changes))


def evidence(word: SightingWord, number: int = 3, **changes: Any) -> Evidence:
    """One answer of five minutes ago that covers the first attempt."""
    usual: dict[str, Any] = {
        "fence": 1,
        "at": NOW - timedelta(minutes=5),
        "strength": Strength.STRONG,
        "route": "List PaymentIntents",
    }
    return Evidence(number=number, word=word, **(usual | changes))


STRONG_ABSENCE = evidence(SightingWord.ABSENT)
WEAK_ABSENCE = evidence(SightingWord.ABSENT, strength=Strength.WEAK)
FOUND = evidence(SightingWord.FOUND, objects=("pi_1",))
SIBLING = Sibling(claim_id=OTHER_CLAIM, state=ClaimState.UNKNOWN)
