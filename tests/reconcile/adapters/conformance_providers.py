"""The stages of GoCardless, PayPal, Checkout.com and Salesforce."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, override

from reconcile.adapters import rest
from reconcile.lookups import LOOKUPS
from tests.reconcile.adapters.conformance import (
    AMOUNT,
    Answer,
    Asked,
    Dialect,
    Prop,
    Said,
    Shown,
    page_of,
)

NO_MODE = "an object does not say its mode; the host, the secret or the organisation does"
THE_ONE = str(AMOUNT)
"""The probe's arguments have one text: here it is the id of the order, and of the capture."""


def answered(body: Any, *, status: int = 200) -> Answer:
    return Answer(body=json.dumps(body).encode(), status=status)


class _Provider(Dialect):
    config: Mapping[str, Any] = {"delay_class": "none"}
    token_path = ""

    @override
    def is_sign_in(self, asked: Asked) -> bool:
        return asked.path == self.token_path

    @override
    def forget(self) -> None:
        rest.forget()

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        if self.is_sign_in(asked):
            return answered({"access_token": "token_of_the_stage", "expires_in": 3600})
        return self.read(asked, shown, account=account)

    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        raise NotImplementedError


class GoCardless(_Provider):
    """``GET /payments`` by window and cursor, after ``GET /creditors/{id}``."""

    name = "gocardless payments"
    lookup = LOOKUPS["gocardless.payments"]
    words = {Said.THERE: "confirmed", Said.PENDING: "submitted", Said.UNHEARD_OF: "unconfirmed"}
    cannot = {Prop.MODE: NO_MODE}

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        if asked.path == f"/creditors/{account}":
            return answered({"creditors": {"id": account}})
        if asked.path != "/payments":
            return answered({"error": {"type": "invalid_api_usage"}}, status=404)
        page, after = page_of(shown, asked.params.get("after"), self.page_size)
        items = [
            {
                "id": one.id,
                "status": self.words[one.said],
                "amount": one.amount,
                "currency": "EUR",
                "metadata": {"counterfoil": one.marker},
            }
            for one in page
        ]
        return answered({"payments": items, "meta": {"cursors": {"after": after or None}}})


class _PayPal(_Provider):
    words = {Said.THERE: "COMPLETED", Said.PENDING: "PENDING", Said.UNHEARD_OF: "UNCONFIRMED"}
    secret = "CLIENT:stage_secret"
    token_path = "/v1/oauth2/token"

    def item(self, one: Shown) -> dict[str, Any]:
        amount = {"currency_code": "EUR", "value": f"{one.amount / 100:.2f}"}
        status = self.words[one.said]
        return {"id": one.id, "status": status, "amount": amount, "custom_id": one.marker}

    def order(self, account: str, **payments: list[dict[str, Any]]) -> Answer:
        there = {"payments": payments} if any(payments.values()) else {}
        unit = {"payee": {"merchant_id": account}, **there}
        return answered({"id": THE_ONE, "status": "APPROVED", "purchase_units": [unit]})


class PayPalOrder(_PayPal):
    """``GET /v2/checkout/orders/{id}``: the captures of the order that the arguments name."""

    name = "paypal order"
    lookup = LOOKUPS["paypal.orders"]
    config = {"delay_class": "none", "order": "arguments.amount"}
    cannot = {
        Prop.MODE: NO_MODE,
        Prop.PAGES: "an order has no pages",
        Prop.OTHERS: "all captures of one order are of the call that captured it",
    }

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        return self.order(account, captures=[self.item(one) for one in shown])


class PayPalRefund(_PayPal):
    """The refunds in the order of the capture that the arguments name."""

    name = "paypal refund"
    lookup = LOOKUPS["paypal.refunds"]
    config = {"delay_class": "none", "capture": "arguments.amount"}
    cannot = {Prop.MODE: NO_MODE, Prop.PAGES: "an order has no pages"}

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        if "captures" in asked.path:
            related = {"related_ids": {"order_id": THE_ONE}}
            return answered({"id": THE_ONE, "status": "COMPLETED", "supplementary_data": related})
        captured = self.item(Shown(id=THE_ONE))
        return self.order(account, captures=[captured], refunds=[self.item(one) for one in shown])


