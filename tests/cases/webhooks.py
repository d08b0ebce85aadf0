"""Cases about events that a provider sends: through the product's own door, signed, and applied.

An event is delivered over HTTP and signed over its bytes. What it means is found out by the same
sweep that a worker runs, and a fresh read that it orders is asked over a real socket.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final
from unittest import mock
from uuid import uuid4

import stripe
from django.db import DatabaseError
from django.test import Client

from effects.core.vocabulary import Outcome
from ledger import append
from reconcile import webhook_apply
from reconcile.adapters.stripe_kinds import KIND_OF_LOOKUP
from reconcile.models import WebhookAddress, WebhookDelivery
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.stub import NOUNS, PREFIXES, Reply
from tests.cases.words import STATES
from tests.cases.world import SEND_SECONDS, Setting, World, a_world

MEMBERS: Final = frozenset({"observations", "sequence"})
SIGNING_SECRET: Final = "whsec_of_the_cases"
SIGNING_NAME: Final = "TEST_CASE_SIGNING_SECRET"
BROKEN: Final = "database error after the event row is inserted"
SWEEPS: Final = 3
"""Sweeps after a delivery: one applies it, one makes the read that it ordered, one more if that
read is to be made twice."""
PAUSE_SECONDS: Final = 15
USUAL: Final = {"type": "payment_intent.succeeded", "object": {"id": "pi_1", "status": "succeeded"}}
"""What is delivered where a case names only the event's id."""


@dataclass(slots=True, kw_only=True)
class Door:
    """The address of one connection, and the sender on its other side."""

    world: World
    lists: str
    url: str
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    def deliver(self, event: Mapping[str, Any]) -> Any:
        body = json.dumps(event).encode()
        signed_at = int(self.world.clock.now.timestamp())
        signature = stripe.WebhookSignature.generate_signature_header(
            body.decode(), SIGNING_SECRET, signed_at
        )
        headers = {"Stripe-Signature": str(signature)}
        return self.client.post(self.url, body, content_type="application/json", headers=headers)

    def sweep(self) -> None:
        """What the clock's task does."""
        for delivery_id in webhook_apply.due(100):
            webhook_apply.apply(delivery_id)
        for delivery_id in webhook_apply.take_reads(100, PAUSE_SECONDS):
            webhook_apply.read_afresh(delivery_id)

    def settle(self) -> None:
        for _ in range(SWEEPS):
            self.sweep()
            self.world.later(PAUSE_SECONDS)

    def event(self, name: str, said: Mapping[str, Any], created: int) -> dict[str, Any]:
        """An event of Stripe's as its file says it, with what every one of them holds."""
        whole = {**self.world.stub.fills, "object": NOUNS[self.lists], **said["object"]}
        whole["created"] = int(self.world.answer_given_at.timestamp())
        return {
            "id": name,
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": created,
            "type": said["type"],
            "livemode": self.world.setting.mode == "live",
            "data": {"object": whole},
            "request": {"id": None, "idempotency_key": self.world.answer.key},
        }


@contextmanager
def a_door(lists: str) -> Iterator[Door]:
    """A call whose worker lost the answer, and the door for its provider's events."""
    setting = Setting(lookup_kind=f"stripe.{lists}")
    with a_world(setting) as world, mock.patch.dict(os.environ, {SIGNING_NAME: SIGNING_SECRET}):
        world.later(SEND_SECONDS)
        world.report(Outcome.UNKNOWN)
        assert world.tool.connection is not None
        public_id = f"case-{uuid4().hex}"
        WebhookAddress.objects.create(
            connection=world.tool.connection, public_id=public_id, secret_name=SIGNING_NAME
        )
        yield Door(world=world, lists=lists, url=f"/webhooks/{public_id}")


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    given.take("protocol", str, "ledger")
    if given.has("observations"):
        _judge_observations(given, expected, found)
    else:
        _judge_deliveries(given, expected, found)


# Events in any order


