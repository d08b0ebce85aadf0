"""Accounts: whose secret it is, and the accounts that are connected to a platform.

Source: https://docs.stripe.com/api/accounts and https://docs.stripe.com/connect/authentication. A
platform acts in a connected account by the header ``Stripe-Account``: objects, keys and events
there belong to that account, and to asking any other account it gets 403.
"""

from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import PLATFORMS_TABLE, Context, Execute, new_id
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, page
from reconcile.sandbox.provider.messages import Answer, Json, Refused
from reconcile.sandbox.provider.params import Params
from reconcile.sandbox.provider.scope import Caller
from reconcile.sandbox.provider.store import Store

TABLE: Final = "accounts"


def may_act(store: Store, caller: Caller) -> bool:
    """Whether the caller's key belongs to the account that it asks about, or to its platform."""
    own = caller.account == caller.own_account
    return own or caller.account in store.table(f"{caller.own_scope}/{TABLE}")


def retrieve_own(params: Params) -> Execute:
    """``GET /v1/account``: a look-up asks it before it trusts an absence."""
    params.only(())
    return lambda ctx: Answer(status=200, body={"id": ctx.account, "object": "account"})


def create(params: Params) -> Execute:
    """``POST /v1/accounts``: one more account that is connected to this platform."""
    params.only(("country", "email", "metadata", "type"))
    fields = {
        "country": params.text("country") or "DE",
        "email": params.text("email"),
        "metadata": params.metadata(),
        "type": params.text("type", choices=("custom", "express", "standard")) or "custom",
    }

    def execute(ctx: Context) -> Answer:
        account = {
            "id": new_id("acct"),
            "object": "account",
            "charges_enabled": True,
            "created": int(ctx.now),
            "payouts_enabled": True,
            **fields,
        }
        ctx.put(TABLE, account)
        mode = "live" if ctx.livemode else "test"
        platform: Json = {"scope": ctx.scope}
        ctx.batch.put(PLATFORMS_TABLE, f"{account['id']}/{mode}", platform)
        return Answer(status=200, body=account)

    return execute


def retrieve(params: Params, account_id: str) -> Execute:
    """``GET /v1/accounts/{id}``."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        account = ctx.find(TABLE, account_id)
        if account is None and account_id != ctx.account:
            raise Refused(errors.no_access(account_id), stored=False)
        return Answer(status=200, body=account or {"id": ctx.account, "object": "account"})

    return execute


def list_(params: Params) -> Execute:
    """``GET /v1/accounts``: the connected ones."""
    params.only(PAGE_PARAMS)
    created = created_filter(params)
    return lambda ctx: page(ctx, params, table=TABLE, url="/v1/accounts", keep=created)