class PayPalTransactions(_PayPal):
    """``GET /v1/reporting/transactions`` by window and page, then each capture of ours."""

    name = "paypal transactions"
    lookup = LOOKUPS["paypal.transactions"]
    config = {}
    cannot = {Prop.MODE: NO_MODE, Prop.ABSENCE: "a transaction is listed up to three hours late"}

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        if "captures" in asked.path:
            (one,) = [one for one in shown if asked.path.endswith(f"/{one.id}")]
            return answered(self.item(one))
        begin = (int(asked.params["page"]) - 1) * self.page_size
        lines = [
            {"transaction_info": {"transaction_id": one.id, "custom_field": one.marker}}
            for one in shown[begin : begin + self.page_size]
        ]
        pages = -(-len(shown) // self.page_size)
        return answered(
            {"transaction_details": lines, "account_number": account, "total_pages": pages}
        )


class Checkout(_Provider):
    """``GET /payments?reference=`` by ``skip``."""

    name = "checkout payments"
    lookup = LOOKUPS["checkout.payments"]
    words = {Said.THERE: "Captured", Said.PENDING: "Pending", Said.UNHEARD_OF: "Unconfirmed"}
    secret = "sk_sbox_stage_halden"
    account = ""
    page_size = 1
    cannot = {
        Prop.MODE: NO_MODE,
        Prop.ACCOUNT: "no answer names the account",
        Prop.OTHERS: "the list is filtered by our reference",
    }

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        found = [one for one in shown if one.marker == asked.params["reference"]]
        page, _ = page_of(found, asked.params["skip"], self.page_size)
        items = [
            {
                "id": one.id,
                "status": self.words[one.said],
                "amount": one.amount,
                "currency": "EUR",
                "reference": one.marker,
            }
            for one in page
        ]
        return answered({"total_count": len(found), "data": items})


class Salesforce(_Provider):
    """The record at its external id, and ``queryAll`` where that is not one record."""

    name = "salesforce record"
    lookup = LOOKUPS["salesforce.records"]
    config = {
        "object": "Refund__c",
        "external_id": "Counterfoil__c",
        "status": "Status__c",
        "amount": "Amount__c",
        "map": {"Done": "found", "Running": "pending"},
        "delay_class": "none",
        "sees_all_records": True,
    }
    words = {Said.THERE: "Done", Said.PENDING: "Running", Said.UNHEARD_OF: "Unconfirmed"}
    secret = "CLIENT:stage_secret"
    token_path = "/services/oauth2/token"
    cannot = {
        Prop.MODE: NO_MODE,
        Prop.PAGES: "one external id has no pages",
        Prop.OTHERS: "an address that names one record shows nobody else's",
    }

    @override
    def read(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        query = asked.params.get("q", "")
        if "Organization" in query:
            return answered({"done": True, "records": [{"Id": account, "IsSandbox": True}]})
        name = query.split("'")[1] if query else asked.path.rpartition("/")[2]
        found = [self.record(one) for one in shown if one.marker == name]
        if query:
            return answered({"done": True, "totalSize": len(found), "records": found})
        if len(found) == 1:
            return answered(found[0])
        return answered([], status=300 if found else 404)

    def record(self, one: Shown) -> dict[str, Any]:
        return {
            "Id": one.id,
            "IsDeleted": False,
            "Counterfoil__c": one.marker,
            "Status__c": self.words[one.said],
            "Amount__c": one.amount / 100,
        }


DIALECTS: tuple[Dialect, ...] = (
    GoCardless(),
    PayPalOrder(),
    PayPalRefund(),
    PayPalTransactions(),
    Checkout(),
    Salesforce(),
)
