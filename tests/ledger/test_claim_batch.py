"""The parallel calls of one turn, asked for at once: each as if alone, after those before it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effects.core.canonical import Refused
from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.vocabulary import AnswerCode, Outcome
from ledger import claiming
from ledger.models import Claim, Event
from tests.laws.world import World
from tests.ledger.claims import a_request, a_world, the_claim
from tests.support import desk


@pytest.fixture
def world(db: None) -> World:
    return a_world()


def seen(answer: ClaimAnswer | Refused) -> tuple[Any, ...]:
    """What an answer says, without the ids that differ from one telling to the next."""
    if isinstance(answer, Refused):
        return (answer.code,)
    return (
        *(answer.code, answer.state, answer.fence, answer.generation, answer.send_within_seconds),
        *(set(answer.flags), answer.key and answer.key[-2:], answer.blocker is None),
    )


def one_by_one(world: World, requests: list[ClaimRequest]) -> list[tuple[Any, ...]]:
    """What the same requests are told when each is asked alone, in a world that then never was."""
    told: list[tuple[Any, ...]] = []
    with transaction.atomic():
        for request in requests:
            try:
                told.append(seen(world.ask(request)))
            except Refused as refused:
                told.append((refused.code,))
        transaction.set_rollback(True)
    return told


def at_once(world: World, requests: list[ClaimRequest]) -> list[tuple[Any, ...]]:
    world.clock.tell()
    return [seen(answer) for answer in claiming.claim_batch(world.workspace_id, requests)]


REQUESTS = st.fixed_dictionaries(
    {
        "turn_index": st.integers(1, 2),
        "position": st.integers(0, 3),
        "ordinal": st.integers(0, 1),
        "arguments": st.sampled_from(['{"amount":1}', '{"amount":2}', '{"amount":NaN}', ""]),
        "response_id": st.sampled_from([None, "resp_1", "resp_2"]),
        "call_id": st.sampled_from([None, "pay", "call_aaaaaaaaaaaaaaaa", "call_bbbbbbbbbbbbbbbb"]),
        "nonce": st.sampled_from([None, "00" * 16]),
    }
)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)
@given(batch=st.lists(REQUESTS, max_size=6), before=st.sampled_from([None, *Outcome]))
def test_a_batch_is_told_what_its_members_are_told_one_by_one(
    world: World, batch: list[dict[str, Any]], before: Outcome | None
) -> None:
    with transaction.atomic():
        if before is not None:
            the_claim(world, before)
        requests = [a_request(world, **said) for said in batch]
        expected = one_by_one(world, requests)
        assert at_once(world, requests) == expected
        transaction.set_rollback(True)


def test_a_batch_is_one_statement(world: World, django_assert_num_queries: Any) -> None:
    requests = [a_request(world, position=n, call_id=None, ordinal=n) for n in range(8)]
    claiming.claim(world.workspace_id, a_request(world, turn_index=9, arguments="{}"))
    with django_assert_num_queries(0):  # Ours goes past Django, so what is counted is the rest.
        answers = claiming.claim_batch(world.workspace_id, requests)
    assert [seen(answer)[0] for answer in answers] == [AnswerCode.GRANTED] * 8
    assert len({tuple(row) for row in Event.objects.values_list("claim_id", "seq")}) == 9


def test_no_claims_are_no_answers(world: World) -> None:
    assert claiming.claim_batch(world.workspace_id, []) == []


def test_a_large_argument_and_a_tool_nobody_registered_are_claimed_like_any_other(
    world: World,
) -> None:
    large = '{"text":"' + "é" * 5000 + '"}'
    requests = [
        a_request(world, arguments=large),
        a_request(world, tool="never_heard_of", position=1, call_id=None),
    ]
    first, second = claiming.claim_batch(world.workspace_id, requests)
    assert isinstance(first, ClaimAnswer)
    assert isinstance(second, ClaimAnswer)
    assert (first.code, second.code) == (AnswerCode.GRANTED, AnswerCode.GRANTED)
    assert claiming.claim(world.workspace_id, requests[0]).code is AnswerCode.IN_FLIGHT


@pytest.mark.case("X03", "X04")
@pytest.mark.django_db(transaction=True)
def test_batches_that_overlap_in_other_orders_grant_each_call_once_and_never_deadlock() -> None:
    tool = desk.a_keyed_tool(desk.a_workspace())
    calls = [
        ClaimRequest(
            tool=tool.name,
            arguments=f'{{"amount":{number}}}',
            conversation=f"c-{number % 3}",
            turn_index=number,
        )
        for number in range(12)
    ]
    granted: list[int] = []
    barrier = threading.Barrier(6)

    def ask(shift: int) -> None:
        mine = calls[shift:] + calls[:shift]
        barrier.wait(20)
        try:
            answers = claiming.claim_batch(tool.workspace_id, mine if shift % 2 else mine[::-1])
            granted.append(sum(seen(answer)[0] is AnswerCode.GRANTED for answer in answers))
        finally:
            connection.close()

    askers = [threading.Thread(target=ask, args=(shift,)) for shift in range(0, 12, 2)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(60)
    assert sum(granted) == 12
    assert len(granted) == 6
    assert Claim.objects.count() == 12
