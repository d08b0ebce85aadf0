"""Control endpoints under ``/_sandbox``: what a test, a person or the storm says to the sandbox.

``GET /_sandbox/health`` · ``GET|POST /_sandbox/clock`` {"advance_seconds": n} ·
``GET|POST|DELETE /_sandbox/faults`` · ``GET /_sandbox/truth`` · ``GET /_sandbox/requests`` ·
``GET /_sandbox/arrived?marker=...``
"""

import json
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from reconcile.sandbox.faults import Plan, PlanRefused, parse_plan
from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.context import STRIPE_TRUTH
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.plain import PLAIN_TRUTH
from reconcile.sandbox.provider.world import World


def answer(world: World, request: Request) -> Answer:
    """Answer one control request; control requests meet no faults."""
    try:
        return _answer(world, request)
    except ValueError as refusal:
        return Answer(status=400, body={"error": {"message": str(refusal)}})


def _answer(world: World, request: Request) -> Answer:
    handler = _HANDLERS.get((request.method, request.path.removeprefix("/_sandbox")))
    if handler is None:
        message = f"No {request.method} {request.path} here."
        return Answer(status=404, body={"error": {"message": message}})
    return Answer(status=200, body=handler(world, request))


def _health(world: World, request: Request) -> Json:
    return {"alive": True, **_clock(world, request)}


def _clock(world: World, _request: Request) -> Json:
    return {"now": iso(world.clock.now()), "advanced_seconds": world.clock.advanced_seconds}


def _advance_clock(world: World, request: Request) -> Json:
    world.advance_clock(_advance_seconds(request))
    return _clock(world, request)


def _plan(world: World, _request: Request) -> Json:
    plan = world.plan
    return {
        "seed": plan.seed,
        "rates": dict(plan.rates),
        "rules": len(plan.rules),
        "operations": list(plan.operations),
        "delay_seconds": plan.delay_seconds,
        "late_commit_seconds": plan.late_commit_seconds,
    }


def _set_plan(world: World, request: Request) -> Json:
    world.plan = parse_plan(_body(request))
    return _plan(world, request)


def _clear_plan(world: World, request: Request) -> Json:
    world.plan = Plan()
    return _plan(world, request)


def _truth(world: World, _request: Request) -> Json:
    return {"effects": world.store.effects(STRIPE_TRUTH) + world.store.effects(PLAIN_TRUTH)}


def _requests(world: World, _request: Request) -> Json:
    return world.requests()


def _arrived(world: World, request: Request) -> Json:
    marker = "".join(parse_qs(request.query).get("marker", []))
    return {"arrived": world.arrived(marker)}


def _advance_seconds(request: Request) -> float:
    seconds = _body(request).get("advance_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise PlanRefused('say {"advance_seconds": n} with a number')
    return float(seconds)


def _body(request: Request) -> Json:
    body = json.loads(request.body or b"{}")
    if not isinstance(body, dict):
        raise PlanRefused("the body is a JSON object")
    return body


_HANDLERS: Final[dict[tuple[str, str], Callable[[World, Request], Json]]] = {
    ("GET", "/health"): _health,
    ("GET", "/clock"): _clock,
    ("POST", "/clock"): _advance_clock,
    ("GET", "/faults"): _plan,
    ("POST", "/faults"): _set_plan,
    ("DELETE", "/faults"): _clear_plan,
    ("GET", "/truth"): _truth,
    ("GET", "/requests"): _requests,
    ("GET", "/arrived"): _arrived,
}
