"""Weak ids and repeats: what is another operation, and what holds it back."""

from __future__ import annotations

from uuid import UUID

import pytest

from effects.core.vocabulary import (
    AnswerCode,
    Flag,
    Outcome,
    SightingWord,
    Verdict,
)
from ledger import append
from ledger.models import Claim, HeldRequest
from tests.laws.world import World
from tests.ledger.claims import (
    LEASE_SECONDS,
    OTHER_STRONG_ID,
    RENUMBERED,
    REPEATED,
    STRONG_ID,
    a_world,
    ask,
    granted,
    reported,
)

pytestmark = pytest.mark.django_db
C, W, V = AnswerCode, Outcome, Verdict


@pytest.fixture
def world() -> World:
    return a_world()


# Weak ids


def allow(world):
    held = HeldRequest.objects.get()
    version = world.row(held.blocker_id).version
    allowance = append.NewAllowance(claim_version=version, user_id=1, reason="two orders")
    append.allow(world.workspace_id, held.pk, allowance)


def test_a_weak_id_in_another_turn_is_a_new_operation_and_flagged(world: World) -> None:
    granted(world, call_id="call_0")
    answer = ask(world, turn_index=2, call_id="call_0", arguments='{"amount":5}')
    assert answer.code is C.GRANTED
    assert Flag.WEAK_TOOL_CALL_ID in answer.flags


def test_one_response_reported_twice_under_a_weak_id_is_one_operation(world: World) -> None:
    first = granted(world, call_id="call_0")
    again = ask(world, call_id="call_0", ordinal=1, position=1)
    assert (again.code, again.claim_id) == (C.IN_FLIGHT, first.claim_id)


def test_two_parallel_calls_whose_id_is_the_tools_name_are_two(world: World) -> None:
    granted(world, call_id="pay", arguments='{"amount":1}')
    second = ask(world, call_id="pay", arguments='{"amount":2}', position=1)
    assert second.code is C.GRANTED
    flags = set(Claim.objects.values_list("flags", flat=True)[0])
    assert set(second.flags) == {Flag.WEAK_TOOL_CALL_ID, Flag.DUPLICATE_TOOL_CALL_ID}
    assert flags == {Flag.WEAK_TOOL_CALL_ID, Flag.DUPLICATE_TOOL_CALL_ID}


def test_an_id_seen_in_two_responses_of_two_turns_identifies_nothing(world: World) -> None:
    granted(world)
    answer = ask(world, turn_index=2, response_id="resp_2", arguments='{"amount":7}')
    assert answer.code is C.GRANTED
    assert Flag.WEAK_TOOL_CALL_ID in answer.flags
    assert all(
        Flag.WEAK_TOOL_CALL_ID in flags for flags in Claim.objects.values_list("flags", flat=True)
    )


def test_a_response_id_that_is_missing_proves_no_second_response(world: World) -> None:
    first = granted(world)
    answer = ask(world, turn_index=2, response_id=None)
    assert (answer.code, answer.claim_id) == (C.IN_FLIGHT, first.claim_id)


def test_a_regrant_keeps_the_response_of_the_first_grant(world: World) -> None:
    first = reported(world, W.NOT_SENT)
    granted(world, response_id="resp_2", call_id=None)
    redelivered = ask(world, **RENUMBERED)
    assert (redelivered.code, redelivered.claim_id) == (C.IN_FLIGHT, first.claim_id)
    assert Claim.objects.get().call_id == STRONG_ID


# Repeats


def test_a_repeat_is_held_while_the_first_is_open_and_remembered(world: World) -> None:
    first = granted(world)
    answer = ask(world, **REPEATED)
    assert (answer.code, answer.blocker) == (C.HELD, first.claim_id)
    assert HeldRequest.objects.count() == 1
    ask(world, **REPEATED)
    assert HeldRequest.objects.count() == 1


@pytest.mark.parametrize("verdict", [V.CLOSE, V.RELEASE_SAME])
def test_a_repeat_is_held_by_a_claim_that_may_still_act_or_stays_unknown(
    world: World, verdict: Verdict
) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.decide(first.claim_id, verdict, hold_seconds=0)
    assert ask(world, **REPEATED).code is C.HELD


def test_a_held_request_hears_that_it_is_already_done_and_so_does_every_later_one(
    world: World,
) -> None:
    first = granted(world)
    ask(world, **REPEATED)
    assert first.claim_id
    world.report(first.claim_id, 1, W.COMPLETED, "pi_1")
    held = ask(world, **REPEATED)
    assert (held.code, held.blocker, held.provider_object) == (
        C.ALREADY_DONE,
        first.claim_id,
        "pi_1",
    )
    assert ask(world, **(REPEATED | {"turn_index": 3, "call_id": None})).code is C.ALREADY_DONE


