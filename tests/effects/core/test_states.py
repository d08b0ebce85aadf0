"""The transition table is total, and what must never happen is not in it."""

from __future__ import annotations

import itertools

import pytest

from effects.core.states import DECISIONS, is_allowed, targets
from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Verdict

S, K = ClaimState, EventKind
WORDS: dict[EventKind, list[str | None]] = {
    K.REPORTED: list(Outcome),
    K.SIGHTING: list(SightingWord),
    K.DECIDED: [verdict for verdict in Verdict if verdict not in (Verdict.ALLOW, Verdict.WITHDRAW)],
}
EVENTS = [(kind, word) for kind in EventKind for word in WORDS.get(kind, [None])]


@pytest.mark.parametrize(("kind", "word"), EVENTS)
def test_every_event_has_an_answer_in_every_state(kind: EventKind, word: str | None) -> None:
    for before in ClaimState:
        assert targets(before, kind, word) <= set(ClaimState)


def test_only_what_did_not_happen_or_was_released_is_granted_again() -> None:
    granted = {before for before in ClaimState if S.IN_FLIGHT in targets(before, K.GRANTED, None)}
    assert granted == {S.NOT_EXECUTED, S.RELEASED}


@pytest.mark.parametrize(
    ("kind", "word"),
    [(K.LAPSED, None), (K.REPORTED, Outcome.UNKNOWN), (K.SIGHTING, SightingWord.LOOKUP_FAILED)],
)
def test_silence_never_completes_closes_or_releases(kind: EventKind, word: str | None) -> None:
    for before, after in itertools.product(ClaimState, (S.COMPLETED, S.CLOSED, S.RELEASED)):
        assert is_allowed(before, kind, word, after) is (before is after)


def test_only_a_person_or_a_rule_releases_or_closes() -> None:
    for (kind, word), before in itertools.product(EVENTS, ClaimState):
        if kind is not K.DECIDED:
            assert not targets(before, kind, word) & {S.RELEASED, S.CLOSED}


def test_a_record_that_is_no_fact_moves_nothing() -> None:
    for kind in (K.SENT, K.NOTED, K.DECISION_HELD, K.DECISION_CANCELLED, K.DECISION_WITHDRAWN):
        assert all(not targets(before, kind, None) for before in ClaimState)


def test_every_verdict_is_in_the_table() -> None:
    assert set(DECISIONS) == set(Verdict)
