"""Which request is which operation. The operation's name is what fault plans speak of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.provider import (
    accounts,
    charges,
    events,
    payment_intents,
    payouts,
    refunds,
    webhook_endpoints,
)
from reconcile.sandbox.provider.context import Execute
from reconcile.sandbox.provider.search import search


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


STRIPE: Final = (
    _endpoint("GET", "/v1/account", "account.retrieve", accounts.retrieve_own),
    _endpoint("POST", "/v1/accounts", "accounts.create", accounts.create),
    _endpoint("GET", "/v1/accounts", "accounts.list", accounts.list_),
    _endpoint("GET", "/v1/accounts/{id}", "accounts.retrieve", accounts.retrieve),
    _endpoint("POST", "/v1/payment_intents", "payment_intents.create", payment_intents.create),
    _endpoint("GET", "/v1/payment_intents", "payment_intents.list", payment_intents.list_),
    # Before the one with an id: "search" looks like one.
    _endpoint(
        "GET", "/v1/payment_intents/search", "payment_intents.search", search("payment_intents")
    ),
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
    _endpoint("POST", "/v1/charges", "charges.create", charges.create),
    _endpoint("GET", "/v1/charges", "charges.list", charges.list_),
    _endpoint("GET", "/v1/charges/search", "charges.search", search("charges")),
    _endpoint("GET", "/v1/charges/{id}", "charges.retrieve", charges.retrieve),
    _endpoint("POST", "/v1/payouts", "payouts.create", payouts.create),
    _endpoint("GET", "/v1/payouts", "payouts.list", payouts.list_),
    _endpoint("GET", "/v1/payouts/{id}", "payouts.retrieve", payouts.retrieve),
    _endpoint("POST", "/v1/payouts/{id}/cancel", "payouts.cancel", payouts.cancel),
    _endpoint("POST", "/v1/refunds", "refunds.create", refunds.create),
    _endpoint("GET", "/v1/refunds", "refunds.list", refunds.list_),
    _endpoint("GET", "/v1/refunds/{id}", "refunds.retrieve", refunds.retrieve),
    _endpoint("GET", "/v1/events", "events.list", events.list_events),
    _endpoint("GET", "/v1/events/{id}", "events.retrieve", events.retrieve_event),
    _endpoint(
        "POST", "/v1/webhook_endpoints", "webhook_endpoints.create", webhook_endpoints.create
    ),
    _endpoint("GET", "/v1/webhook_endpoints", "webhook_endpoints.list", webhook_endpoints.list_),
    _endpoint(
        "GET",
        "/v1/webhook_endpoints/{id}",
        "webhook_endpoints.retrieve",
        webhook_endpoints.retrieve,
    ),
    _endpoint(
        "DELETE",
        "/v1/webhook_endpoints/{id}",
        "webhook_endpoints.delete",
        webhook_endpoints.delete,
    ),
)


def find(method: str, path: str) -> tuple[Endpoint, tuple[str, ...]] | None:
    """The Stripe endpoint of a request and the ids in its path, or None."""
    for endpoint in STRIPE:
        match = endpoint.pattern.match(path)
        if match and endpoint.method == method:
            return endpoint, match.groups()
    return None