def _judge_observations(given: Fields, expected: Fields, found: Findings) -> None:
    observations = given.take("observations", list)
    state = expected.take("state", str)
    if state not in STATES:
        raise Fault(expected.at("state"), f"{state!a} is no state")
    said = [_observation(given, n, one) for n, one in enumerate(observations)]
    if not said:
        raise Fault(given.at("observations"), "holds none")
    with a_door(_lists_of(said[0]["object"])) as door:
        play(door, said)
        came = str(door.world.claim.state)
    found.check(expected.at("state"), state, came, holds=came == STATES[state])


def _observation(given: Fields, number: int, said: Any) -> dict[str, Any]:
    fields = Fields(given.at(f"observations[{number}]"), said)
    read = {
        "id": fields.take("id", str),
        "type": fields.take("type", str),
        "created": fields.take("created", int),
        "object": fields.take("object", dict),
    }
    if not isinstance(read["object"].get("id"), str):
        raise Fault(fields.at("object.id"), "is no text")
    fields.finish()
    return read


def play(door: Door, said: list[dict[str, Any]]) -> None:
    """Delivers the events in this order. The provider itself shows the object as it is in the end:
    in its final status, where one of the events shows one."""
    final = KIND_OF_LOOKUP[f"stripe.{door.lists}"].final
    latest = max(said, key=lambda one: int(one["created"]))["object"]
    ended = [one["object"] for one in said if one["object"].get("status") in final]
    truth = ended[-1] if ended else latest
    door.world.stub.pages = [Reply(status=200, body={"data": [truth]})]
    for one in said:
        answer = door.deliver(door.event(one["id"], one, one["created"]))
        if not 200 <= answer.status_code < 300:
            raise Fault("input.observations", f"{one['id']} was refused: {answer.content!a}")
        door.settle()


def _lists_of(item: Mapping[str, Any]) -> str:
    for prefix, lists in PREFIXES.items():
        if str(item.get("id", "")).startswith(prefix) and f"stripe.{lists}" in KIND_OF_LOOKUP:
            return lists
    raise Fault("input.observations", f"{item.get('id')!a} is no object that is interpreted")


# One event, delivered more than once


def _judge_deliveries(given: Fields, expected: Fields, found: Findings) -> None:
    sequence = [
        _delivery(Fields(given.at(f"sequence[{n}]"), one))
        for n, one in enumerate(given.take("sequence", list))
    ]
    wanted = expected.take("responses", list)
    if len(wanted) != len(sequence):
        raise Fault(expected.at("responses"), "names not one response for each delivery")
    with a_door("payment_intents") as door:
        came = [deliver(door, name, broken=broken) for name, broken in sequence]
    for number, (said, word) in enumerate(zip(wanted, came, strict=True)):
        where = expected.at(f"responses[{number}]")
        found.check(where, str(said), word, holds=word in str(said).split(" or "))


def _delivery(fields: Fields) -> tuple[str, bool]:
    name, inject = fields.take("deliver", str), fields.take("inject", str, "")
    fields.finish()
    if inject not in {"", BROKEN}:
        raise Fault(fields.at("inject"), "is not interpreted")
    return name, inject == BROKEN


def deliver(door: Door, name: str, *, broken: bool = False) -> str:
    """What becomes of one delivery, in the files' words. `broken`: the database fails in the
    middle of applying it, after it was kept."""
    event = door.event(name, USUAL, int(door.world.answer_given_at.timestamp()))
    door.world.stub.pages = [Reply(status=200, body={"data": [USUAL["object"]]})]
    answer = door.deliver(event)
    if not 200 <= answer.status_code < 300:
        return "5xx" if answer.status_code >= 500 else str(answer.status_code)
    if answer.json()["state"] == WebhookDelivery.State.APPLIED:
        return f"{answer.status_code} duplicate"
    fails = mock.patch.object(append, "observe", side_effect=DatabaseError("the disk is full"))
    with fails if broken else nullcontext():
        door.sweep()
    delivery = WebhookDelivery.objects.get(pk=answer.json()["delivery"])
    applied = delivery.state == WebhookDelivery.State.APPLIED
    return "200 processed" if applied else f"{answer.status_code} parked"
