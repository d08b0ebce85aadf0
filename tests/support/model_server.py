"""A model on loopback that says what a test scripts, in the bytes of real providers.

    with model_server(
        wants(("send_payment", {"amount": 1200})).but(cut_after=b"content_block_stop"),
        wants(("send_payment", {"amount": 1200})),
        says("It is paid."),
    ) as model:
        client = anthropic.Anthropic(base_url=model.url, api_key="none")
        client = openai.OpenAI(base_url=model.openai_url, api_key="none")

It speaks Anthropic Messages, OpenAI Responses and OpenAI Chat Completions, streamed where the
request asks for it and whole where it does not, on one port. Replies are given in order, one for
each request; one request too many is refused with 400, which no SDK repeats.
`model_server(by_turn(...))` answers by the place in the conversation instead, so that a turn that
is asked for again is answered again, with new ids. See `Reply` for cuts at chosen bytes, endings,
error events, limits and refusals.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from tests.effects.faulty_server import PATIENCE_SECONDS, FaultyServer, faulty, read_request, reset
from tests.support.model_wire import End, Names, Reply, Wire, body_of, refuses, says, wants

__all__ = [
    "End",
    "ModelRequest",
    "ModelServer",
    "Reply",
    "by_turn",
    "model_server",
    "refuses",
    "says",
    "wants",
]

EVENT_END: Final = b"\n\n"
SCRIPT_OVER: Final = refuses(400, "the_script_is_over")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request as it came. Header names are in lower case."""

    wire: Wire
    headers: dict[str, str]
    body: dict[str, Any]

    @classmethod
    def read(cls, raw: bytes) -> Self:
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return cls(
            wire=Wire(first.split(" ")[1].partition("?")[0]),
            headers={name.strip().lower(): value.strip() for name, _, value in pairs},
            body=json.loads(body),
        )

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def retry_count(self) -> int:
        """Which try of the SDK this is; 0 is the first."""
        return int(self.headers.get("x-stainless-retry-count", 0))

    @property
    def said(self) -> list[dict[str, Any]]:
        """The conversation as the agent sent it."""
        if self.wire is not Wire.RESPONSES:
            return list(self.body["messages"])
        sent = self.body["input"]
        return list(sent) if isinstance(sent, list) else [{"role": "user", "content": sent}]

    @property
    def turn(self) -> int:
        """How many responses of the model the conversation holds already."""
        from_model = [_is_from_model(item) for item in self.said]
        earlier = [False, *from_model]
        return sum(now and not before for before, now in zip(earlier, from_model, strict=False))

    @property
    def results(self) -> list[dict[str, Any]]:
        """What the model is told of its calls, in the conversation's order, each read as JSON."""
        return [read_result(text) for text in _results(self.said)]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model is offered."""
        return [tool.get("name") or tool["function"]["name"] for tool in self.body.get("tools", [])]


def _is_from_model(item: dict[str, Any]) -> bool:
    kinds = {"function_call", "custom_tool_call", "reasoning"}
    return item.get("role") == "assistant" or item.get("type") in kinds


def _results(said: list[dict[str, Any]]) -> Iterator[Any]:
    for item in said:
        if item.get("role") == "tool":
            yield item["content"]
        elif item.get("type") == "function_call_output":
            yield item["output"]
        elif item.get("role") == "user" and isinstance(item["content"], list):
            results = (block for block in item["content"] if block["type"] == "tool_result")
            yield from (block["content"] for block in results)


def read_result(text: Any) -> dict[str, Any]:
    """A result that is not a JSON object is given as `text`."""
    with contextlib.suppress(ValueError, TypeError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return {"text": text}


Choose = Callable[[ModelRequest], Reply]


def by_turn(*replies: Reply) -> Choose:
    """The reply for the turn that is asked for, however often it is asked for."""

    def choose(request: ModelRequest) -> Reply:
        return replies[request.turn] if request.turn < len(replies) else SCRIPT_OVER

    return choose


class ModelServer:
    """`requests` holds everything that was asked, in order. `url` is the address for the Anthropic
    SDK, `openai_url` the one for OpenAI's."""

    def __init__(self, choose: Choose) -> None:
        self.url = ""
        self.requests: list[ModelRequest] = []
        self._choose = choose
        self._names = Names()
        self._lock = threading.Lock()

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def serve(self, server: FaultyServer, connection: socket.socket) -> None:
        raw = read_request(connection)
        if not raw:
            return
        request = ModelRequest.read(raw)
        with self._lock:
            self.requests.append(request)
            reply = self._choose(request)
            body = body_of(request.wire, reply, self._names, streamed=request.streamed)
        streamed = request.streamed and reply.status == 200
        connection.sendall(_head(reply, body, streamed=streamed))
        pieces = _events(body) if streamed else iter([body])
        for piece in pieces:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if streamed else piece)
        match reply.end:
            case End.CLEAN:
                connection.sendall(b"0\r\n\r\n" if streamed else b"")
            case End.UNFINISHED:
                pass
            case End.RESET:
                reset(connection)
            case End.STALL:
                server.over.wait(PATIENCE_SECONDS)


def _head(reply: Reply, body: bytes, *, streamed: bool) -> bytes:
    kind = "text/event-stream" if streamed else "application/json"
    size = "transfer-encoding: chunked" if streamed else f"content-length: {len(body)}"
    named = {"request-id": "req_scripted", "x-request-id": "req_scripted", **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Scripted", f"content-type: {kind}", size]
    lines += ["connection: close", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _events(body: bytes) -> Iterator[bytes]:
    """One chunk for each event, as servers write them; what was cut is a chunk as well."""
    at = 0
    while at < len(body):
        end = body.find(EVENT_END, at)
        end = len(body) if end < 0 else end + len(EVENT_END)
        yield body[at:end]
        at = end


@contextlib.contextmanager
def model_server(*script: Reply | Choose) -> Iterator[ModelServer]:
    """Replies in order, or one function that chooses the reply for a request."""
    left = list(script)

    def in_order(request: ModelRequest) -> Reply:
        if left and callable(left[0]):
            return left[0](request)
        said = left.pop(0) if left else SCRIPT_OVER
        assert isinstance(said, Reply)
        return said

    model = ModelServer(in_order)
    with faulty(model.serve) as server:
        model.url = server.url
        yield model
