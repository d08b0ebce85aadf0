"""Streams: one response's bytes, read in every way that a network may cut them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from effects.core.canonical import Refused, canonical_text, parse_arguments
from effects.core.streams import (
    CallRecord,
    Dispatched,
    Ending,
    Protocol,
    StreamReader,
    StreamRecord,
)
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields, Findings

BYTES_MAX: Final = 32 * 1024 * 1024
"""Most bytes of one response that a case may hold or describe."""
BYTEWISE_MAX: Final = 256 * 1024
"""A longer response is not also read byte by byte."""
UNEVEN: Final = (1, 2, 3, 5, 7, 11, 13, 64)
ANY: Final = "*"
"""As a call's id: whatever it is."""

Connections = list[list[bytes]]
"""The chunks of each connection of one response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One response of a case: its bytes as they may be cut, and what was done with its calls."""

    protocol: Protocol
    ending: Ending
    connections: Connections

    def readings(self) -> Iterator[tuple[str, StreamRecord]]:
        """The record by every way of cutting the bytes. All must be the same."""
        whole = [b"".join(chunks) for chunks in self.connections]
        yield "whole", self._read([[body] for body in whole])
        yield "in the given chunks", self._read(self.connections)
        yield "in uneven pieces", self._read([list(_uneven(body)) for body in whole])
        if sum(map(len, whole)) <= BYTEWISE_MAX:
            yield "byte by byte", self._read([[bytes([b]) for b in body] for body in whole])

    def _read(self, connections: Connections) -> StreamRecord:
        reader = StreamReader(self.protocol)
        for number, chunks in enumerate(connections):
            if number:
                reader.reconnected()
            for chunk in chunks:
                reader.feed(chunk)
        return reader.close(self.ending)


def _uneven(body: bytes) -> Iterator[bytes]:
    at = turn = 0
    while at < len(body):
        size = UNEVEN[turn % len(UNEVEN)]
        yield body[at : at + size]
        at, turn = at + size, turn + 1


def describes_a_response(given: Fields) -> bool:
    sources = ("sse", "sse_chunks_b64", "segments", "stream_recipe")
    return any(given.has(name) for name in sources)


def response_of(given: Fields) -> Response:
    """The response that an input describes. Raises `Fault`."""
    if given.has("stream_recipe"):
        return _from_recipe(Fields(given.at("stream_recipe"), given.take("stream_recipe", dict)))
    given.take("http_status", int, 200)
    segments = given.take("segments", list, None)
    if segments is None:
        connections, ending = [_chunks(given)], _word(given, "eof", Ending, Ending.CLEAN)
    else:
        parts = [_segment(given.at(f"segments[{n}]"), part) for n, part in enumerate(segments)]
        if not parts:
            raise Fault(given.at("segments"), "is empty")
        connections = [chunks for chunks, _ in parts]
        ending = _word(given, "eof", Ending, parts[-1][1])
    return Response(
        protocol=_word(given, "protocol", Protocol), ending=ending, connections=connections
    )


def _word(given: Fields, name: str, words: Any, default: Any = None) -> Any:
    said = given.take(name, str) if default is None else given.take(name, str, str(default))
    try:
        return words(said)
    except ValueError:
        raise Fault(given.at(name), f"{said!a} is none of {', '.join(words)}") from None


def _segment(where: str, part: Any) -> tuple[list[bytes], Ending]:
    given = Fields(where, {"sse": part} if isinstance(part, str) else part)
    chunks, ending = _chunks(given), _word(given, "eof", Ending, Ending.CLEAN)
    # What was asked for when the connection was made; the bytes say what came.
    given.pass_over("starting_after", "last_event_id", "http_status", "connection")
    given.finish()
    return chunks, ending


def _chunks(given: Fields) -> list[bytes]:
    text = given.take("sse", str, None)
    body = None if text is None else text.encode("utf-8", "surrogatepass")
    if given.has("sse_chunks_b64"):
        chunks = [_decoded(given, chunk) for chunk in given.take("sse_chunks_b64", list)]
        if body is not None and b"".join(chunks) != body:
            raise Fault(given.at("sse_chunks_b64"), "holds other bytes than sse")
        return chunks
    if body is None:
        raise Fault(given.at("sse"), "is missing")
    return [body]


