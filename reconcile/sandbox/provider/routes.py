"""Which request is which operation. The operation's name is what fault plans speak of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.provider import events, payment_intents, refunds
from reconcile.sandbox.provider.context import Context, Execute
from reconcile.sandbox.provider.messages import Answer
from reconcile.sandbox.provider.params import Params


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint: ``check`` reads the parameters and gives what is left to execute."""

    method: str
    pattern: re.Pattern[str]
    operation: str
    check: Callable[..., Execute]


def _endpoint(method: str, path: str, operation: str, check: Callable[..., Execute]) -> Endpoint:
    pattern = re.compile("^" + path.replace("{id}", r"([A-Za-z0-9_]{1,255})") + "$")
    return Endpoint(method=method, pattern=pattern, operation=operation, check=check)


def _account(params: Params) -> Execute:
    """``GET /v1/account``: whose secret this is. A look-up asks it before it trusts an absence."""
    params.only(())

    def execute(ctx: Context) -> Answer:
        account_id = ctx.scope.partition("/")[0]
        return Answer(status=200, body={"id": account_id, "object": "account"})

    return execute


STRIPE: Final = (
    _endpoint("GET", "/v1/account", "account.retrieve", _account),
    _endpoint("POST", "/v1/payment_intents", "payment_intents.create", payment_intents.create),
    _endpoint("GET", "/v1/payment_intents", "payment_intents.list", payment_intents.list_),
    _endpoint(
        "GET", "/v1/payment_intents/{id}", "payment_intents.retrieve", payment_intents.retrieve
    ),
    _endpoint(
        "POST",
        "/v1/payment_intents/{id}/confirm",
        "payment_intents.confirm",
        payment_intents.confirm,
    ),
    _endpoint(
        "POST",
        "/v1/payment_intents/{id}/capture",
        "payment_intents.capture",
        payment_intents.capture,
    ),
    _endpoint(
        "POST", "/v1/payment_intents/{id}/cancel", "payment_intents.cancel", payment_intents.cancel
    ),
    _endpoint("POST", "/v1/refunds", "refunds.create", refunds.create),
    _endpoint("GET", "/v1/refunds", "refunds.list", refunds.list_),
    _endpoint("GET", "/v1/refunds/{id}", "refunds.retrieve", refunds.retrieve),
    _endpoint("GET", "/v1/events", "events.list", events.list_events),
    _endpoint("GET", "/v1/events/{id}", "events.retrieve", events.retrieve_event),
)


def find(method: str, path: str) -> tuple[Endpoint, tuple[str, ...]] | None:
    """The Stripe endpoint of a request and the ids in its path, or None."""
    for endpoint in STRIPE:
        match = endpoint.pattern.match(path)
        if match and endpoint.method == method:
            return endpoint, match.groups()
    return None
