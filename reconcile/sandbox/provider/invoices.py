"""Invoices: a draft gets lines, is finalized, and then paid, voided or given up.

Source: https://docs.stripe.com/api/invoices and
https://docs.stripe.com/invoicing/overview#invoice-statuses. The effect is the claim on the
customer, which comes with finalizing; a draft asks nobody for anything and can be deleted.
"""

from collections.abc import Callable
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import AMOUNT_MAX, Params
from reconcile.sandbox.provider.payment_intents import PAYMENT_METHODS, payment_method

TABLE: Final = "invoices"
SUBSCRIPTIONS_TABLE: Final = "subscriptions"
STATUSES: Final = ("draft", "open", "paid", "uncollectible", "void")
COLLECTION_METHODS: Final = ("charge_automatically", "send_invoice")
FILTERS: Final = ("collection_method", "customer", "status", "subscription")
LINES_MAX: Final = 100
DAY_SECONDS: Final = 24 * 60 * 60


def create(params: Params) -> Execute:
    """``POST /v1/invoices``: an empty draft."""
    params.only(
        (
            *("auto_advance", "collection_method", "currency", "customer", "days_until_due"),
            *("description", "footer", "metadata", "subscription"),
        )
    )
    method = params.text("collection_method", choices=COLLECTION_METHODS)
    days = params.whole("days_until_due", least=0, most=3650)
    fields = {
        "auto_advance": params.flag("auto_advance"),
        "collection_method": method or "charge_automatically",
        "currency": params.currency(default="eur"),
        "customer": params.required("customer"),
        "description": params.text("description"),
        "footer": params.text("footer"),
        "metadata": params.metadata(),
    }
    subscription = params.text("subscription")

    def execute(ctx: Context) -> Answer:
        due_date = None if days is None else int(ctx.now) + days * DAY_SECONDS
        invoice = new(ctx, {**fields, "due_date": due_date}, subscription=subscription)
        return Answer(status=200, body=invoice)

    return execute


def new(ctx: Context, fields: Json, *, subscription: str | None, total: int = 0) -> Json:
    """Enter a draft; a subscription's own invoice comes with its total."""
    parent = None
    if subscription is not None:
        details = {"subscription": subscription, "metadata": {}}
        parent = {"type": "subscription_details", "subscription_details": details}
    invoice = {
        "id": new_id("in"),
        "object": "invoice",
        "amount_due": total,
        "amount_paid": 0,
        "amount_remaining": total,
        "attempt_count": 0,
        "attempted": False,
        "billing_reason": "manual" if subscription is None else "subscription_create",
        "created": int(ctx.now),
        "lines": {"object": "list", "data": [], "has_more": False},
        "livemode": ctx.livemode,
        "number": None,
        "parent": parent,
        "status": "draft",
        # No field of Stripe's: what the list's own filter looks at.
        "subscription": subscription,
        "total": total,
        **fields,
    }
    ctx.put(TABLE, invoice)
    ctx.emit("invoice.created", invoice)
    return invoice


def add_lines(params: Params, invoice_id: str) -> Execute:
    """``POST /v1/invoices/{id}/add_lines``."""
    params.only(("lines",))
    lines = []
    for number in range(LINES_MAX):
        amount = params.whole(f"lines[{number}][amount]", least=-AMOUNT_MAX, most=AMOUNT_MAX)
        if amount is None:
            break
        text = params.text(f"lines[{number}][description]")
        lines.append({"object": "line_item", "amount": amount, "description": text})

    def execute(ctx: Context) -> Answer:
        invoice = _in(ctx, invoice_id, ("draft",), "add lines to")
        every = [*invoice["lines"]["data"], *({"id": new_id("il"), **line} for line in lines)]
        total = sum(line["amount"] for line in every)
        changed = {
            **invoice,
            "lines": {**invoice["lines"], "data": every},
            "total": total,
            "amount_due": max(total, 0),
            "amount_remaining": max(total, 0),
        }
        return _changed(ctx, changed, "invoice.updated")

    return execute


def finalize(params: Params, invoice_id: str) -> Execute:
    """``POST /v1/invoices/{id}/finalize``. One that asks for nothing is paid at once."""
    params.only(("auto_advance",))

    def execute(ctx: Context) -> Answer:
        return Answer(status=200, body=issue(ctx, _in(ctx, invoice_id, ("draft",), "finalize")))

    return execute


def issue(ctx: Context, invoice: Json) -> Json:
    """A draft becomes an invoice, with a number that it keeps."""
    number = f"{len(ctx.rows(TABLE)):04d}"
    issued = ctx.put(TABLE, {**invoice, "status": "open", "number": number})
    ctx.emit("invoice.finalized", issued)
    ctx.changed_the_world("invoice", issued, amount=issued["total"])
    return issued if issued["amount_due"] else settle(ctx, issued)


