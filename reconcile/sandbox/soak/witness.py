"""Stands between the product and the provider, passes everything on, and remembers what went by.

Whatever the provider showed, in an answer to a look-up or in a webhook, is counted here and not by
the product: an effect that went by and is on no record is a lost sighting. On the way it also makes
the provider worse, by the seed: it turns reads away, fails them, or lets their answers get lost.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, override
from urllib.parse import urlsplit

from reconcile.sandbox.soak.fates import point

SECONDS_MAX: Final = 20
RETRY_AFTER_SECONDS: Final = 20
DOOR: Final = "/door/"
GRAPHQL: Final = "/graphql"
TURNED_AWAY_SHARE: Final = 0.03
BROKEN_SHARE: Final = 0.03
LOST_SHARE: Final = 0.02
_TEXTS: Final = re.compile(rb'"([A-Za-z0-9_-]{8,64})"')
_NAMES: Final = re.compile(rb"cf_[0-9a-f]{32}|(?<=/orders/)[A-Z0-9]{17}")
"""What a question may name one call by: our marker, or PayPal's id of its order."""
_PASSED_ON: Final = frozenset({"content-type", "date", "request-id", "x-request-id", "retry-after"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One answer as it came from behind the witness."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Seen:
    """What went by. `texts` are all texts of whole answers to look-ups, object ids among them, with
    the instant at which each went by first; `named` are those of the answers to questions that
    named one call, by what they named. `events` are the webhooks that the door took."""

    texts: dict[str, float] = field(default_factory=dict)
    named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    events: dict[str, set[str]] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    webhooks: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def showed(self, object_id: str, *, asked_by: Iterable[str], last_look: float) -> bool:
        """Whether the product was shown an object as an answer to a question about its call, which
        was asked by one of these names or, where lists are read, looked at as late as `last_look`.

        An object that stood on a page which was read for other calls is shown to those; its own
        call meets it at its next look.
        """
        with self.lock:
            first = self.texts.get(object_id)
            return any(object_id in self.named.get(name, ()) for name in asked_by) or (
                first is not None and first <= last_look
            )

    def told_of(self, object_id: str) -> bool:
        """Whether a webhook that the door took speaks of an object."""
        with self.lock:
            return any(object_id in told for told in self.events.values())

    def take(self, asked: bytes, answer: bytes, now: float) -> None:
        """Remember a whole answer, and whom the question named."""
        texts = _texts(answer)
        with self.lock:
            for text in texts:
                self.texts.setdefault(text, now)
            for name in _NAMES.findall(asked):
                self.named[name.decode()] |= texts


class Witness:
    """An HTTP server on loopback. `provider` and `door` are where it passes requests on to."""

    def __init__(self, *, provider: str, seed: int, graphql: Any = None) -> None:
        self.provider, self.door = provider, ""
        self.seed = seed
        self.graphql = graphql
        self.seen = Seen()
        self.calm = False
        self.now: Callable[[], float] = time.time
        self._numbers: Counter[str] = Counter()
        self.url = ""

    @contextmanager
    def standing(self) -> Iterator[Witness]:
        """Serves at `url` until the block ends."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Passed | None:
        """The answer to one request; None: the connection closes without one."""
        if path.startswith(DOOR):
            return self._deliver(path, headers, body)
        rail = _rail_of(path)
        fault = None if self.calm else self._fault(rail, path)
        with self.seen.lock:
            self.seen.reads[rail] += 1
            self.seen.faults[fault or "none"] += 1
        if fault == "turned_away":
            return Passed(
                status=429,
                headers={"retry-after": str(RETRY_AFTER_SECONDS)},
                body=b'{"error": {"type": "rate_limit"}}',
            )
        if fault == "broken":
            return Passed(status=500, headers={}, body=b'{"error": {"type": "api_error"}}')
        passed = (
            self.graphql(body, headers)
            if path.startswith(GRAPHQL)
            else pass_on(self.provider, method, path, headers, body)
        )
        if fault == "lost" or passed is None:
            return None
        if 200 <= passed.status < 300:
            self.seen.take(path.encode() + body, passed.body, self.now())
        return passed

    def _deliver(self, path: str, headers: Mapping[str, str], body: bytes) -> Passed | None:
        passed = pass_on(self.door, "POST", f"/webhooks/{path.removeprefix(DOOR)}", headers, body)
        taken = passed is not None and 200 <= passed.status < 300
        with self.seen.lock:
            self.seen.webhooks["taken" if taken else "not taken"] += 1
            if taken:
                self.seen.events[str(json.loads(body)["id"])] = _texts(body)
        return passed

    def _fault(self, rail: str, path: str) -> str | None:
        with self.seen.lock:
            self._numbers[path] += 1
            number = self._numbers[path]
        if "oauth2" in path:
            return None
        at = point(self.seed, f"read {rail}", f"{path} {number}")
        if at < TURNED_AWAY_SHARE:
            return "turned_away"
        if at < TURNED_AWAY_SHARE + BROKEN_SHARE:
            return "broken"
        return "lost" if at < TURNED_AWAY_SHARE + BROKEN_SHARE + LOST_SHARE else None


def pass_on(
    to: str, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Passed | None:
    """Ask somebody else the same. None: no whole answer came."""
    line = http.client.HTTPConnection(urlsplit(to).netloc, timeout=SECONDS_MAX)
    own = {
        name: value
        for name, value in headers.items()
        if name.lower() not in {"host", "connection", "accept-encoding"}
    }
    try:
        line.request(method, path, body or None, own)
        answer = line.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Passed(status=answer.status, headers=told, body=answer.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        line.close()


def _texts(body: bytes) -> set[str]:
    return {text.decode() for text in _TEXTS.findall(body)}


def _rail_of(path: str) -> str:
    first = urlsplit(path).path.split("/")[1]
    return "stripe" if first == "v1" else first


def _handler(witness: Witness) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            passed = witness.answer(self.command, self.path, dict(self.headers.items()), body)
            if passed is None:
                self.close_connection = True
                return
            self.send_response_only(passed.status)
            for name, value in passed.headers.items():
                if name in _PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(passed.body)))
            self.end_headers()
            self.wfile.write(passed.body)

    for method in ("GET", "POST"):
        setattr(Handler, f"do_{method}", Handler.answer)
    return Handler
