"""Events: what happened to which object, and which request caused it.

Source: https://docs.stripe.com/api/events. Events can be read for 30 days. There is no filter by
key or by metadata; whoever looks for a key reads ``request.idempotency_key`` of each event.
"""

from fnmatch import fnmatchcase
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import EVENTS_TABLE, OUTBOX_TABLE, Context, Execute
from reconcile.sandbox.provider.lists import PAGE_PARAMS, Filter, created_filter, page
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

EVENT_LIFETIME_SECONDS: Final = 30 * 24 * 60 * 60
TYPES_MAX: Final = 20


def list_events(params: Params) -> Execute:
    """``GET /v1/events``."""
    params.only((*PAGE_PARAMS, "delivery_success", "type", "types"))
    kinds = _kind_filter(params)
    created = created_filter(params)
    success = params.text("delivery_success", choices=("true", "false"))

    def execute(ctx: Context) -> Answer:
        waiting = {row["event"]["id"] for row in ctx.store.table(OUTBOX_TABLE).values()}

        def keep(event: Json) -> bool:
            arrived = "false" if event["id"] in waiting else "true"
            known = success in {None, arrived} and not _forgotten(event, ctx.now)
            return known and kinds(event) and created(event)

        return page(ctx, params, table=EVENTS_TABLE, url="/v1/events", keep=keep)

    return execute


def retrieve_event(params: Params, event_id: str) -> Execute:
    """``GET /v1/events/{id}``."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        event = ctx.find(EVENTS_TABLE, event_id)
        if event is None or _forgotten(event, ctx.now):
            raise errors.no_such("event", event_id, param="id")
        return Answer(status=200, body=event)

    return execute


def _kind_filter(params: Params) -> Filter:
    kind, kinds = params.text("type"), params.texts("types", items_max=TYPES_MAX)
    if kind and kinds:
        raise errors.invalid("You may pass either type or types, but not both", param="types")
    if kind:
        return lambda event: fnmatchcase(event["type"], kind)
    return lambda event: not kinds or event["type"] in kinds


def _forgotten(event: Json, now: float) -> bool:
    return bool(now - event["created"] >= EVENT_LIFETIME_SECONDS)
