"""Refunds: create, retrieve, list. Source: https://docs.stripe.com/api/refunds."""

from typing import Final

from reconcile.sandbox.provider import errors, steps
from reconcile.sandbox.provider.context import CHARGES_TABLE, Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import AMOUNT_MAX, Params
from reconcile.sandbox.provider.payment_intents import TABLE as INTENTS_TABLE

TABLE: Final = "refunds"
COURSES: Final = {
    "pm_card_refundFail": ("succeeded", "failed"),
    "pm_card_pendingRefund": ("pending", "succeeded"),
}
"""What becomes of the refunds of two of Stripe's test cards (https://docs.stripe.com/testing): the
first status at once, the second after a while. Every other succeeds and stays so."""
REASONS: Final = ("duplicate", "fraudulent", "requested_by_customer")


def create(params: Params) -> Execute:
    """``POST /v1/refunds`` of a charge or of a PaymentIntent, whole or in part."""
    params.only(("amount", "charge", "metadata", "payment_intent", "reason"))
    charge_id, intent_id = params.text("charge"), params.text("payment_intent")
    if not charge_id and not intent_id:
        raise errors.invalid("One of the following params should be provided: payment_intent.")
    amount = params.whole("amount", least=1, most=AMOUNT_MAX)
    reason = params.text("reason", choices=REASONS)
    metadata = params.metadata()

    def execute(ctx: Context) -> Answer:
        charge = _charge_to_refund(ctx, charge_id, intent_id)
        left = charge["amount_captured"] - charge["amount_refunded"]
        if left == 0:
            raise errors.unexpected_state(
                f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded"
            )
        if amount is not None and amount > left:
            raise errors.unexpected_state(
                f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})",
                code="amount_too_large",
                param="amount",
            )
        if ctx.declined:
            return errors.refused_refund()
        refund = _new(ctx, charge, amount=amount or left, reason=reason, metadata=metadata)
        _enter(ctx, charge, refund)
        return Answer(status=200, body=refund)

    return execute


def retrieve(params: Params, refund_id: str) -> Execute:
    """``GET /v1/refunds/{id}``."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        refund = ctx.find(TABLE, refund_id)
        if refund is None:
            raise ctx.no_such("refund", TABLE, refund_id, param="refund")
        return Answer(status=200, body=refund)

    return execute


def list_(params: Params) -> Execute:
    """``GET /v1/refunds``: by time, charge and PaymentIntent."""
    params.only((*PAGE_PARAMS, "charge", "payment_intent"))
    created, equal = created_filter(params), equal_filter(params, ("charge", "payment_intent"))

    def execute(ctx: Context) -> Answer:
        return page(
            ctx,
            params,
            table=TABLE,
            url="/v1/refunds",
            keep=lambda row: created(row) and equal(row),
        )

    return execute


def _charge_to_refund(ctx: Context, charge_id: str | None, intent_id: str | None) -> Json:
    if intent_id is not None:
        intent = ctx.find(INTENTS_TABLE, intent_id)
        if intent is None:
            raise errors.no_such("payment_intent", intent_id, param="payment_intent", status=400)
        if intent["status"] != "succeeded":
            raise errors.unexpected_state(
                f"This PaymentIntent ({intent_id}) does not have a successful charge to refund.",
                code="payment_intent_unexpected_state",
            )
        charge_id = intent["latest_charge"]
    charge = ctx.find(CHARGES_TABLE, charge_id or "")
    if charge is None:
        raise errors.no_such("charge", charge_id or "", param="charge", status=400)
    return charge


def _new(
    ctx: Context, charge: Json, *, amount: int, reason: str | None, metadata: dict[str, str]
) -> Json:
    return {
        "id": new_id("re"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": None,
        "charge": charge["id"],
        "created": int(ctx.now),
        "currency": charge["currency"],
        "failure_reason": None,
        "metadata": metadata,
        "payment_intent": charge["payment_intent"],
        "reason": reason,
        "receipt_number": None,
        "status": _course(charge)[0],
    }


def _course(charge: Json) -> tuple[str, ...]:
    return COURSES.get(charge.get("payment_method") or "", ("succeeded",))


def take_step(ctx: Context, refund_id: str, course: list[str]) -> None:
    """The bank's next word on one refund. No request caused it, and its events say so."""
    refund = ctx.find(TABLE, refund_id)
    steps.plan(ctx, TABLE, refund_id, ())
    if refund is None:
        return
    changed = {**refund, "status": course[0]}
    if course[0] == "failed":
        changed["failure_reason"] = "lost_or_stolen_card"
        charge = ctx.find(CHARGES_TABLE, refund["charge"])
        assert charge is not None
        left = charge["amount_refunded"] - refund["amount"]
        ctx.put(CHARGES_TABLE, {**charge, "amount_refunded": left, "refunded": False})
        ctx.emit("refund.failed", changed)
    ctx.put(TABLE, changed)
    ctx.emit("refund.updated", changed)


def _enter(ctx: Context, charge: Json, refund: Json) -> None:
    refunded = charge["amount_refunded"] + refund["amount"]
    ctx.put(TABLE, refund)
    changed = {
        **charge,
        "amount_refunded": refunded,
        "refunded": refunded == charge["amount_captured"],
    }
    ctx.put(CHARGES_TABLE, changed)
    ctx.emit("refund.created", refund)
    ctx.emit("charge.refunded", changed)
    ctx.changed_the_world("refund", refund, amount=refund["amount"])
    steps.plan(ctx, TABLE, refund["id"], _course(charge)[1:])
