"""The five layers at which one call becomes two, each produced for real: first without a record,
which doubles the effect, then with it."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any, Final

import requests
import stripe
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from effects.client import Call, effect
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.tools import AGENT_STRIPE_KEY, PLAIN_TOKEN
from tests.faultlab import agent
from tests.faultlab.agent import ARGUMENTS, Job, Kind, Mishap
from tests.faultlab.lab import Scene
from tests.faultlab.rows import Section

LAYERS: Final = Section("The five layers", "mission B2")
REPEATS: Final = 2


def compared(scene: Scene, unguarded: int, told: list[str]) -> dict[str, Any]:
    """The effects without a record, then with it, and what the model was told with it."""
    return {"unguarded": unguarded, "effects": scene.effects - unguarded, "told": told}


@LAYERS.row("a library repeats below the tool", unguarded=2, effects=1, told=["completed"])
def library_retry(scene: Scene) -> dict[str, Any]:
    """Without a key any library that repeats a POST doubles it; with ours, Stripe's own does not:
    the key travels with each of its sends."""
    with scene.first_send_meets(Fault.DROP_AFTER_COMMIT):
        _post_with_repeats(scene.job)
        unguarded = scene.effects

        @effect(
            scene.ledger,
            tool=Kind.CHARGE,
            effect_class="keyed_write",
            contract="stripe.v1",
            object_from="id",
        )
        def charge(call: Call, *, amount: int, **_: Any) -> Any:
            params: Any = {
                "amount": amount,
                "currency": ARGUMENTS["currency"],
                "confirm": True,
                "payment_method": "pm_card_visa",
                "metadata": {**call.marker_metadata, "case": scene.job.case},
            }
            client = stripe.StripeClient(
                AGENT_STRIPE_KEY,
                base_addresses={"api": scene.job.provider},
                max_network_retries=REPEATS,
            )
            return client.v1.payment_intents.create(params, {"idempotency_key": call.key})

        told = charge(scene.job.at, **ARGUMENTS)
    return compared(scene, unguarded, [told.status])


def _post_with_repeats(job: Job) -> None:
    repeating = Retry(total=REPEATS, read=REPEATS, allowed_methods=None, backoff_factor=0)
    with closing(requests.Session()) as session:
        session.mount("http://", HTTPAdapter(max_retries=repeating))
        session.post(
            f"{job.provider}/plain/transfers",
            json={
                "amount": job.amount,
                "currency": ARGUMENTS["currency"],
                "destination": ARGUMENTS["to"],
                "reference": job.case,
                "metadata": {"case": job.case},
            },
            headers={"Authorization": f"Bearer {PLAIN_TOKEN}"},
            timeout=job.request_seconds,
        ).raise_for_status()


@LAYERS.row("a gateway sends it twice", unguarded=2, effects=1, told=["completed"])
def gateway_retry(scene: Scene) -> dict[str, Any]:
    agent.send(scene.other(fault=Fault.GATEWAY_DUPLICATE))
    unguarded = scene.effects
    told = scene.ask(kind=Kind.CHARGE, fault=Fault.GATEWAY_DUPLICATE)
    return compared(scene, unguarded, [told.status])


@LAYERS.row("a step is run again", unguarded=2, effects=1, told=["unknown", "unknown"])
def step_retry(scene: Scene) -> dict[str, Any]:
    """The tool's client gives up waiting, and what runs the step runs it once more."""
    slow: dict[str, Any] = {"fault": f"{Fault.DELAY}=0.4", "request_seconds": 0.2}
    for _ in range(2):
        with suppress(Exception):
            agent.send(scene.other(**slow))
    assert scene.settled(2)
    first, again = scene.ask(**slow), scene.ask()
    assert scene.settled(3)
    return compared(scene, 2, [first.status, again.status])


@LAYERS.row("a queue delivers it again", unguarded=2, effects=1, told=["unknown"])
def redelivery(scene: Scene) -> dict[str, Any]:
    """The worker dies between the provider's answer and its acknowledgement."""
    scene.spawn(guarded=False, mishap=Mishap.KILLED).await_answered()
    scene.spawn(guarded=False, delivery_count=2).await_end()
    scene.spawn(mishap=Mishap.KILLED).await_answered()
    scene.lease_passes()
    told = scene.spawn(delivery_count=2).await_end()
    return compared(scene, 2, [told["status"]])


@LAYERS.row("the model asks again", unguarded=2, effects=1, told=["unknown", "held"])
def model_reemission(scene: Scene) -> dict[str, Any]:
    """It is told of an error, and calls the tool again: another response, another call id."""
    with suppress(TimeoutError):
        agent.befall(Mishap.TIMED_OUT, agent.send(scene.job))
    agent.send(scene.job)
    first = scene.ask(mishap=Mishap.TIMED_OUT)
    anew = {"response_id": f"msg_2{scene.job.case}", "call_id": f"toolu_2{scene.job.case}"}
    again = scene.ask(turn_index=scene.job.turn_index + 1, **anew)
    return compared(scene, 2, [first.status, again.status])
