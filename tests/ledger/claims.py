"""A world with one payment tool, and short ways to ask for its calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.vocabulary import AnswerCode, EffectClass, Outcome, Verdict
from effects.models import Tool, Workspace
from tests.laws.world import World
from tests.support.clock import START, FrozenClock

LEASE_SECONDS = 30
WINDOW_SECONDS = 3600
MARGIN_SECONDS = 90

STRONG_ID = "call_aaaaaaaaaaaaaaaa"
OTHER_STRONG_ID = "call_bbbbbbbbbbbbbbbb"


def a_world(**tool: Any) -> World:
    usual: dict[str, Any] = {
        "name": "pay",
        "effect_class": EffectClass.KEYED_WRITE,
        "window_seconds": WINDOW_SECONDS,
        "margin_seconds": MARGIN_SECONDS,
        "lease_seconds": LEASE_SECONDS,
        "attempt_seconds_max": 120,
        "attempts_max": 3,
        "release_lapse_minutes": 10,
    }
    clock = FrozenClock()
    workspace = Workspace.objects.create(name="W", slug="w", created_at=START)
    return World(tool=Tool.objects.create(workspace=workspace, **(usual | tool)), clock=clock)


def an_unkeyed_world(**tool: Any) -> World:
    unkeyed = {"effect_class": EffectClass.UNKEYED_WRITE, "window_seconds": None}
    return a_world(**(unkeyed | tool))


def a_request(world: World, **changes: Any) -> ClaimRequest:
    """The first payment of turn 1 in response 1, under a strong id, unless changed."""
    usual: dict[str, Any] = {
        "tool": world.tool.name,
        "effect_class": world.policy.effect_class,
        "arguments": '{"amount":100}',
        "conversation": "c1",
        "turn_index": 1,
        "response_id": "resp_1",
        "call_id": STRONG_ID,
    }
    return ClaimRequest(**(usual | changes))


def ask(world: World, **changes: Any) -> ClaimAnswer:
    return world.ask(a_request(world, **changes))


def granted(world: World, **changes: Any) -> ClaimAnswer:
    answer = ask(world, **changes)
    assert answer.code is AnswerCode.GRANTED, answer
    return answer


def reported(world: World, outcome: Outcome, **changes: Any) -> ClaimAnswer:
    """A first attempt that was granted and has reported."""
    answer = granted(world, **changes)
    assert answer.claim_id
    named = "pi_1" if outcome is Outcome.COMPLETED else None
    world.report(answer.claim_id, answer.fence, outcome, named)
    return answer


def the_claim(world: World, outcome: Outcome, **changes: object) -> UUID:
    claim_id = reported(world, outcome, **changes).claim_id
    assert claim_id
    return claim_id


def in_flight(world: World, **changes: object) -> UUID:
    claim_id = granted(world, **changes).claim_id
    assert claim_id
    return claim_id


def second_attempt(world: World, verdict: Verdict = Verdict.RELEASE_SAME) -> UUID:
    """Unknown after the first attempt, released, granted again: the second one is in flight."""
    claim_id = the_claim(world, Outcome.UNKNOWN)
    world.decide(claim_id, verdict, hold_seconds=0)
    assert granted(world).fence == 2
    return claim_id


REPEATED = {"turn_index": 2, "response_id": "resp_2", "call_id": OTHER_STRONG_ID}
"""The model asks for the same again, one turn later."""

REISSUED = {"response_id": "resp_2", "call_id": OTHER_STRONG_ID}
"""The same turn, asked again of the model: another response, another call id."""

REWORDED = REISSUED | {"arguments": '{"amount":101}'}
"""The same place in the same turn, and the model says something else."""

RENUMBERED = {"turn_index": 7}
"""The first response, delivered again by somebody who counts turns differently."""
