"""The table of claim answers, row by row. Every answer is compared with the law as well."""

from __future__ import annotations

import pytest

from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    Outcome,
    Reason,
    SightingWord,
    Verdict,
)
from ledger import claiming, queries
from ledger.functions import call
from ledger.models import Case, Claim, HeldRequest
from tests.laws.world import World
from tests.ledger.claims import (
    LEASE_SECONDS,
    MARGIN_SECONDS,
    OTHER_STRONG_ID,
    REISSUED,
    RENUMBERED,
    REWORDED,
    WINDOW_SECONDS,
    a_request,
    a_world,
    an_unkeyed_world,
    ask,
    granted,
    reported,
)

pytestmark = pytest.mark.django_db
C, W, V = AnswerCode, Outcome, Verdict
NONCE = "ab" * 16


@pytest.fixture
def world() -> World:
    return a_world()


def test_nothing_known_is_granted_with_key_marker_and_time_to_send(world: World) -> None:
    answer = ask(world)
    assert answer.code is C.GRANTED
    assert (answer.fence, answer.generation) == (1, 1)
    assert answer.key is not None
    assert answer.key.startswith("cf1-")
    assert answer.marker == f"cf_{answer.claim_id.hex if answer.claim_id else ''}_1"
    assert answer.send_within_seconds == LEASE_SECONDS


def test_an_unkeyed_write_gets_no_key_and_the_whole_lease() -> None:
    answer = ask(an_unkeyed_world())
    assert (answer.key, answer.safe_retry_until) == (None, None)
    assert answer.send_within_seconds == LEASE_SECONDS


def test_the_time_to_send_ends_before_the_window_does() -> None:
    world = a_world(window_seconds=100, margin_seconds=90)
    assert ask(world).send_within_seconds == 10


@pytest.mark.parametrize(
    ("declared", "registered", "in_force"),
    [
        pytest.param("read", "keyed_write", "keyed_write", id="the registry is stricter"),
        pytest.param("unkeyed_write", "keyed_write", "unkeyed_write", id="the code is stricter"),
        pytest.param("read", "read", "read", id="a read takes no claim"),
    ],
)
def test_the_stricter_class_is_in_force(declared: str, registered: str, in_force: str) -> None:
    world = a_world(effect_class=registered)
    request = a_request(world, effect_class=EffectClass(declared))
    answer = claiming.claim(world.workspace_id, request)
    assert answer.effect_class == in_force
    assert (answer.code is None) == (in_force == "read")
    assert Claim.objects.exists() == (in_force != "read")


def test_a_tool_that_nobody_registered_counts_as_an_unkeyed_write(world: World) -> None:
    request = ClaimRequest(tool="new", arguments="{}", conversation="c", turn_index=1)
    answer = claiming.claim(world.workspace_id, request)
    assert answer.effect_class is EffectClass.UNKEYED_WRITE
    assert Claim.objects.get().tool.registered is False


def test_rules_that_changed_meanwhile_are_read_again(world: World) -> None:
    reported(world, W.COMPLETED)
    world.tool.argument_rules = {"volatile": ["trace"]}
    world.tool.version += 1
    world.tool.save()
    assert ask(world, arguments='{"amount":100,"trace":"x"}').code is C.REPLAYED


# The same operation


@pytest.mark.parametrize(
    "again",
    [
        pytest.param({}, id="redelivered: same turn, same id"),
        pytest.param(REISSUED, id="re-issued turn: other response, other id"),
        pytest.param(RENUMBERED, id="redelivered by somebody who renumbers turns"),
        pytest.param({"arguments": ' { "amount" : 1.00e2 } '}, id="the same amount, spelt apart"),
        pytest.param(REISSUED | {"position": 3}, id="re-issued behind other calls"),
    ],
)
def test_a_repeat_of_a_completed_call_gets_the_first_result(
    world: World, again: dict[str, object]
) -> None:
    first = reported(world, W.COMPLETED)
    answer = ask(world, **again)
    assert answer.code is C.REPLAYED
    assert answer.claim_id == first.claim_id
    assert (answer.result, answer.provider_object) == ('{"ok":true}', "pi_1")


def test_a_repeat_while_the_lease_lives_waits_for_it(world: World) -> None:
    granted(world)
    world.clock.advance(10)
    answer = ask(world)
    assert answer.code is C.IN_FLIGHT
    assert answer.retry_after_seconds == LEASE_SECONDS - 10


def test_the_grant_is_given_again_only_to_the_request_that_lost_its_answer(world: World) -> None:
    first = granted(world, nonce=NONCE)
    again = ask(world, nonce=NONCE)
    assert again.code is C.GRANTED_AGAIN
    assert (again.fence, again.key) == (first.fence, first.key)
    assert ask(world, nonce="cd" * 16).code is C.IN_FLIGHT
    assert ask(world).code is C.IN_FLIGHT


