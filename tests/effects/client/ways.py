"""The two ways from a client to a real ledger, for tests that hold on both.

Each reaches the same record: over HTTP with a token, or straight in PostgreSQL with a role. Each
can lose answers on its way back, after the ledger has committed what it was told.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, override
from urllib.parse import urlsplit

from effects.client import HttpTransport, Transport
from effects.client.transport_postgres import PostgresTransport
from effects.core.vocabulary import TokenScope
from effects.models import Workspace
from ledger import agents, auth
from tests.effects.faulty_server import FaultyServer, faulty, read_request

Arguments = tuple[str, ...]
"""What a `Ledger` is made with."""


class Way(Protocol):
    def to(self, workspace: Workspace) -> Arguments:
        """A new agent of the workspace."""
        ...

    def losing(
        self, workspace: Workspace, *words: str
    ) -> contextlib.AbstractContextManager[Arguments]:
        """A new agent, the answers to whose questions of these words are lost, once for each."""
        ...

    def transport(self, workspace: Workspace) -> Transport: ...


def token_of(workspace: Workspace, *scopes: TokenScope) -> str:
    _, plain = auth.issue(workspace, "an agent", scopes or (TokenScope.CLAIM,), user=None)
    return plain


@dataclass(frozen=True)
class OverHttp:
    api: str

    def to(self, workspace: Workspace) -> Arguments:
        return self.api, token_of(workspace)

    @contextlib.contextmanager
    def losing(self, workspace: Workspace, *words: str) -> Iterator[Arguments]:
        with faulty(LosesResponses(self.api, words)) as proxy:
            yield proxy.url, token_of(workspace)

    def transport(self, workspace: Workspace) -> Transport:
        return HttpTransport(*self.to(workspace))


class ToPostgres:
    def to(self, workspace: Workspace) -> Arguments:
        return (agents.create(workspace, "an agent").url,)

    @contextlib.contextmanager
    def losing(self, workspace: Workspace, *words: str) -> Iterator[Arguments]:
        parts = urlsplit(agents.create(workspace, "an agent").url)
        with faulty(LosesResults(f"//{parts.hostname}:{parts.port}", words)) as proxy:
            where = f"{parts.username}:{parts.password}@127.0.0.1:{proxy.port}"
            yield (parts._replace(netloc=where).geturl(),)

    def transport(self, workspace: Workspace) -> Transport:
        return PostgresTransport(*self.to(workspace))


class Loses:
    """Passes everything on to `target`, and drops the answers to what `words` name."""

    def __init__(self, target: str, words: Sequence[str]) -> None:
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.words = list(words)

    def __call__(self, server: FaultyServer, connection: socket.socket) -> None:
        raise NotImplementedError


class LosesResponses(Loses):
    @override
    def __call__(self, server: FaultyServer, connection: socket.socket) -> None:
        while raw := read_request(connection):
            word = raw.split(b" ")[1].decode().rsplit("/", 1)[-1]
            answer = self._passed_on(raw)
            if word in self.words:
                self.words.remove(word)
                return  # The answer exists, the record is committed, and nobody hears of it.
            connection.sendall(answer)

    def _passed_on(self, raw: bytes) -> bytes:
        closing = raw.replace(b"\r\nConnection: keep-alive", b"\r\nConnection: close")
        with socket.create_connection(self.target, timeout=10) as onward:
            onward.sendall(closing)
            return b"".join(iter(lambda: onward.recv(65_536), b""))


class LosesResults(Loses):
    """The execution of a prepared statement begins with a message of type B that names it."""

    NAMES = {"claims": b"ledger_agent_claim_v1\0", "complete": b"ledger_agent_report_v1\0"}

    @override
    def __call__(self, server: FaultyServer, connection: socket.socket) -> None:
        with socket.create_connection(self.target, timeout=10) as onward:
            while True:
                ready, _, _ = select.select([connection, onward], [], [], 10)
                if connection in ready:
                    said = connection.recv(65_536)
                    onward.sendall(said)
                    if not said:
                        return
                    if self._drops(said):
                        onward.recv(65_536)
                        return
                if onward in ready:
                    connection.sendall(onward.recv(65_536))

    def _drops(self, said: bytes) -> bool:
        for word in self.words:
            if said.startswith(b"B") and self.NAMES[word] in said:
                self.words.remove(word)
                return True
        return False
