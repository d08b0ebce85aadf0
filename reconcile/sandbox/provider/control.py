"""Control endpoints under ``/_sandbox``: what a test, a person or the storm says to the sandbox.

``GET /_sandbox/health`` · ``GET|POST /_sandbox/clock`` {"advance_seconds": n} ·
``GET|POST|DELETE /_sandbox/faults`` · ``GET /_sandbox/truth`` · ``GET /_sandbox/requests`` ·
``GET /_sandbox/arrived?marker=...`` · ``GET /_sandbox/counters`` ·
``POST /_sandbox/search`` {"lag_seconds": n} · ``POST /_sandbox/reads`` {"reads_min": n} ·
``POST /_sandbox/webhooks`` a recipe · ``POST /_sandbox/endpoints`` {"scope", "url", "secret"}: an
endpoint whose secret is known beforehand, as whoever starts both sides needs it.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Final
from urllib.parse import parse_qs

from reconcile.sandbox.faults import Plan, PlanRefused, parse_plan
from reconcile.sandbox.provider import webhook_endpoints
from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.context import (
    ENDPOINTS_TABLE,
    SECRETS_TABLE,
    Context,
)
from reconcile.sandbox.provider.counters import counters
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.recipes import SEARCH_LAG_SECONDS_MAX, Recipe
from reconcile.sandbox.provider.speaking import TRUTHS
from reconcile.sandbox.provider.stripe_api import API_VERSION
from reconcile.sandbox.provider.world import World

KNOWN_BEFOREHAND: Final = "known beforehand"


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
    return {"effects": [effect for name in TRUTHS for effect in world.store.effects(name)]}


def _requests(world: World, _request: Request) -> Json:
    return world.requests()


def _arrived(world: World, request: Request) -> Json:
    marker = "".join(parse_qs(request.query).get("marker", []))
    return {"arrived": world.arrived(marker)}


def _counters(world: World, _request: Request) -> Json:
    return counters(world)


def _set_search(world: World, request: Request) -> Json:
    world.search_lag_seconds = _number(request, "lag_seconds", most=SEARCH_LAG_SECONDS_MAX)
    return counters(world)


def _set_reads(world: World, request: Request) -> Json:
    world.reads.reads_min = int(_number(request, "reads_min", most=10**9))
    return counters(world)


def _set_webhooks(world: World, request: Request) -> Json:
    known = {field.name for field in fields(Recipe)}
    said = _body(request)
    if unknown := sorted(set(said) - known):
        raise PlanRefused(f"unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    world.webhook_recipe = Recipe(
        **{name: _number(request, name, most=SEARCH_LAG_SECONDS_MAX) for name in said}
    )
    return counters(world)


def _set_endpoint(world: World, request: Request) -> Json:
    said = _body(request)
    if not all(isinstance(said.get(name), str) for name in ("scope", "url", "secret")):
        raise PlanRefused('say {"scope": "acct_x/test", "url": "...", "secret": "whsec_..."}')
    with world.store.batch() as batch:
        ctx = Context(
            store=world.store,
            batch=batch,
            scope=said["scope"],
            livemode=said["scope"].endswith("/live"),
            now=world.clock.now(),
            api_version=API_VERSION,
            request_id=None,
            idempotency_key=None,
            cause="control",
        )
        for known in list(ctx.rows(ENDPOINTS_TABLE).values()):
            # Whoever starts both sides anew knows a new address; the old one leads nowhere.
            if known["description"] == KNOWN_BEFOREHAND:
                batch.remove(f"{ctx.scope}/{ENDPOINTS_TABLE}", known["id"])
                batch.remove(SECRETS_TABLE, known["id"])
        shown = {
            "application": None,
            "connect": False,
            "description": KNOWN_BEFOREHAND,
            "enabled_events": ["*"],
            "metadata": {},
            "url": said["url"],
        }
        return webhook_endpoints.make(ctx, shown, secret=said["secret"])


def _number(request: Request, name: str, *, most: float) -> float:
    value = _body(request).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise PlanRefused(f"say {name} as a number from 0 to {most:g}, not {value!r}")
    return float(value)


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
    ("GET", "/counters"): _counters,
    ("POST", "/search"): _set_search,
    ("POST", "/reads"): _set_reads,
    ("POST", "/webhooks"): _set_webhooks,
    ("POST", "/endpoints"): _set_endpoint,
}
