"""What every adapter must do, whatever its provider: the stage, and how a new one joins.

A **stage** is a place at which a provider can be made to show exactly some objects, or to be in
some trouble. The laws in `test_conformance.py` play on every stage of `STAGES` there. To bring an
adapter in:

1.  For a provider that speaks HTTP, write a `Dialect`: the look-up, an entry of the registry, a
    secret, and `answer`, which turns the objects on show into the provider's own JSON for one
    request. `tests/reconcile/adapters/conformance_http.py` has three, of about 40 lines each.
2.  Say in `Dialect.cannot` which of the laws' props the provider does not have, and why: a provider
    without pages has no second page. What is not named there is played.
3.  Add `WebStage(YourDialect())` to `STAGES` in `test_conformance.py`.

A `Shown` is one object on show. Its `life` is the generation of the key whose reference it carries,
None for somebody else's object; `claim` is the claim that it belongs to; `said` is what its status
means. The server counts the requests that are no reads: there must be none.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, override
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from effects.core.identity import marker
from effects.money import from_minor
from reconcile.adapters.base import KeyLife, Lookup, Place, Probe
from reconcile.adapters.door import Limits, Way, origin_of
from tests.reconcile.adapters.probes import CLAIM

AMOUNT: Final = 4200
ACCOUNT: Final = "acct_halden"
OTHER_ACCOUNT: Final = "acct_other"
SILENT_SECONDS: Final = 0.2
RETRY_AFTER: Final = 7


class Said(StrEnum):
    """What the status of an object on show means."""

    THERE = "there"
    PENDING = "pending"
    UNHEARD_OF = "unheard_of"


class Trouble(StrEnum):
    """What is wrong at the provider."""

    REFUSED = "refused"  # 401, with the credential in the answer
    FORBIDDEN = "forbidden"  # 403
    TOO_OFTEN = "too_often"  # 429 with Retry-After: 7
    BROKEN = "broken"  # 500
    MOVED = "moved"  # 302 to another host
    CUT = "cut"  # the body ends early
    SILENT = "silent"  # nothing comes
    GARBAGE = "garbage"  # 200 and a page for people
    OTHER_ACCOUNT = "other_account"  # everything well, in another account that has nothing


class Prop(StrEnum):
    """What a law needs that some provider may not have."""

    PAGES = "pages"
    ACCOUNT = "account"
    MODE = "mode"
    AMOUNT = "amount"
    RETRY_AFTER = "retry_after"
    PENDING = "pending"
    TWO_OBJECTS = "two_objects"
    OTHERS = "others"  # other calls' objects stand on the same page
    STATUS = "status"
    ABSENCE = "absence"  # a whole reading that shows nothing can be proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One object on show. `amount` is in minor units."""

    id: str
    claim: UUID = CLAIM
    life: KeyLife | None = None
    said: Said = Said.THERE
    amount: int = AMOUNT
    live: bool = False

    @property
    def marker(self) -> str:
        return self.life.marker if self.life else "somebody else's"

    @property
    def key(self) -> str:
        return self.life.key if self.life else "somebody else's"


def life_of(claim: UUID = CLAIM, generation: int = 1) -> KeyLife:
    return KeyLife(
        generation=generation,
        key=f"cf1-{claim.hex}-{generation}",
        marker=marker(claim, generation),
        open=True,
    )


def ours(name: str = "obj_1", **changes: Any) -> Shown:
    """An object that carries the reference of the probe's claim."""
    claim = changes.get("claim", CLAIM)
    return replace(Shown(id=name, life=life_of(claim)), **changes)


def theirs(name: str) -> Shown:
    return Shown(id=name)


class Running(Protocol):
    """A stage that plays. `writes` counts what was asked that is no read, `reads` what is one."""

    @property
    def place(self) -> Place: ...
    @property
    def writes(self) -> int: ...
    @property
    def reads(self) -> int: ...
    def show(self, *shown: Shown) -> None: ...
    def trouble(self, trouble: Trouble, *, from_read: int = 1) -> None: ...


class Stage(Protocol):
    """`secrets` are the texts that may appear in nothing that is kept."""

    @property
    def name(self) -> str: ...
    @property
    def lookup(self) -> Lookup: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def secrets(self) -> Sequence[str]: ...
    @property
    def cannot(self) -> Mapping[Prop, str]: ...
    @property
    def spared(self) -> Mapping[Trouble, str]: ...
    def open(self) -> AbstractContextManager[Running]: ...


def probe_on(stage: Stage, running: Running, claim: UUID = CLAIM, *, generations: int = 1) -> Probe:
    """The question about one claim, as an investigation would put it."""
    now = datetime.now(UTC)
    return Probe(
        claim_id=claim,
        generations=tuple(life_of(claim, number) for number in range(1, generations + 1)),
        since=now - timedelta(minutes=30),
        asked_at=now,
        place=running.place,
        config=stage.config,
        arguments={"amount": str(AMOUNT)},
        amount=from_minor(AMOUNT, "eur"),
        settled_from=now - timedelta(minutes=10),
    )


