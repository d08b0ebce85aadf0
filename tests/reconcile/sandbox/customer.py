"""Somebody who uses the sandbox: over the real stripe SDK, and over plain HTTP where there is none.

``Customer`` keeps its own requests session, so that the tests see the same sockets as an agent.
"""

from collections.abc import Mapping
from typing import Any

import requests
import stripe

from reconcile.sandbox.faults import FAULT_HEADER

ACCOUNT = "sk_test_halden"
PLAIN_TOKEN = "plain_halden"


def stripe_client(url: str, *, api_key: str = ACCOUNT, **options: Any) -> stripe.StripeClient:
    """The real client against the sandbox. It counts its own attempts: none but the first."""
    return stripe.StripeClient(
        api_key,
        base_addresses={"api": url},
        http_client=stripe.RequestsClient(timeout=options.pop("timeout_seconds", 10)),
        max_network_retries=options.pop("retries", 0),
        **options,
    )


class Customer:
    def __init__(self, url: str) -> None:
        self.url = url
        self.stripe = stripe_client(url)
        self.plain = requests.Session()
        self.plain.headers["Authorization"] = f"Bearer {PLAIN_TOKEN}"

    def close(self) -> None:
        self.plain.close()

    def pay(
        self, key: str, *, amount: int = 4200, fault: str | None = None, **changes: Any
    ) -> stripe.PaymentIntent:
        """Charge a card in one step, as an agent's tool does."""
        client: stripe.StripeClient = changes.pop("client", self.stripe)
        params: Any = {
            "amount": amount,
            "currency": "eur",
            "confirm": True,
            "payment_method": "pm_card_visa",
            "metadata": {"counterfoil": f"cf_{key}_1", "order": "7"},
            **changes,
        }
        return client.v1.payment_intents.create(params, options=options(key, fault))

    def refund(
        self, key: str, intent: str, *, fault: str | None = None, **changes: Any
    ) -> stripe.Refund:
        params: Any = {
            "payment_intent": intent,
            "metadata": {"counterfoil": f"cf_{key}_1"},
            **changes,
        }
        return self.stripe.v1.refunds.create(params, options=options(key, fault))

    def transfer(self, reference: str, *, fault: str | None = None) -> requests.Response:
        body = {"amount": 900, "currency": "eur", "destination": "DE02", "reference": reference}
        return self._post("/plain/transfers", body, fault)

    def letter(self, reference: str, *, fault: str | None = None) -> requests.Response:
        body = {"to": "M. Halden", "subject": "Your order", "reference": reference}
        return self._post("/plain/letters", body, fault)

    def _post(self, path: str, body: dict[str, Any], fault: str | None) -> requests.Response:
        headers = {FAULT_HEADER: fault} if fault else {}
        return self.plain.post(self.url + path, json=body, headers=headers, timeout=10)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.plain.request(method, f"{self.url}/_sandbox{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()

    def advance(self, *, seconds: float) -> None:
        self.control("POST", "/clock", {"advance_seconds": seconds})

    def truth(self) -> list[dict[str, Any]]:
        """Every effect that the provider says it had."""
        effects: list[dict[str, Any]] = self.control("GET", "/truth")["effects"]
        return effects


def options(key: str, fault: str | None = None) -> Any:
    """Request options of the SDK: the key, and the fault that this request asks for."""
    return {"idempotency_key": key, "headers": {FAULT_HEADER: fault} if fault else {}}


def headers_of(answered: Any) -> Mapping[str, str]:
    """The headers of an answer, whether the SDK made an object or an error of it."""
    if isinstance(answered, stripe.StripeError):
        assert answered.headers is not None
        return answered.headers
    headers: Mapping[str, str] = answered.last_response.headers
    return headers


def is_replayed(answered: Any) -> bool:
    return headers_of(answered).get("idempotent-replayed") == "true"
