"""Which request is which operation. The operation's name is what fault plans speak of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from reconcile.sandbox.provider import (
    accounts,
    charges,
    events,
    invoices,
    payment_intents,
    payouts,
    refunds,
    setup_intents,
    subscriptions,
    transfers,
    webhook_endpoints,
)
from reconcile.sandbox.provider.context import Execute
from reconcile.sandbox.provider.search import search
from reconcile.sandbox.provider.store import SEARCHABLE
from reconcile.sandbox.provider.updates import update


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


def _usual(table: str, module: ModuleType) -> tuple[Endpoint, ...]:
    """Create, list, search where there is one, retrieve and update: the same for every kind."""
    path = f"/v1/{table}"
    # Before the one with an id: "search" looks like one.
    searched = (
        (_endpoint("GET", f"{path}/search", f"{table}.search", search(table)),)
        if f"/{table}" in SEARCHABLE
        else ()
    )
    return (
        _endpoint("POST", path, f"{table}.create", module.create),
        _endpoint("GET", path, f"{table}.list", module.list_),
        *searched,
        _endpoint("GET", f"{path}/{{id}}", f"{table}.retrieve", module.retrieve),
        _endpoint("POST", f"{path}/{{id}}", f"{table}.update", update(table)),
    )


def _acts(table: str, module: ModuleType, *verbs: str) -> tuple[Endpoint, ...]:
    """What else can be done to one object: ``POST /v1/<table>/{id}/<verb>``."""
    return tuple(
        _endpoint("POST", f"/v1/{table}/{{id}}/{verb}", f"{table}.{verb}", getattr(module, verb))
        for verb in verbs
    )


STRIPE: Final = (
    _endpoint("GET", "/v1/account", "account.retrieve", accounts.retrieve_own),
    _endpoint("POST", "/v1/accounts", "accounts.create", accounts.create),
    _endpoint("GET", "/v1/accounts", "accounts.list", accounts.list_),
    _endpoint("GET", "/v1/accounts/{id}", "accounts.retrieve", accounts.retrieve),
    *_usual("payment_intents", payment_intents),
    *_acts("payment_intents", payment_intents, "confirm", "capture", "cancel"),
    *_usual("setup_intents", setup_intents),
    *_acts("setup_intents", setup_intents, "confirm", "cancel"),
    *_usual("charges", charges),
    *_usual("payouts", payouts),
    *_acts("payouts", payouts, "cancel"),
    *_usual("refunds", refunds),
    *_usual("transfers", transfers),
    _endpoint("POST", "/v1/transfers/{id}/reversals", "transfers.reverse", transfers.reverse),
    *_usual("invoices", invoices),
    *_acts("invoices", invoices, "add_lines", "finalize", "mark_uncollectible", "pay", "void"),
    _endpoint("DELETE", "/v1/invoices/{id}", "invoices.delete", invoices.delete),
    *_usual("subscriptions", subscriptions),
    _endpoint("DELETE", "/v1/subscriptions/{id}", "subscriptions.cancel", subscriptions.cancel),
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
