"""Somebody who uses the sandbox's other providers over plain HTTP, as an agent's tool does."""

from __future__ import annotations

from typing import Any

import requests

from reconcile.sandbox.faults import FAULT_HEADER
from reconcile.sandbox.provider.salesforce import API

MERCHANT = "TESTMERCHANT1"
ORGANISATION = "00DTHALDEN00001"


class Shopper:
    """One caller of all four dialects. Keys and markers are given, faults asked for by name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.gocardless_token = "sandbox_halden"
        self.checkout_token = "sk_sbox_halden"
        self._tokens: dict[str, str] = {}

    def close(self) -> None:
        self.session.close()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.session.request(
            method, f"{self.url}{path}", json=body, headers=named, timeout=10
        )

    def control(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.session.request(method, f"{self.url}/_sandbox{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()

    def advance(self, *, hours: float) -> None:
        self.control("POST", "/clock", {"advance_seconds": hours * 3600})

    def truth(self) -> list[dict[str, Any]]:
        effects: list[dict[str, Any]] = self.control("GET", "/truth")["effects"]
        return effects

    def fault_reads(self, operation: str, fault: str) -> None:
        """Let every request of one operation meet a fault."""
        rule = {"operation": operation, "fault": fault, "sends_max": None}
        self.control("POST", "/faults", {"rules": [rule]})

    # GoCardless

    def gocardless(
        self, method: str, path: str, body: Any = None, *, key: str = "", fault: str = ""
    ) -> requests.Response:
        headers = {"GoCardless_Version": "2015-07-06", **_given(Idempotency_Key=key, fault=fault)}
        bearer = f"Bearer {self.gocardless_token}"
        return self.send(method, f"/gocardless{path}", body, Authorization=bearer, **headers)

    def debit(
        self, key: str, marker: str, *, amount: int = 4200, fault: str = ""
    ) -> requests.Response:
        payment = {
            "amount": amount,
            "currency": "EUR",
            "links": {"mandate": "MD1"},
            "metadata": {"counterfoil": marker},
        }
        return self.gocardless("POST", "/payments", {"payments": payment}, key=key, fault=fault)

    # Checkout.com

    def checkout(
        self, method: str, path: str, body: Any = None, *, key: str = "", fault: str = ""
    ) -> requests.Response:
        bearer = f"Bearer {self.checkout_token}"
        headers = _given(Cko_Idempotency_Key=key, fault=fault)
        return self.send(method, f"/checkout{path}", body, Authorization=bearer, **headers)

    def charge(
        self, key: str, reference: str, *, fault: str = "", **changes: Any
    ) -> requests.Response:
        payment = {
            "amount": 4200,
            "currency": "EUR",
            "reference": reference,
            "source": {"type": "token"},
            **changes,
        }
        return self.checkout("POST", "/payments", payment, key=key, fault=fault)

    # PayPal

    def paypal(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        fault: str = "",
        merchant: str = MERCHANT,
    ) -> requests.Response:
        bearer = f"Bearer {self._token('/paypal/v1/oauth2/token', merchant)}"
        headers = _given(PayPal_Request_Id=key, fault=fault)
        return self.send(method, f"/paypal{path}", body, Authorization=bearer, **headers)

    def order(
        self, key: str, marker: str | None, *, fault: str = "", **changes: Any
    ) -> requests.Response:
        unit = {"amount": {"currency_code": "EUR", "value": "42.00"}, "custom_id": marker}
        body = {"intent": "CAPTURE", "purchase_units": [unit], **changes}
        return self.paypal("POST", "/v2/checkout/orders", body, key=key, fault=fault)

    def capture(self, key: str, order_id: str, *, fault: str = "") -> requests.Response:
        path = f"/v2/checkout/orders/{order_id}/capture"
        return self.paypal("POST", path, {}, key=key, fault=fault)

    def give_back(
        self, key: str, capture_id: str, marker: str, *, value: str = "10.00", fault: str = ""
    ) -> requests.Response:
        body = {"amount": {"currency_code": "EUR", "value": value}, "custom_id": marker}
        path = f"/v2/payments/captures/{capture_id}/refund"
        return self.paypal("POST", path, body, key=key, fault=fault)

    def paid_order(self, marker: str | None = None) -> tuple[str, str]:
        """An order that was captured, and its capture."""
        order = self.order("", marker, payment_source={"card": {}}).json()
        return order["id"], order["purchase_units"][0]["payments"]["captures"][0]["id"]

    # Salesforce

    def salesforce(
        self, method: str, path: str, body: Any = None, *, fault: str = ""
    ) -> requests.Response:
        bearer = f"Bearer {self._token('/salesforce/services/oauth2/token', ORGANISATION)}"
        path = f"/salesforce{API}{path}"
        return self.send(method, path, body, Authorization=bearer, **_given(fault=fault))

    def upsert(self, marker: str, *, fault: str = "", **fields: Any) -> requests.Response:
        path = f"/sobjects/Refund__c/Counterfoil__c/{marker}"
        return self.salesforce("PATCH", path, {"Amount__c": "42.00", **fields}, fault=fault)

    def insert(self, marker: str) -> requests.Response:
        body = {"Counterfoil__c": marker, "Amount__c": "42.00"}
        return self.salesforce("POST", "/sobjects/Refund__c", body)

    def _token(self, path: str, client_id: str) -> str:
        if client_id not in self._tokens:
            form = {"grant_type": "client_credentials"}
            answer = self.session.post(
                f"{self.url}{path}", data=form, auth=(client_id, "secret"), timeout=10
            )
            self._tokens[client_id] = answer.json()["access_token"]
        return self._tokens[client_id]


def _given(**headers: str) -> dict[str, str]:
    named = {FAULT_HEADER if name == "fault" else name: value for name, value in headers.items()}
    return {name: value for name, value in named.items() if value}
