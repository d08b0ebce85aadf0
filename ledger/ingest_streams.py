"""Streams and the calls that they announced, applied.

A stream's cursor moves in the transaction that applies the events it counts, never in another: a
reader that resumes after it misses nothing, and what it sends twice is applied once.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from effects.core import events as said
from effects.core.identity import digest as identity_digest
from effects.core.vocabulary import ItemState
from ledger.functions import call
from ledger.ingest_parts import Applied, Context, Outcomes, Parked, parked_unless_known


def _open_stream(
    context: Context, opened: said.StreamOpened | said.StreamRecorded, *, opened_at: Any
) -> tuple[int, str, bytes]:
    ref = context.ref("stream", opened.stream)
    scope = identity_digest("scope", context.workspace_id, opened.conversation, opened.turn_index)
    ((stream_id, word),) = call(
        "SELECT stream, word FROM ledger_mirror_stream_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            context.workspace_id,
            context.item.source,
            opened.stream,
            ref,
            scope,
            opened.conversation,
            opened.turn_index,
            opened.response_id,
            opened.model,
            opened_at,
        ),
    )
    return stream_id, word, ref


_DIFFERS: Final = (
    "This name of a stream stands for another turn or response already. Both are kept; the first "
    "one stands."
)


def stream_opened(context: Context, opened: said.StreamOpened) -> Outcomes:
    stream_id, word, ref = _open_stream(context, opened, opened_at=context.item.said_at)
    if word == "differs":
        return Applied(
            state=ItemState.RECORDED, reason="stream_differs", says=_DIFFERS, stream_id=stream_id
        )
    _advance(stream_id, sequence=opened.sequence)
    return Applied(stream_id=stream_id, reason=word, refs=(ref,))


def _known_stream(context: Context, name: str) -> tuple[int, None] | tuple[None, Parked]:
    ref = context.ref("stream", name)
    parked = parked_unless_known(context, f"stream {name}", ref)
    if parked:
        return None, parked
    ((stream_id,),) = call("SELECT stream_id FROM ledger_foreignname WHERE ref = %s", (ref,))
    return stream_id, None


def stream_closed(context: Context, closed: said.StreamClosed) -> Outcomes:
    stream_id, parked = _known_stream(context, closed.stream)
    if stream_id is None:
        assert parked is not None
        return parked
    call(
        "SELECT ledger_mirror_close_v1(%s, %s, %s, %s, %s)",
        (stream_id, str(closed.terminal), context.item.said_at, closed.error, closed.last_sequence),
    )
    _advance(stream_id, sequence=closed.sequence)
    return Applied(stream_id=stream_id)


def call_announced(context: Context, announced: said.CallAnnounced) -> Outcomes:
    stream_id, parked = _known_stream(context, announced.stream)
    if stream_id is None:
        assert parked is not None
        return parked
    _write_call(context, stream_id, announced, 0)
    _advance(stream_id, sequence=announced.sequence)
    return Applied(stream_id=stream_id)


def stream_recorded(context: Context, record: said.StreamRecorded) -> Outcomes:
    opened_at = record.opened_at or context.item.said_at
    stream_id, word, ref = _open_stream(context, record, opened_at=opened_at)
    if word == "differs":
        return Applied(
            state=ItemState.RECORDED, reason="stream_differs", says=_DIFFERS, stream_id=stream_id
        )
    for number, part in enumerate(record.calls):
        _write_call(context, stream_id, part, number)
    if record.terminal is not None or record.last_sequence is not None:
        call(
            "SELECT ledger_mirror_close_v1(%s, %s, %s, %s, %s)",
            (
                stream_id,
                record.terminal and str(record.terminal),
                record.closed_at,
                record.error,
                record.last_sequence,
            ),
        )
    _advance(stream_id, upto=record.cursor)
    return Applied(stream_id=stream_id, reason=word, refs=(ref,))


def _advance(stream_id: int, *, sequence: int | None = None, upto: int | None = None) -> None:
    call("SELECT ledger_stream_cursor_v1(%s, %s, %s)", (stream_id, sequence, upto))


def _write_call(context: Context, stream_id: int, part: said.CallPart, number: int) -> None:
    sent = (part.arguments or "").encode("utf-8", "surrogatepass")
    size, digest = len(sent), hashlib.sha256(sent).digest()
    if context.exact is not None and "calls" in context.exact:
        size, written = context.exact["calls"][number]
        digest = bytes.fromhex(written)
    call(
        "SELECT ledger_mirror_call_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            context.workspace_id,
            stream_id,
            part.position,
            part.ordinal,
            part.tool,
            part.call_id,
            part.complete,
            size,
            digest,
            part.ended_at or context.item.said_at,
            context.item_id,
        ),
    )
