"""The rows of a list: what people see of a call, read for the calls of one page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection

from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Reason, SightingWord
from effects.money import Money
from reconcile import cards
from reconcile.models import Card
from reconcile.queue import EVENTS_LOOKED_BACK_MAX
from reconcile.situation import Strength

ERROR_CHARACTERS_MAX: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSeen:
    """As much of a tool as a row shows; `window_seconds` is what its window bar is drawn from."""

    name: str
    window_seconds: int | None
    can_look_up: bool
    lookups_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvidence:
    word: SightingWord
    at: datetime
    strength: Strength
    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call in the list, as it was at `version`. `ended` is how its newest attempt ended, in
    words of the attempt's own report; `check_at` None: nobody will be asked again by itself."""

    claim_id: UUID
    version: int
    state: ClaimState
    reason: Reason | None
    effect_class: EffectClass
    granted_at: datetime
    window_until: datetime | None
    tool: ToolSeen
    summary: str
    money: Money | None
    customer: str
    conversation: str | None
    turn_index: int | None
    ended: str
    evidence: LastEvidence | None
    check_at: datetime | None
    check_number: int
    held_until: datetime | None
    waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A call as a list showed it."""

    claim_id: UUID
    version: int
    state: ClaimState


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Seen):
    """The same with its place in the list; `held`: a decision about it is in its minute."""

    group: int
    first: Decimal
    second: Decimal
    held: bool
    waiting: bool


# What a row shows, for the rows of one page only.

_DETAILS: Final = """
SELECT c.id, c.effect_class, c.granted_at, c.window_until, c.reason, c.pending_at, c.conversation,
  c.turn_index, t.name, t.window_seconds, t.lookups_max,
  t.lookup_kind <> '' AND t.connection_id IS NOT NULL AS can_look_up,
  seen.word AS seen_word, seen.at AS seen_at, seen.data->>'strength' AS strength,
  seen.data->>'route' AS route,
  report.word AS outcome, report.data->>'http_status' AS http_status,
  left(report.data->>'error', %(error_characters)s) AS error,
  d.at AS check_at, coalesce(d.tries, 0) AS tries
FROM ledger_claim c
JOIN effects_tool t ON t.id = c.tool_id
LEFT JOIN ledger_due d ON d.claim_id = c.id AND d.why = 'lookup'
LEFT JOIN LATERAL (
  SELECT * FROM ledger_event e WHERE e.claim_id = c.id AND e.kind = 'sighting'
    AND e.seq > c.version - %(events_back)s ORDER BY e.seq DESC LIMIT 1) seen ON true
LEFT JOIN LATERAL (
  SELECT * FROM ledger_event e WHERE e.claim_id = c.id AND e.kind = 'reported'
    AND e.seq > c.version - %(events_back)s ORDER BY e.seq DESC LIMIT 1) report ON true
WHERE c.workspace_id = %(workspace_id)s AND c.id = ANY(%(ids)s)
"""


def rows_of(workspace_id: int, placed: Sequence[Placed]) -> list[Row]:
    """What people see of these calls, in their order."""
    if not placed:
        return []
    ids = [place.claim_id for place in placed]
    card_of = cards.cards_of(workspace_id, ids)
    parameters = {
        "workspace_id": workspace_id,
        "ids": ids,
        "events_back": EVENTS_LOOKED_BACK_MAX,
        "error_characters": ERROR_CHARACTERS_MAX,
    }
    details = {row["id"]: row for row in ask(_DETAILS, parameters)}
    return [_row(place, details[place.claim_id], card_of[place.claim_id]) for place in placed]


def _row(place: Placed, said: dict[str, Any], card: Card) -> Row:
    return Row(
        claim_id=place.claim_id,
        version=place.version,
        state=place.state,
        reason=Reason(said["reason"]) if said["reason"] else None,
        effect_class=EffectClass(said["effect_class"]),
        granted_at=said["granted_at"],
        window_until=said["window_until"],
        tool=ToolSeen(
            name=said["name"],
            window_seconds=said["window_seconds"],
            can_look_up=said["can_look_up"],
            lookups_max=said["lookups_max"],
        ),
        summary=card.summary,
        money=card.money,
        customer=card.customer,
        conversation=said["conversation"],
        turn_index=said["turn_index"],
        ended=ended_words(said["outcome"], said["http_status"], said["error"]),
        evidence=_evidence(said),
        check_at=said["check_at"],
        check_number=said["tries"] + 1,
        held_until=said["pending_at"],
        waiting=place.waiting,
    )


def _evidence(said: dict[str, Any]) -> LastEvidence | None:
    if said["seen_word"] is None:
        return None
    strength = said["strength"]
    return LastEvidence(
        word=SightingWord(said["seen_word"]),
        at=said["seen_at"],
        strength=Strength(strength) if strength in list(Strength) else Strength.SAYS_NOTHING,
        route=said["route"] or "",
    )


def ended_words(outcome: str | None, http_status: str | int | None, error: str | None) -> str:
    """How the newest attempt ended, in a few words of its own report."""
    if outcome is None:
        return "no report from the worker"
    if http_status is not None:
        return f"answered HTTP {http_status}"
    if error:
        return error
    return {
        Outcome.NOT_SENT: "not sent",
        Outcome.REFUSED: "refused",
        Outcome.REFUSED_STORED: "refused, stored under the key",
        Outcome.COMPLETED: "reported as done",
        Outcome.UNKNOWN: "answer lost",
    }[Outcome(outcome)]


def ask(statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
