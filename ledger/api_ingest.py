"""The door for ledgers kept elsewhere: events and streams, in any order, twice, in any framing.

The answer is 200 with one word for each item, whatever the items are. Refused as a whole is only
what names no sender, is too large, or cannot be taken apart; the refusal then says what was kept.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Router

from effects.core.events import IngestAnswer
from effects.core.vocabulary import TokenScope
from ledger import ingest
from ledger.bearer import BearerToken, bearer_of
from ledger.ingest_framing import MEDIA_TYPES, Broken, read_body, split
from ledger.ingest_reading import EVENTS, STREAMS, Door
from ledger.refusals import BodyUnreadable

MAY_INGEST: Final = BearerToken(TokenScope.INGEST)

router = Router()


def _reads(described: str) -> dict[str, Any]:
    schema = {"description": described, "type": "object"}
    content = {kind: {"schema": schema} for kind in MEDIA_TYPES}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "events",
    auth=MAY_INGEST,
    openapi_extra=_reads("Events: id, source, type, time, data. One, an array, or one a line."),
    response=IngestAnswer,
)
def events(request: HttpRequest) -> HttpResponse:
    """Tell the ledger what happened elsewhere: claims, attempts, sightings, notes, streams.

    Events may come late, twice and in any order; each gets its own word. `applied`, `recorded` and
    `duplicate` need nothing more; `parked` waits for what it speaks of; `failed` is tried again;
    `conflict` and `unreadable` are kept, and a person or the sender has to look.
    """
    return _ingested(request, EVENTS)


@router.post(
    "streams",
    auth=MAY_INGEST,
    openapi_extra=_reads("Stream records: id, source, time, data; or single stream events."),
    response=IngestAnswer,
)
def streams(request: HttpRequest) -> HttpResponse:
    """Tell the ledger how a model's responses were received: whole records, or single events.

    The answer says for each stream up to where everything is applied.
    """
    return _ingested(request, STREAMS)


def _ingested(request: HttpRequest, door: Door) -> HttpResponse:
    bearer = bearer_of(request)
    body = read_body(request)
    try:
        raws = split(body)
    except Broken as fault:
        says = f"The body cannot be taken apart: {fault}."
        item = ingest.keep_unread(bearer.workspace_id, bearer.token_id, door, body.raw, says)
        raise BodyUnreadable(
            f"{says} It is kept whole as item {item}; nothing of it was applied. Send it again.",
            kept=1,
            item=item,
        ) from None
    answer = ingest.ingest(
        bearer.workspace_id, bearer.token_id, door, raws, is_cloudevent=body.is_cloudevent
    )
    response = HttpResponse(
        answer.model_dump_json(exclude_none=True), content_type="application/json"
    )
    response["Cache-Control"] = "no-store"
    return response
