"""Calls that were sent while the ledger could not be asked: `POST /api/v1/claims:offline` (ADR 16).

They are evidence, like everything that was not granted here, and go the way of all evidence: kept
first, then applied, each item once.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from effects.core.claim_rows import ORIGIN_FACTS
from effects.core.messages import ClaimAnswer, OfflineCall, OfflineEnd
from effects.core.problems import BadRequest
from effects.core.vocabulary import Outcome, TokenScope
from ledger import ingest, queries
from ledger.bearer import BearerToken, bearer_of
from ledger.ingest_reading import EVENTS, ITEM_BYTES_MAX
from ledger.openapi import ANSWERS, reads
from ledger.reading import read_offline
from ledger.refusals import answer_response

MAY_CLAIM: Final = BearerToken(TokenScope.CLAIM)
SOURCE: Final = "counterfoil-client"
"""Who says it. Not the token: one record may be told twice, and with another token by then."""

CLAIMED: Final = frozenset(
    {
        *("tool", "effect_class", "arguments", "conversation", "turn_index", "position", "ordinal"),
        *("response_id", "call_id", "caller_key", *ORIGIN_FACTS),
    }
)
ENDED: Final = frozenset(
    {
        *("worker", "delivery_count", "retry_count", "provider_object", "replayed", "http_status"),
        *("provider_code", "request_id", "error"),
    }
)

router = Router()


@router.post("claims:offline", auth=MAY_CLAIM, openapi_extra=reads(OfflineCall), response=ANSWERS)
def claim_offline(request: HttpRequest) -> HttpResponse:
    """Tell of a call that was sent while the ledger could not be asked, and how it ended.

    It grants nothing. The call becomes an attempt, marked as granted by nobody, of the claim with
    the same identities; without one it makes the claim. Told twice it is the same fact, and its end
    may follow later. Until then its lease runs, and when that is over its outcome is unknown.
    """
    bearer = bearer_of(request)
    told = read_offline(request)
    if told.workspace != bearer.workspace_id:
        raise BadRequest(
            f"Attempt {told.attempt} was made for another workspace than the token's, so nothing "
            "of it was recorded. Send it with a token of its own workspace."
        )
    raws = [json.dumps(event).encode() for event in events_of(told)]
    answer = ingest.ingest(bearer.workspace_id, bearer.token_id, EVENTS, raws)
    claim_id = next((item.claim_id for item in answer.items if item.claim_id), None)
    if claim_id is None:  # Nothing to ask about: a read, or an item that is kept and waits.
        return answer_response(ClaimAnswer(tool=told.request.tool))
    found = queries.claim(bearer.workspace_id, UUID(claim_id))
    return answer_response(queries.status(found, now=queries.clock()))


def events_of(told: OfflineCall) -> list[dict[str, Any]]:
    """The events that say it, the same ones each time that it is told."""
    made = told.request.model_dump(mode="json", include=set(CLAIMED), exclude_none=True)
    named = {"claim": told.attempt, "attempt": told.attempt}
    events = [
        _event(
            told, "claim.made", told.claimed_at, {**made, "claim": told.attempt, "key": told.key}
        ),
        _event(told, "attempt.started", told.claimed_at, {**named, "key": told.key}),
    ]
    if told.end is not None:
        events.append(_ended(told, told.end, named))
    return events


def _ended(told: OfflineCall, end: OfflineEnd, named: dict[str, str]) -> dict[str, Any]:
    said = named | end.model_dump(mode="json", include=set(ENDED), exclude_none=True)
    if end.outcome is Outcome.UNKNOWN:
        return _event(told, "attempt.unknown", end.ended_at, said)
    if end.outcome is not Outcome.COMPLETED:
        return _event(told, "attempt.failed", end.ended_at, {**said, "proof": str(end.outcome)})
    whole = _event(told, "attempt.completed", end.ended_at, {**said, "result": end.result})
    if len(json.dumps(whole).encode()) <= ITEM_BYTES_MAX:
        return whole
    # A result that is too long does not cost the report: the effect happened, and that counts.
    return _event(told, "attempt.completed", end.ended_at, said)


def _event(told: OfflineCall, kind: str, at: datetime, data: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in data.items() if value is not None}
    return {
        "id": f"{told.attempt}-{kind}",
        "source": SOURCE,
        "type": kind,
        "time": at.isoformat(),
        "data": said,
    }
