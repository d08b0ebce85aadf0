"""What people decide, what cancels it, and what the record rules out by itself."""

from __future__ import annotations

import pytest

from effects.core.problems import NotOffered, Stale
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EventKind,
    Outcome,
    SightingWord,
    Verdict,
)
from ledger import append
from ledger.functions import call
from ledger.models import Decision, Event
from tests.laws.world import World
from tests.ledger.claims import (
    LEASE_SECONDS,
    MARGIN_SECONDS,
    REPEATED,
    a_world,
    ask,
    granted,
    in_flight,
    the_claim,
)

pytestmark = pytest.mark.django_db
S, W, V = ClaimState, Outcome, Verdict


@pytest.fixture
def world() -> World:
    return a_world()


# Decisions


@pytest.mark.parametrize("verdict", [V.RELEASE_SAME, V.NOT_HAPPENED])
def test_nothing_is_released_beside_a_sibling_that_may_act(world: World, verdict: Verdict) -> None:
    claim_id = the_claim(world, W.NOT_SENT)
    granted(world, **REPEATED)
    world.decide(claim_id, V.REOPEN, hold_seconds=0)
    with pytest.raises(NotOffered) as refused:
        world.decide(claim_id, verdict)
    assert refused.value.facts["why"] == "sibling"


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        pytest.param({"window_seconds": None}, "no_window", id="no window was published"),
        pytest.param({"window_seconds": MARGIN_SECONDS + 60}, "window_closed", id="it has closed"),
    ],
)
def test_the_same_key_is_released_only_inside_its_window(
    prepare: dict[str, int | None], why: str
) -> None:
    world = a_world(**prepare)
    claim_id = the_claim(world, W.UNKNOWN)
    with pytest.raises(NotOffered) as refused:
        world.decide(claim_id, V.RELEASE_SAME)
    assert refused.value.facts["why"] == why


def test_a_burnt_key_is_not_released_again(world: World) -> None:
    claim_id = the_claim(world, W.REFUSED_STORED)
    world.decide(claim_id, V.REOPEN, hold_seconds=0)
    with pytest.raises(NotOffered) as refused:
        world.decide(claim_id, V.RELEASE_SAME)
    assert refused.value.facts["why"] == "key_burnt"


@pytest.mark.parametrize(
    "arrives",
    [
        pytest.param(lambda w, c: w.report(c, 1, W.NOT_SENT), id="a report"),
        pytest.param(
            lambda w, c: w.observe(c, SightingWord.PENDING, 1, counts=False), id="a sighting"
        ),
    ],
)
def test_a_fact_in_its_minute_cancels_a_decision(world: World, arrives: object) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    world.decide(claim_id, V.CLOSE)
    assert callable(arrives)
    arrives(world, claim_id)
    world.clock.advance(61)
    assert world.touch(claim_id) is not S.CLOSED
    assert Event.objects.filter(kind=EventKind.DECISION_CANCELLED).count() == 1


def test_a_heartbeat_cancels_the_declaration_that_its_worker_is_lost(world: World) -> None:
    claim_id = in_flight(world)
    world.decide(claim_id, V.LOST, hold_seconds=20)
    assert world.heartbeat(claim_id, 1) == "ok"
    world.clock.advance(21)
    assert world.touch(claim_id) is S.IN_FLIGHT


def test_a_decision_ends_the_newest_lease(world: World) -> None:
    claim_id = in_flight(world)
    world.decide(claim_id, V.CLOSE, hold_seconds=0)
    assert world.heartbeat(claim_id, 1) == "stop"
    world.clock.advance(LEASE_SECONDS)
    world.decide(claim_id, V.REOPEN, hold_seconds=0)
    assert world.row(claim_id).state is S.UNKNOWN


def test_a_due_reopening_is_in_force_before_the_next_answer_sweep_or_no_sweep(
    world: World,
) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    world.decide(claim_id, V.REOPEN)
    world.clock.advance(60)
    assert ask(world).code is AnswerCode.UNKNOWN


def test_reopening_rejects_what_was_recorded_before_it(world: World) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    world.decide(claim_id, V.REOPEN, hold_seconds=0)
    assert world.row(claim_id).state is S.UNKNOWN
    assert world.observe(claim_id, SightingWord.FOUND, 1, objects=("pi_1",)) is S.COMPLETED


def test_settling_names_every_effect_and_holds_until_another_appears(world: World) -> None:
    claim_id = the_claim(world, W.COMPLETED)
    world.observe(claim_id, SightingWord.FOUND_MANY, 1, objects=("pi_1", "pi_2"))
    with pytest.raises(NotOffered):
        world.decide(claim_id, V.SETTLE, objects=("pi_1", "pi_9"))
    world.decide(claim_id, V.SETTLE, objects=("pi_1", "pi_2"), hold_seconds=0)
    assert world.row(claim_id).state is S.COMPLETED
    assert world.observe(claim_id, SightingWord.FOUND, 1, objects=("pi_3",)) is S.CONFLICTED


def test_happened_against_every_fact_is_a_contradiction(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    world.decide(claim_id, V.HAPPENED, hold_seconds=0)
    assert world.row(claim_id).state is S.COMPLETED
    assert world.observe(claim_id, SightingWord.ABSENT, 1) is S.CONFLICTED


def test_a_decision_on_a_stale_page_is_refused(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    seen = world.row(claim_id).version
    world.observe(claim_id, SightingWord.PENDING, 1, counts=False)
    with pytest.raises(Stale):
        world.decide(claim_id, V.CLOSE, version=seen)


def test_undo_takes_a_decision_back_and_both_stay_in_the_chain(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    world.decide(claim_id, V.CLOSE)
    assert world.undo(claim_id) is True
    world.clock.advance(61)
    assert world.touch(claim_id) is S.UNKNOWN
    verdicts = list(Decision.objects.order_by("chain_number").values_list("verdict", flat=True))
    assert verdicts == [V.CLOSE, V.WITHDRAW]
    assert call("SELECT * FROM ledger_verify_chain_v1(%s)", [world.workspace_id]) == []


def test_undo_after_the_minute_is_too_late(world: World) -> None:
    claim_id = the_claim(world, W.UNKNOWN)
    held = world.decide(claim_id, V.CLOSE)
    world.clock.advance(60)
    assert append.withdraw(world.workspace_id, claim_id, held.decision_id, 1) is False
    assert world.row(claim_id).state is S.CLOSED
