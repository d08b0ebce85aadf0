"""Requests that met a claim and were not granted: the executions that were stopped here.

The claim function keeps them (`ledger/sql/claim_v1.sql`), the first `KEPT_MAX` of each claim. They
are evidence about who executed a call again; nothing is ever decided by them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from effects.core.vocabulary import AnswerCode
from ledger.functions import call

KEPT_MAX: Final = 50
"""How many of one claim are kept: the figure in `ledger_asked_again_v1`."""
READ_MAX: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """One request; `nonce` is its own, in hex. `data` is what it says of its origin: see
    `effects.core.messages.Origin`."""

    id: int
    claim_id: UUID
    code: AnswerCode
    at: datetime
    nonce: str | None
    conversation: str | None
    turn_index: int | None
    position: int | None
    data: dict[str, Any]


def of_claims(workspace_id: int, claim_ids: Sequence[UUID]) -> list[AskedAgain]:
    """What was asked and not granted because of these claims, the oldest first."""
    rows = call(
        "SELECT id, claim_id, code::text, at, encode(nonce, 'hex'), conversation,"
        " turn_index, position, data::text"
        " FROM ledger_askedagain WHERE workspace_id = %s AND claim_id = ANY(%s)"
        " ORDER BY id LIMIT %s",
        (workspace_id, list(claim_ids), READ_MAX),
    )
    return [_read(row) for row in rows]


def claims_since(
    workspace_id: int, after: int, *, limit: int, lag_seconds: float = 0.0
) -> list[tuple[int, UUID]]:
    """The numbers after `after` and the claims that they met, at most `limit`, in their order.
    `lag_seconds` leaves out the newest: a number is given before its row is committed."""
    rows = call(
        "SELECT id, claim_id FROM ledger_askedagain"
        " WHERE workspace_id = %s AND id > %s"
        " AND at <= ledger_clock() - make_interval(secs => %s) ORDER BY id LIMIT %s",
        (workspace_id, after, lag_seconds, limit),
    )
    return [(number, claim_id) for number, claim_id in rows]


def _read(row: tuple[Any, ...]) -> AskedAgain:
    number, claim_id, code, at, nonce, conversation, turn_index, position, data = row
    return AskedAgain(
        id=number,
        claim_id=claim_id,
        code=AnswerCode(code),
        at=at,
        nonce=nonce,
        conversation=conversation,
        turn_index=turn_index,
        position=position,
        data=json.loads(data) if data else {},
    )
