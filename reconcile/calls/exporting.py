"""A call as one JSON document, every digit as it was received.

What was received as JSON stands in the document as it was written: it is never read into numbers
and written again. A body is named by its size and digest; the call's page has it as a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from effects.pages.settings import ShownTimes
from ledger import excerpts
from ledger import queries as record
from reconcile.reading import is_json

if TYPE_CHECKING:
    from ledger.models import Claim, Decision
    from reconcile.queries import Call

FORMAT: Final = "counterfoil.call.v1"
EVENTS_EXPORTED_MAX: Final = 10_000
"""The newest ones; `events_left_out` says how many are older."""

_EVENTS: Final = """
SELECT seq, at, kind::text, word::text, fence, generation, object, objects_seen, replayed,
       marker_sent, counts, conditional, decision_id, data::text AS data
  FROM ledger_event WHERE claim_id = %(claim_id)s AND seq > %(after)s AND seq <= %(version)s
 ORDER BY seq
"""
_BODIES: Final = """
SELECT seq, name, size_bytes, encode(digest, 'hex') AS sha256, emptied_at, emptied_reason
  FROM ledger_payload WHERE claim_id = %(claim_id)s AND workspace_id = %(workspace_id)s
 ORDER BY seq, name LIMIT %(limit)s
"""
_CLAIM_FIELDS: Final = (
    *("effect_class", "version", "fence", "generation", "budget", "granted_at", "completed_at"),
    *("decided_at", "lease_until", "window_until", "grant_until", "pending_at", "key"),
    *("conversation", "turn_index", "position", "ordinal", "response_id", "call_id", "flags"),
    "object",
)
_DECISION_FIELDS: Final = (
    *("verdict", "withdraws", "claim_version", "fence", "object", "objects_named", "reason"),
    *("evidence", "screen_hash", "rule", "decided_at", "effective_at", "typed", "alone"),
    *("proposed_at", "approver_role", "approval_reason", "chain_number", "hash"),
)


@dataclass(frozen=True, slots=True)
class AsReceived:
    """A JSON text that stands in the document as it is."""

    text: str


def document(seen: Call) -> str:
    """The call and its record, one member a line, in the order of the page."""
    claim, money = seen.claim, seen.money
    received = record.arguments_text(claim)
    events = _events(claim)
    return _written(
        {
            "format": FORMAT,
            "at": seen.now,
            "address": record.link(claim.pk),
            "claim_id": str(claim.pk),
            "tool": seen.tool.name,
            "state": seen.situation.state,
            "reason": seen.situation.reason,
            "summary": seen.summary,
            "amount": {"figure": money.figure, "currency": money.currency} if money else None,
            "customer": seen.customer or None,
            "claim": {name: getattr(claim, name) for name in _CLAIM_FIELDS},
            "arguments_sha256": bytes(claim.arguments_digest),
            "arguments": None if received is None else _as_received(received),
            "decisions": [_decision(seen, made) for made in _every_decision(claim)],
            "events_left_out": claim.version - len(events),
            "events": events,
            "bodies": _rows(_BODIES, claim, limit=EVENTS_EXPORTED_MAX),
        }
    )


def _every_decision(claim: Claim) -> list[Decision]:
    return excerpts.decisions(claim, limit=excerpts.ROWS_MAX)


def _decision(seen: Call, made: Decision) -> dict[str, Any]:
    by, approved = made.decided_by, made.approved_by
    return {
        "id": made.pk,
        "decided_by": by.get_username() if by else None,
        "approved_by": approved.get_username() if approved else None,
        "fate": seen.fates.get(made.pk),
        **{name: getattr(made, name) for name in _DECISION_FIELDS},
    }


def _events(claim: Claim) -> list[dict[str, Any]]:
    rows = _rows(_EVENTS, claim, after=max(0, claim.version - EVENTS_EXPORTED_MAX))
    for row in rows:
        if row["data"] is not None:
            row["data"] = AsReceived(row["data"])
    return rows


def _rows(statement: str, claim: Claim, **more: int) -> list[dict[str, Any]]:
    parameters: dict[str, Any] = {
        "claim_id": claim.pk,
        "workspace_id": claim.workspace_id,
        "version": claim.version,
        **more,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _as_received(text: str) -> AsReceived | str:
    return AsReceived(text) if is_json(text) else text


# Writing


def _written(members: Mapping[str, Any]) -> str:
    lines = (f"  {json.dumps(name)}: {_value(value)}" for name, value in members.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    match value:
        case AsReceived(text):
            return text
        case datetime():
            return json.dumps(ShownTimes.iso_exact(value))
        case bytes() | memoryview():
            return json.dumps(bytes(value).hex())
        case dict():
            inner = (f"{json.dumps(str(name))}: {_value(one)}" for name, one in value.items())
            return "{" + ", ".join(inner) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
