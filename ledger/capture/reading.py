"""A capture of one response, pasted or uploaded, as the product reads it. Pure, and keeps nothing.

A capture is the bytes of a stream (server-sent events), or the events of an SDK as JSON, one in
each line or all in one list. Whose protocol it is may be said, or is guessed from its first events.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from effects.core.streams import Ending, Protocol, StreamReader, StreamRecord
from effects.core.streams.openai_chat import DONE
from effects.core.streams.sse import SseDecoder

CAPTURE_BYTES_MAX: Final = 10 * 1000 * 1000
"""Most bytes of a capture: 10 MB."""
GUESSED_FROM_EVENTS: Final = 200
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ANTHROPIC: Final = frozenset(
    {
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "ping"),
    }
)


class Form(StrEnum):
    SSE = "sse"
    NDJSON = "ndjson"

    @property
    def words(self) -> str:
        return {"sse": "server-sent events", "ndjson": "events as JSON, one in a line"}[self]


class CaptureFault(Exception):
    """The capture cannot be read; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a call stands in the capture, by numbers of events from 1; `ended` 0: it did not."""

    began: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a capture says. `guessed`: nobody said whose protocol it is. `events` counts its events,
    `undecodable` the bytes that are not UTF-8. `digest` is of the bytes as they came."""

    protocol: Protocol
    guessed: bool
    form: Form
    record: StreamRecord
    spans: tuple[Span, ...]
    events: int
    size_bytes: int
    undecodable: int
    digest: str


def read_capture(body: bytes, protocol: Protocol | None, ending: Ending) -> Capture:
    """Reads a capture. Raises `CaptureFault` where it is empty, too large, or nobody's protocol."""
    if len(body) > CAPTURE_BYTES_MAX:
        raise CaptureFault(
            f"The capture has {len(body)} bytes; the limit CAPTURE_BYTES_MAX is "
            f"{CAPTURE_BYTES_MAX} (10 MB). Nothing of it was read."
        )
    if not body.strip():
        raise CaptureFault("The capture is empty.")
    form, pieces = _pieces(body)
    meant = protocol or guess(pieces)
    if meant is None:
        raise CaptureFault(
            "Nothing in it says whose protocol this is. Choose the provider, or look whether the "
            "beginning is missing."
        )
    reader = StreamReader(meant, from_events=form is Form.NDJSON)
    began: list[int] = []
    ended: dict[int, int] = {}
    for number, piece in enumerate(pieces, 1):
        reader.feed(piece, at=float(number))
        for position, over in enumerate(reader.progress):
            if position == len(began):
                began.append(number)
            if over:
                ended.setdefault(position, number)
    return Capture(
        protocol=meant,
        guessed=protocol is None,
        form=form,
        record=reader.close(ending),
        spans=tuple(Span(began=at, ended=ended.get(n, 0)) for n, at in enumerate(began)),
        events=len(pieces),
        size_bytes=len(body),
        undecodable=_undecodable(body),
        digest=hashlib.sha256(body).hexdigest(),
    )


def _undecodable(body: bytes) -> int:
    try:
        body.decode()
    except UnicodeDecodeError:
        return sum("\udc80" <= c <= "\udcff" for c in body.decode("utf-8", "surrogateescape"))
    return 0


# What it is made of


def _pieces(body: bytes) -> tuple[Form, list[bytes]]:
    """The capture in pieces of one event, each as server-sent events have it. How bytes are cut
    never changes what is read."""
    text = body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"[":
        return Form.NDJSON, [_as_event(line) for line in _listed(text)]
    if text[:1] == b"{":
        return Form.NDJSON, [_as_event(line) for line in text.splitlines() if line.strip()]
    return Form.SSE, list(_cut(body))


def _cut(body: bytes) -> Iterator[bytes]:
    at = 0
    for blank in _BLANK_LINE.finditer(body):
        yield body[at : blank.end()]
        at = blank.end()
    if at < len(body):
        yield body[at:]


def _as_event(line: bytes) -> bytes:
    return b"data: " + line.strip() + b"\n\n"


def _listed(text: bytes) -> Iterator[bytes]:
    """The events of one JSON list, each as one line with its digits as they were written."""
    try:
        events = json.loads(text, parse_float=_Digits, parse_int=_Digits)
        written = [_written(event) for event in events]
    except (ValueError, RecursionError) as fault:
        raise CaptureFault(f"It begins as a JSON list and is none: {fault}.") from None
    yield from (event.encode("utf-8", "surrogatepass") for event in written)


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


def _written(value: Any) -> str:
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)}: {_written(one)}" for name, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(_written(one) for one in value)}]"
    return json.dumps(value)


# Whose it is


def guess(pieces: list[bytes]) -> Protocol | None:
    """Whose protocol these events are, by what most of the first say; None where nothing tells."""
    votes: Counter[Protocol] = Counter()
    decoder = SseDecoder()
    for piece in pieces[:GUESSED_FROM_EVENTS]:
        for event in decoder.feed(piece):
            vote = _vote(event.name, event.data.strip())
            if vote is not None:
                votes[vote] += 1
    return votes.most_common(1)[0][0] if votes else None


def _vote(name: str, data: str) -> Protocol | None:
    if data == DONE:
        return Protocol.OPENAI_CHAT
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    kind = said.get("type")
    kind = kind if isinstance(kind, str) else name
    if kind in _ANTHROPIC:
        return Protocol.ANTHROPIC
    if kind.startswith("response."):
        return Protocol.OPENAI_RESPONSES
    return _vote_of_error(kind, said) or _vote_of_chunk(said)


def _vote_of_chunk(said: Mapping[str, Any]) -> Protocol | None:
    chunk = said.get("object") == "chat.completion.chunk" or isinstance(said.get("choices"), list)
    return Protocol.OPENAI_CHAT if chunk else None


def _vote_of_error(kind: str, said: Mapping[str, Any]) -> Protocol | None:
    """An error event looks almost alike in all three."""
    if kind == "error" and "sequence_number" in said:
        return Protocol.OPENAI_RESPONSES
    if kind == "error" and isinstance(said.get("error"), dict):
        return Protocol.ANTHROPIC
    return Protocol.OPENAI_CHAT if isinstance(said.get("error"), dict) and not kind else None
