"""A capture kept with a turn: as the record of a response, through the one door of ingest.

The bytes themselves are not kept: redaction knows paths in arguments, and no fragments of a stream.
Their digest names the record, so the same capture is kept once.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from effects import audit
from effects.core.events import STREAM_RECORDED
from effects.core.messages import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX
from effects.core.streams.record import ArgumentsState
from effects.core.vocabulary import ItemState
from effects.models import Workspace
from ledger.capture.reading import Capture
from ledger.ingest import ingest
from ledger.ingest_reading import ITEM_BYTES_MAX, STREAMS
from ledger.paths import turn_address

SOURCE: Final = "desk:capture"
ACT: Final = "capture.kept"
_KEPT: Final = frozenset({ItemState.APPLIED, ItemState.RECORDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of it: `fault` is a sentence where the door did not take it."""

    again: bool = False
    fault: str = ""


def keep(
    workspace: Workspace, user_id: int, capture: Capture, *, conversation: str, turn_index: int
) -> Kept:
    """Keeps the record of a capture with a turn, and says in the audit log who did."""
    # One capture may be kept with several turns, and once with each.
    place = hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()
    name = f"{capture.digest[:32]}:{place[:16]}:{turn_index}"
    record = {
        "id": name,
        "source": SOURCE,
        "type": STREAM_RECORDED,
        "data": _data(capture, name, conversation, turn_index),
    }
    raw = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(raw) > ITEM_BYTES_MAX:
        return Kept(
            fault=f"Its record has {len(raw)} bytes; the limit ITEM_BYTES_MAX is {ITEM_BYTES_MAX}. "
            "Nothing was kept."
        )
    with transaction.atomic():
        item = ingest(workspace.pk, None, STREAMS, [raw]).items[0]
        if item.state not in _KEPT or item.reason == "stream_differs":
            transaction.set_rollback(True)
            return Kept(fault=f"Nothing was kept. {item.says or item.word}")
        if item.word == "duplicate":
            return Kept(again=True)
        audit.keep(
            workspace.pk,
            ACT,
            user_id=user_id,
            target=f"turn {turn_index} of {conversation}",
            address=turn_address(conversation, turn_index),
            after={
                "sha256": capture.digest,
                "bytes": capture.size_bytes,
                "protocol": str(capture.protocol),
                "terminal": str(capture.record.terminal),
                "calls": len(capture.record.calls),
            },
        )
    return Kept()


def _name(text: str | None) -> str | None:
    """A name that the record can hold. Part of a longer one would be another name."""
    return text if text is not None and len(text) <= NAME_CHARACTERS_MAX else None


def _data(capture: Capture, stream: str, conversation: str, turn_index: int) -> dict[str, Any]:
    record = capture.record
    said: dict[str, Any] = {
        "stream": stream,
        "conversation": conversation,
        "turn_index": turn_index,
        "response_id": _name(record.response_id),
        "model": _name(record.model),
        "terminal": str(record.terminal),
        "error": (record.error_message or record.error_type or "")[:ERROR_CHARACTERS_MAX] or None,
        "cursor": capture.events,
        "last_sequence": capture.events,
        "calls": [
            {
                "position": call.position,
                "tool": _name(call.name),
                "call_id": _name(call.call_id),
                "arguments": call.raw,
                "complete": call.state is ArgumentsState.COMPLETE,
            }
            for call in record.calls
        ],
    }
    return {name: value for name, value in said.items() if value is not None}
