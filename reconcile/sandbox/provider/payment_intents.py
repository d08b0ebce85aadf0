"""PaymentIntents: create, confirm, capture, cancel, retrieve, list.

Source: https://docs.stripe.com/api/payment_intents and
https://docs.stripe.com/payments/paymentintents/lifecycle. An effect is money that moved or was
held: a PaymentIntent that was only created, or that was declined, changed nothing.
"""

import secrets
from typing import Final

from reconcile.sandbox.provider import charges, errors
from reconcile.sandbox.provider.context import CHARGES_TABLE, Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import AMOUNT_MAX, Params

TABLE: Final = "payment_intents"

PAYMENT_METHODS: Final = {
    "pm_card_visa": None,
    "pm_card_mastercard": None,
    "pm_card_amex": None,
    "pm_card_chargeDeclined": "generic_decline",
    "pm_card_visa_chargeDeclined": "generic_decline",
    "pm_card_chargeDeclinedInsufficientFunds": "insufficient_funds",
    "pm_card_visa_chargeDeclinedInsufficientFunds": "insufficient_funds",
    "pm_card_refundFail": None,
    "pm_card_pendingRefund": None,
}
"""Stripe's test payment methods that this provider knows, and why each is declined, if it is."""

CREATE_PARAMS: Final = (
    "amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "currency",
    "customer",
    "description",
    "metadata",
    "off_session",
    "payment_method",
    "payment_method_types",
    "receipt_email",
    "transfer_group",
)
CANCELABLE: Final = (
    "requires_payment_method",
    "requires_confirmation",
    "requires_action",
    "requires_capture",
    "processing",
)
CANCEL_REASONS: Final = ("abandoned", "duplicate", "fraudulent", "requested_by_customer")


def create(params: Params) -> Execute:
    """``POST /v1/payment_intents``, with ``confirm=true`` in one step."""
    params.only(CREATE_PARAMS)
    amount, currency = params.amount(), params.currency()
    method = payment_method(params)
    confirm = params.flag("confirm")
    if confirm and method is None:
        raise errors.invalid(
            "You cannot confirm this PaymentIntent because it's missing a payment method.",
            param="payment_method",
        )
    fields = {
        "amount": amount,
        "capture_method": params.text("capture_method", choices=("automatic", "manual"))
        or "automatic",
        "currency": currency,
        "customer": params.text("customer"),
        "description": params.text("description"),
        "metadata": params.metadata(),
        "payment_method": method,
        "payment_method_types": params.texts("payment_method_types", items_max=20) or ["card"],
        "receipt_email": params.text("receipt_email"),
        "transfer_group": params.text("transfer_group"),
    }

    def execute(ctx: Context) -> Answer:
        intent = ctx.put(TABLE, _new(ctx, fields))
        ctx.emit("payment_intent.created", intent)
        return _confirm(ctx, intent) if confirm else Answer(status=200, body=intent)

    return execute


def confirm(params: Params, intent_id: str) -> Execute:
    """``POST /v1/payment_intents/{id}/confirm``."""
    params.only(("off_session", "payment_method", "receipt_email"))
    method = payment_method(params)

    def execute(ctx: Context) -> Answer:
        intent = _get(ctx, intent_id)
        intent = {**intent, "payment_method": method or intent["payment_method"]}
        _require_state(intent, ("requires_payment_method", "requires_confirmation"), "confirm")
        if intent["payment_method"] is None:
            raise errors.unexpected_state(
                "You cannot confirm this PaymentIntent because it's missing a payment method.",
                code="payment_intent_unexpected_state",
                param="payment_method",
            )
        return _confirm(ctx, intent)

    return execute


def capture(params: Params, intent_id: str) -> Execute:
    """``POST /v1/payment_intents/{id}/capture``. The held money was the effect already."""
    params.only(("amount_to_capture", "metadata"))
    amount = params.whole("amount_to_capture", least=1, most=AMOUNT_MAX)
    metadata = params.metadata()

    def execute(ctx: Context) -> Answer:
        intent = _get(ctx, intent_id)
        _require_state(intent, ("requires_capture",), "capture")
        captured = amount or intent["amount_capturable"]
        if captured > intent["amount_capturable"]:
            raise errors.unexpected_state(
                "The amount to capture is greater than the amount that can be captured.",
                code="amount_too_large",
                param="amount_to_capture",
            )
        return _succeed(ctx, intent, captured=captured, metadata=metadata)

    return execute


def cancel(params: Params, intent_id: str) -> Execute:
    """``POST /v1/payment_intents/{id}/cancel``."""
    params.only(("cancellation_reason",))
    reason = params.text("cancellation_reason", choices=CANCEL_REASONS)

    def execute(ctx: Context) -> Answer:
        intent = _get(ctx, intent_id)
        _require_state(intent, CANCELABLE, "cancel")
        canceled = {
            **intent,
            "status": "canceled",
            "amount_capturable": 0,
            "canceled_at": int(ctx.now),
            "cancellation_reason": reason,
        }
        ctx.put(TABLE, canceled)
        ctx.emit("payment_intent.canceled", canceled)
        return Answer(status=200, body=canceled)

    return execute


