"""A receiver on loopback that keeps what it is sent, byte for byte, and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, override


@dataclass(slots=True)
class Chat:
    """`statuses` are answered one after the other, the last one for ever, with `says` as body."""

    origin: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    says: str = "ok"
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{self.origin}/services/T000/very-secret"


@contextmanager
def chat() -> Iterator[Chat]:
    ours = Chat()
    ours.go.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            ours.taken.append(({k.lower(): v for k, v in self.headers.items()}, body))
            ours.begun.set()
            ours.go.wait(20)
            status = ours.statuses.pop(0) if len(ours.statuses) > 1 else ours.statuses[0]
            said = ours.says.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        @override
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    ours.origin = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield ours
    finally:
        ours.go.set()
        server.shutdown()
        server.server_close()
        thread.join()
