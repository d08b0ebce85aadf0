"""OTLP over HTTP: what a request carries, and what it is answered, in the encoding that it used.

A refusal is a `google.rpc.Status`. An exporter tries again after 429, 502, 503 and 504 alone, and
drops what it sent after any other (opentelemetry-proto, docs/specification.md, "OTLP/HTTP").
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from ledger import otlp_json, otlp_protobuf
from ledger.otlp_span import BadSpan, Span, Undecodable

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
MEDIA_TYPES: Final = (PROTOBUF, JSON)
GZIP: Final = "gzip"

OTLP_BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Longest body, as it comes and after it was unpacked."""
TOOL_SPANS_PER_REQUEST_MAX: Final = 10_000
MESSAGE_CHARACTERS_MAX: Final = 2000

_GZIP_ONLY: Final = 16 + zlib.MAX_WBITS  # with gzip's own header and trailer
_GRPC: Final[Mapping[int, int]] = MappingProxyType({
    HTTPStatus.BAD_REQUEST: 3,  # invalid argument
    HTTPStatus.UNAUTHORIZED: 16,  # unauthenticated
    HTTPStatus.FORBIDDEN: 7,  # permission denied
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,  # resource exhausted
    HTTPStatus.INTERNAL_SERVER_ERROR: 13,  # internal
    HTTPStatus.SERVICE_UNAVAILABLE: 14,  # unavailable
})  # fmt: skip
_GRPC_OTHERWISE: Final = 9  # failed precondition: nothing that another try would change


class Refused(Exception):
    """A request that is answered with an error, in its own encoding."""

    def __init__(self, status: int, says: str, **headers: str) -> None:
        super().__init__(says)
        self.status = status
        self.says = says
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


# What a request carries


def read_body(request: HttpRequest) -> bytes:
    """The body as it came. Raises `Refused`: 413 (``OTLP_BODY_BYTES_MAX``), 415, 400."""
    if request.content_type not in MEDIA_TYPES:
        kinds = " or ".join(MEDIA_TYPES)
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"The body's kind is not read here. Send Content-Type: {kinds}.",
        )
    if _encoding(request) not in {"", "identity", GZIP}:
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "The body's Content-Encoding is not read here. Send gzip, or the body as it is.",
            Accept_Encoding=GZIP,
        )
    length = request.headers.get("Content-Length", "")
    if not length:
        return _read_chunks(request)
    if not length.isascii() or not length.isdecimal():
        raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is no number.")
    if int(length) > OTLP_BODY_BYTES_MAX:
        raise too_large()
    raw = request.read(OTLP_BODY_BYTES_MAX + 1)
    if len(raw) != int(length):
        says = f"The body ended after {len(raw)} of {length} bytes. Nothing of it was kept."
        raise Refused(HTTPStatus.BAD_REQUEST, says)
    return raw


def _encoding(request: HttpRequest) -> str:
    return request.headers.get("Content-Encoding", "").strip().lower()


def _read_chunks(request: HttpRequest) -> bytes:
    """A body whose length was not said: some exporters compress while they send. Under WSGI Django
    takes such a body for an empty one, but the server hands it on."""
    source: Any = getattr(request, "environ", {}).get("wsgi.input", request)
    raw = b""
    while piece := source.read(OTLP_BODY_BYTES_MAX + 1 - len(raw)):
        raw += piece
        if len(raw) > OTLP_BODY_BYTES_MAX:
            raise too_large()
    return raw


def too_large(what: str = "The body") -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"{what} is longer than the limit OTLP_BODY_BYTES_MAX, {OTLP_BODY_BYTES_MAX} bytes. "
        "Nothing of it was kept; export fewer spans at a time.",
    )


def spans_of_tools(request: HttpRequest, raw: bytes) -> list[Span | BadSpan]:
    """The spans of tools that a body holds.

    Raises `Undecodable`, and `Refused` (413): ``OTLP_BODY_BYTES_MAX``,
    ``TOOL_SPANS_PER_REQUEST_MAX``.
    """
    if _encoding(request) == GZIP:
        raw = unpacked(raw)
    found: list[Span | BadSpan] = []
    for span in (otlp_json if request.content_type == JSON else otlp_protobuf).spans(raw):
        if span is not None:
            found.append(span)
        if len(found) > TOOL_SPANS_PER_REQUEST_MAX:
            says = (
                "The request has more spans of tools than the limit TOOL_SPANS_PER_REQUEST_MAX, "
                f"{TOOL_SPANS_PER_REQUEST_MAX}. Nothing of it was kept; export fewer at a time."
            )
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, says)
    return found


def unpacked(raw: bytes) -> bytes:
    """The content of gzip data, of which never more than the limit and one byte is unpacked.

    Raises `Undecodable`, and `Refused` (413).
    """
    unzip = zlib.decompressobj(wbits=_GZIP_ONLY)
    try:
        found = unzip.decompress(raw, OTLP_BODY_BYTES_MAX + 1)
    except zlib.error:
        raise Undecodable("it is not gzip, as its Content-Encoding says") from None
    if len(found) > OTLP_BODY_BYTES_MAX:
        raise too_large("The unpacked body")
    if not unzip.eof:
        raise Undecodable("its gzip data ends too early")
    if unzip.unused_data:
        raise Undecodable("something else follows its gzip data")
    return found


# What it is answered


def accepted(request: HttpRequest, rejected: int, says: str) -> HttpResponse:
    """200: what was not rejected is kept. `says` is why, or a warning; empty where all is well."""
    says = says[:MESSAGE_CHARACTERS_MAX]
    if request.content_type == PROTOBUF:
        return _response(PROTOBUF, otlp_protobuf.response(rejected, says))
    partial = {"rejectedSpans": str(rejected), "errorMessage": says}
    return _response(JSON, _json({"partialSuccess": partial} if says else {}))


def refusal(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A `Status` in the request's encoding; JSON for a request in neither."""
    code = _GRPC.get(refused.status, _GRPC_OTHERWISE)
    says = refused.says[:MESSAGE_CHARACTERS_MAX]
    if request.content_type == PROTOBUF:
        response = _response(PROTOBUF, otlp_protobuf.status(code, says), refused.status)
    else:
        response = _response(JSON, _json({"code": code, "message": says}), refused.status)
    for name, value in refused.headers.items():
        response[name] = value
    return response


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _response(kind: str, body: bytes, status: int = HTTPStatus.OK) -> HttpResponse:
    response = HttpResponse(body, content_type=kind, status=status)
    response["Cache-Control"] = "no-store"
    return response
