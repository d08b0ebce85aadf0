"""What all answers about one call amount to: the table, and laws for every set of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.adapters.base import Delay, Look
from reconcile.judge import Finding, Judgement, Meaning, Rule, Sighting, judge, judge_all
from reconcile.judge_facts import NOTHING_READ, VERDICTS
from reconcile.situation import Strength
from tests.reconcile.test_judge import (
    ABSENT,
    FOUND,
    SECOND,
    STRONG_FROM,
    UNKNOWN,
)

W = SightingWord
MINUTE = timedelta(minutes=1)


def at(minutes: float, word: SightingWord, *objects: str, **changes: Any) -> Look:
    """A read of the immediately consistent list, so many minutes after an absence is strong."""
    asked_at = STRONG_FROM + minutes * MINUTE
    return replace(ABSENT, word=word, objects=objects, asked_at=asked_at, **changes)


def history(*looks: Look, facts: Any = UNKNOWN) -> tuple[Sighting, ...]:
    """The looks as the ledger would have recorded them, each weighed after those before it."""
    recorded: tuple[Sighting, ...] = ()
    for number, look in enumerate(looks, start=2):
        judged = judge(facts, look, recorded)
        recorded += (as_sighting(number, look, judged),)
    return recorded


def as_sighting(number: int, look: Look, judged: Judgement, **changes: Any) -> Sighting:
    return Sighting(
        number=number,
        look=look,
        fence=1,
        strength=judged.strength,
        counts=judged.counts,
        conditional=judged.conditional,
        too_early=judged.too_early,
        **changes,
    )


def of(*looks: Look) -> tuple[Meaning, Rule, tuple[int, ...]]:
    found = judge_all(UNKNOWN, history(*looks))
    return found.meaning, found.rule, found.evidence


LATE = {"delay_class": Delay.EVENTUAL}
ELSEWHERE = {"right_place": False}
NO_MONEY = {"others": ("pi_1",)}


TABLE = [
    pytest.param([], Meaning.UNCLEAR, Rule.NOBODY_ASKED, (), id="nobody asked"),
    pytest.param([at(0, W.FOUND, "pi_1")], Meaning.HAPPENED, Rule.FOUND, (2,), id="found"),
    pytest.param(
        [at(0, W.FOUND, "pi_1"), at(1, W.LOOKUP_FAILED), at(2, W.FOUND, "pi_1")],
        Meaning.HAPPENED,
        Rule.FOUND,
        (2, 4),
        id="found twice is found, and rests on both",
    ),
    pytest.param(
        [at(0, W.FOUND, "pi_1"), at(60, W.FOUND, "pi_2")],
        Meaning.DUPLICATED,
        Rule.TWO_EFFECTS,
        (2, 3),
        id="two single objects found at different times",
    ),
    pytest.param(
        [at(0, W.FOUND_MANY, "pi_1", "pi_2")],
        Meaning.DUPLICATED,
        Rule.TWO_EFFECTS,
        (2,),
        id="two objects in one answer",
    ),
    pytest.param(
        [at(0, W.FOUND, "pi_1", **ELSEWHERE), at(1, W.FOUND, "pi_2")],
        Meaning.HAPPENED,
        Rule.FOUND,
        (3,),
        id="an object of another account is nobody's second effect",
    ),
    pytest.param(
        [at(0, W.FOUND, "po_1"), at(60, W.FOUND_DIFFERENT, "po_1")],
        Meaning.DIFFERS,
        Rule.NO_LONGER_SO,
        (3,),
        id="it was there and did not last",
    ),
    pytest.param(
        [at(0, W.FOUND, "pi_1"), at(60, W.ABSENT)],
        Meaning.HAPPENED,
        Rule.FOUND,
        (2,),
        id="an absence takes nothing back",
    ),
    pytest.param(
        [at(0, W.FOUND_DIFFERENT, "pi_1")],
        Meaning.DIFFERS,
        Rule.FOUND_DIFFERENT,
        (2,),
        id="found, and not what was asked for",
    ),
    pytest.param(
        [at(0, W.PENDING, "pi_1"), at(1, W.FOUND_DIFFERENT, "pi_1")],
        Meaning.DIFFERS,
        Rule.FOUND_DIFFERENT,
        (3,),
        id="the newest answer about one object counts",
    ),
    pytest.param(
        [at(0, W.PENDING, "pi_1")], Meaning.NOT_YET, Rule.NOT_FINISHED, (2,), id="not yet"
    ),
    pytest.param(
        [at(0, W.PENDING, "pi_1"), at(1, W.PENDING, "pi_1", partly=True)],
        Meaning.PARTLY,
        Rule.PARTLY_DONE,
        (3,),
        id="partly",
    ),
    pytest.param([at(0, W.ABSENT)], Meaning.DID_NOT_HAPPEN, Rule.STRONG_ABSENCE, (2,), id="absent"),
    pytest.param(
        [at(-1, W.ABSENT), at(0, W.ABSENT)],
        Meaning.DID_NOT_HAPPEN,
        Rule.STRONG_ABSENCE,
        (3,),
        id="an absence rests on no earlier weaker one",
    ),
    pytest.param([at(-1, W.ABSENT)], Meaning.NOT_YET, Rule.ABSENCE_TOO_EARLY, (2,), id="too early"),
    pytest.param(
        [at(0, W.ABSENT, **LATE)], Meaning.UNCLEAR, Rule.WEAK_ABSENCE, (2,), id="weak absence"
    ),
    pytest.param(
        [at(0, W.PENDING, "pi_1"), at(1, W.ABSENT)],
        Meaning.NOT_YET,
        Rule.NOT_FINISHED,
        (2,),
        id="an absence that says nothing of what was seen",
    ),
    pytest.param(
        [at(0, W.PENDING, "pi_1"), at(1, W.ABSENT, **NO_MONEY)],
        Meaning.DID_NOT_HAPPEN,
        Rule.STRONG_ABSENCE,
        (3,),
        id="an absence that says what became of it",
    ),
    pytest.param(
        [at(0, W.UNMAPPED, "pi_1"), at(1, W.ABSENT)],
        Meaning.UNMAPPED,
        Rule.STATUS_UNMAPPED,
        (2,),
        id="an object whose status nobody mapped",
    ),
    pytest.param([at(0, W.UNMAPPED)], Meaning.UNMAPPED, Rule.ANSWER_UNMAPPED, (2,), id="unmapped"),
    pytest.param(
        [at(0, W.LOOKUP_FAILED), at(1, W.MISCONFIGURED)],
        Meaning.MISCONFIGURED,
        Rule.LOOKUP_MISCONFIGURED,
        (3,),
        id="set up wrongly",
    ),
    pytest.param(
        [at(0, W.RATE_LIMITED)], Meaning.UNCLEAR, Rule.NO_ANSWER, (2,), id="nobody answered"
    ),
]


@pytest.mark.parametrize(("looks", "meaning", "rule", "evidence"), TABLE)
def test_a_judgement_names_its_rule_and_the_evidence_that_it_rests_on(
    looks: list[Look], meaning: Meaning, rule: Rule, evidence: tuple[int, ...]
) -> None:
    assert of(*looks) == (meaning, rule, evidence)


def test_every_rule_has_a_row_or_a_test_below() -> None:
    in_the_table = {row.values[2] for row in TABLE}
    doubted = {Rule.FOUND_DOUBTED, Rule.TWO_EFFECTS_DOUBTED}

    assert in_the_table | doubted | {Rule.RECORDED, Rule.ABSENCE_WHILE_KEY_HOLDS} == set(Rule)


def test_an_effect_that_only_the_record_knows_is_the_records() -> None:
    facts = replace(UNKNOWN, effects=frozenset({"pi_1"}))

    assert judge_all(facts, ()) == Finding(
        meaning=Meaning.HAPPENED,
        rule=Rule.RECORDED,
    )


def test_what_was_told_is_turned_round_by_a_second_read_and_not_by_a_contradiction() -> None:
    told = replace(UNKNOWN, state=ClaimState.NOT_EXECUTED)
    first, second = FOUND, replace(FOUND, asked_at=FOUND.asked_at + 3 * SECOND)

    doubted = judge(told, first)
    (recorded,) = history(first, facts=told)
    fresh = judge(told, second, (recorded,))

    assert (doubted.meaning, doubted.rule, doubted.counts, doubted.contradicts) == (
        Meaning.HAPPENED,
        Rule.FOUND_DOUBTED,
        False,
        True,
    )
    assert (fresh.rule, fresh.counts, fresh.evidence) == (Rule.FOUND, True, (2, 0))


def test_a_second_object_after_happened_is_doubted_until_it_is_read_again() -> None:
    told = replace(UNKNOWN, state=ClaimState.COMPLETED, effects=frozenset({"pi_1"}))
    other = replace(FOUND, objects=("pi_2",))

    assert judge(told, other).rule is Rule.TWO_EFFECTS_DOUBTED
    again = replace(other, asked_at=other.asked_at + 3 * SECOND)
    assert judge(told, again, history(other, facts=told)).rule is Rule.TWO_EFFECTS


def test_what_is_heard_confirms_nothing_and_what_is_not_believed_settles_nothing() -> None:
    told = replace(UNKNOWN, state=ClaimState.NOT_EXECUTED)
    again = replace(FOUND, asked_at=FOUND.asked_at + 3 * SECOND)

    assert not judge(told, again, history(FOUND, facts=told), heard=True).counts
    heard = judge(UNKNOWN, FOUND, heard=True, believed=False)
    assert (heard.counts, heard.rule) == (False, Rule.FOUND_DOUBTED)


def test_an_effect_that_ended_undoes_what_was_told_only_on_a_second_read_and_by_its_status() -> (
    None
):
    told = replace(UNKNOWN, state=ClaimState.COMPLETED, effects=frozenset({"po_1"}))
    failed = at(0, W.FOUND_DIFFERENT, "po_1", status="failed")
    again = replace(failed, asked_at=failed.asked_at + 3 * SECOND)
    other_amount = replace(again, requested={"amount": "42.00"}, found={"amount": "41.00"})

    first = judge(told, failed)
    second = judge(told, again, history(failed, facts=told))

    assert (first.rule, first.counts, first.contradicts) == (Rule.NO_LONGER_SO, False, True)
    assert (second.rule, second.counts) == (Rule.NO_LONGER_SO, True)
    assert not judge(told, other_amount, history(failed, facts=told)).counts
    assert not judge(UNKNOWN, again, history(failed)).counts, "nobody was told anything"


def test_an_answer_that_nobody_gave_stands_between_no_two_reads() -> None:
    told = replace(UNKNOWN, state=ClaimState.NOT_EXECUTED)
    failed = replace(FOUND, word=W.LOOKUP_FAILED, objects=(), asked_at=FOUND.asked_at + SECOND)
    again = replace(FOUND, asked_at=FOUND.asked_at + 3 * SECOND)

    assert judge(told, again, history(FOUND, failed, facts=told)).counts


def test_a_read_of_ours_outweighs_an_event_about_the_same_object() -> None:
    read = as_sighting(2, at(0, W.FOUND_DIFFERENT, "po_1"), judge(UNKNOWN, at(0, W.PENDING)))
    paid = at(5, W.FOUND, "po_1")
    heard = as_sighting(3, paid, judge(UNKNOWN, paid, heard=True, believed=False), heard=True)

    assert judge_all(UNKNOWN, (read, heard)).rule is Rule.FOUND_DIFFERENT


def test_an_absence_that_says_nothing_of_an_object_that_was_seen_settles_nothing() -> None:
    pending = at(0, W.PENDING, "pi_1")

    left_out = judge(UNKNOWN, at(1, W.ABSENT), history(pending))
    accounted = judge(UNKNOWN, at(1, W.ABSENT, **NO_MONEY), history(pending))

    assert (left_out.counts, accounted.counts) == (False, True)
    assert "what became of pi_1" in left_out.why


def test_what_a_reopening_rejected_counts_no_more() -> None:
    (found,) = history(at(0, W.FOUND, "pi_1"))

    assert judge_all(UNKNOWN, (replace(found, rejected=True),)).rule is Rule.NOBODY_ASKED


def test_an_absence_that_holds_while_the_key_does_is_said_to_be_one() -> None:
    (absent,) = history(at(0, W.ABSENT))
    held = replace(absent, conditional=True)

    assert judge_all(UNKNOWN, (held,)).rule is Rule.ABSENCE_WHILE_KEY_HOLDS
    assert judge_all(UNKNOWN, (held, replace(absent, number=3))).evidence == (3,)


def test_an_absence_before_the_newest_attempt_does_not_speak_of_it() -> None:
    (absent,) = history(at(0, W.ABSENT))
    newer = replace(UNKNOWN, open_attempts=(replace(UNKNOWN.open_attempts[0], fence=2),))

    assert judge_all(newer, (absent,)).meaning is Meaning.UNCLEAR


# Laws

looks = st.builds(
    Look,
    word=st.sampled_from(SightingWord),
    why=st.just("Said."),
    route=st.just("List"),
    asked_at=st.integers(-3, 40).map(lambda minutes: STRONG_FROM + minutes * MINUTE),
    delay_class=st.sampled_from(Delay),
    right_place=st.booleans(),
    pages_complete=st.booleans(),
    partly=st.booleans(),
    objects=st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(tuple),
    others=st.lists(st.sampled_from(["a", "b", "c"]), max_size=1).map(tuple),
)
claims = st.builds(
    replace,
    st.just(UNKNOWN),
    state=st.sampled_from(ClaimState),
    effects=st.sampled_from([frozenset[str](), frozenset({"a"})]),
    unnamed_effects=st.booleans(),
)


@st.composite
def known(draw: st.DrawFn) -> tuple[Any, tuple[Sighting, ...]]:
    """A claim and its sightings, each weighed as it would have been when it came."""
    facts = draw(claims)
    recorded: tuple[Sighting, ...] = ()
    for number, look in enumerate(draw(st.lists(looks, max_size=5)), start=2):
        heard = draw(st.booleans())
        judged = judge(facts, look, recorded, heard=heard, believed=draw(st.booleans()))
        recorded += (as_sighting(number, look, judged, heard=heard),)
    return facts, recorded


@settings(deadline=None, max_examples=150)
@given(known(), st.randoms(use_true_random=False))
def test_no_order_of_arrival_changes_the_judgement(
    case: tuple[Any, tuple[Sighting, ...]], shuffle: Any
) -> None:
    facts, sightings = case
    mixed = list(sightings)
    shuffle.shuffle(mixed)

    assert judge_all(facts, mixed) == judge_all(facts, sightings)


@settings(deadline=None, max_examples=150)
@given(known(), looks, st.sampled_from(sorted(NOTHING_READ)))
def test_an_answer_in_which_nothing_was_read_changes_nothing_that_is_known(
    case: tuple[Any, tuple[Sighting, ...]], look: Look, word: SightingWord
) -> None:
    facts, sightings = case
    silent = replace(look, word=word)
    after = judge(facts, silent, sightings)

    assert not after.counts
    if any(one.strength is not Strength.SAYS_NOTHING or one.objects for one in sightings):
        before = judge_all(facts, sightings)
        assert (after.meaning, after.rule, after.evidence) == (
            before.meaning,
            before.rule,
            before.evidence,
        )


@settings(deadline=None, max_examples=150)
@given(known(), looks)
def test_an_answer_that_does_not_count_turns_nothing_unclear_into_a_verdict(
    case: tuple[Any, tuple[Sighting, ...]], look: Look
) -> None:
    facts, sightings = case
    before, after = judge_all(facts, sightings), judge(facts, look, sightings)

    if not after.counts and before.meaning not in VERDICTS:
        doubted = {Rule.FOUND_DOUBTED, Rule.TWO_EFFECTS_DOUBTED}
        # A doubt that is withdrawn leaves what the record says without any answer, and no more.
        alone = judge_all(facts, ())
        recorded = (after.rule, after.meaning) == (Rule.RECORDED, alone.meaning)
        assert after.meaning not in VERDICTS or after.rule in doubted or recorded
        assert after.meaning is not Meaning.DID_NOT_HAPPEN


@settings(deadline=None, max_examples=150)
@given(known(), looks)
def test_what_was_found_is_never_turned_into_did_not_happen(
    case: tuple[Any, tuple[Sighting, ...]], look: Look
) -> None:
    facts, sightings = case
    before, after = judge_all(facts, sightings), judge(facts, look, sightings)

    if before.meaning in {Meaning.HAPPENED, Meaning.DUPLICATED} and before.rule not in {
        Rule.FOUND_DOUBTED,
        Rule.TWO_EFFECTS_DOUBTED,
    }:
        assert after.meaning is not Meaning.DID_NOT_HAPPEN
        assert after.meaning is not Meaning.UNCLEAR
    if after.meaning is Meaning.DID_NOT_HAPPEN:
        seen = {o for one in (*sightings,) if not one.rejected for o in one.objects}
        newest = {o for one in (*sightings,) if one.word is W.ABSENT for o in one.accounted}
        assert seen <= newest | set(look.others) | set(look.objects)


@settings(deadline=None, max_examples=150)
@given(known(), looks)
def test_an_answer_settles_nothing_that_all_of_them_together_do_not_say(
    case: tuple[Any, tuple[Sighting, ...]], look: Look
) -> None:
    facts, sightings = case
    after = judge(facts, look, sightings)

    if after.counts:
        assert after.meaning in VERDICTS or after.rule is Rule.NO_LONGER_SO
        assert (look.word is not W.ABSENT) or after.meaning is Meaning.DID_NOT_HAPPEN


@settings(deadline=None, max_examples=150)
@given(known())
def test_the_evidence_is_of_the_record_and_a_verdict_by_rule_has_some(
    case: tuple[Any, tuple[Sighting, ...]],
) -> None:
    facts, sightings = case
    found = judge_all(facts, sightings)

    assert set(found.evidence) <= {one.number for one in sightings}
    assert found.evidence or found.rule in {Rule.NOBODY_ASKED, Rule.RECORDED, Rule.TWO_EFFECTS}
