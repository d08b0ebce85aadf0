"""What an endpoint needs while it executes: whose world, which moment, which batch."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.messages import Answer, Json, Refused
from reconcile.sandbox.provider.store import Batch, Store

STRIPE_TRUTH = "stripe"
EVENTS_TABLE = "events"
CHARGES_TABLE = "charges"
ENDPOINTS_TABLE = "webhook_endpoints"
OUTBOX_TABLE = "webhook_outbox"
SECRETS_TABLE = "webhook_secrets"
PLATFORMS_TABLE = "platforms"
"""By the scope of a connected account, the scope of the platform that it is connected to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One execution of one endpoint. Everything it writes goes through ``batch``.

    ``idempotency_key`` is the key of the request. An execution that no request caused (a commit
    that comes after a 500) has ``request_id`` None, and its events say so. What changed within the
    last ``search_lag_seconds`` is not shown by search.
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
    search_lag_seconds: float = 0.0
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
        endpoints = self._endpoints(kind)
        event = {
            "id": new_id("evt"),
            "object": "event",
            "api_version": self.api_version,
            "created": int(self.now),
            "data": {"object": row},
            "livemode": self.livemode,
            "pending_webhooks": len(endpoints),
            "request": {
                "id": self.request_id,
                "idempotency_key": self.idempotency_key if known else None,
            },
            "type": kind,
        }
        self.put(EVENTS_TABLE, event)
        for endpoint in endpoints:
            account = {"account": self.account} if endpoint["connect"] else {}
            self._post_later(endpoint, {**event, **account})

    @property
    def account(self) -> str:
        """The account whose world this is."""
        return self.scope.partition("/")[0]

    def _endpoints(self, kind: str) -> list[Json]:
        """Where an event of this kind goes: our own endpoints, and those of our platform."""
        own = self.rows(ENDPOINTS_TABLE).values()
        platform = self.store.table(PLATFORMS_TABLE).get(self.scope)
        above = self.store.table(f"{platform['scope']}/{ENDPOINTS_TABLE}") if platform else {}
        heard = [e for e in own if not e["connect"]] + [e for e in above.values() if e["connect"]]
        return [
            endpoint
            for endpoint in heard
            if any(fnmatchcase(kind, enabled) for enabled in endpoint["enabled_events"])
        ]

    def _post_later(self, endpoint: Json, event: Json) -> None:
        """Put a webhook into the outbox, in the batch of what it tells of: it is sent after it."""
        self.batch.put(
            OUTBOX_TABLE,
            f"{event['id']}/{endpoint['id']}",
            {
                "endpoint": endpoint["id"],
                "url": endpoint["url"],
                "event": event,
                "made_at": self.now,
                "due_at": self.now,
                "tries": 0,
                "copy": False,
            },
        )

    def no_such(self, noun: str, table: str, object_id: str, *, param: str = "id") -> Refused:
        """404 for an id that names nothing here, with the hint that Stripe gives where the same id
        exists in the account's other mode."""
        other = "test" if self.livemode else "live"
        elsewhere = self.store.table(f"{self.account}/{other}/{table}")
        hint = ""
        if object_id in elsewhere:
            mode = "live" if self.livemode else "test"
            hint = (
                f"; a similar object exists in {other} mode, but a {mode} mode key was used to "
                "make this request."
            )
        return errors.no_such(noun, object_id, param=param, hint=hint)

    def changed_the_world(
        self, kind: str, row: Json, *, amount: int, marker: str | None = None
    ) -> None:
        """Write one effect to the truth file. ``amount`` is in the currency's smallest unit;
        ``marker`` is the request's own where it is not the object's."""
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
                "currency": row.get("currency"),
                "marker": marker or metadata.get("counterfoil"),
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
