"""One response, read from its bytes or from an SDK's event objects."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final, assert_never

from effects.core.canonical import canonical_text
from effects.core.exact_json import Refused, parse_json
from effects.core.streams.anthropic import AnthropicReader
from effects.core.streams.assembly import Assembly
from effects.core.streams.openai_chat import DONE, OpenAIChatReader
from effects.core.streams.openai_responses import OpenAIResponsesReader
from effects.core.streams.record import StreamFlag, StreamRecord
from effects.core.streams.sse import SseDecoder, SseEvent
from effects.core.vocabulary import Terminal

SHOWN_CHARACTERS_MAX: Final = 80


class Protocol(StrEnum):
    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"


class Ending(StrEnum):
    """How the connection ended; it never makes an end of the message."""

    CLEAN = "clean"
    RESET = "reset"
    CANCELLED = "cancelled"


class StreamReader:
    """Reads one response. Feed it bytes, or event objects, and close it.

    `from_events`: an SDK stands in between, which hides what it does not yield.
    """

    def __init__(self, protocol: Protocol, *, from_events: bool = False) -> None:
        self._seen = Assembly()
        self._decoder = SseDecoder()
        self._reader = _reader(protocol, self._seen, from_events=from_events)
        self._data = ""

    def feed(self, chunk: bytes, *, at: float | None = None) -> None:
        """The next bytes, however they were cut; `at` in seconds of a monotonic clock."""
        self._tell_time(at)
        for event in self._decoder.feed(chunk):
            self._read(event)

    def feed_event(self, event: object, *, at: float | None = None) -> None:
        """The next event object of an SDK, or its plain dictionary."""
        self._tell_time(at)
        # What the SDK's types do not hold yet is no reason for it to warn the agent.
        said = event.model_dump(warnings=False) if hasattr(event, "model_dump") else event
        if not isinstance(said, dict):
            self._seen.warn(f"unreadable event: {type(event).__name__}")
            self._seen.suspect_open_calls(StreamFlag.UNREADABLE_EVENT)
            return
        self._data = ""
        self._reader.read("", said, self._exact_of(said))

    def reconnected(self) -> None:
        """The next bytes come over a new connection of the same response. What the old one left
        unfinished is no beginning of what comes now; numbered events that come again are applied
        once."""
        rest = self._decoder.close()
        if rest is not None:
            self._read_rest(rest)
        self._decoder = SseDecoder()

    def close(self, ending: Ending = Ending.CLEAN) -> StreamRecord:
        """What the response amounts to. Without its protocol's last word it is cut, however
        cleanly the connection ended."""
        rest = self._decoder.close()
        if rest is not None:
            self._read_rest(rest)
        self._reader.close()
        if self._seen.terminal is None:
            cancelled = ending is Ending.CANCELLED
            self._seen.finish(Terminal.CANCELLED if cancelled else Terminal.CUT)
        return self._seen.record()

    @property
    def progress(self) -> tuple[bool, ...]:
        """For every call that has begun so far, by its position: whether it has ended."""
        return tuple(call.ended for call in self._seen.calls)

    def _tell_time(self, at: float | None) -> None:
        self._seen.at = at
        if self._seen.first_byte_at is None:
            self._seen.first_byte_at = at

    def _read_rest(self, event: SseEvent) -> None:
        """An event without its blank line counts only if it is whole in itself: a cut one does not
        parse."""
        if event.data.strip() == DONE or _json_object(event.data) is not None:
            self._seen.warn("last event not terminated by a blank line")
            self._read(event)
        elif event.data.strip():
            self._seen.warn("last event cut short")

    def _read(self, event: SseEvent) -> None:
        data = event.data.strip()
        if event.damaged:
            self._seen.warn("an event is damaged: not whole UTF-8, or too long")
            self._seen.suspect_open_calls(StreamFlag.DAMAGED)
        if not data:
            return
        if self._seen.terminal is not None and event.name != "ping":
            if data != DONE:
                self._seen.warn("an event after the last one")
            return
        if data == DONE:
            if isinstance(self._reader, OpenAIChatReader):
                self._reader.done()
            return
        said = _json_object(data)
        if said is None:
            self._unreadable(data)
            return
        self._data = data
        self._reader.read(event.name, said, self._exact_of(said))

    def _unreadable(self, data: str) -> None:
        shown = data[:SHOWN_CHARACTERS_MAX].encode("ascii", "backslashreplace").decode()
        self._seen.warn(f"unreadable event: {shown}")
        # A comment that some layer wrapped again as data carries nothing; anything else may have.
        if not data.startswith(":"):
            self._seen.suspect_open_calls(StreamFlag.UNREADABLE_EVENT)

    def _exact_of(self, said: dict[str, Any]) -> _Exact:
        return _Exact(said, self._data)


class _Exact:
    """The JSON text of a value inside an event, with every digit as it was sent.

    Only for servers that send arguments as an object instead of a text. Where an SDK has read the
    event, its numbers are what it made of them.
    """

    def __init__(self, said: dict[str, Any], data: str) -> None:
        self._said, self._data = said, data

    def __call__(self, *path: str | int) -> str:
        value: Any = self._said
        if self._data:
            try:
                value = parse_json(self._data)
                return canonical_text(_at(value, path))
            except Refused:
                value = self._said
        return json.dumps(_at(value, path), ensure_ascii=False)


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _reader(
    protocol: Protocol, seen: Assembly, *, from_events: bool
) -> AnthropicReader | OpenAIChatReader | OpenAIResponsesReader:
    match protocol:
        case Protocol.ANTHROPIC:
            return AnthropicReader(seen)
        case Protocol.OPENAI_CHAT:
            return OpenAIChatReader(seen, sees_done=not from_events)
        case Protocol.OPENAI_RESPONSES:
            return OpenAIResponsesReader(seen)
        case _:
            assert_never(protocol)


def _json_object(data: str) -> dict[str, Any] | None:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def read_stream(protocol: Protocol, body: bytes, ending: Ending = Ending.CLEAN) -> StreamRecord:
    """A response whose bytes are all there."""
    reader = StreamReader(protocol)
    reader.feed(body)
    return reader.close(ending)
