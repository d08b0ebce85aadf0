"""What the tools do: one request to a provider, through the real stripe SDK or plain HTTP.

They are written as a careful author would write them: no retries in the library, the key and the
marker of the grant in the request, the grant checked directly before it. What goes wrong with them
is decided outside, by a fault of the provider or a mishap of the worker.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import stripe

from reconcile.sandbox.faults import FAULT_HEADER
from reconcile.sandbox.jobs import Job, World
from reconcile.sandbox.tools import AGENT_STRIPE_KEY, PLAIN_TOKEN, ToolName

ORDER_FIELD: Final = "order"
"""The name in metadata under which every effect says which operation it belongs to."""

NO_AUTHORITIES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody, which is enough on loopback: reading the usual list takes a tenth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What one send needs: the key to forward (if the provider takes one), our marker, and what to
    call directly before the request leaves."""

    key: str | None
    marker: str
    check: Callable[[], None]


class Hands:
    """Carries out the tools of one job. The fault is asked for at the first send only."""

    def __init__(self, world: World, job: Job) -> None:
        self._world = world
        self._job = job
        self.sends = 0

    def carry_out(self, permit: Permit) -> Any:
        """Send the one request of this job's tool, and return what the provider answered."""

        def check() -> None:
            permit.check()
            self.sends += 1

        counted = replace(permit, check=check)
        return _ACTS[self._job.tool](self, counted, self._fault_headers())

    def _fault_headers(self) -> dict[str, str]:
        if self.sends or self._job.fault == "none":
            return {}
        seconds = self._job.fault_seconds
        return {FAULT_HEADER: self._job.fault + ("" if seconds is None else f"={seconds:g}")}

    def _charge_card(self, permit: Permit, headers: dict[str, str]) -> Any:
        asked = self._job.arguments
        params = {
            "amount": asked["amount"] - self._job.discount,
            "currency": asked["currency"],
            "customer": asked["customer"],
            "confirm": True,
            "payment_method": "pm_card_visa",
            "metadata": self._metadata(permit),
        }
        service = self._stripe().v1.payment_intents
        permit.check()
        return service.create(params, options=_options(permit, headers))  # type: ignore[arg-type] # built above

    def _refund_payment(self, permit: Permit, headers: dict[str, str]) -> Any:
        asked = self._job.arguments
        params = {
            "payment_intent": asked["payment"],
            "amount": asked["amount"],
            "metadata": self._metadata(permit),
        }
        service = self._stripe().v1.refunds
        permit.check()
        return service.create(params, options=_options(permit, headers))  # type: ignore[arg-type] # built above

    def _pay_out(self, permit: Permit, headers: dict[str, str]) -> Any:
        asked = self._job.arguments
        params = {
            "amount": asked["amount"],
            "currency": asked["currency"],
            "destination": asked["bank_account"],
            "metadata": self._metadata(permit),
        }
        service = self._stripe().v1.payouts
        permit.check()
        return service.create(params, options=_options(permit, headers))  # type: ignore[arg-type] # built above

    def _send_transfer(self, permit: Permit, headers: dict[str, str]) -> Any:
        asked = self._job.arguments
        body = {
            "amount": asked["amount"],
            "currency": asked["currency"],
            "destination": asked["supplier"],
            "reference": permit.marker,
            "metadata": {ORDER_FIELD: self._job.order},
        }
        return self._post("/plain/transfers", body, permit, headers)

    def _send_letter(self, permit: Permit, headers: dict[str, str]) -> Any:
        asked = self._job.arguments
        body = {
            "to": asked["customer"],
            "subject": asked["subject"],
            "reference": permit.marker,
            "metadata": {ORDER_FIELD: self._job.order},
        }
        return self._post("/plain/letters", body, permit, headers)

    def _metadata(self, permit: Permit) -> dict[str, str]:
        return {"counterfoil": permit.marker, ORDER_FIELD: self._job.order}

    def _stripe(self) -> stripe.StripeClient:
        return stripe.StripeClient(
            AGENT_STRIPE_KEY,
            base_addresses={"api": self._world.provider_url},
            http_client=stripe.RequestsClient(timeout=self._world.request_seconds_max),
            max_network_retries=0,
        )

    def _post(
        self, path: str, body: dict[str, Any], permit: Permit, headers: dict[str, str]
    ) -> dict[str, Any]:
        said = {"Authorization": f"Bearer {PLAIN_TOKEN}", **headers}
        url = self._world.provider_url + path
        with httpx2.Client(
            timeout=self._world.request_seconds_max, headers=said, verify=NO_AUTHORITIES
        ) as client:
            permit.check()
            answer = client.post(url, json=body)
            answer.raise_for_status()
            created: dict[str, Any] = answer.json()
            return created


def _options(permit: Permit, headers: dict[str, str]) -> Any:
    key = {} if permit.key is None else {"idempotency_key": permit.key}
    return {**key, "headers": headers}


_ACTS: Final = {
    ToolName.CHARGE_CARD: Hands._charge_card,  # noqa: SLF001 - its own table.
    ToolName.REFUND_PAYMENT: Hands._refund_payment,  # noqa: SLF001 - its own table.
    ToolName.SEND_TRANSFER: Hands._send_transfer,  # noqa: SLF001 - its own table.
    ToolName.SEND_LETTER: Hands._send_letter,  # noqa: SLF001 - its own table.
    ToolName.PAY_OUT: Hands._pay_out,  # noqa: SLF001 - its own table.
}
