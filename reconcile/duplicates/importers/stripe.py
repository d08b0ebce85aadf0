"""Stripe's events: which request made each object, and with which key. Reads only.

An event names its request (``request.id``) and the key that it carried, or null. Events that nobody
asked for have no request and say nothing here; they can be listed for 30 days
(https://docs.stripe.com/api/events). One request may cause several events and is one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import stripe

from effects.core.identity import MARKER_METADATA_KEY
from effects.models import Connection
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.stripe_client import ReadOnly, WrongAccount, client_at
from reconcile.duplicates.importers.jsonlines import known
from reconcile.duplicates.importers.keeping import CannotImport, Line
from reconcile.facts import place_of
from reconcile.models import ImportedEvidence

PAGE: Final = 100
PAGES_MAX: Final = 100
"""Most pages of one import; give a later `since` for the rest."""


def read_events(connection: Connection, *, since: datetime) -> Iterator[Line]:
    """The requests behind the account's events since then, newest first. Raises `CannotImport`."""
    if connection.kind != Connection.Kind.STRIPE:
        raise CannotImport(f"{connection.name} is no connection to Stripe.")
    try:
        place = place_of(connection)
        client, _ = client_at(place, ReadOnly(place.way))
        yield from _pages(client, since)
    except (NoAnswer, NotAllowed, WrongAccount) as error:
        raise CannotImport(f"Stripe was not asked: {error}") from None
    except stripe.StripeError as error:
        raise CannotImport(f"Stripe did not answer: {error.user_message or error}") from None


def _pages(client: stripe.StripeClient, since: datetime) -> Iterator[Line]:
    params: dict[str, Any] = {"limit": PAGE, "created": {"gte": int(since.timestamp())}}
    for _ in range(PAGES_MAX):
        page = client.v1.events.list(params=params)  # type: ignore[arg-type] # a plain dict of theirs
        for event in page.data:
            line = line_of(event.to_dict())
            if line is not None:
                yield line
        if not page.has_more:
            return
        params["starting_after"] = page.data[-1].id
    limit = f"PAGES_MAX, {PAGES_MAX} pages"
    raise CannotImport(f"There are more events than {limit}. Give a later --since.")


def line_of(event: Mapping[str, Any]) -> Line | None:
    """The request that caused an event, None where nobody asked for it."""
    request = event.get("request")
    request_id = request.get("id") if isinstance(request, Mapping) else None
    if not isinstance(request, Mapping) or not request_id:
        return None
    key = request.get("idempotency_key")
    item = (event.get("data") or {}).get("object") or {}
    marker = (item.get("metadata") or {}).get(MARKER_METADATA_KEY)
    facts = {"request_id": request_id, "key_seen": True, "key": key, "object": item.get("id")}
    return Line(
        source=ImportedEvidence.Source.STRIPE,
        name=str(request_id),
        at=datetime.fromtimestamp(event["created"], UTC),
        facts=known(facts),
        names=tuple(str(name) for name in (key, marker) if name),
    )
