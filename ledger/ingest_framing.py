"""From the bytes of a request to the bytes of its items, whatever the items hold.

An item that is no JSON must not cost its neighbours, so the outer array is taken apart by its
strings and brackets alone; each item is then read by itself (`ledger.ingest_reading`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from django.http import HttpRequest

from effects.core.problems import LimitExceeded
from ledger.refusals import IngestMediaUnsupported, InputInvalid, LengthRequired

INGEST_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
ITEMS_PER_BATCH_MAX: Final = 500

JSON: Final = "application/json"
NDJSON: Final = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
CLOUDEVENT: Final = "application/cloudevents+json"
CLOUDEVENTS_BATCH: Final = "application/cloudevents-batch+json"
MEDIA_TYPES: Final = (JSON, *sorted(NDJSON), CLOUDEVENT, CLOUDEVENTS_BATCH)

CLOUDEVENT_HEADER: Final = "ce-"


class Broken(ValueError):
    """Where and why a body cannot be taken apart."""

    def __init__(self, says: str, at: int) -> None:
        super().__init__(f"{says} (offset {at})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A body and how it is to be taken apart. `is_cloudevent`: its items must say so themselves."""

    raw: bytes
    media_type: str
    is_cloudevent: bool = False


def read_body(request: HttpRequest) -> Body:
    """The body of an ingest request.

    Raises `IngestMediaUnsupported`, `LengthRequired`, `LimitExceeded` (``INGEST_BODY_BYTES_MAX``)
    and `InputInvalid` for a body that ended early: nothing of these was kept.
    """
    media_type = request.content_type
    binary = "ce-specversion" in request.headers
    if media_type not in MEDIA_TYPES:
        raise IngestMediaUnsupported(kept=0)
    length = request.headers.get("Content-Length", "")
    if not length.isascii() or not length.isdecimal():
        raise LengthRequired(kept=0)
    if int(length) > INGEST_BODY_BYTES_MAX:
        raise LimitExceeded(
            f"The body has {int(length)} bytes; the limit INGEST_BODY_BYTES_MAX is "
            f"{INGEST_BODY_BYTES_MAX}. Nothing of it was kept; send fewer items at a time.",
            limit="INGEST_BODY_BYTES_MAX",
            value=INGEST_BODY_BYTES_MAX,
            kept=0,
        )
    # Not `request.body`: its limit is Django's own, which an operator may have set lower.
    raw = request.read(INGEST_BODY_BYTES_MAX + 1)
    if len(raw) != int(length):
        says = f"The body ended after {len(raw)} of {int(length)} bytes. Nothing was kept."
        raise InputInvalid(f"{says} Send it again.", kept=0)
    if binary and media_type == JSON:
        return Body(raw=_with_headers(request, raw), media_type=CLOUDEVENT, is_cloudevent=True)
    batched = media_type in {CLOUDEVENT, CLOUDEVENTS_BATCH}
    return Body(raw=raw, media_type=media_type, is_cloudevent=batched)


def _with_headers(request: HttpRequest, raw: bytes) -> bytes:
    """A CloudEvent in binary mode, written as the structured one that it means."""
    attributes = {
        name.lower().removeprefix(CLOUDEVENT_HEADER): unquote(value)
        for name, value in request.headers.items()
        if name.lower().startswith(CLOUDEVENT_HEADER)
    }
    written = json.dumps(attributes)[:-1].encode()
    return written + b',"data":' + (raw.strip() or b"null") + b"}"


def split(body: Body) -> list[bytes]:
    """The items of a body, as bytes, in their order.

    Raises `Broken`, and `LimitExceeded` (``ITEMS_PER_BATCH_MAX``).
    """
    raw = body.raw.removeprefix(b"\xef\xbb\xbf")
    if body.media_type in NDJSON:
        items = [line.strip() for line in raw.split(b"\n") if line.strip()]
    elif body.media_type == CLOUDEVENT or raw.lstrip()[:1] == b"{":
        items = [_one(raw)]
    else:
        items = _elements(raw)
    if len(items) > ITEMS_PER_BATCH_MAX:
        raise LimitExceeded(
            f"The body has {len(items)} items; the limit ITEMS_PER_BATCH_MAX is "
            f"{ITEMS_PER_BATCH_MAX}. Nothing of it was kept; send fewer at a time.",
            limit="ITEMS_PER_BATCH_MAX",
            value=ITEMS_PER_BATCH_MAX,
            kept=0,
        )
    return items


_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_CLOSES: Final = {b"]": b"[", b"}": b"{"}


def _one(raw: bytes) -> bytes:
    """The one object that the whole body is."""
    end = _end_of(raw, 0)
    if raw[end:].strip():
        raise Broken("After the item something else follows", end)
    return raw.strip()


def _end_of(raw: bytes, start: int) -> int:
    """Where the object that begins after `start` ends."""
    open_: list[bytes] = []
    for token in _TOKEN.finditer(raw, start):
        _follow(token, open_)
        if not open_ and token[0] in _CLOSES:
            return token.end()
    raise Broken("The body ends inside an item" if open_ else "The body is no item", len(raw))


def _follow(token: re.Match[bytes], open_: list[bytes]) -> None:
    found = token[0]
    if found == b'"':
        raise Broken("A string does not end", token.start())
    if found in {b"[", b"{"}:
        open_.append(found)
    elif found in _CLOSES and (not open_ or open_.pop() != _CLOSES[found]):
        raise Broken("A bracket closes what was never opened", token.start())


def _elements(raw: bytes) -> list[bytes]:
    """The elements of the outermost array."""
    begins = len(raw) - len(raw.lstrip())
    if raw[begins : begins + 1] != b"[":
        raise Broken("The body is neither an object nor an array", begins)
    open_: list[bytes] = []
    items: list[bytes] = []
    from_ = begins + 1
    for token in _TOKEN.finditer(raw, begins):
        _follow(token, open_)
        if not open_:
            items.append(raw[from_ : token.start()].strip())
            if raw[token.end() :].strip():
                raise Broken("After the array something else follows", token.end())
            return [] if items == [b""] else items
        if len(open_) == 1 and token[0] == b",":
            items.append(raw[from_ : token.start()].strip())
            from_ = token.end()
    raise Broken("The body ends inside the array", len(raw))
