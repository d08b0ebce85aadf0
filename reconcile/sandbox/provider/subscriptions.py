"""Subscriptions: create, cancel, retrieve, list, and the one whose first payment does not come.

Source: https://docs.stripe.com/api/subscriptions and
https://docs.stripe.com/billing/subscriptions/overview#subscription-statuses. The sandbox has no
catalogue: a price is ``price_<amount>_<currency>``, by the month. The effect is the subscription
that runs.
"""

from typing import Final

from reconcile.sandbox.provider import errors, invoices, steps
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.lists import (
    PAGE_PARAMS,
    Filter,
    created_filter,
    equal_filter,
    page,
)
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import CURRENCIES, Params
from reconcile.sandbox.provider.payment_intents import PAYMENT_METHODS, payment_method

TABLE: Final = invoices.SUBSCRIPTIONS_TABLE
ITEMS_MAX: Final = 20
FIRST_PAYMENT_SECONDS: Final = 23 * 60 * 60
"""How long a first payment may take before the subscription expires for good."""
STATUSES: Final = (
    *("active", "canceled", "incomplete", "incomplete_expired"),
    *("past_due", "paused", "trialing", "unpaid"),
)
ENDED: Final = frozenset({"canceled", "incomplete_expired"})
BEHAVIOURS: Final = ("allow_incomplete", "default_incomplete", "error_if_incomplete")


def create(params: Params) -> Execute:
    """``POST /v1/subscriptions``."""
    params.only(
        (
            *("cancel_at_period_end", "collection_method", "customer", "default_payment_method"),
            *("description", "items", "metadata", "payment_behavior", "trial_period_days"),
        )
    )
    method = payment_method(params, "default_payment_method")
    rows = _items(params)
    behaviour = params.text("payment_behavior", choices=BEHAVIOURS) or "allow_incomplete"
    trial_days = params.whole("trial_period_days", least=1, most=730)
    fields = {
        "cancel_at_period_end": params.flag("cancel_at_period_end"),
        "collection_method": params.text("collection_method", choices=invoices.COLLECTION_METHODS)
        or "charge_automatically",
        "currency": rows[0]["price"]["currency"],
        "customer": params.required("customer"),
        "default_payment_method": method,
        "description": params.text("description"),
        "metadata": params.metadata(),
    }

    def execute(ctx: Context) -> Answer:
        declined = ctx.declined or bool(method and PAYMENT_METHODS[method])
        waits = behaviour == "default_incomplete" or declined or method is None
        status = "trialing" if trial_days else "incomplete" if waits else "active"
        if status == "incomplete" and behaviour == "error_if_incomplete":
            return errors.invoice_declined("generic_decline")
        made = _new(ctx, fields, rows, status=status)
        return Answer(status=200, body=_with_first_invoice(ctx, made))

    return execute


def _items(params: Params) -> list[Json]:
    rows: list[Json] = []
    for number in range(ITEMS_MAX):
        price = params.text(f"items[{number}][price]")
        if price is None:
            break
        amount, _, currency = price.removeprefix("price_").partition("_")
        if not amount.isdecimal() or currency not in CURRENCIES:
            raise errors.no_such("price", price, param=f"items[{number}][price]", status=400)
        quantity = params.whole(f"items[{number}][quantity]", least=0, most=10**6)
        shown = {"id": price, "object": "price", "currency": currency, "unit_amount": int(amount)}
        rows.append({"price": shown, "quantity": 1 if quantity is None else quantity})
    if not rows:
        params.required("items")
    return rows


def _new(ctx: Context, fields: Json, rows: list[Json], *, status: str) -> Json:
    data = [{"id": new_id("si"), "object": "subscription_item", **row} for row in rows]
    made = {
        "id": new_id("sub"),
        "object": "subscription",
        "billing_cycle_anchor": int(ctx.now),
        "cancel_at": None,
        "canceled_at": None,
        "created": int(ctx.now),
        "ended_at": None,
        "items": {"object": "list", "data": data, "has_more": False},
        "latest_invoice": None,
        "livemode": ctx.livemode,
        "start_date": int(ctx.now),
        "status": status,
        **fields,
    }
    ctx.put(TABLE, made)
    ctx.emit("customer.subscription.created", made)
    if status == "incomplete":
        course = ("incomplete_expired",)
        steps.plan(ctx, TABLE, made["id"], course, seconds=FIRST_PAYMENT_SECONDS)
    else:
        ctx.changed_the_world("subscription", made, amount=_total(made))
    return made


