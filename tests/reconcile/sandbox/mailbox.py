"""Somebody who takes webhooks: checks each with the real SDK, and may refuse the first tries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, override

import stripe

WAIT_SECONDS_MAX = 10.0


class Mailbox:
    """`events` in the order of arrival; `refuses` answers whether to turn the n-th try away."""

    def __init__(self) -> None:
        self.secret = ""
        self.events: list[stripe.Event] = []
        self.tries = 0
        self.headers: list[str] = []
        self.refuses: Callable[[int], bool] = lambda _: False
        self.url = ""

    def take(self, body: bytes, signature: str) -> int:
        self.tries += 1
        self.headers.append(signature)
        if self.refuses(self.tries):
            return 500
        self.events.append(stripe.Webhook.construct_event(body, signature, self.secret))
        return 200

    def await_kinds(self, *kinds: str) -> list[stripe.Event]:
        """The events, once each of the kinds has come."""
        until = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < until:
            if set(kinds) <= {event.type for event in self.events}:
                return list(self.events)
            time.sleep(0.02)
        raise AssertionError(f"waited for {kinds}, got {[e.type for e in self.events]}")


@contextmanager
def a_mailbox() -> Iterator[Mailbox]:
    box = Mailbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(box.take(body, self.headers["Stripe-Signature"]))
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        box.url = f"http://127.0.0.1:{server.server_address[1]}/hooks"
        yield box
        server.shutdown()
        thread.join()
