"""Transfers to connected accounts: create, reverse, retrieve, list.

Source: https://docs.stripe.com/api/transfers. A transfer has no status: it is there or it is not.
What was reversed of it stands in ``amount_reversed``; ``reversed`` says that all of it was.
"""

from typing import Final

from reconcile.sandbox.provider import accounts, errors
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, equal_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import AMOUNT_MAX, Params

TABLE: Final = "transfers"
FILTERS: Final = ("destination", "transfer_group")


def create(params: Params) -> Execute:
    """``POST /v1/transfers``."""
    params.only(
        (
            *("amount", "currency", "description", "destination", "metadata"),
            *("source_transaction", "transfer_group"),
        )
    )
    destination = params.required("destination")
    fields = {
        "amount": params.amount(),
        "currency": params.currency(),
        "description": params.text("description"),
        "destination": destination,
        "metadata": params.metadata(),
        "source_transaction": params.text("source_transaction"),
        "transfer_group": params.text("transfer_group"),
    }

    def execute(ctx: Context) -> Answer:
        if ctx.find(accounts.TABLE, destination) is None:
            raise errors.no_such("destination", destination, param="destination", status=400)
        if ctx.declined:
            return errors.refused_payout()
        transfer = ctx.put(TABLE, _new(ctx, fields))
        ctx.emit("transfer.created", transfer)
        ctx.changed_the_world("transfer", transfer, amount=transfer["amount"])
        return Answer(status=200, body=transfer)

    return execute


def _new(ctx: Context, fields: Json) -> Json:
    transfer_id = new_id("tr")
    return {
        "id": transfer_id,
        "object": "transfer",
        "amount_reversed": 0,
        "balance_transaction": None,
        "created": int(ctx.now),
        "destination_payment": None,
        "livemode": ctx.livemode,
        "reversals": {
            "object": "list",
            "data": [],
            "has_more": False,
            "total_count": 0,
            "url": f"/v1/transfers/{transfer_id}/reversals",
        },
        "reversed": False,
        "source_type": "card",
        **fields,
    }


def reverse(params: Params, transfer_id: str) -> Execute:
    """``POST /v1/transfers/{id}/reversals``, whole or in part."""
    params.only(("amount", "description", "metadata"))
    amount = params.whole("amount", least=1, most=AMOUNT_MAX)
    metadata = params.metadata()

    def execute(ctx: Context) -> Answer:
        transfer = _get(ctx, transfer_id)
        left = transfer["amount"] - transfer["amount_reversed"]
        if left == 0 or (amount or left) > left:
            raise errors.unexpected_state(
                f"Reversal amount is greater than the unreversed amount on transfer ({left}).",
                code="amount_too_large",
                param="amount",
            )
        reversed_now = transfer["amount_reversed"] + (amount or left)
        changed = {
            **transfer,
            "amount_reversed": reversed_now,
            "reversed": reversed_now == transfer["amount"],
        }
        ctx.put(TABLE, changed)
        ctx.emit("transfer.reversed", changed)
        body = {
            "id": new_id("trr"),
            "object": "transfer_reversal",
            "amount": amount or left,
            "balance_transaction": None,
            "created": int(ctx.now),
            "currency": transfer["currency"],
            "metadata": metadata,
            "transfer": transfer_id,
        }
        return Answer(status=200, body=body)

    return execute


def retrieve(params: Params, transfer_id: str) -> Execute:
    """``GET /v1/transfers/{id}``."""
    params.only(())
    return lambda ctx: Answer(status=200, body=_get(ctx, transfer_id))


def list_(params: Params) -> Execute:
    """``GET /v1/transfers``: by time, destination and transfer group."""
    params.only((*PAGE_PARAMS, *FILTERS))
    created, equal = created_filter(params), equal_filter(params, FILTERS)
    return lambda ctx: page(
        ctx,
        params,
        table=TABLE,
        url="/v1/transfers",
        keep=lambda row: created(row) and equal(row),
    )


def _get(ctx: Context, transfer_id: str) -> Json:
    transfer = ctx.find(TABLE, transfer_id)
    if transfer is None:
        raise ctx.no_such("transfer", TABLE, transfer_id)
    return transfer
