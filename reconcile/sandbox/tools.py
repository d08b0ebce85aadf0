"""The five tools of the sandbox's shop, as an admin would register them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from effects.core.vocabulary import EffectClass

STRIPE_V1_WINDOW_SECONDS: Final = 24 * 60 * 60
"""Stripe may prune a key once it is 24 hours old (https://docs.stripe.com/api/idempotent_requests).

Agents' processes read this module, so it imports nothing of Django's.
"""

ACCOUNT: Final = "halden"
AGENT_STRIPE_KEY: Final = f"sk_test_{ACCOUNT}"
READER_STRIPE_KEY: Final = f"rk_test_{ACCOUNT}"
"""What look-ups use: it may read and not write."""
PLAIN_TOKEN: Final = f"plain_{ACCOUNT}"

STRIPE_SECRET_NAME: Final = "COUNTERFOIL_SANDBOX_STRIPE_KEY"  # noqa: S105 - a variable's name.
PLAIN_SECRET_NAME: Final = "COUNTERFOIL_SANDBOX_PLAIN_TOKEN"  # noqa: S105 - a variable's name.
WEBHOOK_SECRET_NAME: Final = "COUNTERFOIL_SANDBOX_WEBHOOK_SECRET"  # noqa: S105 - a variable's name.
STRIPE_CONNECTION: Final = "Sandbox Stripe"


class ToolName(StrEnum):
    """The tools, by the name that the agents' code gives them."""

    CHARGE_CARD = "charge_card"
    REFUND_PAYMENT = "refund_payment"
    SEND_TRANSFER = "send_transfer"
    SEND_LETTER = "send_letter"
    PAY_OUT = "pay_out"

    @property
    def effect_class(self) -> EffectClass:
        keyed = {ToolName.CHARGE_CARD, ToolName.REFUND_PAYMENT, ToolName.PAY_OUT}
        return EffectClass.KEYED_WRITE if self in keyed else EffectClass.UNKEYED_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long things take in this sandbox. They are short, so that one can watch."""

    lease_seconds: int
    attempt_seconds_max: int
    attempts_max: int
    server_working_seconds_max: int
    margin_seconds: int
    charge_window_seconds: int
    refund_window_seconds: int
    note: str


DEMO_BOUNDS: Final = Bounds(
    lease_seconds=10,
    attempt_seconds_max=60,
    attempts_max=4,
    server_working_seconds_max=10,
    margin_seconds=90,
    charge_window_seconds=STRIPE_V1_WINDOW_SECONDS,
    refund_window_seconds=45 * 60,
    note="Demo values: lease, working time and margin are far shorter than a real provider needs.",
)
STORM_BOUNDS: Final = Bounds(
    lease_seconds=3,
    attempt_seconds_max=30,
    attempts_max=5,
    server_working_seconds_max=2,
    margin_seconds=60,
    charge_window_seconds=STRIPE_V1_WINDOW_SECONDS,
    refund_window_seconds=STRIPE_V1_WINDOW_SECONDS,
    note="Values of a storm: so short that a lease can run out while somebody watches.",
)

CONNECTION_OF: Final = {
    ToolName.CHARGE_CARD: STRIPE_CONNECTION,
    ToolName.REFUND_PAYMENT: STRIPE_CONNECTION,
    ToolName.PAY_OUT: STRIPE_CONNECTION,
    ToolName.SEND_TRANSFER: "Sandbox bank",
}


def tool_fields(name: ToolName, bounds: Bounds) -> dict[str, Any]:
    """The settings of one tool, by the names of ``effects.models.Tool``, without connection."""
    return {
        "effect_class": name.effect_class,
        "owner": "Halden Outdoor",
        "lease_seconds": bounds.lease_seconds,
        "attempt_seconds_max": bounds.attempt_seconds_max,
        "attempts_max": bounds.attempts_max,
        "server_working_seconds_max": bounds.server_working_seconds_max,
        "margin_seconds": bounds.margin_seconds,
        **_OWN_FIELDS[name](bounds),
    }


def _charge_card(bounds: Bounds) -> dict[str, Any]:
    return {
        "note": f"Takes the money for an order. {bounds.note}",
        "contract": "stripe.v1",
        "window_seconds": bounds.charge_window_seconds,
        "lookup_kind": "stripe.payment_intents",
        "lookup": {"marker_in_every_request": True},
        "summary": "Charge {amount} to {customer} for order {order}",
        "amount_field": "amount",
        "currency_field": "currency",
        "customer_field": "customer",
    }


def _refund_payment(bounds: Bounds) -> dict[str, Any]:
    window = ""
    if bounds.refund_window_seconds != STRIPE_V1_WINDOW_SECONDS:
        minutes = bounds.refund_window_seconds // 60
        window = f" The safe-retry window of {minutes} min is a demo value, too; Stripe's is 24 h."
    return {
        "note": f"Gives money back for an order. {bounds.note}{window}",
        "contract": "stripe.v1",
        "window_seconds": bounds.refund_window_seconds,
        "lookup_kind": "stripe.refunds",
        "lookup": {"marker_in_every_request": True},
        "summary": "Refund {amount} of {payment} for order {order}",
        "amount_field": "amount",
        "currency_field": "currency",
        "customer_field": "customer",
    }


def _send_transfer(bounds: Bounds) -> dict[str, Any]:
    return {
        "note": f"Pays a supplier. The bank knows no keys; it lists by reference. {bounds.note}",
        "lookup_kind": "http",
        "lookup": {
            "url": "/plain/transfers?reference={reference}",
            "reference": "marker",
            "items": "transfers",
            "reference_field": "reference",
            "amount": "amount",
            "currency": "currency",
            "map": {"settled": "found"},
            "absent_when": {"empty": True},
            "delay_class": "none",
        },
        "summary": "Transfer {amount} to {customer} for order {order}",
        "amount_field": "amount",
        "currency_field": "currency",
        "customer_field": "supplier",
    }


def _send_letter(bounds: Bounds) -> dict[str, Any]:
    return {
        "note": f"Has a letter printed and posted. Nobody can be asked afterwards. {bounds.note}",
        "summary": "Letter to {customer} about order {order}",
        "customer_field": "customer",
    }


def _pay_out(bounds: Bounds) -> dict[str, Any]:
    return {
        "note": "Pays the till's takings to the bank. A payout that was paid can still fail, for "
        f"days: such late truth is shown on the call. {bounds.note}",
        "contract": "stripe.v1",
        "window_seconds": bounds.charge_window_seconds,
        "lookup_kind": "stripe.payouts",
        "lookup": {"marker_in_every_request": True},
        "summary": "Pay {amount} out to {bank_account} for order {order}",
        "amount_field": "amount",
        "currency_field": "currency",
        "customer_field": "bank_account",
    }


_OWN_FIELDS: Final = {
    ToolName.CHARGE_CARD: _charge_card,
    ToolName.REFUND_PAYMENT: _refund_payment,
    ToolName.SEND_TRANSFER: _send_transfer,
    ToolName.SEND_LETTER: _send_letter,
    ToolName.PAY_OUT: _pay_out,
}
