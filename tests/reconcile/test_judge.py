"""What a provider's answer means: each condition of a strong absence, one by one, and the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.vocabulary import ClaimState, EffectClass, SightingWord
from reconcile.adapters.base import Delay, Look, MatchedBy
from reconcile.judge import AttemptFacts, ClaimFacts, Meaning, Sighting, judge
from reconcile.situation import Strength

T0 = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WORKING = timedelta(seconds=900)
ENDED = T0 + timedelta(seconds=30)
STRONG_FROM = ENDED + WORKING
LEASE_OVER = T0 + timedelta(seconds=90)
WINDOW = T0 + timedelta(hours=24)
MARGIN = timedelta(seconds=140)

ENDED_ATTEMPT = AttemptFacts(
    fence=1, generation=1, lease_over_at=LEASE_OVER, ended_at=ENDED, marker_sent=True
)
SILENT_ATTEMPT = replace(ENDED_ATTEMPT, ended_at=None, marker_sent=None)

UNKNOWN = ClaimFacts(
    effect_class=EffectClass.KEYED_WRITE,
    state=ClaimState.UNKNOWN,
    generation=1,
    open_attempts=(ENDED_ATTEMPT,),
    window_until=WINDOW,
    margin=MARGIN,
    server_working=WORKING,
)
SILENT = replace(UNKNOWN, open_attempts=(SILENT_ATTEMPT,), every_request_marked=True)

ABSENT = Look(
    word=SightingWord.ABSENT,
    why="No PaymentIntent with our reference is there.",
    route="List PaymentIntents",
    asked_at=STRONG_FROM,
    delay_class=Delay.NONE,
    pages_complete=True,
)
FOUND = replace(ABSENT, word=SightingWord.FOUND, objects=("pi_1",), asked_at=ENDED + SECOND)
COUNTING = {SightingWord.FOUND, SightingWord.FOUND_MANY, SightingWord.ABSENT}


def seen(*looks: Look) -> tuple[Sighting, ...]:
    """Looks as the record holds them, in this order, none of them weighed."""
    return tuple(
        Sighting(number=number, look=look, strength=Strength.FAIR)
        for number, look in enumerate(looks, start=2)
    )


def with_attempt(facts: ClaimFacts, **changes: Any) -> ClaimFacts:
    (attempt,) = facts.open_attempts
    return replace(facts, open_attempts=(replace(attempt, **changes),))


# Strong absence


def test_an_absence_with_every_condition_fulfilled_is_strong() -> None:
    judged = judge(UNKNOWN, ABSENT)

    assert (judged.meaning, judged.strength) == (Meaning.DID_NOT_HAPPEN, Strength.STRONG)
    assert judged.counts
    assert not judged.conditional


@pytest.mark.parametrize(
    ("facts", "look", "said"),
    [
        pytest.param(UNKNOWN, {"delay_class": Delay.EVENTUAL}, "late", id="route is late"),
        pytest.param(UNKNOWN, {"delay_class": Delay.UNKNOWN}, "late", id="nobody says how late"),
        pytest.param(UNKNOWN, {"pages_complete": False}, "pages", id="a page was not read"),
        pytest.param(UNKNOWN, {"right_place": False}, "account", id="perhaps another account"),
        pytest.param(
            with_attempt(UNKNOWN, marker_sent=False), {}, "marker", id="request had no marker"
        ),
        pytest.param(
            with_attempt(UNKNOWN, marker_sent=None), {}, "marker", id="nobody said it had one"
        ),
        pytest.param(
            replace(with_attempt(UNKNOWN, marker_sent=None), every_request_marked=True),
            {},
            "marker",
            id="the contract does not speak for an attempt that reported and did not say",
        ),
        pytest.param(
            replace(with_attempt(UNKNOWN, marker_sent=False), every_request_marked=True),
            {},
            "marker",
            id="the contract does not outweigh the attempt's own word",
        ),
        pytest.param(
            with_attempt(SILENT, marker_sent=False),
            {"asked_at": LEASE_OVER + WORKING},
            "marker",
            id="the contract does not outweigh a silent attempt's own word",
        ),
        pytest.param(
            with_attempt(UNKNOWN, server_error=True), {}, "server error", id="a 500 was answered"
        ),
        pytest.param(
            replace(UNKNOWN, effects=frozenset({"pi_1"})),
            {},
            "already knows",
            id="it does not show what is known to be there",
        ),
        pytest.param(
            replace(UNKNOWN, unnamed_effects=True),
            {},
            "already knows",
            id="an effect without a name was reported",
        ),
        pytest.param(replace(UNKNOWN, open_attempts=()), {}, "open", id="nothing is open"),
        pytest.param(
            replace(SILENT, effect_class=EffectClass.UNKEYED_WRITE),
            {"asked_at": LEASE_OVER + WORKING},
            "no key",
            id="a silent worker of a tool without a key",
        ),
        pytest.param(
            replace(SILENT, effect_class=EffectClass.READ),
            {"asked_at": LEASE_OVER + WORKING},
            "no key",
            id="a silent worker of a read",
        ),
        pytest.param(
            replace(SILENT, window_until=None),
            {"asked_at": LEASE_OVER + WORKING},
            "not published",
            id="a silent worker and a window that nobody published",
        ),
        pytest.param(
            replace(SILENT, generation=2),
            {"asked_at": LEASE_OVER + WORKING},
            "older key",
            id="a silent worker with an older key",
        ),
        pytest.param(
            SILENT,
            {"asked_at": WINDOW - MARGIN},
            "no longer promises",
            id="a silent worker when the window less its margin has closed",
        ),
        pytest.param(
            replace(SILENT, window_until=T0 + WORKING),
            {"asked_at": LEASE_OVER},
            "no longer promises",
            id="a silent worker whose absence would be strong only after the window",
        ),
        pytest.param(
            replace(SILENT, every_request_marked=False),
            {"asked_at": LEASE_OVER + WORKING},
            "marker",
            id="a silent worker that may have sent without a marker",
        ),
        pytest.param(
            replace(UNKNOWN, open_attempts=(ENDED_ATTEMPT, replace(SILENT_ATTEMPT, fence=2))),
            {"asked_at": LEASE_OVER + WORKING},
            "marker",
            id="one good attempt does not speak for another",
        ),
    ],
)
def test_one_condition_missing_and_the_absence_is_weak(
    facts: ClaimFacts, look: dict[str, Any], said: str
) -> None:
    judged = judge(facts, replace(ABSENT, **look))

    known = bool(facts.effects) or facts.unnamed_effects
    assert not judged.counts
    assert judged.meaning is (Meaning.HAPPENED if known else Meaning.UNCLEAR)
    assert judged.strength is Strength.WEAK
    assert said in judged.why


def test_a_reference_that_every_request_must_carry_needs_no_marker() -> None:
    facts = with_attempt(UNKNOWN, marker_sent=None)

    assert judge(facts, replace(ABSENT, matched_by=MatchedBy.REFERENCE)).counts


def test_an_absence_that_comes_too_early_says_when_it_will_count() -> None:
    judged = judge(UNKNOWN, replace(ABSENT, asked_at=STRONG_FROM - SECOND))

    assert not judged.counts
    assert judged.meaning is Meaning.NOT_YET
    assert judged.look_again_at == STRONG_FROM + SECOND
    assert "2026-03-02 10:15:30 UTC" in judged.why


def test_the_last_possible_send_of_all_attempts_decides_when_it_is_early() -> None:
    later = replace(ENDED_ATTEMPT, fence=2, ended_at=ENDED + timedelta(minutes=5))
    facts = replace(UNKNOWN, open_attempts=(ENDED_ATTEMPT, later))

    assert facts.absence_strong_from == STRONG_FROM + timedelta(minutes=5)
    assert not judge(facts, ABSENT).counts


def test_an_attempt_that_still_holds_its_lease_may_still_send() -> None:
    facts = replace(SILENT, state=ClaimState.IN_FLIGHT)

    judged = judge(facts, replace(ABSENT, asked_at=LEASE_OVER - SECOND))

    assert judged.look_again_at == LEASE_OVER + WORKING + SECOND


def test_a_silent_worker_with_the_same_key_makes_the_absence_conditional() -> None:
    judged = judge(SILENT, replace(ABSENT, asked_at=LEASE_OVER + WORKING))

    assert judged.counts
    assert judged.conditional
    # A person may not take it for proof once the window is closed.
    assert judged.strength is Strength.FAIR


# An effect


@pytest.mark.parametrize("state", list(ClaimState))
def test_what_was_told_decides_whether_an_effect_needs_a_second_read(state: ClaimState) -> None:
    told = {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED}
    facts = replace(UNKNOWN, state=state, effects=frozenset({"pi_0"}))

    judged = judge(facts, FOUND)

    assert judged.counts == (state not in told)
    assert (judged.look_again_at is not None) == (state in told)
    assert judged.meaning is Meaning.DUPLICATED, "the record knows another effect"


def test_the_effect_that_was_told_needs_no_second_read() -> None:
    facts = replace(UNKNOWN, state=ClaimState.COMPLETED, effects=frozenset({"pi_1"}))

    assert judge(facts, FOUND).counts


def test_a_completion_that_named_nothing_is_not_contradicted_by_an_object() -> None:
    facts = replace(UNKNOWN, state=ClaimState.COMPLETED, unnamed_effects=True)

    assert judge(facts, FOUND).counts


@pytest.mark.parametrize(
    ("earlier", "counts"),
    [
        pytest.param({}, True, id="the same answer a moment before"),
        pytest.param({"word": SightingWord.ABSENT, "objects": ()}, False, id="another word"),
        pytest.param({"objects": ("pi_9",)}, False, id="another object"),
        pytest.param({"asked_at": FOUND.asked_at}, False, id="the same instant is no second read"),
        pytest.param(
            {"asked_at": FOUND.asked_at + SECOND}, False, id="an answer from later does not confirm"
        ),
        pytest.param({"asked_at": FOUND.asked_at - timedelta(minutes=16)}, False, id="long ago"),
    ],
)
def test_late_truth_counts_when_a_second_read_agrees(
    *, earlier: dict[str, Any], counts: bool
) -> None:
    facts = replace(UNKNOWN, state=ClaimState.NOT_EXECUTED)
    before = replace(FOUND, asked_at=FOUND.asked_at - SECOND)

    assert judge(facts, FOUND, seen(replace(before, **earlier))).counts is counts


def test_only_the_newest_earlier_answer_confirms() -> None:
    facts = replace(UNKNOWN, state=ClaimState.NOT_EXECUTED)
    same = replace(FOUND, asked_at=FOUND.asked_at - 2 * SECOND)
    other = replace(ABSENT, asked_at=FOUND.asked_at - SECOND)

    assert not judge(facts, FOUND, seen(same, other)).counts
    assert judge(facts, FOUND, seen(same)).counts


def test_an_absence_against_a_persons_yes_is_read_a_second_time() -> None:
    facts = replace(UNKNOWN, state=ClaimState.COMPLETED)
    first = judge(facts, ABSENT)
    later = replace(ABSENT, asked_at=ABSENT.asked_at + 2 * SECOND)
    second = judge(facts, later, seen(ABSENT))

    assert not first.counts
    assert first.look_again_at == ABSENT.asked_at + 2 * SECOND
    assert second.counts


def test_two_objects_with_our_marker_are_a_duplicate() -> None:
    look = replace(FOUND, word=SightingWord.FOUND_MANY, objects=("pi_1", "pi_2"))

    judged = judge(UNKNOWN, look)

    assert judged.counts
    assert judged.meaning is Meaning.DUPLICATED


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"objects": ()}, id="without an object"),
        pytest.param({"right_place": False}, id="perhaps in another account"),
    ],
)
def test_an_effect_that_cannot_be_named_settles_nothing(changes: dict[str, Any]) -> None:
    assert not judge(UNKNOWN, replace(FOUND, **changes)).counts


@pytest.mark.parametrize(
    ("word", "changes", "meaning"),
    [
        (SightingWord.FOUND_DIFFERENT, {}, Meaning.DIFFERS),
        (SightingWord.PENDING, {}, Meaning.NOT_YET),
        (SightingWord.PENDING, {"partly": True}, Meaning.PARTLY),
        (SightingWord.LOOKUP_FAILED, {}, Meaning.UNCLEAR),
        (SightingWord.MISCONFIGURED, {}, Meaning.MISCONFIGURED),
        (SightingWord.RATE_LIMITED, {}, Meaning.UNCLEAR),
        (SightingWord.UNMAPPED, {}, Meaning.UNMAPPED),
    ],
)
def test_every_other_answer_waits(
    word: SightingWord, changes: dict[str, Any], meaning: Meaning
) -> None:
    judged = judge(UNKNOWN, replace(ABSENT, word=word, objects=("pi_1",), **changes))

    assert judged.meaning is meaning
    assert not judged.counts


# The law


def test_every_combination_gets_a_judgement() -> None:
    silent_and_ended = [(), (ENDED_ATTEMPT,), (SILENT_ATTEMPT,), (ENDED_ATTEMPT, SILENT_ATTEMPT)]
    for word, state, effect_class, attempts, window, delay in product(
        SightingWord, ClaimState, EffectClass, silent_and_ended, (None, WINDOW), Delay
    ):
        facts = replace(
            UNKNOWN,
            state=state,
            effect_class=effect_class,
            open_attempts=attempts,
            window_until=window,
        )
        judged = judge(facts, replace(ABSENT, word=word, delay_class=delay, objects=("pi_1",)))
        assert judged.why
        assert judged.counts <= (word in COUNTING)
        assert judged.conditional <= (judged.counts and word is SightingWord.ABSENT)


attempts = st.builds(
    AttemptFacts,
    fence=st.integers(1, 5),
    generation=st.integers(1, 3),
    lease_over_at=st.just(LEASE_OVER),
    ended_at=st.none() | st.just(ENDED),
    marker_sent=st.none() | st.booleans(),
    server_error=st.booleans(),
)


@given(
    found=st.lists(attempts, min_size=1, max_size=4),
    effect_class=st.sampled_from(EffectClass),
    generation=st.integers(1, 3),
    window=st.none() | st.integers(0, 90_000),
    after=st.integers(-1000, 100_000),
    every=st.booleans(),
)
def test_no_absence_counts_while_anything_could_still_happen(
    *,
    found: list[AttemptFacts],
    effect_class: EffectClass,
    generation: int,
    window: int | None,
    after: int,
    every: bool,
) -> None:
    facts = replace(
        UNKNOWN,
        open_attempts=tuple(found),
        effect_class=effect_class,
        generation=generation,
        window_until=None if window is None else T0 + timedelta(seconds=window),
        every_request_marked=every,
    )
    look = replace(ABSENT, asked_at=T0 + timedelta(seconds=after))

    judged = judge(facts, look)

    if not judged.counts:
        return
    for attempt in found:
        assert not attempt.server_error
        assert attempt.marker_sent or (every and attempt.ended_at is None)
        assert look.asked_at >= (attempt.ended_at or attempt.lease_over_at) + WORKING
        if attempt.ended_at is None:
            assert judged.conditional
            assert effect_class is EffectClass.KEYED_WRITE
            assert attempt.generation == generation
            assert facts.window_until is not None
            assert look.asked_at < facts.window_until - MARGIN
