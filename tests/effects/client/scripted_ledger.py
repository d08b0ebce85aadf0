"""A ledger on loopback that speaks the real messages and can be told to misbehave.

It keeps no record and decides nothing: each test says what it answers. What a real ledger answers
is tested against the real API in `test_live.py`.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from uuid import UUID

from effects.client import Ledger, Patience, Timeouts
from effects.core.messages import (
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Problem,
    Sent,
    Unknown,
)
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass
from tests.effects.faulty_server import Behaviour, FaultyServer, faulty, read_request

CLAIM = UUID("0192f3a4-0000-7000-8000-000000000001")
KEY = "cfk_0192f3a4_1"
MARKER = "cf_0192f3a4000070008000000000000001_1"
QUICK = Patience(pause_seconds_first=0.01, pause_seconds_max=0.05)

GRANT = ClaimAnswer(
    code=AnswerCode.GRANTED,
    claim_id=CLAIM,
    state=ClaimState.IN_FLIGHT,
    effect_class=EffectClass.KEYED_WRITE,
    tool="send_payment",
    fence=1,
    generation=1,
    key=KEY,
    marker=MARKER,
    send_within_seconds=20.0,
)

MESSAGES: dict[str, type[Message]] = {
    "claims": ClaimRequest,
    "sent": Sent,
    "heartbeat": Heartbeat,
    "complete": Complete,
    "fail": Fail,
    "unknown": Unknown,
}

Reply = Behaviour | ClaimAnswer | HeartbeatAnswer | Problem | None

M = TypeVar("M", bound=Message)


class ReadAgain:
    """A connection whose request was read already, for a behaviour that wants to read it too."""

    def __init__(self, connection: socket.socket, raw: bytes) -> None:
        self._connection = connection
        self._raw = raw

    def recv(self, *arguments: int) -> bytes:
        raw, self._raw = self._raw, b""
        return raw or self._connection.recv(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@dataclass
class ScriptedLedger:
    """`said` holds what the client said, in order: (endpoint, message or None)."""

    url: str = ""
    said: list[tuple[str, Message | None]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    script: dict[str, list[Reply]] = field(default_factory=dict)

    def answers(self, endpoint: str, *replies: Reply) -> None:
        """What `endpoint` answers, one reply for each request; the last one stays."""
        self.script[endpoint] = list(replies)

    @property
    def words(self) -> list[str]:
        """The endpoints that were asked, in order."""
        return [endpoint for endpoint, _ in self.said]

    def told(self, kind: type[M]) -> list[M]:
        return [message for _, message in self.said if isinstance(message, kind)]

    def serve(self, server: FaultyServer, connection: socket.socket) -> None:
        raw = read_request(connection)
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        path = lines[0].split(" ")[1]
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])
        }
        endpoint = endpoint_of(lines[0].split(" ")[0], path)
        kind = MESSAGES.get(endpoint)
        self.said.append((endpoint, kind.model_validate_json(body) if kind else None))
        self.paths.append(path)
        self.tokens.append(headers.get("authorization", ""))
        self.agents.append(headers.get("user-agent", ""))
        reply = self._reply(endpoint)
        if callable(reply):
            reply(server, cast("socket.socket", ReadAgain(connection, raw)))
        else:
            connection.sendall(encoded(endpoint, reply))

    def _reply(self, endpoint: str) -> Reply:
        script = self.script.get(endpoint)
        if script:
            return script.pop(0) if len(script) > 1 else script[0]
        return DEFAULTS[endpoint](self)


def endpoint_of(method: str, path: str) -> str:
    word = path.partition("?")[0].rsplit("/", 1)[-1]
    return "status" if method == "GET" and word == "claims" else word


def state(word: ClaimState, **more) -> ClaimAnswer:
    return ClaimAnswer(claim_id=CLAIM, state=word, tool="send_payment", fence=1, **more)


def _completed(ledger: ScriptedLedger) -> ClaimAnswer:
    report = ledger.told(Complete)[-1]
    return state(
        ClaimState.COMPLETED,
        result=report.result,
        result_stored=report.result_stored,
        provider_object=report.provider_object,
    )


DEFAULTS: dict[str, Callable[[ScriptedLedger], Reply]] = {
    "claims": lambda _: GRANT,
    "sent": lambda _: None,
    "heartbeat": lambda _: HeartbeatAnswer(word="ok"),
    "complete": _completed,
    "fail": lambda _: state(ClaimState.NOT_EXECUTED),
    "unknown": lambda _: state(ClaimState.UNKNOWN),
    "status": lambda _: state(ClaimState.UNKNOWN),
    "wait": lambda _: state(ClaimState.UNKNOWN),
}


def encoded(endpoint: str, reply: ClaimAnswer | HeartbeatAnswer | Problem | None) -> bytes:
    status = 200
    if isinstance(reply, Problem):
        status = reply.status
    elif reply is None:
        status = 204
    elif isinstance(reply, ClaimAnswer) and reply.code is not None:
        status = status_of(reply.code)
        if status >= 400:
            reply = Problem(
                title="Not granted.", status=status, detail="", code=reply.code, answer=reply
            )
    body = b"" if reply is None else reply.model_dump_json().encode()
    head = f"HTTP/1.1 {status} Said So\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def status_of(code: AnswerCode) -> int:
    granted = {AnswerCode.GRANTED: 201, AnswerCode.GRANTED_AGAIN: 200, AnswerCode.REPLAYED: 200}
    return granted.get(code, 422 if code is AnswerCode.MISMATCH else 409)


@contextlib.contextmanager
def scripted_ledger() -> Iterator[ScriptedLedger]:
    scripted = ScriptedLedger()
    with faulty(scripted.serve) as server:
        scripted.url = server.url
        yield scripted


def client_of(url: str, *, answer_seconds: float = 5.0, patience: Patience = QUICK) -> Ledger:
    return Ledger(
        url, "a-token", timeouts=Timeouts(answer_seconds=answer_seconds), patience=patience
    )
