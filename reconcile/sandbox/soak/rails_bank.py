"""A bank without keys, asked over HTTP, over GraphQL, and in its database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.soak.rail import Account, Order, Rail, Till, bearer, money


def _bank(account: str) -> Callable[[Till, Order, Fault], object]:
    def send(till: Till, order: Order, fault: Fault) -> object:
        body = {**money(order), "destination": "DE02", "reference": order.marker}
        headers = bearer(f"plain_{account}")
        return till.post("/plain/transfers", fault=fault, headers=headers, json=body)

    return send


HTTP: Final = Account(
    kind="http",
    # Its answers name no account: where one is registered, nothing found proves nothing.
    misplaced_account="soakbank",
    secret="plain_soakbank",  # noqa: S106 - the sandbox's own
    wrong_secret="plain_elsewhere",  # noqa: S106 - likewise
)
GRAPHQL: Final = Account(
    kind="graphql",
    account="soakgraph",
    misplaced_account="soakgraph",
    secret="plain_soakgraph",  # noqa: S106 - likewise
    wrong_secret="plain_elsewhere",  # noqa: S106 - likewise
)
SQL: Final = Account(kind="sql", account="soak_reader")
SQL_BANK: Final = "soaksql"
"""The bank's account whose transfers stand in the database that the SQL adapter asks."""
_SETTLED: Final = {"map": {"settled": "found"}, "amount": "amount", "currency": "currency"}
_FIELDS: Final = "id reference status amount currency"

RAILS: Final = (
    Rail(
        name="http_transfers",
        account=HTTP,
        lookup_kind="http",
        contract="generic",
        lookup={
            **_SETTLED,
            "url": "/plain/transfers?reference={reference}",
            "reference": "marker",
            "items": "transfers",
            "reference_field": "reference",
            "absent_when": {"empty": True},
            "delay_class": "none",
        },
        send=_bank("soakbank"),
        keyed=False,
    ),
    Rail(
        name="graphql_transfers",
        account=GRAPHQL,
        lookup_kind="graphql",
        contract="generic",
        lookup={
            **_SETTLED,
            "document": "query ($ref: String!) { account { id } "
            f"transfers(reference: $ref) {{ {_FIELDS} }} }}",
            "variables": {"ref": "reference"},
            "items": "transfers",
            "account": "account.id",
            "reference_field": "reference",
            "absent_when": {"empty": True},
            "delay_class": "none",
        },
        send=_bank("soakgraph"),
        keyed=False,
    ),
    Rail(
        name="sql_transfers",
        account=SQL,
        lookup_kind="sql",
        contract="generic",
        lookup={
            **_SETTLED,
            "query": "SELECT id, reference, status, amount, currency FROM bank_transfers "
            "WHERE reference = ANY (%(references)s) ORDER BY id",
            "reference_field": "reference",
            "absent_when": {"empty": True},
            "delay_class": "none",
        },
        send=_bank(SQL_BANK),
        keyed=False,
    ),
)
