"""What an endpoint needs while it executes: whose world, which moment, which batch."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.store import Batch, Store

STRIPE_TRUTH = "stripe"
EVENTS_TABLE = "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One execution of one endpoint. Everything it writes goes through ``batch``.

    ``idempotency_key`` is the key of the request. An execution that no request caused (a commit
    that comes after a 500) has ``request_id`` None, and its events say so.
    """

    store: Store
    batch: Batch
    scope: str
    livemode: bool
    now: float
    api_version: str
    request_id: str | None
    idempotency_key: str | None
    cause: str
    declined: bool = False
    pending: dict[tuple[str, str], Json] = field(default_factory=dict)

    def rows(self, table: str) -> dict[str, Json]:
        """The rows of this account and mode, oldest first."""
        return self.store.table(f"{self.scope}/{table}")

    def find(self, table: str, object_id: str) -> Json | None:
        """One row, as this execution has left it so far."""
        return self.pending.get((table, object_id)) or self.rows(table).get(object_id)

    def put(self, table: str, row: Json) -> Json:
        """Write one row under its own id."""
        self.pending[table, row["id"]] = row
        self.batch.put(f"{self.scope}/{table}", row["id"], row)
        return row

    def emit(self, kind: str, row: Json) -> None:
        """Record an event about an object, with the request that caused it.

        ``request.id`` is null for an automatic event, and the key is null with it: nothing in
        the contract promises that an effect which comes after a 500 still names its key.
        """
        known = self.request_id is not None
        self.put(
            EVENTS_TABLE,
            {
                "id": new_id("evt"),
                "object": "event",
                "api_version": self.api_version,
                "created": int(self.now),
                "data": {"object": row},
                "livemode": self.livemode,
                "pending_webhooks": 0,
                "request": {
                    "id": self.request_id,
                    "idempotency_key": self.idempotency_key if known else None,
                },
                "type": kind,
            },
        )

    def changed_the_world(self, kind: str, row: Json, *, amount: int) -> None:
        """Write one effect to the truth file. ``amount`` is in the currency's smallest unit."""
        metadata = row["metadata"]
        self.batch.effect(
            STRIPE_TRUTH,
            {
                "at": iso(self.now),
                "provider": "stripe",
                "scope": self.scope,
                "kind": kind,
                "object_id": row["id"],
                "amount": amount,
                "currency": row["currency"],
                "marker": metadata.get("counterfoil"),
                "metadata": metadata,
                "idempotency_key": self.idempotency_key,
                "request_id": self.request_id,
                "cause": self.cause,
            },
        )


type Execute = Callable[[Context], Answer]
"""The second half of an endpoint: parameters are checked, now it happens."""


def new_id(prefix: str) -> str:
    """An object id in Stripe's shape."""
    return f"{prefix}_{secrets.token_hex(12)}"
