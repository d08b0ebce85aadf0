"""An agent's runtime that takes messages on loopback, and checks them as the standard's own library
does."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, override

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, 32 bytes.").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"another secret that is 32 bytes.").decode()


@dataclass(slots=True)
class Receiver:
    """Answers with `statuses`, one after the other, and with the last one for ever. `taken` holds
    the messages whose signature was right, `refused` counts the others."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [204])
    headers: dict[str, str] = field(default_factory=dict)
    secret: str = SECRET
    taken: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refused: int = 0

    def status(self) -> int:
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextmanager
def receiver() -> Iterator[Receiver]:
    ours = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                Webhook(ours.secret).verify(body, dict(self.headers))
                ours.taken.append((self.headers["webhook-id"], json.loads(body)))
            except WebhookVerificationError:
                ours.refused += 1
            self.send_response(ours.status())
            for name, value in ours.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    ours.url = f"http://127.0.0.1:{server.server_address[1]}/news"
    try:
        yield ours
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
