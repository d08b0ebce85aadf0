"""The bank without keys as two more services show it: over GraphQL, and in a database of its own.

Both show what the provider itself has. The database is copied from it before anybody may ask, so
that a row is there as soon as the effect is; the adapter asks with a role that may only read.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from django.db import connection as database
from graphql import build_schema, graphql_sync
from psycopg import sql

from reconcile.sandbox.soak.clocks import say
from reconcile.sandbox.soak.rails_bank import SQL, SQL_BANK
from reconcile.sandbox.soak.witness import Passed, pass_on

SCHEMA: Final = build_schema("""
type Transfer { id: ID! reference: String! status: String! amount: Int! currency: String! }
type Account { id: ID! }
type Query { account: Account! transfers(reference: String!): [Transfer!]! }
""")
_TABLE: Final = """
CREATE TABLE bank_transfers (
  id text PRIMARY KEY, reference text, status text, amount bigint, currency text)
"""
_COPY: Final = """
INSERT INTO bank_transfers VALUES (%s, %s, 'settled', %s, %s) ON CONFLICT DO NOTHING
"""


class GraphqlDoor:
    """Answers GraphQL from the provider's own list, as the caller's bearer token may see it."""

    def __init__(self, provider_url: str) -> None:
        self.provider_url = provider_url

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> Passed | None:
        asked = json.loads(body)
        bearer = next((v for k, v in headers.items() if k.lower() == "authorization"), "")

        def transfers(_info: Any, *, reference: str) -> list[dict[str, Any]]:
            path = f"/plain/transfers?reference={quote(reference)}"
            passed = pass_on(self.provider_url, "GET", path, {"Authorization": bearer}, b"")
            if passed is None or passed.status != 200:
                raise ValueError("the bank does not answer")
            found: list[dict[str, Any]] = json.loads(passed.body)["transfers"]
            return found

        root = {"account": {"id": bearer.removeprefix("Bearer plain_")}, "transfers": transfers}
        done = graphql_sync(SCHEMA, asked["query"], root, variable_values=asked.get("variables"))
        told = json.dumps(done.formatted).encode()
        return Passed(status=200, headers={"content-type": "application/json"}, body=told)


class SqlBank:
    """The table that the SQL adapter asks, in the soak's own cluster."""

    def __init__(self, provider_url: str) -> None:
        self.provider_url = provider_url
        self.password = secrets.token_urlsafe(16)
        self.quiet_from: float | None = None
        self._copied = 0
        role = sql.Identifier(SQL.account)
        with database.cursor() as cursor:
            cursor.execute(_TABLE)
            made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            cursor.execute(made.format(role, sql.Literal(self.password)))
            cursor.execute(sql.SQL("GRANT SELECT ON bank_transfers TO {}").format(role))

    @property
    def url(self) -> str:
        where = database.settings_dict
        return f"postgresql://{where['HOST']}:{where['PORT']}/{where['NAME']}"

    def copy(self, advanced_seconds: float) -> None:
        """Enter what the provider counts at this bank by now: while calls are made, and for as long
        after them as one that was answered with a 500 may still come to pass."""
        if self.quiet_from is not None and advanced_seconds > self.quiet_from:
            return
        effects = say(self.provider_url, "/_sandbox/truth")["effects"]
        own = [e for e in effects if e["provider"] == "plain" and e["scope"] == SQL_BANK]
        rows = [(e["object_id"], e["marker"], e["amount"], e["currency"]) for e in own]
        with database.cursor() as cursor:
            cursor.executemany(_COPY, rows[self._copied :])
        self._copied = len(rows)
