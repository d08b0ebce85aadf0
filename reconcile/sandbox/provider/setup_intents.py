"""SetupIntents: a payment method is set up for later; no money moves.

Source: https://docs.stripe.com/api/setup_intents and
https://docs.stripe.com/payments/paymentintents/lifecycle. The effect is the payment method that is
there to be charged later.
"""

import secrets
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json, Refused
from reconcile.sandbox.provider.params import Params
from reconcile.sandbox.provider.payment_intents import PAYMENT_METHODS, payment_method

TABLE: Final = "setup_intents"
NEEDS_ACTION: Final = "pm_card_authenticationRequired"
"""Stripe's test card for which the customer has to do something first."""
CANCELABLE: Final = (
    "requires_payment_method",
    "requires_confirmation",
    "requires_action",
    "processing",
)
CANCEL_REASONS: Final = ("abandoned", "duplicate", "requested_by_customer")
USAGES: Final = ("off_session", "on_session")


def create(params: Params) -> Execute:
    """``POST /v1/setup_intents``, with ``confirm=true`` in one step."""
    params.only(
        (
            *("automatic_payment_methods", "confirm", "customer", "description", "metadata"),
            *("payment_method", "payment_method_types", "return_url", "usage"),
        )
    )
    method = payment_method(params, beside=(NEEDS_ACTION,))
    confirm_now = params.flag("confirm")
    if confirm_now and method is None:
        raise errors.invalid(
            "You cannot confirm this SetupIntent because it's missing a payment method.",
            param="payment_method",
        )
    fields = {
        "customer": params.text("customer"),
        "description": params.text("description"),
        "metadata": params.metadata(),
        "payment_method": method,
        "payment_method_types": params.texts("payment_method_types", items_max=20) or ["card"],
        "usage": params.text("usage", choices=USAGES) or "off_session",
    }

    def execute(ctx: Context) -> Answer:
        intent = ctx.put(TABLE, _new(ctx, fields))
        ctx.emit("setup_intent.created", intent)
        return _confirm(ctx, intent) if confirm_now else Answer(status=200, body=intent)

    return execute


def _new(ctx: Context, fields: Json) -> Json:
    intent_id = new_id("seti")
    return {
        "id": intent_id,
        "object": "setup_intent",
        "cancellation_reason": None,
        "client_secret": f"{intent_id}_secret_{secrets.token_hex(12)}",
        "created": int(ctx.now),
        "last_setup_error": None,
        "latest_attempt": None,
        "livemode": ctx.livemode,
        "mandate": None,
        "next_action": None,
        "status": (
            "requires_confirmation" if fields["payment_method"] else "requires_payment_method"
        ),
        **fields,
    }


def confirm(params: Params, intent_id: str) -> Execute:
    """``POST /v1/setup_intents/{id}/confirm``."""
    params.only(("payment_method", "return_url"))
    method = payment_method(params, beside=(NEEDS_ACTION,))

    def execute(ctx: Context) -> Answer:
        intent = _get(ctx, intent_id)
        intent = {**intent, "payment_method": method or intent["payment_method"]}
        confirmable = intent["status"] in {"requires_payment_method", "requires_confirmation"}
        if not confirmable or intent["payment_method"] is None:
            raise _unexpected(intent, "confirm")
        return _confirm(ctx, intent)

    return execute


def _confirm(ctx: Context, intent: Json) -> Answer:
    decline_code = PAYMENT_METHODS.get(intent["payment_method"])
    if ctx.declined or decline_code:
        return _decline(ctx, intent, decline_code or "generic_decline")
    attempted = {**intent, "latest_attempt": new_id("setatt")}
    if intent["payment_method"] == NEEDS_ACTION:
        action = {"type": "use_stripe_sdk", "use_stripe_sdk": {}}
        waiting = ctx.put(TABLE, {**attempted, "status": "requires_action", "next_action": action})
        ctx.emit("setup_intent.requires_action", waiting)
        return Answer(status=200, body=waiting)
    done = ctx.put(TABLE, {**attempted, "status": "succeeded"})
    ctx.emit("setup_intent.succeeded", done)
    ctx.changed_the_world("setup_intent", done, amount=0)
    return Answer(status=200, body=done)


def _decline(ctx: Context, intent: Json, decline_code: str) -> Answer:
    failed = {
        **intent,
        "status": "requires_payment_method",
        "payment_method": None,
        "latest_attempt": new_id("setatt"),
        "last_setup_error": {
            "type": "card_error",
            "code": "card_declined",
            "decline_code": decline_code,
            "message": "Your card was declined.",
        },
    }
    ctx.put(TABLE, failed)
    ctx.emit("setup_intent.setup_failed", failed)
    return errors.setup_declined(decline_code, failed)


def cancel(params: Params, intent_id: str) -> Execute:
    """``POST /v1/setup_intents/{id}/cancel``."""
    params.only(("cancellation_reason",))
    reason = params.text("cancellation_reason", choices=CANCEL_REASONS)

    def execute(ctx: Context) -> Answer:
        intent = _get(ctx, intent_id)
        if intent["status"] not in CANCELABLE:
            raise _unexpected(intent, "cancel")
        canceled = ctx.put(TABLE, {**intent, "status": "canceled", "cancellation_reason": reason})
        ctx.emit("setup_intent.canceled", canceled)
        return Answer(status=200, body=canceled)

    return execute


def retrieve(params: Params, intent_id: str) -> Execute:
    """``GET /v1/setup_intents/{id}``."""
    params.only(("client_secret",))
    return lambda ctx: Answer(status=200, body=_get(ctx, intent_id))


def list_(params: Params) -> Execute:
    """``GET /v1/setup_intents``: by time, customer and payment method."""
    filters = ("customer", "payment_method")
    params.only((*PAGE_PARAMS, *filters))
    created, equal = created_filter(params), equal_filter(params, filters)
    return lambda ctx: page(
        ctx,
        params,
        table=TABLE,
        url="/v1/setup_intents",
        keep=lambda row: created(row) and equal(row),
    )


def _get(ctx: Context, intent_id: str) -> Json:
    intent = ctx.find(TABLE, intent_id)
    if intent is None:
        raise ctx.no_such("setupintent", TABLE, intent_id, param="intent")
    return intent


def _unexpected(intent: Json, verb: str) -> Refused:
    return errors.unexpected_state(
        f"You cannot {verb} this SetupIntent because it has a status of {intent['status']}.",
        code="setup_intent_unexpected_state",
    )
