"""The rails of GoCardless, PayPal, Checkout.com and Salesforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.soak.fates import Case, Fate
from reconcile.sandbox.soak.rail import CURRENCY, MARKED, Account, Order, Rail, Till, bearer, money

# GoCardless

GOCARDLESS: Final = Account(
    kind="gocardless",
    prefix="/gocardless",
    account="CRSOAK",
    misplaced_account="CRSOAK",
    secret="sandbox_soak",  # noqa: S106 - the sandbox's own
    wrong_secret="sandbox_elsewhere",  # noqa: S106 - likewise
)
_GOCARDLESS_HEADERS: Final = {
    **bearer(GOCARDLESS.secret),
    "GoCardless-Version": "2015-07-06",
}


def _gocardless_payment(till: Till, order: Order, fault: Fault) -> object:
    inside = {**money(order), "links": {"mandate": "MD1"}, "metadata": order.metadata}
    headers = {**_GOCARDLESS_HEADERS, "Idempotency-Key": order.key}
    return till.post(
        "/gocardless/payments", fault=fault, headers=headers, json={"payments": inside}
    )


def _gocardless_refund(till: Till, order: Order, fault: Fault) -> object:
    inside = {
        "amount": order.amount,
        "links": {"payment": order.made["payment"]},
        "metadata": order.metadata,
    }
    headers = {**_GOCARDLESS_HEADERS, "Idempotency-Key": order.key}
    return till.post("/gocardless/refunds", fault=fault, headers=headers, json={"refunds": inside})


def _debit(till: Till, case: Case) -> Mapping[str, str]:
    inside = {"amount": case.amount * 3, "currency": CURRENCY, "links": {"mandate": "MD1"}}
    made = till.post("/gocardless/payments", headers=_GOCARDLESS_HEADERS, json={"payments": inside})
    return {"payment": str(made["payments"]["id"])}


GOCARDLESS_RAILS: Final = tuple(
    Rail(
        name=f"gocardless_{kind}",
        account=GOCARDLESS,
        lookup_kind=f"gocardless.{kind}",
        contract="gocardless",
        # The effect is the instruction, not the money that comes days later.
        lookup={**MARKED, "delay_class": "none", "map": {status: "found"}},
        send=send,
        prepare=prepare,
    )
    for kind, status, send, prepare in (
        ("payments", "pending_submission", _gocardless_payment, lambda _till, _case: {}),
        ("refunds", "created", _gocardless_refund, _debit),
    )
)

# PayPal

_MERCHANT: Final = "SOAKMERCHANT1"
PAYPAL: Final = Account(
    kind="paypal",
    prefix="/paypal",
    account=_MERCHANT,
    misplaced_account=_MERCHANT,
    secret=f"{_MERCHANT}:secret",
    wrong_secret="ELSEWHERE0001:secret",  # noqa: S106 - the sandbox's own
)


def _paypal(till: Till) -> dict[str, str]:
    return bearer(till.token("/paypal/v1/oauth2/token", PAYPAL.secret))


def _value(minor: int) -> dict[str, str]:
    return {"currency_code": "EUR", "value": f"{minor / 100:.2f}"}


def _approved(till: Till, case: Case) -> Mapping[str, str]:
    amount = case.amount + 100 if case.fate is Fate.OTHER_AMOUNT else case.amount
    body = {"intent": "CAPTURE", "purchase_units": [{"amount": _value(amount)}]}
    made = till.post("/paypal/v2/checkout/orders", headers=_paypal(till), json=body)
    return {"order_id": str(made["id"])}


def _captured(till: Till, case: Case) -> Mapping[str, str]:
    body = {
        "intent": "CAPTURE",
        "payment_source": {"card": {}},
        "purchase_units": [{"amount": _value(case.amount * 3)}],
    }
    made = till.post("/paypal/v2/checkout/orders", headers=_paypal(till), json=body)
    return {"capture_id": str(made["purchase_units"][0]["payments"]["captures"][0]["id"])}


def _capture(till: Till, order: Order, fault: Fault) -> object:
    path = f"/paypal/v2/checkout/orders/{order.made['order_id']}/capture"
    headers = {**_paypal(till), "PayPal-Request-Id": order.key}
    return till.post(path, fault=fault, headers=headers, json={})


def _paypal_refund(till: Till, order: Order, fault: Fault) -> object:
    path = f"/paypal/v2/payments/captures/{order.made['capture_id']}/refund"
    headers = {**_paypal(till), "PayPal-Request-Id": order.key}
    body = {"amount": _value(order.amount), "custom_id": order.marker}
    return till.post(path, fault=fault, headers=headers, json=body)


PAYPAL_RAILS: Final = (
    Rail(
        name="paypal_orders",
        account=PAYPAL,
        lookup_kind="paypal.orders",
        contract="paypal",
        lookup={"delay_class": "none", "order": "arguments.order_id"},
        send=_capture,
        prepare=_approved,
        major=True,
        by_reference="order_id",
    ),
    Rail(
        name="paypal_refunds",
        account=PAYPAL,
        lookup_kind="paypal.refunds",
        contract="paypal",
        lookup={**MARKED, "delay_class": "none", "capture": "arguments.capture_id"},
        send=_paypal_refund,
        prepare=_captured,
        major=True,
    ),
    Rail(
        name="paypal_transactions",
        account=PAYPAL,
        lookup_kind="paypal.transactions",
        contract="paypal",
        lookup={**MARKED, "object": "refunds"},
        send=_paypal_refund,
        prepare=_captured,
        major=True,
    ),
)

# Checkout.com

CHECKOUT: Final = Account(
    kind="checkout",
    prefix="/checkout",
    # No answer names the account, so an absence counts only where none is registered.
    misplaced_account="ent_soak",
    secret="sk_sbox_soak",  # noqa: S106 - the sandbox's own
    wrong_secret="sk_sbox_elsewhere",  # noqa: S106 - likewise
)


def _checkout_payment(till: Till, order: Order, fault: Fault) -> object:
    body = {**money(order), "reference": order.marker, "source": {"type": "token"}}
    headers = {**bearer(CHECKOUT.secret), "Cko-Idempotency-Key": order.key}
    return till.post("/checkout/payments", fault=fault, headers=headers, json=body)


CHECKOUT_RAIL: Final = Rail(
    name="checkout_payments",
    account=CHECKOUT,
    lookup_kind="checkout.payments",
    contract="checkout",
    lookup={**MARKED, "delay_class": "none"},
    send=_checkout_payment,
)

# Salesforce

API: Final = "/salesforce/services/data/v68.0/sobjects/Refund__c"
_ORGANISATION: Final = "00DTSOAKSOAK001"
SALESFORCE: Final = Account(
    kind="salesforce",
    prefix="/salesforce",
    account=_ORGANISATION,
    misplaced_account=_ORGANISATION,
    secret=f"{_ORGANISATION}:secret",
    wrong_secret="00DTELSEWHERE01:secret",  # noqa: S106 - the sandbox's own
)


def _record(till: Till, order: Order, fault: Fault) -> object:
    token = till.token("/salesforce/services/oauth2/token", SALESFORCE.secret)
    fields = {"Amount__c": order.amount / 100, "Status__c": "Done"}
    if order.key.endswith("-again"):
        # An upsert changes its record; a second one comes of code that creates.
        body = {**fields, "Counterfoil__c": order.marker}
        return till.post(API, fault=fault, headers=bearer(token), json=body)
    path = f"{API}/Counterfoil__c/{order.marker}"
    return till.post(path, fault=fault, method="PATCH", headers=bearer(token), json=fields)


SALESFORCE_RAIL: Final = Rail(
    name="salesforce_records",
    account=SALESFORCE,
    lookup_kind="salesforce.records",
    contract="salesforce",
    lookup={
        "object": "Refund__c",
        "external_id": "Counterfoil__c",
        "status": "Status__c",
        "amount": "Amount__c",
        "map": {"Done": "found"},
        "delay_class": "none",
        "sees_all_records": True,
    },
    send=_record,
    major=True,
)

RAILS: Final = (*GOCARDLESS_RAILS, *PAYPAL_RAILS, CHECKOUT_RAIL, SALESFORCE_RAIL)
