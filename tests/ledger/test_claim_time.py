"""What time, late reports, look-ups and people do to a claim. The law is compared at every step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from effects.core.problems import ClaimNotFound, StaleFence
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EventKind,
    Outcome,
    Reason,
    SightingWord,
    Verdict,
)
from ledger import append, queries
from ledger.functions import call
from ledger.models import Claim, Due, Event
from tests.laws.world import World
from tests.ledger.claims import (
    LEASE_SECONDS,
    MARGIN_SECONDS,
    OTHER_STRONG_ID,
    REPEATED,
    REWORDED,
    WINDOW_SECONDS,
    a_world,
    an_unkeyed_world,
    ask,
    granted,
    in_flight,
    second_attempt,
    the_claim,
)

pytestmark = pytest.mark.django_db
S, W, V = ClaimState, Outcome, Verdict


@pytest.fixture
def world() -> World:
    return a_world()


# Reports


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ([W.COMPLETED], S.COMPLETED),
        ([W.UNKNOWN], S.UNKNOWN),
        ([W.NOT_SENT], S.NOT_EXECUTED),
        ([W.REFUSED], S.NOT_EXECUTED),
        ([W.REFUSED_STORED], S.NOT_EXECUTED),
        ([W.UNKNOWN, W.COMPLETED], S.COMPLETED),
        ([W.UNKNOWN, W.NOT_SENT], S.NOT_EXECUTED),
        ([W.NOT_SENT, W.COMPLETED], S.COMPLETED),
    ],
)
def test_one_attempts_reports_are_a_set(
    world: World, outcomes: list[Outcome], state: ClaimState
) -> None:
    claim_id = in_flight(world)
    for outcome in outcomes:
        world.report(claim_id, 1, outcome)
    assert world.row(claim_id).state is state


def test_the_same_report_again_is_the_same_fact(world: World) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    before = Event.objects.filter(claim_id=claim_id).count()
    world.report(claim_id, 1, W.COMPLETED, "pi_1")
    assert Event.objects.filter(claim_id=claim_id).count() == before


def test_the_first_stored_result_stays_the_result(world: World) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    first = ask(world).result
    world.report(claim_id, 1, W.COMPLETED, "pi_1", replayed=True)
    assert ask(world).result == first


def test_a_report_for_an_attempt_that_never_was_is_refused(world: World) -> None:
    claim_id = in_flight(world)
    with pytest.raises(StaleFence):
        world.report(claim_id, 2, W.COMPLETED)


def test_the_fast_path_of_a_completion_is_what_the_fold_says(world: World) -> None:
    """The only shortcut past the fold leaves the row exactly as the slow path would."""
    fast = the_claim(world, W.COMPLETED)
    slow = in_flight(world, turn_index=9, call_id=None, arguments='{"amount":3}')
    append.sent(world.workspace_id, slow, 1)
    world.report(slow, 1, W.COMPLETED, "pi_1")
    columns = ("state", "fresh_key", "open_truth", "completed_at", "object", "result", "reason")
    values = {tuple(row) for row in Claim.objects.filter(pk__in=[fast, slow]).values_list(*columns)}
    assert len(values) == 1


def test_a_late_not_sent_of_one_attempt_leaves_the_other_open(world: World) -> None:
    claim_id = second_attempt(world)
    assert world.report(claim_id, 2, W.NOT_SENT) is S.UNKNOWN


def test_a_stored_refusal_ends_every_attempt_of_its_generation(world: World) -> None:
    claim_id = second_attempt(world)
    assert world.report(claim_id, 2, W.REFUSED_STORED) is S.NOT_EXECUTED


def test_a_stored_refusal_says_nothing_of_another_generation(world: World) -> None:
    claim_id = second_attempt(world, V.RELEASE_NEW)
    assert world.report(claim_id, 2, W.REFUSED_STORED) is S.UNKNOWN


# Late truth


@pytest.mark.parametrize(
    ("late", "state"),
    [
        pytest.param({"provider_object": "pi_1"}, S.COMPLETED, id="the same object is one effect"),
        pytest.param({"provider_object": "pi_2"}, S.CONFLICTED, id="another object is two"),
        pytest.param({}, S.CONFLICTED, id="one that names none is another"),
        pytest.param({"replayed": True}, S.COMPLETED, id="a replay is the same effect"),
    ],
)
def test_a_frozen_worker_that_completes_late_is_kept_beside_the_newer_one(
    world: World, late: dict[str, Any], state: ClaimState
) -> None:
    claim_id = in_flight(world)
    world.clock.advance(LEASE_SECONDS)
    world.touch(claim_id)
    world.decide(claim_id, V.RELEASE_SAME, hold_seconds=0)
    granted(world)
    world.report(claim_id, 2, W.COMPLETED, "pi_1")
    world.report(claim_id, 1, W.COMPLETED, **late)
    assert world.row(claim_id).state is state


def test_a_late_completion_is_the_truth_while_no_newer_attempt_was_granted(world: World) -> None:
    claim_id = in_flight(world)
    world.clock.advance(LEASE_SECONDS)
    world.touch(claim_id)
    world.decide(claim_id, V.RELEASE_SAME, hold_seconds=0)
    assert world.report(claim_id, 1, W.COMPLETED, "pi_1") is S.COMPLETED


def test_a_late_not_sent_withdraws_a_waiting_release_and_keeps_the_old_key(world: World) -> None:
    claim_id = in_flight(world)
    world.clock.advance(LEASE_SECONDS)
    world.touch(claim_id)
    world.decide(claim_id, V.RELEASE_NEW, hold_seconds=0)
    assert world.report(claim_id, 1, W.NOT_SENT) is S.NOT_EXECUTED
    assert granted(world).generation == 1


def test_an_effect_is_completed_even_while_a_newer_attempt_is_in_flight(world: World) -> None:
    claim_id = second_attempt(world)
    assert world.report(claim_id, 1, W.COMPLETED, "pi_1") is S.COMPLETED
    assert world.heartbeat(claim_id, 2) == "stop"


def test_only_replays_of_one_generation_are_together_one_effect(world: World) -> None:
    claim_id = second_attempt(world)
    world.report(claim_id, 1, W.COMPLETED, replayed=True)
    assert world.report(claim_id, 2, W.COMPLETED, replayed=True) is S.COMPLETED


def test_what_contradicts_an_answer_says_so(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    world.decide(claim_id, V.CLOSE, hold_seconds=0)
    assert world.observe(claim_id, SightingWord.FOUND, 1, objects=("pi_1",)) is S.COMPLETED
    assert Claim.objects.get().reason == Reason.TOLD_OTHERWISE


# Look-ups


def test_a_strong_absence_after_the_attempts_end_is_firm(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    assert world.observe(claim_id, SightingWord.ABSENT, 1) is S.NOT_EXECUTED
    assert ask(world, **REPEATED).code is AnswerCode.GRANTED


@pytest.mark.parametrize("word", [SightingWord.ABSENT, SightingWord.FOUND])
def test_an_answer_that_does_not_count_moves_nothing(world: World, word: SightingWord) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    assert world.observe(claim_id, word, 1, counts=False, objects=("pi_9",)) is S.UNKNOWN


def conditionally_absent(world: World) -> UUID:
    claim_id = in_flight(world)
    world.clock.advance(LEASE_SECONDS)
    world.touch(claim_id)
    state = world.observe(claim_id, SightingWord.ABSENT, 1, conditional=True)
    assert state is S.NOT_EXECUTED
    return claim_id


def test_a_conditional_absence_grants_its_own_key_and_frees_nobody_else(world: World) -> None:
    claim_id = conditionally_absent(world)
    assert ask(world, **REPEATED).code is AnswerCode.HELD
    assert ask(world, **REWORDED).code is AnswerCode.REISSUED_DIFFERENTLY
    again = granted(world)
    assert (again.claim_id, again.generation) == (claim_id, 1)


def test_a_conditional_absence_lapses_with_the_window(world: World) -> None:
    claim_id = conditionally_absent(world)
    world.clock.advance(WINDOW_SECONDS - MARGIN_SECONDS - LEASE_SECONDS)
    answer = ask(world)
    assert (answer.code, answer.reason) == (AnswerCode.UNKNOWN, Reason.EXPIRED_UNANSWERED)
    assert queries.claim(world.tool.workspace_id, claim_id).reason == Reason.ABSENCE_LAPSED


def test_a_conditional_absence_never_counts_for_an_unkeyed_write() -> None:
    world = an_unkeyed_world()
    claim_id = in_flight(world)
    world.clock.advance(LEASE_SECONDS)
    world.touch(claim_id)
    assert world.observe(claim_id, SightingWord.ABSENT, 1, conditional=True) is S.UNKNOWN


def test_an_absence_that_no_longer_covers_the_newest_attempt_moves_nothing(world: World) -> None:
    claim_id = second_attempt(world)
    world.report(claim_id, 2, W.UNKNOWN)
    assert world.observe(claim_id, SightingWord.ABSENT, 1) is S.UNKNOWN
    assert Event.objects.get(kind=EventKind.SIGHTING).counts is False


def test_an_absence_while_a_worker_holds_the_lease_moves_nothing(world: World) -> None:
    claim_id = in_flight(world)
    assert world.observe(claim_id, SightingWord.ABSENT, 1) is S.IN_FLIGHT


def test_a_release_lapses_however_many_look_ups_come_after_it(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    world.decide(claim_id, V.RELEASE_SAME, hold_seconds=0)
    world.clock.advance(599)
    assert world.observe(claim_id, SightingWord.ABSENT, 1) is S.RELEASED
    world.clock.advance(1)
    assert world.touch(claim_id) is S.NOT_EXECUTED


# Regrants


def test_a_regrant_is_held_by_a_repeat_that_was_granted_meanwhile(world: World) -> None:
    the_claim(world, W.NOT_SENT)
    granted(world, **REPEATED)
    assert ask(world).code is AnswerCode.HELD


def test_a_regrant_hears_that_a_repeat_did_it_meanwhile(world: World) -> None:
    the_claim(world, W.NOT_SENT)
    the_claim(world, W.COMPLETED, **REPEATED)
    assert ask(world).code is AnswerCode.ALREADY_DONE


def test_two_calls_that_both_did_not_happen_complete_in_either_order_once(world: World) -> None:
    first = the_claim(world, W.NOT_SENT)
    second = the_claim(world, W.NOT_SENT, **REPEATED)
    granted(world)
    world.report(first, 2, W.COMPLETED, "pi_1")
    answer = ask(world, **REPEATED)
    assert (answer.code, answer.blocker) == (AnswerCode.ALREADY_DONE, first)
    assert world.row(second).state is S.NOT_EXECUTED


@pytest.mark.parametrize("again", [{}, {"turn_index": 5}], ids=["redelivered", "renumbered"])
def test_a_regrant_beside_a_reworded_turn_waits_for_a_person(
    world: World, again: dict[str, int]
) -> None:
    the_claim(world, W.REFUSED)
    granted(world, **REWORDED)
    assert ask(world, **again).code is AnswerCode.REISSUED_DIFFERENTLY


# Time and sweeps


def test_a_heartbeat_extends_the_lease_but_not_beyond_what_the_tool_allows(world: World) -> None:
    claim_id = in_flight(world)
    for _ in range(8):
        world.clock.advance(LEASE_SECONDS / 2)
        world.heartbeat(claim_id, 1)
    assert world.touch(claim_id) is S.UNKNOWN  # 120 s after its grant


def test_a_sweep_finds_leases_decisions_and_releases_that_are_over(world: World) -> None:
    lapsed = in_flight(world)
    decided = the_claim(world, W.UNKNOWN, turn_index=2, call_id=None, arguments='{"amount":2}')
    world.decide(decided, V.CLOSE)
    world.clock.advance(3000)
    assert append.sweep(100) == 2
    assert world.row(lapsed).state is S.UNKNOWN
    assert world.row(decided).state is S.CLOSED
    assert append.sweep(100) == 0


def test_a_claim_that_became_unknown_is_due_for_a_look_up_once(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    (due,) = append.take_due_lookups(10, lease_seconds=60)
    assert (due.claim_id, due.tries) == (claim_id, 1)
    assert append.take_due_lookups(10, lease_seconds=60) == []
    world.clock.advance(61)
    assert len(append.take_due_lookups(10, lease_seconds=60)) == 1


def test_a_claim_whose_truth_is_closed_is_not_looked_up(world: World) -> None:
    the_claim(world, W.COMPLETED)
    the_claim(world, W.NOT_SENT, turn_index=2, call_id=OTHER_STRONG_ID, arguments='{"amount":2}')
    assert not Due.objects.filter(why=Due.Why.LOOKUP).exists()


def test_a_settled_claim_with_an_open_attempt_stays_due(world: World) -> None:
    claim_id = second_attempt(world, V.RELEASE_NEW)
    world.report(claim_id, 2, W.COMPLETED, "pi_2")
    assert Due.objects.filter(claim_id=claim_id, why=Due.Why.LOOKUP).exists()


def test_a_claim_with_nothing_more_to_ask_is_due_again_once_its_tool_can_be_asked_anew(
    world: World,
) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    append.schedule_lookup(claim_id, None, known_at=queries.clock())
    assert append.take_due_lookups(10, lease_seconds=60) == []
    assert append.resume_lookups(world.workspace_id, world.tool.pk) == 1
    (due,) = append.take_due_lookups(10, lease_seconds=60)
    assert (due.claim_id, due.tries) == (claim_id, 1)


def test_another_workspaces_claim_is_not_found(world: World) -> None:
    claim_id = in_flight(world)
    elsewhere = world.workspace_id + 1
    with pytest.raises(ClaimNotFound):
        append.sent(elsewhere, claim_id, 1)


def test_events_and_decisions_are_append_only(world: World) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    for statement in (
        "UPDATE ledger_event SET word = 'unknown' WHERE claim_id = %s RETURNING 1",
        "DELETE FROM ledger_event WHERE claim_id = %s RETURNING 1",
    ):
        with pytest.raises(Exception, match="append-only"), transaction.atomic():
            call(statement, [claim_id])
