"""What a model says, as the bytes of the protocols that agents read.

`Reply` says it once; `body_of` writes it as Anthropic Messages, OpenAI Responses or OpenAI Chat
Completions, streamed or whole. Shapes and orders of events are those of the providers' SDKs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

MODEL: Final = "scripted-1"
CREATED_AT: Final = 1_790_000_000


class Wire(StrEnum):
    ANTHROPIC = "/v1/messages"
    RESPONSES = "/v1/responses"
    CHAT = "/v1/chat/completions"


class End(StrEnum):
    """What becomes of the connection after the last byte."""

    CLEAN = "clean"  # the body ends as HTTP says, wherever it was cut
    UNFINISHED = "unfinished"  # the connection closes and the body's last chunk never came
    RESET = "reset"  # RST; what was on the way may be lost as well
    STALL = "stall"  # nothing more comes, and the connection stays open


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A tool call of the model. `arguments` is the text that it writes; without a `call_id` every
    response brings a new one, as real providers do."""

    name: str
    arguments: str = "{}"
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response of the model, and how it is spoilt.

    `cut_after` ends the body behind the `cut_nth` occurrence of these bytes, or with `whole_event`
    behind the event in which they stand; `cut_at` ends it after so many bytes. `error` is the type
    of an error event that comes there (or at the end of the body) instead of the rest. `limited`:
    the response reached its token limit. A `status` other than 200 is a refusal before anything was
    said. Arguments come in pieces of `piece_characters`.
    """

    text: str = ""
    calls: tuple[Wanted, ...] = ()
    limited: bool = False
    piece_characters: int = 7
    cut_after: bytes | None = None
    cut_nth: int = 1
    whole_event: bool = False
    cut_at: int | None = None
    end: End = End.CLEAN
    error: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def but(self, **changes: Any) -> Reply:
        """The same, spoilt in another way."""
        return dataclasses.replace(self, **changes)


def says(text: str) -> Reply:
    return Reply(text=text)


def wants(*calls: tuple[str, dict[str, Any] | str], text: str = "") -> Reply:
    """A response with these calls, each a tool's name and its arguments."""
    return Reply(
        text=text,
        calls=tuple(
            Wanted(name=name, arguments=said if isinstance(said, str) else json.dumps(said))
            for name, said in calls
        ),
    )


def refuses(status: int, error: str = "overloaded_error", **headers: str) -> Reply:
    return Reply(status=status, error=error, headers=headers)


