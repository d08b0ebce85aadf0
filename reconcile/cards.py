"""Cards: amount, customer and one line of each call, read out of its arguments for the queue.

A list of thousands of calls can be searched and sorted by amount only where the amount is a column.
The queue fills what is missing before it looks, the worker's tick fills it ahead of that; both are
bounded, and neither ever changes a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from effects import registry
from effects.core.redaction import is_stand_in
from effects.models import Tool
from ledger import queries
from reconcile.models import Card
from reconcile.queue import CANDIDATES, CLOSING_SOON, LISTED

if TYPE_CHECKING:
    from ledger.models import Claim

FILL_AT_ONCE_MAX: Final = 500
"""Most cards that one call of `fill` writes: about a tenth of a second of reading JSON."""
CUSTOMER_CHARACTERS_MAX: Final = 255
FIELDS_READ: Final = (
    "workspace_id",
    "tool_version",
    "amount",
    "currency",
    "places",
    "customer",
    "summary",
    "filled_at",
)

_MISSING: Final = """
SELECT c.id, c.workspace_id, c.tool_id,
       coalesce(c.arguments,
                (SELECT convert_from(p.body, 'UTF8') FROM ledger_payload p
                  WHERE p.claim_id = c.id AND p.seq = 0 AND p.name = 'arguments'))
  FROM ledger_claim c
  JOIN effects_tool t ON t.id = c.tool_id
  LEFT JOIN reconcile_card k ON k.claim_id = c.id
 WHERE (k.claim_id IS NULL OR k.tool_version <> t.version)
   AND {which}
 LIMIT %(limit)s
"""
_OF_WORKSPACE: Final = "AND (%(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s)"
# A call that simply goes well is in no list and needs no card.
_LISTED: Final = f"""{CANDIDATES}
   AND c.id = ANY(ARRAY({LISTED.format(of_workspace=_OF_WORKSPACE)}))"""


def fill(*, workspace_id: int | None = None, limit: int = FILL_AT_ONCE_MAX) -> int:
    """Writes up to `limit` missing cards of calls in the queue; says how many it wrote."""
    now = queries.clock()
    parameters = {"workspace_id": workspace_id, "limit": limit, "at": now}
    return _fill(_LISTED, parameters | {"soon": now + CLOSING_SOON})


def cards_of(workspace_id: int, claim_ids: Sequence[UUID]) -> dict[UUID, Card]:
    """The cards of these claims, those that were missing written first. At most a page of them."""
    _fill(
        "c.workspace_id = %(workspace_id)s AND c.id = ANY(%(ids)s)",
        {"workspace_id": workspace_id, "ids": list(claim_ids), "limit": len(claim_ids)},
    )
    found = Card.objects.filter(workspace_id=workspace_id, claim_id__in=claim_ids)
    return {card.claim_id: card for card in found}


def card_now(claim: Claim) -> Card:
    """The card of a call that is looked at: read, and written only where it is missing or old."""
    kept = Card.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk).first()
    if kept is not None and kept.tool_version == claim.tool.version:
        return kept
    return cards_of(claim.workspace_id, [claim.pk])[claim.pk]


def _fill(which: str, parameters: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_MISSING.format(which=which), parameters)
        rows = cursor.fetchall()
    if not rows:
        return 0
    now = queries.clock()
    tools = Tool.objects.in_bulk({tool_id for _, _, tool_id, _ in rows})
    cards = [
        card_of(claim_id, workspace_id, tools[tool_id], arguments, now=now)
        for claim_id, workspace_id, tool_id, arguments in rows
    ]
    # Two fillers may meet; what they write is the same.
    Card.objects.bulk_create(
        cards,
        update_conflicts=True,
        unique_fields=["claim_id"],
        update_fields=FIELDS_READ,
    )
    return len(cards)


def card_of(
    claim_id: UUID, workspace_id: int, tool: Tool, arguments: str | None, *, now: datetime
) -> Card:
    """The card of one claim. Unreadable or emptied arguments make a card that says so."""
    money = registry.amount(tool, arguments)
    customer = registry.customer(tool, arguments) or ""
    if is_stand_in(customer):
        customer = ""  # Two customers who are hidden look alike and are not one.
    return Card(
        claim_id=claim_id,
        workspace_id=workspace_id,
        tool_version=tool.version,
        amount=money.amount if money else None,
        currency=money.currency if money else "",
        places=money.places if money else 2,
        customer=_storable(customer)[:CUSTOMER_CHARACTERS_MAX],
        summary=_storable(registry.summary_line(tool, arguments)),
        filled_at=now,
    )


def _storable(text: str) -> str:
    # PostgreSQL stores no U+0000; arguments refuse it, and evidence of a foreign ledger may not.
    return text.replace("\x00", "\N{SYMBOL FOR NULL}")