def _total(subscription: Json) -> int:
    rows = subscription["items"]["data"]
    return sum(row["price"]["unit_amount"] * row["quantity"] for row in rows)


def _with_first_invoice(ctx: Context, subscription: Json) -> Json:
    """What the first month costs; nothing in a trial."""
    total = 0 if subscription["status"] == "trialing" else _total(subscription)
    fields = {
        "auto_advance": True,
        "collection_method": subscription["collection_method"],
        "currency": subscription["currency"],
        "customer": subscription["customer"],
        "description": None,
        "due_date": None,
        "footer": None,
        # A subscription's invoice does not take over its metadata.
        "metadata": {},
    }
    invoice = invoices.new(ctx, fields, subscription=subscription["id"], total=total)
    invoice = invoices.issue(ctx, invoice)
    if subscription["status"] == "active" and invoice["status"] == "open":
        invoices.settle(ctx, invoice)
    return ctx.put(TABLE, {**subscription, "latest_invoice": invoice["id"]})


def take_step(ctx: Context, subscription_id: str, course: list[str]) -> None:
    """The first payment did not come in time."""
    subscription = ctx.find(TABLE, subscription_id)
    steps.plan(ctx, TABLE, subscription_id, ())
    if subscription is not None and subscription["status"] == "incomplete":
        changed = ctx.put(TABLE, {**subscription, "status": course[0], "ended_at": int(ctx.now)})
        ctx.emit("customer.subscription.updated", changed)


def cancel(params: Params, subscription_id: str) -> Execute:
    """``DELETE /v1/subscriptions/{id}``: it ends now."""
    params.only(("invoice_now", "prorate"))

    def execute(ctx: Context) -> Answer:
        subscription = _get(ctx, subscription_id)
        if subscription["status"] in ENDED:
            raise ctx.no_such("subscription", TABLE, subscription_id)
        now = int(ctx.now)
        ended = {"status": "canceled", "canceled_at": now, "ended_at": now}
        canceled = ctx.put(TABLE, {**subscription, **ended})
        steps.plan(ctx, TABLE, subscription_id, ())
        ctx.emit("customer.subscription.deleted", canceled)
        return Answer(status=200, body=canceled)

    return execute


def retrieve(params: Params, subscription_id: str) -> Execute:
    """``GET /v1/subscriptions/{id}``."""
    params.only(())
    return lambda ctx: Answer(status=200, body=_get(ctx, subscription_id))


def list_(params: Params) -> Execute:
    """``GET /v1/subscriptions``. Without ``status`` it leaves out what was canceled."""
    filters = ("collection_method", "customer")
    params.only((*PAGE_PARAMS, *filters, "price", "status"))
    created, equal = created_filter(params), equal_filter(params, filters)
    status, price = _status_filter(params), params.text("price")

    def sold(row: Json) -> bool:
        return price is None or any(r["price"]["id"] == price for r in row["items"]["data"])

    return lambda ctx: page(
        ctx,
        params,
        table=TABLE,
        url="/v1/subscriptions",
        keep=lambda row: created(row) and equal(row) and status(row) and sold(row),
    )


def _status_filter(params: Params) -> Filter:
    wanted = params.text("status", choices=(*STATUSES, "all", "ended"))
    match wanted:
        case None:
            return lambda row: row["status"] != "canceled"
        case "all":
            return lambda _row: True
        case "ended":
            return lambda row: row["status"] in ENDED
        case status:
            return lambda row: row["status"] == status


def _get(ctx: Context, subscription_id: str) -> Json:
    subscription = ctx.find(TABLE, subscription_id)
    if subscription is None:
        raise ctx.no_such("subscription", TABLE, subscription_id)
    return subscription
