"""What is kept of a request that was not granted, on both ways into the ledger."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from effects.core.messages import ClaimAnswer, ClaimRequest, Complete
from effects.core.vocabulary import AnswerCode, EffectClass, Outcome
from ledger import append, asked_again, claiming, queries
from ledger.asked_again import KEPT_MAX, AskedAgain
from tests.laws.world import World
from tests.ledger.claims import a_request, a_world, ask, granted, reported
from tests.support import desk

ORIGIN: dict[str, Any] = {
    "worker": "w-2",
    "delivery_count": 2,
    "retry_count": 1,
    "agent": "billing",
    "checkpoint": "ck-5",
    "user_spoke": False,
}


@pytest.fixture
def world(db: None) -> World:
    return a_world()


ARGUMENTS = '{"amount": 14900}'
SAME: dict[str, Any] = {"conversation": "c-1", "turn_index": 3, "call_id": "call_" + "x" * 20}


def kept(world: World, claim_id: UUID | None) -> list[AskedAgain]:
    assert claim_id
    return asked_again.of_claims(world.tool.workspace_id, [claim_id])


def fresh() -> str:
    return uuid4().hex


def test_a_repeat_that_meets_a_running_attempt_is_kept_with_its_origin(world: World) -> None:
    first = granted(world, worker="w-1", delivery_count=1)
    world.clock.advance(20)
    again = ask(world, nonce=fresh(), **ORIGIN)
    (seen,) = kept(world, first.claim_id)
    assert (again.code, seen.code) == (AnswerCode.IN_FLIGHT, AnswerCode.IN_FLIGHT)
    assert (seen.at, seen.conversation, seen.turn_index) == (world.clock.now, "c1", 1)
    assert ORIGIN.items() <= seen.data.items()
    assert seen.data["response_id"] == "resp_1"


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.UNKNOWN])
def test_a_repeat_of_what_has_ended_is_kept(world: World, outcome: Outcome) -> None:
    first = reported(world, outcome)
    again = ask(world, nonce=fresh())
    assert [one.code for one in kept(world, first.claim_id)] == [again.code]


def test_a_call_that_another_one_holds_back_is_kept_with_the_claim_that_holds_it(
    world: World,
) -> None:
    first = reported(world, Outcome.UNKNOWN)
    held = ask(world, nonce=fresh(), turn_index=2, response_id="resp_2", call_id="call_z" * 4)
    (seen,) = kept(world, first.claim_id)
    assert (held.code, seen.code, seen.turn_index) == (AnswerCode.HELD, AnswerCode.HELD, 2)
    assert seen.data["call_id"] == "call_z" * 4


def test_what_is_granted_is_no_request_that_was_stopped(world: World) -> None:
    nonce = fresh()
    first = granted(world, nonce=nonce)
    assert ask(world, nonce=nonce).code is AnswerCode.GRANTED_AGAIN
    assert kept(world, first.claim_id) == []


def test_a_request_whose_answer_was_lost_is_one(world: World) -> None:
    first = reported(world, Outcome.COMPLETED)
    nonce = fresh()
    for _ in range(3):
        ask(world, nonce=nonce)
    assert len(kept(world, first.claim_id)) == 1


def test_whoever_asks_for_ever_is_kept_up_to_the_limit(world: World) -> None:
    first = reported(world, Outcome.COMPLETED)
    for _ in range(KEPT_MAX + 3):
        assert ask(world).code is AnswerCode.REPLAYED
    assert len(kept(world, first.claim_id)) == KEPT_MAX


def test_a_repeat_changes_nothing_in_the_record(world: World) -> None:
    first = reported(world, Outcome.COMPLETED)
    before = queries.claim(world.tool.workspace_id, first.claim_id or uuid4()).version
    ask(world, nonce=fresh())
    row = queries.claim(world.tool.workspace_id, first.claim_id or uuid4())
    assert (row.version, len(queries.events(row))) == (before, before)


def test_the_claims_of_a_batch_are_kept_as_well(world: World) -> None:
    first = reported(world, Outcome.COMPLETED)
    workspace = world.tool.workspace_id
    told = claiming.claim_batch(workspace, [a_request(world, nonce=fresh(), worker="w-9")])
    assert isinstance(told[0], ClaimAnswer)
    assert [one.data["worker"] for one in kept(world, first.claim_id)] == ["w-9"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("batched", [False, True])
def test_only_a_repeat_by_itself_does_not_wait_for_the_disk(*, batched: bool) -> None:
    tool = desk.a_keyed_tool(desk.a_workspace())
    call = desk.a_call(tool, arguments=ARGUMENTS, **SAME)
    desk.complete(tool, call)
    repeat: dict[str, Any] = {
        "tool": tool.name,
        "effect_class": EffectClass.KEYED_WRITE,
        "arguments": ARGUMENTS,
    }
    again = ClaimRequest(**repeat, **SAME)
    other = ClaimRequest(**repeat, **(SAME | {"turn_index": 9, "call_id": "call_" + "y" * 20}))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")
        if batched:
            answers = claiming.claim_batch(tool.workspace_id, [again, other])
            assert [getattr(a, "code", None) for a in answers] == ["replayed", "granted"]
        else:
            assert claiming.claim(tool.workspace_id, again).code is AnswerCode.REPLAYED
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on" if batched else "off",)


def test_another_workspace_sees_none_of_it(world: World) -> None:
    first = reported(world, Outcome.COMPLETED)
    ask(world, nonce=fresh())
    assert first.claim_id
    assert asked_again.of_claims(world.tool.workspace_id + 1, [first.claim_id]) == []
    ((number, claim_id),) = asked_again.claims_since(world.tool.workspace_id, 0, limit=9)
    assert claim_id == first.claim_id
    assert asked_again.claims_since(world.tool.workspace_id, number, limit=9) == []


def test_an_origin_is_kept_with_a_grant_too(world: World) -> None:
    first = granted(world, **ORIGIN)
    row = queries.claim(world.tool.workspace_id, first.claim_id or uuid4())
    assert ORIGIN.items() <= (queries.events(row)[0].data or {}).items()


def test_the_origin_is_no_identity(world: World) -> None:
    plain = a_request(world, nonce=fresh())
    told = claiming.claim(world.tool.workspace_id, plain)
    assert told.claim_id
    done = Complete(fence=told.fence, result="{}", result_stored=True)
    append.report(world.tool.workspace_id, told.claim_id, Outcome.COMPLETED, done)
    other = ClaimRequest.model_validate({**plain.model_dump(), **ORIGIN, "nonce": fresh()})
    assert claiming.claim(world.tool.workspace_id, other).claim_id == told.claim_id