def test_a_grant_given_again_has_only_the_time_that_is_left(world: World) -> None:
    granted(world, nonce=NONCE)
    world.clock.advance(12)
    assert ask(world, nonce=NONCE).send_within_seconds == LEASE_SECONDS - 12


def test_a_lease_that_is_over_is_unknown_there_and_then(world: World) -> None:
    granted(world)
    world.clock.advance(LEASE_SECONDS)
    answer = ask(world)
    assert (answer.code, answer.reason) == (C.UNKNOWN, Reason.LEASE_OVER)
    assert ask(world).code is C.UNKNOWN


@pytest.mark.parametrize("seconds", [0, 31, 4000, 1_000_000])
def test_unknown_is_never_granted_however_long_it_lasts(world: World, seconds: int) -> None:
    reported(world, W.UNKNOWN)
    world.clock.advance(seconds)
    assert ask(world).code is C.UNKNOWN


@pytest.mark.parametrize("outcome", [W.NOT_SENT, W.REFUSED])
def test_a_call_that_did_not_happen_is_granted_again_with_the_same_key(
    world: World, outcome: Outcome
) -> None:
    first = reported(world, outcome)
    again = ask(world)
    assert again.code is C.GRANTED
    assert (again.fence, again.generation, again.key) == (2, 1, first.key)


def test_a_stored_refusal_burns_the_key(world: World) -> None:
    first = reported(world, W.REFUSED_STORED)
    again = ask(world)
    assert (again.fence, again.generation) == (2, 2)
    assert again.key != first.key


def test_a_firm_absence_after_the_window_takes_the_next_generation(world: World) -> None:
    reported(world, W.NOT_SENT)
    world.clock.advance(WINDOW_SECONDS - MARGIN_SECONDS)
    again = ask(world)
    assert (again.code, again.generation) == (C.GRANTED, 2)
    assert again.send_within_seconds == LEASE_SECONDS


def test_the_window_starts_at_the_generations_first_grant(world: World) -> None:
    reported(world, W.NOT_SENT)
    world.clock.advance(1000)
    again = granted(world)
    ends = again.safe_retry_until
    assert ends is not None
    assert (ends - world.now).total_seconds() == WINDOW_SECONDS - MARGIN_SECONDS - 1000


def test_attempts_have_a_budget_and_then_a_person(world: World) -> None:
    for _ in range(3):
        answer = granted(world)
        assert answer.claim_id
        world.report(answer.claim_id, answer.fence, W.NOT_SENT)
    answer = ask(world)
    assert answer.code is C.ATTEMPTS_EXHAUSTED
    assert Case.objects.get().code == C.ATTEMPTS_EXHAUSTED
    assert answer.claim_id
    world.decide(answer.claim_id, V.RELEASE_SAME, hold_seconds=0)
    assert ask(world).code is C.GRANTED


def test_a_release_grants_exactly_one_more_attempt(world: World) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.decide(first.claim_id, V.RELEASE_SAME, hold_seconds=0)
    again = granted(world)
    assert (again.fence, again.key) == (2, first.key)
    assert ask(world).code is C.IN_FLIGHT


def test_a_release_with_the_same_key_lapses_with_the_window(world: World) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.clock.advance(WINDOW_SECONDS - MARGIN_SECONDS - 100)
    world.decide(first.claim_id, V.RELEASE_SAME, hold_seconds=0)
    world.clock.advance(100)
    answer = ask(world)
    assert (answer.code, answer.reason) == (C.UNKNOWN, Reason.EXPIRED_UNANSWERED)
    kept = queries.claim(world.tool.workspace_id, first.claim_id)
    assert kept.reason == Reason.RELEASE_LAPSED


def test_a_release_that_nobody_takes_up_lapses(world: World) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.decide(first.claim_id, V.RELEASE_NEW, hold_seconds=0)
    world.clock.advance(599)
    assert world.touch(first.claim_id) is ClaimState.RELEASED
    world.clock.advance(1)
    assert ask(world).code is C.UNKNOWN


def test_a_release_with_a_new_key_takes_the_next_generation(world: World) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.decide(first.claim_id, V.RELEASE_NEW, hold_seconds=0)
    again = granted(world)
    assert again.generation == 2
    assert again.key != first.key


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (V.CLOSE, C.CLOSED),
        (V.HAPPENED, C.REPLAYED),
        (V.NOT_HAPPENED, C.GRANTED),
        (V.RELEASE_SAME, C.GRANTED),
    ],
)
def test_a_decision_says_unknown_for_a_minute_and_then_what_it_decided(
    world: World, verdict: Verdict, code: AnswerCode
) -> None:
    first = reported(world, W.UNKNOWN)
    assert first.claim_id
    world.decide(first.claim_id, verdict)
    world.clock.advance(59)
    waiting = ask(world)
    assert (waiting.code, waiting.decision_pending) == (C.UNKNOWN, True)
    assert waiting.retry_after_seconds == 1
    world.clock.advance(1)
    assert ask(world).code is code