def _decoded(given: Fields, chunk: Any) -> bytes:
    try:
        return base64.b64decode(chunk, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Fault(given.at("sse_chunks_b64"), "holds what is no base64") from None


# Recipes


def _from_recipe(recipe: Fields) -> Response:
    """A response with one call whose arguments are a prefix and one text many times."""
    protocol = _word(recipe, "protocol", Protocol)
    tool = recipe.take("tool", str)
    prefix, repeat = recipe.take("args_prefix", str, ""), recipe.take("repeat", str, "")
    times, suffix = recipe.take("times", int, 0), recipe.take("args_suffix", str, "")
    ending = _word(recipe, "eof", Ending, Ending.CLEAN)
    terminal = recipe.take("terminal", (str, type(None)), None)
    if terminal not in {None, "success"}:
        raise Fault(recipe.at("terminal"), "is neither null nor success")
    recipe.finish()
    if times < 0 or len(repeat.encode()) * times > BYTES_MAX:
        raise Fault(recipe.at("times"), f"is negative, or makes more than {BYTES_MAX} bytes")
    start, piece, end = _WRITERS[protocol]
    events = start(tool)
    # In pieces of a size that providers send.
    text = prefix + repeat * times + suffix
    events += [piece(text[at : at + 4096]) for at in range(0, len(text), 4096)]
    events += end(tool, text) if terminal else []
    body = b"".join(_event(event) for event in events)
    return Response(protocol=protocol, ending=ending, connections=[[body]])


def _event(said: dict[str, Any] | str) -> bytes:
    if isinstance(said, str):
        return f"data: {said}\n\n".encode()
    return f"event: {said.get('type', 'message')}\ndata: {json.dumps(said)}\n\n".encode()


def _anthropic_start(tool: str) -> list[Any]:
    block = {"type": "tool_use", "id": "toolu_recipe", "name": tool, "input": {}}
    return [
        {"type": "message_start", "message": {"id": "msg_recipe", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]


def _anthropic_piece(text: str) -> Any:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _anthropic_end(_tool: str, _text: str) -> list[Any]:
    return [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]


def _chat(delta: dict[str, Any], reason: str | None = None) -> Any:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-recipe", "object": "chat.completion.chunk", "choices": [choice]}


def _chat_start(tool: str) -> list[Any]:
    function = {"name": tool, "arguments": ""}
    call = {"index": 0, "id": "call_recipe", "type": "function", "function": function}
    return [_chat({"tool_calls": [call]})]


def _chat_piece(text: str) -> Any:
    return _chat({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


def _chat_end(_tool: str, _text: str) -> list[Any]:
    return [_chat({}, "tool_calls"), "[DONE]"]


def _responses_start(tool: str) -> list[Any]:
    item = {"type": "function_call", "id": "fc_recipe", "call_id": "call_recipe", "name": tool}
    return [{"type": "response.output_item.added", "output_index": 0, "item": item}]


def _responses_piece(text: str) -> Any:
    return {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text}


def _responses_end(tool: str, text: str) -> list[Any]:
    item = {
        "type": "function_call",
        "id": "fc_recipe",
        "call_id": "call_recipe",
        "name": tool,
        "arguments": text,
        "status": "completed",
    }
    return [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_recipe", "status": "completed"}},
    ]


_WRITERS: Final[dict[Protocol, tuple[Any, Any, Any]]] = {
    Protocol.ANTHROPIC: (_anthropic_start, _anthropic_piece, _anthropic_end),
    Protocol.OPENAI_CHAT: (_chat_start, _chat_piece, _chat_end),
    Protocol.OPENAI_RESPONSES: (_responses_start, _responses_piece, _responses_end),
}


# What is compared

_AS_IT_IS: Final[dict[str, Callable[[StreamRecord], Any]]] = {
    "terminal": lambda record: str(record.terminal),
    "reason": lambda record: record.reason,
    "finish_reason": lambda record: record.reason,
    "stop_reason": lambda record: record.reason,
    "error_type": lambda record: record.error_type,
    "error_message": lambda record: record.error_message,
    "request_id": lambda record: record.request_id,
    "response_id": lambda record: record.response_id,
    "model": lambda record: record.model,
    "cursor": lambda record: record.cursor,
    "repeated_events": lambda record: record.repeated_events,
    "gaps": lambda record: [list(gap) for gap in record.gaps],
    "violations": lambda record: list(record.violations),
    "orphans": lambda record: list(record.orphans),
}
_AMONG: Final[dict[str, Callable[[StreamRecord], Any]]] = {
    "warnings": lambda record: record.warnings,
    "flags": lambda record: record.flags,
    "unseen": lambda record: record.unseen,
}
"""Members of which every expected one must be there; there may be more."""


def compare(where: str, wanted: Any, response: Response, found: Findings) -> StreamRecord:
    """Compares the record with what is expected of it, and every way of reading with the others."""
    (_, record), *others = list(response.readings())
    for how, other in others:
        found.equal(f"{where} read {how}", record, other)
    expected = Fields(where, wanted)
    for name, of in _AS_IT_IS.items():
        if expected.has(name):
            found.equal(expected.at(name), expected.take(name, object), of(record))
    for name, of in _AMONG.items():
        for word in expected.take(name, list, []):
            found.check(expected.at(name), f"{word} among them", list(of(record)),
                        holds=word in of(record))  # fmt: skip
    for name, count in expected.take("usage", dict, {}).items():
        found.equal(expected.at(f"usage.{name}"), count, record.usage.get(name))
    if expected.has("calls"):
        _compare_calls(expected.at("calls"), expected.take("calls", list), record, found)
    expected.finish()
    return record


def _compare_calls(where: str, wanted: list[Any], record: StreamRecord, found: Findings) -> None:
    found.equal(f"{where} (how many)", len(wanted), len(record.calls))
    for number, (one, call) in enumerate(zip(wanted, record.calls, strict=False)):
        _compare_call(Fields(f"{where}[{number}]", one), call, found)


_OF_A_CALL: Final[dict[str, Callable[[CallRecord], Any]]] = {
    "ordinal": lambda call: call.position,
    "name": lambda call: call.name,
    "args_state": lambda call: str(call.state),
    "dispatchable": lambda call: call.dispatchable,
    "why_not": lambda call: None if call.why_not is None else str(call.why_not),
    "raw": lambda call: call.raw,
    "fault_code": lambda call: call.fault_code,
    "fault_at": lambda call: call.fault_at,
}


def _compare_call(expected: Fields, call: CallRecord, found: Findings) -> None:
    for name, of in _OF_A_CALL.items():
        if expected.has(name):
            found.equal(expected.at(name), expected.take(name, object), of(call))
    if expected.has("id"):
        wanted = expected.take("id", (str, type(None)))
        if wanted != ANY:
            found.equal(expected.at("id"), wanted, call.call_id)
    if expected.has("args"):
        written = canonical(to_text(expected.take("args", object)))
        found.equal(expected.at("args"), written, canonical(call.arguments))
    for flag in expected.take("flags", list, []):
        holds = flag in call.flags
        found.check(expected.at("flags"), f"{flag} among them", list(call.flags), holds=holds)
    expected.finish()


def canonical(text: str | None) -> str | None:
    """Arguments as they are compared, or as they stand where they cannot be."""
    try:
        return canonical_text(parse_arguments(text))
    except Refused:
        return text


def dispatched_of(given: Fields, record: StreamRecord) -> dict[int, Dispatched]:
    """What the dispatcher had done, by the position of the call."""
    done: dict[int, Dispatched] = {}
    for number, one in enumerate(given.take("dispatched", list, [])):
        said = Fields(given.at(f"dispatched[{number}]"), one)
        call_id = said.take("tool_call_id", (str, type(None)), None)
        position = said.take("ordinal", int, None)
        state = _word(said, "state", Dispatched)
        said.finish()
        if position is None:
            position = next((c.position for c in record.calls if c.call_id == call_id), None)
        if position is None or not 0 <= position < len(record.calls):
            raise Fault(said.where, "names no call of the response")
        done[position] = state
    return done
