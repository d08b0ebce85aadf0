"""Carries webhooks to the door as a provider does: signed over the bytes, over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import stripe
from django.test import Client

from effects.models import Connection
from ledger import queries
from reconcile import webhook_apply
from reconcile.models import WebhookAddress, WebhookDelivery
from tests.reconcile.finding_out import Shop

SECRET = "whsec_of_the_tests"
SECRET_NAME = "TEST_WEBHOOK_SECRET"


@dataclass(slots=True, kw_only=True)
class Courier:
    """Brings what happened at the provider of `shop` to the door of its Stripe connection."""

    shop: Shop
    address: WebhookAddress
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    @property
    def url(self) -> str:
        return f"/webhooks/{self.address.public_id}"

    def post(self, body: bytes, signature: str | None = None) -> Any:
        headers = {"Stripe-Signature": self.sign(body) if signature is None else signature}
        return self.client.post(self.url, body, content_type="application/json", headers=headers)

    def sign(self, body: bytes, *, secret: str = SECRET, age_seconds: float = 0) -> str:
        signed_at = int(queries.clock().timestamp() - age_seconds)
        header = stripe.WebhookSignature.generate_signature_header(body.decode(), secret, signed_at)
        return str(header)

    def deliver(self, event: dict[str, Any]) -> Any:
        return self.post(json.dumps(event).encode())

    def bring(self, event: dict[str, Any]) -> WebhookDelivery:
        """Deliver one event and apply it, as the sweep does."""
        answer = self.deliver(event)
        assert answer.status_code in {200, 202}, answer.content
        self.sweep()
        return WebhookDelivery.objects.get(pk=answer.json()["delivery"])

    def sweep(self) -> None:
        """What the clock's task does, read by read, in this process."""
        for delivery_id in webhook_apply.due(100):
            webhook_apply.apply(delivery_id)
        for delivery_id in webhook_apply.take_reads(100, 60):
            webhook_apply.read_afresh(delivery_id)

    def events(self, kind: str = "*") -> list[dict[str, Any]]:
        """The provider's own events, oldest first."""
        listed = self.shop.customer.stripe.v1.events.list({"type": kind, "limit": 100})
        return [event.to_dict() for event in reversed(listed.data)]

    def event(self, kind: str) -> dict[str, Any]:
        return self.events(kind)[-1]


def hire(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Courier:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    connection = Connection.objects.get(workspace=shop.workspace, kind="stripe")
    address = WebhookAddress.objects.create(
        connection=connection, public_id="of-the-tests-0123456789", secret_name=SECRET_NAME
    )
    return Courier(shop=shop, address=address)
