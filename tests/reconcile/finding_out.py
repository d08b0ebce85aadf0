"""A shop whose agents pay at the sandbox provider and lose answers, with the real ledger.

Claims, reports and look-ups go through the product's own functions; only the clocks are moved.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
import stripe
from django.conf import settings

from effects.core.messages import ClaimAnswer, ClaimRequest, Fail, Unknown
from effects.core.vocabulary import ClaimState, EffectClass, EventKind, Outcome
from effects.models import Connection, Tool, Workspace
from ledger import append, claiming, queries
from reconcile.adapters import stripe as stripe_adapter
from reconcile.investigate import Asking, Looked, investigate
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import PLAIN_TOKEN, Customer
from tests.support.clock import ShiftedClock

LEASE_SECONDS = 90
WORKING_SECONDS = 900
WINDOW_SECONDS = 24 * 3600

CHARGE: dict[str, Any] = {
    "name": "charge_card",
    "effect_class": EffectClass.KEYED_WRITE,
    "contract": "stripe.v1",
    "window_seconds": WINDOW_SECONDS,
    "lease_seconds": LEASE_SECONDS,
    "lookup_kind": "stripe.payment_intents",
    "lookup": {"marker_in_every_request": True},
    "amount_field": "amount",
    "currency_field": "currency",
}
TRANSFER: dict[str, Any] = {
    "name": "send_transfer",
    "effect_class": EffectClass.UNKEYED_WRITE,
    "lease_seconds": LEASE_SECONDS,
    "lookup_kind": "http",
    "lookup": {
        "url": "/plain/transfers?reference={reference}",
        "items": "transfers",
        "reference_field": "reference",
        "amount": "amount",
        "map": {"settled": "found"},
        "absent_when": {"empty": True},
        "delay_class": "none",
    },
}

_numbers = itertools.count(1)


@dataclass(slots=True, kw_only=True)
class Shop:
    """One workspace with two tools, at a provider that misbehaves when it is asked to."""

    workspace: Workspace
    charge: Tool
    transfer: Tool
    customer: Customer
    clock: ShiftedClock

    def claim(self, tool: Tool, **changes: Any) -> ClaimAnswer:
        number = next(_numbers)
        usual: dict[str, Any] = {
            "tool": tool.name,
            "effect_class": tool.effect_class,
            "arguments": json.dumps({"amount": 4200, "currency": "eur", "order": str(number)}),
            "conversation": f"conversation-{number}",
            "turn_index": 1,
            "call_id": f"call_{number:020d}",
            "response_id": f"response-{number}",
        }
        answer = claiming.claim(self.workspace.pk, ClaimRequest(**(usual | changes)))
        assert answer.marker, answer
        return answer

    def pay(self, answer: ClaimAnswer, **changes: Any) -> str | None:
        """Send the payment that was granted; the object, or None where no answer came."""
        assert answer.key is not None
        usual = {"metadata": {"counterfoil": answer.marker}}
        try:
            return self.customer.pay(answer.key, **(usual | changes)).id
        except stripe.StripeError:
            return None

    def send_transfer(self, answer: ClaimAnswer, fault: str | None = None) -> None:
        assert answer.marker is not None
        try:
            self.customer.transfer(answer.marker, fault=fault)
        except requests.ConnectionError:
            return

    def unknown(self, answer: ClaimAnswer, **facts: Any) -> UUID:
        usual = {"fence": answer.fence, "marker_sent": True}
        claim_id = id_of(answer)
        append.report(self.workspace.pk, claim_id, Outcome.UNKNOWN, Unknown(**(usual | facts)))
        return claim_id

    def not_sent(self, answer: ClaimAnswer) -> UUID:
        claim_id = id_of(answer)
        report = Fail(fence=answer.fence, proof=Outcome.NOT_SENT)
        append.report(self.workspace.pk, claim_id, Outcome.NOT_SENT, report)
        return claim_id

    def look(self, claim_id: UUID, **asking: Any) -> Looked:
        return investigate(self.workspace.pk, claim_id, Asking(**asking))

    def state(self, claim_id: UUID) -> ClaimState:
        return ClaimState(queries.claim(self.workspace.pk, claim_id).state)

    def sightings(self, claim_id: UUID) -> list[Any]:
        claim = queries.claim(self.workspace.pk, claim_id)
        return [e for e in queries.events(claim) if e.kind == EventKind.SIGHTING]

    def past(self, seconds: float) -> None:
        """Both clocks move; the provider's is nobody's business but its own, and it agrees."""
        self.clock.advance(seconds)
        self.customer.advance(seconds=seconds)


def id_of(answer: ClaimAnswer) -> UUID:
    assert answer.claim_id is not None
    return answer.claim_id


@contextmanager
def open_shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop that is open until the block ends."""
    clock = ShiftedClock()
    stripe_adapter.forget_accounts()
    monkeypatch.setenv("TEST_STRIPE_KEY", "rk_test_halden")
    monkeypatch.setenv("TEST_PLAIN_TOKEN", PLAIN_TOKEN)
    with Provider(folder / "sandbox") as provider:
        monkeypatch.setattr(settings, "COUNTERFOIL_PRIVATE_ORIGINS", [provider.url])
        customer = Customer(provider.url)
        try:
            yield shop_of(customer, clock)
        finally:
            customer.close()
            clock.restore()


def shop_of(customer: Customer, clock: ShiftedClock, *, asked_at: str | None = None) -> Shop:
    """A new workspace. Its look-ups ask at `asked_at`, or where the customer pays."""
    workspace = Workspace.objects.create(
        name="Halden", slug=f"halden-{next(_numbers)}", mode="test", created_at=queries.clock()
    )
    stripe_account, bank = (
        Connection.objects.create(
            workspace=workspace,
            name=kind,
            kind=kind,
            base_url=asked_at or customer.url,
            secret_name=secret_name,
        )
        for kind, secret_name in (("stripe", "TEST_STRIPE_KEY"), ("http", "TEST_PLAIN_TOKEN"))
    )
    return Shop(
        workspace=workspace,
        charge=Tool.objects.create(workspace=workspace, connection=stripe_account, **CHARGE),
        transfer=Tool.objects.create(workspace=workspace, connection=bank, **TRANSFER),
        customer=customer,
        clock=clock,
    )