def retrieve(params: Params, intent_id: str) -> Execute:
    """``GET /v1/payment_intents/{id}``."""
    params.only(("client_secret",))
    return lambda ctx: Answer(status=200, body=_get(ctx, intent_id))


def list_(params: Params) -> Execute:
    """``GET /v1/payment_intents``: by time and customer. There is no filter by metadata."""
    params.only((*PAGE_PARAMS, "customer"))
    created, equal = created_filter(params), equal_filter(params, ("customer",))

    def execute(ctx: Context) -> Answer:
        return page(
            ctx,
            params,
            table=TABLE,
            url="/v1/payment_intents",
            keep=lambda row: created(row) and equal(row),
        )

    return execute


def payment_method(
    params: Params, name: str = "payment_method", *, beside: tuple[str, ...] = ()
) -> str | None:
    """A payment method that this provider knows, or one of those ``beside``."""
    method = params.text(name)
    if method is not None and method not in (*PAYMENT_METHODS, *beside):
        raise errors.no_such("PaymentMethod", method, param=name, status=400)
    return method


def _get(ctx: Context, intent_id: str) -> Json:
    intent = ctx.find(TABLE, intent_id)
    if intent is None:
        raise ctx.no_such("payment_intent", TABLE, intent_id, param="intent")
    return intent


def _require_state(intent: Json, states: tuple[str, ...], verb: str) -> None:
    if intent["status"] not in states:
        raise errors.unexpected_state(
            f"You cannot {verb} this PaymentIntent because it has a status of {intent['status']}.",
            code="payment_intent_unexpected_state",
        )


def _new(ctx: Context, fields: Json) -> Json:
    intent_id = new_id("pi")
    return {
        "id": intent_id,
        "object": "payment_intent",
        "amount_capturable": 0,
        "amount_received": 0,
        "application_fee_amount": None,
        "canceled_at": None,
        "cancellation_reason": None,
        "client_secret": f"{intent_id}_secret_{secrets.token_hex(12)}",
        "confirmation_method": "automatic",
        "created": int(ctx.now),
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": ctx.livemode,
        "next_action": None,
        "processing": None,
        "status": (
            "requires_confirmation" if fields["payment_method"] else "requires_payment_method"
        ),
        **fields,
    }


def _confirm(ctx: Context, intent: Json) -> Answer:
    decline_code = PAYMENT_METHODS[intent["payment_method"]]
    if ctx.declined or decline_code:
        return _decline(ctx, intent, decline_code or "generic_decline")
    if intent["capture_method"] == "manual":
        charge = _charge(ctx, intent, captured=False)
        held = {
            **intent,
            "status": "requires_capture",
            "amount_capturable": intent["amount"],
            "latest_charge": charge["id"],
        }
        ctx.put(TABLE, held)
        ctx.emit("payment_intent.amount_capturable_updated", held)
        ctx.changed_the_world("payment_intent", held, amount=held["amount"])
        return Answer(status=200, body=held)
    charge = _charge(ctx, intent, captured=True)
    ctx.changed_the_world("payment_intent", intent, amount=intent["amount"])
    intent = {**intent, "latest_charge": charge["id"]}
    return _succeed(ctx, intent, captured=intent["amount"], metadata={})


def _succeed(ctx: Context, intent: Json, *, captured: int, metadata: dict[str, str]) -> Answer:
    charge = ctx.find(CHARGES_TABLE, intent["latest_charge"])
    assert charge is not None
    ctx.put(CHARGES_TABLE, {**charge, "captured": True, "amount_captured": captured})
    done = {
        **intent,
        "status": "succeeded",
        "amount_capturable": 0,
        "amount_received": captured,
        "metadata": {**intent["metadata"], **metadata},
    }
    ctx.put(TABLE, done)
    ctx.emit("payment_intent.succeeded", done)
    return Answer(status=200, body=done)


def _decline(ctx: Context, intent: Json, decline_code: str) -> Answer:
    charge = _charge(ctx, intent, captured=False, status="failed")
    failed = {
        **intent,
        "status": "requires_payment_method",
        "payment_method": None,
        "latest_charge": charge["id"],
        "last_payment_error": {
            "type": "card_error",
            "code": "card_declined",
            "decline_code": decline_code,
            "charge": charge["id"],
            "message": "Your card was declined.",
        },
    }
    ctx.put(TABLE, failed)
    ctx.emit("payment_intent.payment_failed", failed)
    return errors.card_declined(None, decline_code, failed)


def _charge(ctx: Context, intent: Json, *, captured: bool, status: str = "succeeded") -> Json:
    fields = {
        # A charge gets the metadata of its PaymentIntent as it was when the charge was made.
        name: intent[name]
        for name in (
            "amount",
            "currency",
            "customer",
            "description",
            "metadata",
            "payment_method",
            "transfer_group",
        )
    }
    fields["payment_intent"] = intent["id"]
    return charges.enter(ctx, fields, captured=captured, status=status)