def settle(ctx: Context, invoice: Json) -> Json:
    """The invoice is paid."""
    paid = {
        **invoice,
        "status": "paid",
        "amount_paid": invoice["amount_due"],
        "amount_remaining": 0,
        "attempted": True,
        "attempt_count": invoice["attempt_count"] + 1,
    }
    ctx.put(TABLE, paid)
    ctx.emit("invoice.paid", paid)
    return paid


def pay(params: Params, invoice_id: str) -> Execute:
    """``POST /v1/invoices/{id}/pay``."""
    params.only(("off_session", "paid_out_of_band", "payment_method"))
    method = payment_method(params)

    def execute(ctx: Context) -> Answer:
        invoice = _in(ctx, invoice_id, ("open", "uncollectible"), "pay")
        decline_code = PAYMENT_METHODS.get(method) if method else None
        if ctx.declined or decline_code:
            attempts = invoice["attempt_count"] + 1
            failed = ctx.put(TABLE, {**invoice, "attempted": True, "attempt_count": attempts})
            ctx.emit("invoice.updated", failed)
            ctx.emit("invoice.payment_failed", failed)
            return errors.invoice_declined(decline_code or "generic_decline")
        paid = settle(ctx, invoice)
        if invoice["subscription"] is not None:
            _begin(ctx, invoice["subscription"], amount=paid["amount_paid"])
        return Answer(status=200, body=paid)

    return execute


def _begin(ctx: Context, subscription_id: str, *, amount: int) -> None:
    """A subscription that waited for its first payment runs."""
    subscription = ctx.find(SUBSCRIPTIONS_TABLE, subscription_id)
    if subscription is not None and subscription["status"] == "incomplete":
        running = ctx.put(SUBSCRIPTIONS_TABLE, {**subscription, "status": "active"})
        ctx.emit("customer.subscription.updated", running)
        ctx.changed_the_world("subscription", running, amount=amount)


def void(params: Params, invoice_id: str) -> Execute:
    """``POST /v1/invoices/{id}/void``."""
    return _ends_as("void", ("open", "uncollectible"), "invoice.voided")(params, invoice_id)


def mark_uncollectible(params: Params, invoice_id: str) -> Execute:
    """``POST /v1/invoices/{id}/mark_uncollectible``."""
    ends = _ends_as("uncollectible", ("open",), "invoice.marked_uncollectible")
    return ends(params, invoice_id)


def _ends_as(status: str, states: tuple[str, ...], event: str) -> Callable[[Params, str], Execute]:
    def check(params: Params, invoice_id: str) -> Execute:
        params.only(())

        def execute(ctx: Context) -> Answer:
            invoice = _in(ctx, invoice_id, states, f"mark as {status}")
            return _changed(ctx, {**invoice, "status": status}, event)

        return execute

    return check


def delete(params: Params, invoice_id: str) -> Execute:
    """``DELETE /v1/invoices/{id}``: a draft is gone for good."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        invoice = _in(ctx, invoice_id, ("draft",), "delete")
        ctx.batch.remove(f"{ctx.scope}/{TABLE}", invoice_id)
        ctx.emit("invoice.deleted", invoice)
        return Answer(status=200, body={"id": invoice_id, "object": "invoice", "deleted": True})

    return execute


def retrieve(params: Params, invoice_id: str) -> Execute:
    """``GET /v1/invoices/{id}``."""
    params.only(())
    return lambda ctx: Answer(status=200, body=_get(ctx, invoice_id))


def list_(params: Params) -> Execute:
    """``GET /v1/invoices``: by time, due date, customer, status and subscription."""
    params.only((*PAGE_PARAMS, *FILTERS, "due_date"))
    params.text("status", choices=STATUSES)
    created, equal = created_filter(params), equal_filter(params, FILTERS)
    due = created_filter(params, "due_date")
    return lambda ctx: page(
        ctx,
        params,
        table=TABLE,
        url="/v1/invoices",
        keep=lambda row: created(row) and equal(row) and due(row),
    )


def _changed(ctx: Context, invoice: Json, event: str) -> Answer:
    ctx.put(TABLE, invoice)
    ctx.emit(event, invoice)
    return Answer(status=200, body=invoice)


def _in(ctx: Context, invoice_id: str, states: tuple[str, ...], verb: str) -> Json:
    invoice = _get(ctx, invoice_id)
    if invoice["status"] not in states:
        raise errors.unexpected_state(
            f"You cannot {verb} this invoice: its status is {invoice['status']}.",
            code="invoice_not_editable",
        )
    return invoice


def _get(ctx: Context, invoice_id: str) -> Json:
    invoice = ctx.find(TABLE, invoice_id)
    if invoice is None:
        raise ctx.no_such("invoice", TABLE, invoice_id, param="invoice")
    return invoice