def test_two_effects_are_a_conflict_and_never_a_grant(world: World) -> None:
    first = reported(world, W.COMPLETED)
    assert first.claim_id
    world.observe(first.claim_id, SightingWord.FOUND_MANY, 1, objects=("pi_1", "pi_2"))
    assert ask(world).code is C.CONFLICTED


# Mismatches


def test_a_strong_id_with_other_arguments_is_a_mismatch_and_a_case(world: World) -> None:
    first = granted(world)
    answer = ask(world, arguments='{"amount":999}')
    assert (answer.code, answer.blocker) == (C.MISMATCH, first.claim_id)
    case = Case.objects.get()
    assert (case.code, case.arguments) == (C.MISMATCH, '{"amount":999}')


def test_a_case_keeps_arguments_that_are_too_large_for_a_claims_row(world: World) -> None:
    granted(world)
    large = f'{{"amount":999,"note":"{"x" * 5000}"}}'
    assert ask(world, arguments=large).code is C.MISMATCH
    assert Case.objects.get().arguments == large


def test_the_same_mismatch_again_is_counted_on_its_case(world: World) -> None:
    granted(world)
    for _ in range(3):
        ask(world, arguments='{"amount":999}')
    assert Case.objects.get().seen == 3


def test_a_callers_key_with_another_tool_or_other_arguments_is_a_mismatch(world: World) -> None:
    alone = {"conversation": None, "turn_index": None, "call_id": None, "caller_key": "k-1"}
    granted(world, **alone)
    assert ask(world, **alone).code is C.IN_FLIGHT
    assert ask(world, **alone, arguments='{"amount":1}').code is C.MISMATCH


def test_the_same_slot_with_other_arguments_of_an_unknown_response_is_a_mismatch(
    world: World,
) -> None:
    granted(world, response_id=None, call_id=None)
    answer = ask(world, response_id="resp_2", call_id=None, arguments='{"amount":101}')
    assert answer.code is C.MISMATCH


def test_two_claims_that_one_request_names_are_never_merged(world: World) -> None:
    granted(world)
    granted(world, turn_index=2, call_id=OTHER_STRONG_ID, arguments='{"amount":2}')
    answer = ask(world, call_id=OTHER_STRONG_ID)
    assert answer.code is C.IDENTITIES_DISAGREE
    assert Case.objects.get().code == C.IDENTITIES_DISAGREE


# Re-issued differently


def test_a_reworded_turn_waits_for_a_person(world: World) -> None:
    first = granted(world)
    answer = ask(world, **REWORDED)
    assert (answer.code, answer.blocker) == (C.REISSUED_DIFFERENTLY, first.claim_id)
    assert HeldRequest.objects.get().code == C.REISSUED_DIFFERENTLY


def test_a_reworded_turn_is_free_once_the_first_provably_did_not_happen(world: World) -> None:
    reported(world, W.NOT_SENT)
    assert ask(world, **REWORDED).code is C.GRANTED


def test_a_turn_that_reorders_its_calls_keeps_their_identities(world: World) -> None:
    pay_a = {"arguments": '{"to":"A"}', "position": 0}
    pay_b = {"arguments": '{"to":"B"}', "position": 1, "call_id": OTHER_STRONG_ID}
    first, second = granted(world, **pay_a), granted(world, **pay_b)
    other = {"response_id": "resp_2", "call_id": None}
    again_b = ask(world, **(pay_b | other | {"position": 0}))
    again_a = ask(world, **(pay_a | other | {"position": 1}))
    assert (again_a.claim_id, again_b.claim_id) == (first.claim_id, second.claim_id)


def test_a_tool_that_this_process_remembers_and_the_database_lost_is_looked_up_again(
    world: World,
) -> None:
    """After a restore to before the tool was registered, its process still knows its number."""
    granted(world)
    lost = world.tool.pk
    elsewhere = {"turn_index": 9, "call_id": None, "arguments": "{}"}
    call("DELETE FROM effects_tool WHERE id = %s RETURNING 1", (lost,))
    answer = claiming.claim(world.workspace_id, a_request(world, **elsewhere))
    assert answer.code is AnswerCode.GRANTED
    (again,) = claiming.claim_batch(
        world.workspace_id, [a_request(world, **(elsewhere | {"turn_index": 10, "ordinal": 1}))]
    )
    assert isinstance(again, ClaimAnswer)
    assert again.code is AnswerCode.HELD, "the same was asked for a turn earlier"
