"""The local experiment: a request whose answer never comes, repeated in three ways."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, override

import httpx2

from tests.faultlab.lab import Scene
from tests.faultlab.rows import NO_LEDGER, Section

EXPERIMENT: Final = Section("The local experiment", "mission C9")
KEY: Final = {"Idempotency-Key": "one-operation"}


class Counting(ThreadingHTTPServer):
    """Counts an effect, then closes the connection instead of answering its first request.

    It keeps the result under the request's key, if there is one; `GET` reads and does nothing.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.effects = 0
        self.answers_dropped = 0
        self.kept: dict[str, str] = {}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def execute(self, key: str | None) -> tuple[str, bool]:
        """The result, and whether its answer is dropped."""
        with self.lock:
            result = self.kept.get(key or "")
            if result is None:
                self.effects += 1
                result = f"effect {self.effects}"
                if key is not None:
                    self.kept[key] = result
            drops = self.answers_dropped == 0
            self.answers_dropped += drops
            return result, drops


class _Handler(BaseHTTPRequestHandler):
    server: Counting

    def do_POST(self) -> None:
        result, drops = self.server.execute(self.headers.get("Idempotency-Key"))
        if not drops:
            self._answer(result)

    def do_GET(self) -> None:
        self._answer("\n".join(self.server.kept.values()))

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    @override
    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def counting() -> Iterator[Counting]:
    with Counting() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def cut_post(server: Counting, headers: dict[str, str]) -> str:
    """The first request: it is carried out, and nobody hears of it. What the client raised."""
    try:
        httpx2.post(server.url, headers=headers)
    except httpx2.HTTPError as error:
        return type(error).__name__
    raise AssertionError("the answer came")


@EXPERIMENT.row("no key, repeated", ways=(NO_LEDGER,), effects=2, raised="RemoteProtocolError")
def unkeyed(_: Scene) -> dict[str, Any]:
    with counting() as server:
        raised = cut_post(server, {})
        httpx2.post(server.url)
        return {"effects": server.effects, "raised": raised}


@EXPERIMENT.row(
    "a key that the server keeps, repeated", ways=(NO_LEDGER,), effects=1, answered="effect 1"
)
def keyed(_: Scene) -> dict[str, Any]:
    with counting() as server:
        cut_post(server, KEY)
        answer = httpx2.post(server.url, headers=KEY)
        return {"effects": server.effects, "answered": answer.text}


@EXPERIMENT.row(
    "read back instead of repeating", ways=(NO_LEDGER,), more_effects=0, read="effect 1"
)
def read_back(_: Scene) -> dict[str, Any]:
    with counting() as server:
        cut_post(server, KEY)
        before = server.effects
        read = httpx2.get(server.url)
        return {"more_effects": server.effects - before, "read": read.text}
