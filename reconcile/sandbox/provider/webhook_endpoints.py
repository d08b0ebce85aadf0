"""Webhook endpoints, and which events go to them.

Source: https://docs.stripe.com/api/webhook_endpoints and https://docs.stripe.com/webhooks. Each
endpoint has a secret of its own, which only the answer to its creation shows. An endpoint made with
``connect=true`` hears of the connected accounts instead of the platform's own events; such an event
names the account.
"""

import secrets
from typing import Final
from urllib.parse import urlsplit

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import (
    ENDPOINTS_TABLE,
    SECRETS_TABLE,
    Context,
    Execute,
    new_id,
)
from reconcile.sandbox.provider.lists import PAGE_PARAMS, created_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

EVENTS_ENABLED_MAX: Final = 100
ENDPOINTS_MAX: Final = 16


def create(params: Params) -> Execute:
    """``POST /v1/webhook_endpoints``. The answer alone shows the secret."""
    params.only(("api_version", "connect", "description", "enabled_events", "metadata", "url"))
    url = params.required("url")
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc:
        raise errors.invalid("Invalid URL: An explicit scheme must be provided.", param="url")
    enabled = params.texts("enabled_events", items_max=EVENTS_ENABLED_MAX)
    if not enabled:
        params.required("enabled_events")
    fields = {
        "application": None,
        "connect": params.flag("connect"),
        "description": params.text("description"),
        "enabled_events": enabled,
        "metadata": params.metadata(),
        "url": url,
    }

    def execute(ctx: Context) -> Answer:
        if len(ctx.rows(ENDPOINTS_TABLE)) >= ENDPOINTS_MAX:
            raise errors.invalid(f"You have reached the maximum of {ENDPOINTS_MAX} endpoints.")
        secret = f"whsec_{secrets.token_urlsafe(24)}"
        return Answer(status=200, body=make(ctx, fields, secret=secret) | {"secret": secret})

    return execute


def make(ctx: Context, fields: Json, *, secret: str) -> Json:
    """Enter an endpoint; the row that is listed does not hold the secret."""
    shown = {
        "id": new_id("we"),
        "object": "webhook_endpoint",
        "api_version": ctx.api_version,
        "created": int(ctx.now),
        "livemode": ctx.livemode,
        "status": "enabled",
        **fields,
    }
    ctx.put(ENDPOINTS_TABLE, shown)
    ctx.batch.put(SECRETS_TABLE, shown["id"], {"secret": secret})
    return shown


def list_(params: Params) -> Execute:
    """``GET /v1/webhook_endpoints``."""
    params.only(PAGE_PARAMS)
    created = created_filter(params)
    return lambda ctx: page(
        ctx, params, table=ENDPOINTS_TABLE, url="/v1/webhook_endpoints", keep=created
    )


def retrieve(params: Params, endpoint_id: str) -> Execute:
    """``GET /v1/webhook_endpoints/{id}``."""
    params.only(())
    return lambda ctx: Answer(status=200, body=_get(ctx, endpoint_id))


def delete(params: Params, endpoint_id: str) -> Execute:
    """``DELETE /v1/webhook_endpoints/{id}``. What was not sent yet is not sent any more."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        _get(ctx, endpoint_id)
        ctx.batch.remove(f"{ctx.scope}/{ENDPOINTS_TABLE}", endpoint_id)
        ctx.batch.remove(SECRETS_TABLE, endpoint_id)
        body = {"id": endpoint_id, "object": "webhook_endpoint", "deleted": True}
        return Answer(status=200, body=body)

    return execute


def _get(ctx: Context, endpoint_id: str) -> Json:
    endpoint = ctx.find(ENDPOINTS_TABLE, endpoint_id)
    if endpoint is None:
        raise ctx.no_such("webhook_endpoint", ENDPOINTS_TABLE, endpoint_id)
    return endpoint
