"""Payouts: create, cancel, retrieve, list, and what becomes of them by themselves.

Source: https://docs.stripe.com/api/payouts. A payout is pending, in transit, then paid; one that
fails may be shown as paid first and turn to failed within five business days. Here a step takes
seconds, by the provider's own clock. The money has left when the payout is made.
"""

from typing import Final

from reconcile.sandbox.provider import errors, steps
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

TABLE: Final = "payouts"
STATUSES: Final = ("canceled", "failed", "in_transit", "paid", "pending")
FAILS_LATE: Final = "ba_fails_after_paid"
FAILS: Final = "ba_account_closed"
COURSES: Final = {FAILS_LATE: ("in_transit", "paid", "failed"), FAILS: ("in_transit", "failed")}
"""What becomes of a payout to one of these accounts; to every other it is paid."""
COURSE_USUAL: Final = ("in_transit", "paid")


def create(params: Params) -> Execute:
    """``POST /v1/payouts``."""
    params.only(("amount", "currency", "description", "destination", "metadata", "method"))
    amount, currency = params.amount(), params.currency()
    fields = {
        "amount": amount,
        "currency": currency,
        "description": params.text("description"),
        "destination": params.text("destination") or "ba_usual",
        "metadata": params.metadata(),
        "method": params.text("method", choices=("instant", "standard")) or "standard",
    }

    def execute(ctx: Context) -> Answer:
        if ctx.declined:
            return errors.refused_payout()
        payout = ctx.put(TABLE, _new(ctx, fields))
        ctx.emit("payout.created", payout)
        ctx.changed_the_world("payout", payout, amount=payout["amount"])
        course = COURSES.get(payout["destination"], COURSE_USUAL)
        steps.plan(ctx, TABLE, payout["id"], course)
        return Answer(status=200, body=payout)

    return execute


def _new(ctx: Context, fields: Json) -> Json:
    return {
        "id": new_id("po"),
        "object": "payout",
        "arrival_date": int(ctx.now),
        "automatic": False,
        "balance_transaction": None,
        "created": int(ctx.now),
        "failure_code": None,
        "failure_message": None,
        "livemode": ctx.livemode,
        "source_type": "card",
        "status": "pending",
        "type": "bank_account",
        **fields,
    }


def take_step(ctx: Context, payout_id: str, course: list[str]) -> None:
    """The bank's next word on one payout. No request caused it, and its event says so."""
    payout = ctx.find(TABLE, payout_id)
    if payout is None or payout["status"] == "canceled":
        steps.plan(ctx, TABLE, payout_id, ())
        return
    status, *rest = course
    failure = {}
    if status == "failed":
        failure = {
            "failure_code": "account_closed",
            "failure_message": "The bank account has been closed.",
        }
    changed = ctx.put(TABLE, {**payout, "status": status, **failure})
    ctx.emit("payout.updated" if status == "in_transit" else f"payout.{status}", changed)
    steps.plan(ctx, TABLE, payout_id, rest)


def cancel(params: Params, payout_id: str) -> Execute:
    """``POST /v1/payouts/{id}/cancel``, while it is pending."""
    params.only(("metadata",))

    def execute(ctx: Context) -> Answer:
        payout = _get(ctx, payout_id)
        if payout["status"] != "pending":
            raise errors.unexpected_state(
                f"Payouts can only be canceled while they are pending; {payout_id} is "
                f"{payout['status']}.",
                code="payout_unexpected_state",
            )
        canceled = ctx.put(TABLE, {**payout, "status": "canceled"})
        ctx.emit("payout.canceled", canceled)
        return Answer(status=200, body=canceled)

    return execute


def retrieve(params: Params, payout_id: str) -> Execute:
    """``GET /v1/payouts/{id}``."""
    params.only(())
    return lambda ctx: Answer(status=200, body=_get(ctx, payout_id))


def list_(params: Params) -> Execute:
    """``GET /v1/payouts``: by time, day of arrival, status and destination."""
    params.only((*PAGE_PARAMS, "arrival_date", "destination", "status"))
    arrives = created_filter(params, "arrival_date")
    params.text("status", choices=STATUSES)
    created, equal = created_filter(params), equal_filter(params, ("destination", "status"))

    def execute(ctx: Context) -> Answer:
        return page(
            ctx,
            params,
            table=TABLE,
            url="/v1/payouts",
            keep=lambda row: created(row) and equal(row) and arrives(row),
        )

    return execute


def _get(ctx: Context, payout_id: str) -> Json:
    payout = ctx.find(TABLE, payout_id)
    if payout is None:
        raise ctx.no_such("payout", TABLE, payout_id)
    return payout
