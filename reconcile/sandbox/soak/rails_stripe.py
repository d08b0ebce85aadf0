"""Stripe's rails: six kinds of objects at one account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.soak.fates import Case
from reconcile.sandbox.soak.rail import CURRENCY, MARKED, Account, Order, Rail, Till, bearer, money

_STRIPE_SECRET: Final = "sk_test_soak"  # noqa: S105 - the sandbox's own, which opens nothing else
STRIPE: Final = Account(
    kind="stripe",
    account="acct_soak",
    misplaced_account="acct_soak",
    secret="rk_test_soak",  # noqa: S106 - likewise
    wrong_secret="rk_test_elsewhere",  # noqa: S106 - likewise
)


def _stripe(path: str, fields: Callable[[Order], Mapping[str, Any]]) -> Callable[..., object]:
    def send(till: Till, order: Order, fault: Fault) -> object:
        data = {**fields(order), "metadata[counterfoil]": order.marker}
        headers = {**bearer(_STRIPE_SECRET), "Idempotency-Key": order.key}
        return till.post(path, fault=fault, headers=headers, data=data)

    return send


def _payment(till: Till, case: Case) -> Mapping[str, str]:
    """A payment large enough for every refund that may come of it."""
    data = {
        "amount": case.amount * 3,
        "currency": CURRENCY,
        "confirm": "true",
        "payment_method": "pm_card_visa",
    }
    made = till.post("/v1/payment_intents", headers=bearer(_STRIPE_SECRET), data=data)
    return {"payment": str(made["id"])}


def _destination(till: Till, case: Case) -> Mapping[str, str]:
    del case
    made = till.post("/v1/accounts", headers=bearer(_STRIPE_SECRET), data={"type": "custom"})
    return {"destination": str(made["id"])}


def _stripe_rail(kind: str, send: Callable[..., object], **more: Any) -> Rail:
    return Rail(
        name=f"stripe_{kind}",
        account=STRIPE,
        lookup_kind=f"stripe.{kind}",
        contract="stripe.v1",
        lookup=MARKED,
        send=send,
        **more,
    )


_CARD: Final = {"confirm": "true", "payment_method": "pm_card_visa"}
RAILS: Final = (
    _stripe_rail(
        "payment_intents", _stripe("/v1/payment_intents", lambda order: {**money(order), **_CARD})
    ),
    _stripe_rail(
        "refunds",
        _stripe(
            "/v1/refunds",
            lambda order: {"amount": order.amount, "payment_intent": order.made["payment"]},
        ),
        prepare=_payment,
    ),
    _stripe_rail("payouts", _stripe("/v1/payouts", money)),
    _stripe_rail(
        "transfers",
        _stripe(
            "/v1/transfers",
            lambda order: {**money(order), "destination": order.made["destination"]},
        ),
        prepare=_destination,
    ),
    _stripe_rail(
        "charges", _stripe("/v1/charges", lambda order: {**money(order), "source": "tok_visa"})
    ),
    _stripe_rail(
        "subscriptions",
        _stripe(
            "/v1/subscriptions",
            lambda order: {
                "customer": "cus_soak",
                "default_payment_method": "pm_card_visa",
                "items[0][price]": f"price_{order.amount}_{CURRENCY}",
            },
        ),
    ),
    _stripe_rail(
        "setup_intents", _stripe("/v1/setup_intents", lambda _order: _CARD), has_amount=False
    ),
)
