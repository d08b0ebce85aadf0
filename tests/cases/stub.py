"""A provider on loopback that answers what a case has written down.

It stands at a real socket, so whatever the product asks goes through its own adapters. The case's
bodies go out as they are, but for what every answer of Stripe's holds and the files leave out: the
kind of an object, its time, its currency, and our marker in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from socket import socket
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.effects.faulty_server import FaultyServer, faulty, read_request

NOUNS: Final = {
    "payment_intents": "payment_intent",
    "charges": "charge",
    "refunds": "refund",
    "payouts": "payout",
    "transfers": "transfer",
}
"""Stripe's lists that a case may be about, and what each object of it is called."""
PREFIXES: Final = {
    "pi_": "payment_intents",
    "ch_": "charges",
    "re_": "refunds",
    "po_": "payouts",
    "tr_": "transfers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One scripted answer. `body` is what the file says: an object, a text that is sent as it is,
    or None for no body at all."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        if self.body is None:
            return b""
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(slots=True)
class Stub:
    """`writes` are answered in turn; `pages` are the look-up's answers, one for each page. `fills`
    is what every object of Stripe's is given where its file leaves it out."""

    now: datetime
    server: FaultyServer | None = None
    writes: list[Reply] = field(default_factory=list)
    pages: list[Reply] = field(default_factory=list)
    account: str = ""
    fills: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url

    def answer(self, request: bytes) -> Reply:
        method, target, _ = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        if method == "POST":
            return self.writes.pop(0)
        self.asked.append(target)
        split = urlsplit(target)
        parts = split.path.strip("/").split("/")
        if parts[0] != "v1":
            return self.pages[0]
        if parts[1] in {"account", "accounts"}:
            return Reply(status=200, body={"id": self.account or "acct_case", "object": "account"})
        return self._of_stripe(parts[1:], parse_qs(split.query))

    def _of_stripe(self, path: list[str], query: Mapping[str, list[str]]) -> Reply:
        noun = NOUNS.get(path[0])
        first = self.pages[0]
        if first.status != 200:
            return first
        if noun is None:
            return Reply(status=200, body=_list([], has_more=False))
        pages = [[self._whole(item, noun) for item in items_of(page.body)] for page in self.pages]
        if len(path) > 1 and path[1] != "search":
            every = {item["id"]: item for page in pages for item in page}
            return Reply(status=200, body=every[path[1]])
        after = query.get("starting_after", [""])[0]
        at = 1 + next((n for n, page in enumerate(pages) if page and page[-1]["id"] == after), -1)
        return Reply(status=200, body=_list(pages[at], has_more=at + 1 < len(pages)))

    def _whole(self, item: Mapping[str, Any], noun: str) -> dict[str, Any]:
        whole = {"object": noun, "created": int(self.now.timestamp()), **self.fills, **item}
        said = item.get("metadata", {})
        whole["metadata"] = {**self.fills["metadata"], **said}
        return whole


def items_of(body: Any) -> list[dict[str, Any]]:
    """The objects of an answer: a list of Stripe's, or the one object that it is."""
    if isinstance(body, dict) and isinstance(body.get("data"), list):
        return list(body["data"])
    return [body] if isinstance(body, dict) and "id" in body else []


def _list(items: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {"object": "list", "data": items, "has_more": has_more, "url": "/v1/list"}


@contextmanager
def standing(now: datetime) -> Iterator[Stub]:
    """A provider for as long as the block lasts."""
    stub = Stub(now=now)

    def talk(server: FaultyServer, connection: socket) -> None:
        reply = stub.answer(read_request(connection))
        body = reply.bytes
        headers = {
            "content-type": "application/json",
            "date": format_datetime(stub.now, usegmt=True),
            "request-id": f"req_case_{len(stub.asked)}",
            **{name.lower(): value for name, value in reply.headers.items()},
        }
        lines = [f"HTTP/1.1 {reply.status} Said So", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if reply.status != 204:
            lines.append(f"content-length: {len(body)}")
        connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    with faulty(talk) as server:
        stub.server = server
        yield stub
