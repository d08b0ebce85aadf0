"""Objects as they lie in the sandbox, entered without a request: many of them, at any age."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from effects.core.identity import marker
from reconcile.sandbox.provider.server import Provider

SCOPE: Final = "acct_halden/test"


def claim_number(number: int) -> UUID:
    return UUID(f"01920000-0000-7000-8000-{number:012d}")


def a_row(number: int, *, created: datetime, **changes: Any) -> dict[str, Any]:
    """A payment of 42.00 EUR that succeeded, with the marker of the claim of this number."""
    return {
        "id": f"pi_{number:06d}",
        "object": "payment_intent",
        "amount": 4200,
        "amount_received": 4200,
        "created": int(created.timestamp()),
        "currency": "eur",
        "customer": None,
        "livemode": False,
        "metadata": {"counterfoil": marker(claim_number(number), 1)},
        "status": "succeeded",
        **changes,
    }


def enter(provider: Provider, rows: list[dict[str, Any]], table: str = "payment_intents") -> None:
    """Put the rows in, oldest first, as the sandbox keeps them."""
    with provider.world.store.batch() as batch:
        for row in sorted(rows, key=lambda row: row["created"]):
            batch.put(f"{SCOPE}/{table}", row["id"], row)


def gets(provider: Provider) -> int:
    """How many reads the account has been asked for so far."""
    with provider.world.store.lock:
        return provider.world.reads.of(SCOPE, provider.world.clock.now()).reads