# The web


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came. `params` has the first value of each name."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a dialect answers."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Dialect:
    """How one provider speaks. `page_size` is how many objects stand on a page on this stage.

    Override what differs; `answer` always. `is_read` tells a read from a write, `is_sign_in` marks
    requests that no trouble befalls and that are counted as no reads. `error` is the body of a
    refusal, and should hold what it is told.
    """

    name: str
    lookup: Lookup
    config: Mapping[str, Any]
    secret = "sk_stage_halden_secret"
    account = ACCOUNT
    page_size = 2
    cannot: Mapping[Prop, str] = {}
    spared: Mapping[Trouble, str] = {}

    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        """The provider's answer for what is on show in `account`."""
        raise NotImplementedError

    def error(self, said: str) -> bytes:
        """The body of a refusal, as this provider writes it."""
        return json.dumps({"error": said}).encode()

    def is_read(self, asked: Asked) -> bool:
        return asked.method == "GET"

    def is_sign_in(self, asked: Asked) -> bool:
        return False

    def forget(self) -> None:
        """Empty what the adapter remembers between two stages."""


@dataclass(slots=True)
class WebRunning:
    """A dialect on loopback."""

    dialect: Dialect
    url: str = ""
    writes: int = 0
    reads: int = 0
    shown: tuple[Shown, ...] = ()
    now_in: tuple[Trouble, int] | None = None
    done: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def place(self) -> Place:
        way = Way(origin=origin_of(self.url), private=True, limits=Limits(seconds=SILENT_SECONDS))
        quick = self.now_in is not None and self.now_in[0] is Trouble.SILENT
        return Place(
            way=way if quick else replace(way, limits=Limits(seconds=10.0)),
            base_url=self.url,
            mode="test",
            account=self.dialect.account,
            secret=self.dialect.secret,
        )

    def show(self, *shown: Shown) -> None:
        self.shown = shown

    def trouble(self, trouble: Trouble, *, from_read: int = 1) -> None:
        self.now_in = (trouble, from_read)

    def count(self, asked: Asked) -> Trouble | None:
        """Count the request, and the trouble that befalls it."""
        if self.dialect.is_sign_in(asked):
            return None
        with self.lock:
            if not self.dialect.is_read(asked):
                self.writes += 1
            self.reads += 1
            trouble, from_read = self.now_in or (None, 0)
            return trouble if self.reads >= from_read else None


class WebStage:
    """A dialect as a stage."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.name, self.lookup, self.config = dialect.name, dialect.lookup, dialect.config
        self.secrets = (dialect.secret, *dialect.secret.split(":")[1:])
        self.cannot, self.spared = dialect.cannot, dialect.spared

    @contextmanager
    def open(self) -> Iterator[WebRunning]:
        self.dialect.forget()
        running = WebRunning(self.dialect)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(running))
        server.daemon_threads = True
        running.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
        thread.start()
        try:
            yield running
        finally:
            running.done.set()
            server.shutdown()
            server.server_close()
            thread.join()


def _handler(running: WebRunning) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

        def answer(self) -> None:
            asked = _asked(self)
            trouble = running.count(asked)
            if trouble is Trouble.SILENT:
                running.done.wait(SILENT_SECONDS * 5)
                return
            answer = _troubled(running.dialect, trouble, asked) or _well(running, asked, trouble)
            self.send_response(answer.status)
            body = answer.body
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if trouble is Trouble.CUT else body)

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    return Handler


def _asked(handler: BaseHTTPRequestHandler) -> Asked:
    parts = urlsplit(handler.path)
    length = int(handler.headers.get("Content-Length") or 0)
    return Asked(
        method=handler.command,
        path=parts.path,
        params={name: values[0] for name, values in parse_qs(parts.query).items()},
        headers={name.lower(): value for name, value in handler.headers.items()},
        body=handler.rfile.read(length),
    )


def _well(running: WebRunning, asked: Asked, trouble: Trouble | None) -> Answer:
    if trouble is Trouble.OTHER_ACCOUNT:
        return running.dialect.answer(asked, (), account=OTHER_ACCOUNT)
    return running.dialect.answer(asked, running.shown, account=running.dialect.account)


def _troubled(dialect: Dialect, trouble: Trouble | None, asked: Asked) -> Answer | None:
    # A server that tells what it was sent is what the law of secrets is about.
    told = f"no such token: {asked.headers.get('authorization', '')}"
    answers = {
        Trouble.REFUSED: Answer(status=401, body=dialect.error(told)),
        Trouble.FORBIDDEN: Answer(status=403, body=dialect.error("forbidden")),
        Trouble.TOO_OFTEN: Answer(
            status=429, body=dialect.error("slow down"), headers={"Retry-After": str(RETRY_AFTER)}
        ),
        Trouble.BROKEN: Answer(status=500, body=dialect.error("oh")),
        Trouble.MOVED: Answer(status=302, body=b"", headers={"Location": "http://192.0.2.1/"}),
        Trouble.GARBAGE: Answer(body=b"<html>Down for maintenance</html>"),
    }
    return answers.get(trouble) if trouble else None


def page_of(shown: Sequence[Shown], after: str | None, size: int) -> tuple[list[Shown], str]:
    """The objects of the page that begins after the cursor, and the cursor of the next, or ""."""
    at = int(after or 0)
    page = list(shown[at : at + size])
    return page, str(at + size) if at + size < len(shown) else ""
