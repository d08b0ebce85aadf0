"""How a response was received, told to the ledger beside the claims of its calls."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from effects.client.asking import ToolCall
from effects.client.clock import elapsed_clock_seconds
from effects.client.integrations.events import Events
from effects.core.events import CALLS_PER_STREAM_MAX, STREAM_RECORDED, CallPart, StreamRecorded
from effects.core.messages import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX
from effects.core.streams import ArgumentsState, CallRecord, StreamRecord

__all__ = ["record_stream", "stream_recorded"]

logger = logging.getLogger("counterfoil")

LATELY: Final = timedelta(hours=1)
"""An instant that lies further back was not read from the clock that integrations read."""

ENDED = frozenset({ArgumentsState.COMPLETE, ArgumentsState.INVALID})
"""States of a call that is known to have ended, whatever its arguments are worth."""


def record_stream(events: Events, record: StreamRecord, at: ToolCall) -> None:
    """Keeps the record of one response for the ledger; `Events.flush` or `Events.send` tells it.

    `at` says which turn it answers: `conversation` and `turn_index`. Every response that was read
    is a stream of its own, also one that answers the same turn again. Never raises into the agent:
    a record that cannot be written is logged.
    """
    stream = f"stream-{uuid.uuid4().hex}"
    try:
        events.tell(stream, STREAM_RECORDED, stream_recorded(record, at, stream))
    except ValidationError:
        logger.exception("The record of a response was not kept: it cannot be written.")


def stream_recorded(record: StreamRecord, at: ToolCall, stream: str) -> StreamRecorded:
    """The record as the ledger takes it. Raises pydantic's ValidationError for a turn without a
    conversation and an index."""
    said = record.error_message or record.error_type or record.reason
    parts = [_part(call) for call in record.calls[:CALLS_PER_STREAM_MAX]]
    last = max((n for n, part in enumerate(parts) if part.complete), default=None)
    if last is not None:
        ended_at = _instant(record.last_call_end_at)
        parts[last] = parts[last].model_copy(update={"ended_at": ended_at})
    return StreamRecorded.model_validate(
        {
            "stream": stream,
            "conversation": at.conversation,
            "turn_index": at.turn_index,
            "response_id": _name(record.response_id),
            "model": _name(record.model),
            "opened_at": _instant(record.first_byte_at),
            "closed_at": _instant(record.terminal_at),
            "terminal": record.terminal,
            "error": None if said is None else _text(said)[:ERROR_CHARACTERS_MAX],
            "calls": tuple(parts),
        }
    )


def _part(call: CallRecord) -> CallPart:
    return CallPart(
        position=call.position,
        tool=_name(call.name),
        call_id=_name(call.call_id),
        arguments=_text(call.raw),
        complete=call.state in ENDED,
    )


def _instant(at: float | None) -> datetime | None:
    """The time of day of an instant of `elapsed_clock_seconds`, or None if it was not read there:
    how long the gap before the last event is, is measured from these."""
    if not at:
        return None
    ago = timedelta(seconds=elapsed_clock_seconds() - at)
    return datetime.now(UTC) - ago if timedelta(0) <= ago <= LATELY else None


def _name(said: str | None) -> str | None:
    """A name that is too long to be one is not cut into another."""
    return None if said is None or len(said) > NAME_CHARACTERS_MAX else _text(said)


def _text(said: str) -> str:
    """Half a character, where a stream was cut inside one, is shown as its escape."""
    return said.encode(errors="backslashreplace").decode()