def test_a_person_may_allow_a_held_request_once(world: World) -> None:
    first = granted(world)
    ask(world, **REPEATED)
    assert first.claim_id
    world.report(first.claim_id, 1, W.COMPLETED, "pi_1")
    allow(world)
    answer = granted(world, **REPEATED)
    assert answer.claim_id != first.claim_id
    assert HeldRequest.objects.get().used_at is not None
    # Answered: from now on an earlier completed call is only flagged.
    assert answer.claim_id
    world.report(answer.claim_id, 1, W.COMPLETED, "pi_2")
    later = ask(world, **(REPEATED | {"turn_index": 4, "call_id": None}))
    assert (later.code, later.flags) == (C.GRANTED, (Flag.SAME_AS_EARLIER,))


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        pytest.param({"agent_may_repeat": True}, C.GRANTED, id="the tool lets it"),
        pytest.param({}, C.ALREADY_DONE, id="the tool says nothing of it"),
    ],
)
def test_an_agent_may_repeat_knowingly_only_where_the_tool_lets_it(
    policy: dict[str, bool], code: AnswerCode
) -> None:
    world = a_world(**policy)
    first = granted(world)
    ask(world, **REPEATED)
    assert first.claim_id
    world.report(first.claim_id, 1, W.COMPLETED, "pi_1")
    answer = ask(world, **REPEATED, repeat_of=first.claim_id)
    assert answer.code is code
    assert (Flag.REPEAT_OF in answer.flags) is bool(policy)


def test_a_held_request_is_asked_afresh_once_its_blocker_did_not_happen(world: World) -> None:
    first = granted(world)
    ask(world, **REPEATED)
    assert first.claim_id
    world.report(first.claim_id, 1, W.NOT_SENT)
    assert ask(world, **REPEATED).code is C.GRANTED
    assert not HeldRequest.objects.exists()


def test_a_later_equal_payment_after_a_settled_one_is_granted_and_flagged(world: World) -> None:
    reported(world, W.COMPLETED)
    answer = ask(world, **REPEATED)
    assert (answer.code, answer.flags) == (C.GRANTED, (Flag.SAME_AS_EARLIER,))


def test_equal_calls_of_one_response_run_and_are_flagged_on_both(world: World) -> None:
    granted(world)
    second = ask(world, ordinal=1, position=1, call_id=OTHER_STRONG_ID)
    assert (second.code, second.flags) == (C.GRANTED, (Flag.IDENTICAL_IN_TURN,))
    for flags in Claim.objects.values_list("flags", flat=True):
        assert flags == [Flag.IDENTICAL_IN_TURN]


def test_a_tool_may_hold_equal_calls_of_one_response() -> None:
    world = a_world(hold_in_turn=True)
    granted(world)
    assert ask(world, ordinal=1, position=1, call_id=OTHER_STRONG_ID).code is C.HELD


def test_the_same_business_act_is_held_whoever_asks_and_in_the_same_response_too() -> None:
    world = a_world(argument_rules={"business": ["order"]})
    granted(world, arguments='{"order":"8841","note":"a"}')
    elsewhere = ask(
        world,
        arguments='{"order":"8841","note":"b"}',
        conversation="c2",
        call_id=OTHER_STRONG_ID,
    )
    same_response = ask(world, arguments='{"order":"8841","note":"c"}', position=1, call_id=None)
    assert (elsewhere.code, same_response.code) == (C.HELD, C.HELD)


def test_a_business_act_without_its_fields_is_not_compared() -> None:
    world = a_world(argument_rules={"business": ["order"]})
    granted(world, arguments='{"order":null}')
    answer = ask(world, arguments='{"order":null,"x":1}', conversation="c2", call_id=None)
    assert (answer.code, answer.flags) == (C.GRANTED, ())


# Late truth


def completed_late(world: World) -> UUID:
    """Its agent was told "unknown"; a look-up found the effect afterwards."""
    claim_id = reported(world, W.UNKNOWN).claim_id
    assert claim_id
    world.observe(claim_id, SightingWord.FOUND, 1, objects=("pi_1",))
    return claim_id


def test_a_model_that_was_told_unknown_and_asks_again_hears_that_it_is_already_done(
    world: World,
) -> None:
    first = completed_late(world)
    answer = ask(world, **REPEATED)
    assert (answer.code, answer.blocker) == (C.ALREADY_DONE, first)
    assert answer.provider_object == "pi_1"
    assert HeldRequest.objects.get().code == C.ALREADY_DONE


def test_a_lease_that_ran_out_leaves_the_same_doubt(world: World) -> None:
    claim_id = granted(world).claim_id
    assert claim_id
    world.clock.advance(LEASE_SECONDS)
    world.report(claim_id, 1, W.COMPLETED, "pi_1")
    assert ask(world, **REPEATED).code is C.ALREADY_DONE


def test_a_person_ends_the_doubt_for_this_and_every_later_repeat(world: World) -> None:
    completed_late(world)
    ask(world, **REPEATED)
    allow(world)
    second = granted(world, **REPEATED).claim_id
    assert second
    world.report(second, 1, W.COMPLETED, "pi_2")
    later = ask(world, **(REPEATED | {"turn_index": 4, "call_id": None}))
    assert (later.code, later.flags) == (C.GRANTED, (Flag.SAME_AS_EARLIER,))


def test_an_agent_that_may_repeat_ends_the_doubt_by_saying_so() -> None:
    world = a_world(agent_may_repeat=True)
    first = completed_late(world)
    answer = ask(world, **REPEATED, repeat_of=first)
    assert (answer.code, answer.flags) == (C.GRANTED, (Flag.REPEAT_OF,))
    assert answer.claim_id
    world.report(answer.claim_id, 1, W.COMPLETED, "pi_2")
    later = ask(world, **(REPEATED | {"turn_index": 4, "call_id": None}))
    assert (later.code, later.flags) == (C.GRANTED, (Flag.SAME_AS_EARLIER,))


def test_the_same_call_itself_gets_its_result_whatever_it_was_told_before(world: World) -> None:
    completed_late(world)
    assert ask(world).code is C.REPLAYED
