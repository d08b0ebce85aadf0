"""The stages of the GraphQL adapter: a real server's executor over one schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, override

from graphql import build_schema, graphql_sync, parse

from reconcile.lookups import LOOKUPS
from tests.reconcile.adapters.conformance import Answer, Asked, Dialect, Prop, Shown, page_of
from tests.reconcile.adapters.conformance_http import READING, as_json

SCHEMA = build_schema("""
type Payment { id: ID! reference: String! status: String! amount: Int! currency: String!
               livemode: Boolean! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Payments { nodes: [Payment!]! pageInfo: PageInfo! }
type Account { id: ID! }
type Query { account: Account!
             payments(reference: String, since: String, after: String): Payments! }
type Mutation { pay(amount: Int!): Payment! }
""")
FIELDS = "nodes { id reference status amount currency livemode } pageInfo { ...Where }"
FRAGMENT = "fragment Where on PageInfo { hasNextPage endCursor }"
SHARED: Mapping[str, Any] = {
    **READING,
    "items": "payments.nodes",
    "page_info": "payments.pageInfo",
    "account": "account.id",
    "reference_field": "reference",
}


class _ByQuery(Dialect):
    @override
    def is_read(self, asked: Asked) -> bool:
        document = parse(json.loads(asked.body)["query"])
        kinds = {getattr(one, "operation", None) for one in document.definitions}
        return not any(kind is not None and kind.value != "query" for kind in kinds)

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        sent = json.loads(asked.body)

        def payments(_info: Any, **wanted: str) -> dict[str, Any]:
            reference = wanted.get("reference")
            found = [one for one in shown if reference in {None, one.marker}]
            page, after = page_of(found, wanted.get("after"), self.page_size)
            return {
                "nodes": [as_json(one) for one in page],
                "pageInfo": {"hasNextPage": bool(after), "endCursor": after or None},
            }

        root = {"payments": payments, "account": {"id": account}}
        done = graphql_sync(SCHEMA, sent["query"], root, variable_values=sent["variables"])
        return Answer(body=json.dumps(done.formatted).encode())


class ByReference(_ByQuery):
    name = "graphql by reference"
    lookup = LOOKUPS["graphql"]
    page_size = 1
    config = {
        **SHARED,
        "document": "query ($ref: String!, $at: String) { account { id } "
        f"payments(reference: $ref, after: $at) {{ {FIELDS} }} }} {FRAGMENT}",
        "variables": {"ref": "reference", "at": "cursor"},
        "absent_when": {"empty": True},
    }
    cannot = {Prop.OTHERS: "what is filtered by reference shows nobody else's"}


class InList(_ByQuery):
    name = "graphql list"
    lookup = LOOKUPS["graphql.list"]
    config = {
        **SHARED,
        "document": "query ($since: String!, $at: String) { account { id } "
        f"payments(since: $since, after: $at) {{ {FIELDS} }} }} {FRAGMENT}",
        "variables": {"since": "since", "at": "cursor"},
    }


DIALECTS = (ByReference(), InList())
