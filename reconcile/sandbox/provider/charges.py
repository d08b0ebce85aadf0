"""Charges: create, retrieve, list. Source: https://docs.stripe.com/api/charges.

A PaymentIntent makes its own (``latest_charge``); ``POST /v1/charges`` is the older way to take
money in one step.
"""

from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import CHARGES_TABLE, Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

SOURCES: Final = {
    "tok_visa": None,
    "tok_mastercard": None,
    "tok_chargeDeclined": "generic_decline",
    "tok_chargeDeclinedInsufficientFunds": "insufficient_funds",
}
"""Stripe's test tokens that this provider knows, and why each is declined, if it is."""
FILTERS: Final = ("customer", "payment_intent", "transfer_group")


def create(params: Params) -> Execute:
    """``POST /v1/charges``."""
    params.only(
        ("amount", "currency", "customer", "description", "metadata", "source", "transfer_group")
    )
    amount, currency = params.amount(), params.currency()
    source = params.required("source")
    if source not in SOURCES:
        raise errors.no_such("token", source, param="source", status=400)
    fields = {
        "amount": amount,
        "currency": currency,
        "customer": params.text("customer"),
        "description": params.text("description"),
        "metadata": params.metadata(),
        "payment_intent": None,
        "payment_method": None,
        "transfer_group": params.text("transfer_group"),
    }

    def execute(ctx: Context) -> Answer:
        decline_code = SOURCES[source] or ("generic_decline" if ctx.declined else None)
        status = "failed" if decline_code else "succeeded"
        charge = enter(ctx, fields, captured=not decline_code, status=status)
        if decline_code:
            return errors.charge_declined(decline_code, charge["id"])
        ctx.changed_the_world("charge", charge, amount=charge["amount"])
        return Answer(status=200, body=charge)

    return execute


def enter(ctx: Context, fields: Json, *, captured: bool, status: str = "succeeded") -> Json:
    """Write a charge and its event. ``fields`` are those that whoever makes it chooses."""
    charge = {
        "id": new_id("ch"),
        "object": "charge",
        "amount_captured": fields["amount"] if captured else 0,
        "amount_refunded": 0,
        "captured": captured,
        "created": int(ctx.now),
        "disputed": False,
        "livemode": ctx.livemode,
        "paid": status == "succeeded",
        "refunded": False,
        "status": status,
        **fields,
    }
    ctx.put(CHARGES_TABLE, charge)
    ctx.emit(f"charge.{status}", charge)
    return charge


def retrieve(params: Params, charge_id: str) -> Execute:
    """``GET /v1/charges/{id}``."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        charge = ctx.find(CHARGES_TABLE, charge_id)
        if charge is None:
            raise ctx.no_such("charge", CHARGES_TABLE, charge_id)
        return Answer(status=200, body=charge)

    return execute


def list_(params: Params) -> Execute:
    """``GET /v1/charges``: by time, customer, PaymentIntent and transfer group."""
    params.only((*PAGE_PARAMS, *FILTERS))
    created, equal = created_filter(params), equal_filter(params, FILTERS)

    def execute(ctx: Context) -> Answer:
        return page(
            ctx,
            params,
            table=CHARGES_TABLE,
            url="/v1/charges",
            keep=lambda row: created(row) and equal(row),
        )

    return execute