class Names:
    """New ids, as long as real ones, the same in every run."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self, prefix: str) -> str:
        digest = hashlib.sha256(str(next(self._numbers)).encode()).hexdigest()
        return f"{prefix}_{digest[:24]}"


def body_of(wire: Wire, reply: Reply, names: Names, *, streamed: bool) -> bytes:
    """The body of an answer, spoilt as `reply` says."""
    if reply.status != 200:
        return json.dumps(refusal_of(wire, reply.error or "api_error")).encode()
    whole, events, error_event = WRITERS[wire](reply, names)
    if not streamed:
        return _cut(json.dumps(whole).encode(), reply)
    body = _cut(b"".join(events), reply)
    if reply.error is None:
        return body
    body = _whole_events(body)
    return body + error_event(reply.error, body.count(b"\n\n"))


def _cut(body: bytes, reply: Reply) -> bytes:
    if reply.cut_after is not None:
        at = 0
        for _ in range(reply.cut_nth):
            found = body.find(reply.cut_after, at)
            assert found >= 0, f"the body has no {reply.cut_after!r} to be cut after"
            at = found + len(reply.cut_after)
        if reply.whole_event:
            at = body.find(b"\n\n", at) + 2
        body = body[:at]
    return body if reply.cut_at is None else body[: reply.cut_at]


def _whole_events(body: bytes) -> bytes:
    """An error event comes between events, not inside one."""
    return body[: body.rfind(b"\n\n") + 2] if b"\n\n" in body else b""


def refusal_of(wire: Wire, error: str) -> dict[str, Any]:
    said = {"type": error, "message": f"The script says {error}."}
    if wire is Wire.ANTHROPIC:
        return {"type": "error", "error": said, "request_id": "req_scripted"}
    return {"error": said | {"param": None, "code": error}}


def _event(said: dict[str, Any], *, named: bool = True) -> bytes:
    head = f"event: {said['type']}\n" if named else ""
    return f"{head}data: {json.dumps(said)}\n\n".encode()


def _pieces(text: str, characters: int) -> Iterator[str]:
    return (text[at : at + characters] for at in range(0, len(text), characters))


Written = tuple[dict[str, Any], Iterator[bytes], Callable[[str, int], bytes]]
"""The whole answer, the events of the streamed one, and how an error looks as its n-th event."""


# Anthropic Messages


def _anthropic(reply: Reply, names: Names) -> Written:
    stop = "max_tokens" if reply.limited else "tool_use" if reply.calls else "end_turn"
    blocks = [{"type": "text", "text": reply.text}] if reply.text else []
    calls = [(call, call.call_id or names.new("toolu")) for call in reply.calls]
    start: dict[str, Any] = {
        "id": names.new("msg"),
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    usage = {"output_tokens": 40}

    def events() -> Iterator[bytes]:
        yield _event({"type": "message_start", "message": start})
        yield _event({"type": "ping"})
        for index, block in enumerate(blocks):
            delta = {"type": "text_delta", "text": block["text"]}
            yield from _block(index, {"type": "text", "text": ""}, [delta])
        for index, (call, call_id) in enumerate(calls, start=len(blocks)):
            opened = {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}
            pieces = ["", *_pieces(call.arguments, reply.piece_characters)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            yield from _block(index, opened, deltas)
        ended = {"stop_reason": stop, "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": ended, "usage": usage})
        yield _event({"type": "message_stop"})

    content: list[dict[str, Any]] = [*blocks]
    for call, call_id in calls:
        asked = _value(call.arguments)
        content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": asked})
    whole = start | {"content": content, "stop_reason": stop}
    return whole, events(), lambda error, _: _event(refusal_of(Wire.ANTHROPIC, error))


def _block(index: int, opened: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[bytes]:
    yield _event({"type": "content_block_start", "index": index, "content_block": opened})
    for delta in deltas:
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


# OpenAI Responses


def _responses(reply: Reply, names: Names) -> Written:
    numbers = itertools.count()
    response = _response(names)
    items = [_message_item(reply.text, names)] if reply.text else []
    items += [_call_item(call, names) for call in reply.calls]
    if reply.limited and items:
        items[-1] |= {"status": "incomplete"}
    ended = "incomplete" if reply.limited else "completed"
    whole = response | {"status": ended, "output": items, "usage": RESPONSES_USAGE}
    if reply.limited:
        whole["incomplete_details"] = {"reason": "max_output_tokens"}

    def numbered(kind: str, **said: Any) -> bytes:
        return _event({"type": kind, "sequence_number": next(numbers)} | said)

    def events() -> Iterator[bytes]:
        yield numbered("response.created", response=response)
        yield numbered("response.in_progress", response=response)
        for index, item in enumerate(items):
            pieces = _text_events if item["type"] == "message" else _call_events
            for kind, said in pieces(item, reply.piece_characters):
                yield numbered(kind, output_index=index, **said)
        yield numbered(f"response.{ended}", response=whole)

    def error_event(error: str, number: int) -> bytes:
        said = {"code": error, "message": f"The script says {error}.", "param": None}
        return _event({"type": "error", "sequence_number": number} | said)

    return whole, events(), error_event


RESPONSES_USAGE: Final = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 51,
}


def _response(names: Names) -> dict[str, Any]:
    return {
        "id": names.new("resp"),
        "object": "response",
        "created_at": CREATED_AT,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _message_item(text: str, names: Names) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    shared = {"role": "assistant", "status": "completed"}
    return {"type": "message", "id": names.new("msg"), "content": content} | shared


def _call_item(call: Wanted, names: Names) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": names.new("fc"),
        "call_id": call.call_id or names.new("call"),
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


Pieces = Iterator[tuple[str, dict[str, Any]]]


def _text_events(item: dict[str, Any], _: int) -> Pieces:
    at = {"item_id": item["id"], "content_index": 0}
    (part,) = item["content"]
    yield "response.output_item.added", {"item": item | {"status": "in_progress", "content": []}}
    yield "response.content_part.added", at | {"part": part | {"text": ""}}
    yield "response.output_text.delta", at | {"delta": part["text"], "logprobs": []}
    yield "response.output_text.done", at | {"text": part["text"], "logprobs": []}
    yield "response.content_part.done", at | {"part": part}
    yield "response.output_item.done", {"item": item}


def _call_events(item: dict[str, Any], piece_characters: int) -> Pieces:
    at, text = {"item_id": item["id"]}, item["arguments"]
    yield "response.output_item.added", {"item": item | {"status": "in_progress", "arguments": ""}}
    for piece in _pieces(text, piece_characters):
        yield "response.function_call_arguments.delta", at | {"delta": piece}
    yield "response.function_call_arguments.done", at | {"arguments": text, "name": item["name"]}
    yield "response.output_item.done", {"item": item}


# OpenAI Chat Completions


def _chat(reply: Reply, names: Names) -> Written:
    shared = {"id": names.new("chatcmpl"), "created": CREATED_AT, "model": MODEL}
    reason = "length" if reply.limited else "tool_calls" if reply.calls else "stop"
    calls: list[dict[str, Any]] = [
        {
            "id": call.call_id or names.new("call"),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.calls
    ]

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        said = {"object": "chat.completion.chunk", "choices": [choice], "usage": None}
        return _event(shared | said, named=False)

    def events() -> Iterator[bytes]:
        yield chunk({"role": "assistant", "content": "" if reply.text else None})
        if reply.text:
            yield chunk({"content": reply.text})
        for index, call in enumerate(calls):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield chunk({"tool_calls": [call | {"index": index, "function": function}]})
            for piece in _pieces(call["function"]["arguments"], reply.piece_characters):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, reason)
        usage = {"object": "chat.completion.chunk", "choices": [], "usage": CHAT_USAGE}
        yield _event(shared | usage, named=False)
        yield b"data: [DONE]\n\n"

    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    whole = shared | {"object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}
    return whole, events(), lambda error, _: _event(refusal_of(Wire.CHAT, error), named=False)


CHAT_USAGE: Final = {"prompt_tokens": 11, "completion_tokens": 40, "total_tokens": 51}

WRITERS: Final[dict[Wire, Callable[[Reply, Names], Written]]] = {
    Wire.ANTHROPIC: _anthropic,
    Wire.RESPONSES: _responses,
    Wire.CHAT: _chat,
}
