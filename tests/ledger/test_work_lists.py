"""The work lists: nothing that needs the clock, a look-up or a person is missing from them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from effects.core.vocabulary import ClaimState, Outcome, SightingWord, Verdict
from ledger import append, queries
from ledger.models import Claim, Due
from tests.laws.world import World
from tests.ledger.claims import a_world, granted, in_flight, second_attempt, the_claim
from tests.support import desk


@pytest.fixture
def world(db: None) -> World:
    return a_world()


def lists_of(claim_id: UUID) -> set[str]:
    return set(Due.objects.filter(claim_id=claim_id).values_list("why", flat=True))


def conflicted(world: World) -> UUID:
    claim_id = second_attempt(world, Verdict.RELEASE_NEW)
    world.report(claim_id, 1, Outcome.COMPLETED, "pi_1")
    world.report(claim_id, 2, Outcome.COMPLETED, "pi_2")
    return claim_id


def decided(verdict: Verdict) -> Callable[[World], UUID]:
    def make(world: World) -> UUID:
        claim_id = the_claim(world, Outcome.UNKNOWN)
        world.decide(claim_id, verdict, hold_seconds=0)
        return claim_id

    return make


def used_up(world: World) -> UUID:
    claim_id = the_claim(world, Outcome.NOT_SENT)
    for fence in (2, 3):
        assert granted(world).fence == fence
        world.report(claim_id, fence, Outcome.NOT_SENT)
    return claim_id


@pytest.mark.parametrize(
    ("make", "state"),
    [
        pytest.param(lambda w: the_claim(w, Outcome.UNKNOWN), ClaimState.UNKNOWN, id="unknown"),
        pytest.param(conflicted, ClaimState.CONFLICTED, id="two effects"),
        pytest.param(decided(Verdict.RELEASE_SAME), ClaimState.RELEASED, id="released"),
        pytest.param(decided(Verdict.CLOSE), ClaimState.CLOSED, id="stopped"),
        pytest.param(used_up, ClaimState.NOT_EXECUTED, id="no attempt left"),
    ],
)
def test_what_a_person_may_have_to_look_at_is_listed_for_one(
    world: World, make: Callable[[World], UUID], state: ClaimState
) -> None:
    claim_id = make(world)
    assert world.row(claim_id).state is state
    assert Due.Why.PERSON in lists_of(claim_id)


def test_a_call_that_simply_went_well_is_on_no_list(world: World) -> None:
    assert lists_of(the_claim(world, Outcome.COMPLETED)) == set()
    assert lists_of(in_flight(world, turn_index=2, call_id=None, arguments='{"amount":2}')) == set()


def test_what_was_listed_and_is_settled_stays_known_as_settled_for_three_days(
    world: World,
) -> None:
    claim_id = the_claim(world, Outcome.UNKNOWN)
    world.report(claim_id, 1, Outcome.COMPLETED, "pi_1")
    assert lists_of(claim_id) == {Due.Why.SETTLED}
    world.clock.advance(2 * 86_400)
    append.sweep(10)
    assert lists_of(claim_id) == {Due.Why.SETTLED}
    world.clock.advance(2 * 86_400)
    append.sweep(10)
    assert lists_of(claim_id) == set()


def test_a_plan_made_before_an_attempt_ended_does_not_put_off_the_look_up(world: World) -> None:
    """A worker reads the claim, asks for a while, and plans a late look-up; meanwhile the second
    attempt ended in silence, and that is asked about at once."""
    claim_id = second_attempt(world, Verdict.RELEASE_SAME)
    append.take_due_lookups(10, lease_seconds=60)
    known_at = queries.clock()
    world.clock.advance(1)
    world.report(claim_id, 2, Outcome.UNKNOWN)
    ended_at = queries.clock()
    late = ended_at + timedelta(hours=9)
    append.schedule_lookup(claim_id, late, known_at=known_at)
    assert Due.objects.get(claim_id=claim_id, why=Due.Why.LOOKUP).at == ended_at
    append.schedule_lookup(claim_id, late, known_at=ended_at)
    assert Due.objects.get(claim_id=claim_id, why=Due.Why.LOOKUP).at == late


def test_a_sighting_does_not_bring_a_planned_look_up_forward(world: World) -> None:
    claim_id = the_claim(world, Outcome.UNKNOWN)
    later = queries.clock() + timedelta(hours=1)
    append.schedule_lookup(claim_id, later, known_at=queries.clock())
    world.observe(claim_id, SightingWord.PENDING, 1, counts=False)
    assert Due.objects.get(claim_id=claim_id, why=Due.Why.LOOKUP).at == later


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_claim_that_is_committed_late_is_swept_like_any_other() -> None:
    """Ids are in the order of time, rows appear in the order of commits. A disk that hangs for
    longer than the sweep's grace must not leave a claim behind the watermark."""
    tool = desk.a_keyed_tool(desk.a_workspace(), lease_seconds=1)
    written, swept = threading.Event(), threading.Event()

    def slow_agent() -> None:
        with transaction.atomic():
            desk.a_call(tool)
            written.set()
            swept.wait(60)
        connection.close()

    agent = threading.Thread(target=slow_agent)
    agent.start()
    assert written.wait(10)
    time.sleep(17)
    assert append.sweep(10) == 0, "nobody can see it yet"
    swept.set()
    agent.join()
    assert append.sweep(10) == 1
    assert Claim.objects.get().state is ClaimState.UNKNOWN
