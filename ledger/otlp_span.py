"""A span as both encodings of OTLP give it, and the item that is kept of it.

The readers of the two encodings make the same `Span` of the same span, so the item is the same,
too: what it holds is ordered by name, numbers are written in one way, and ids are hex in lower
case. Attributes are JSON values as `ledger.ingest_json` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from ledger.ingest_json import Digits, Members, Unreadable, canonical

SOURCE_PREFIX: Final = "otel:"
"""A trace is the source of its spans; with a span's id that is the identity of the span."""
SPAN_TYPE: Final = "span.execute_tool"

OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
TOOL_NAME: Final = "gen_ai.tool.name"
# Until the middle of 2025 the conventions put no operation on these spans, only their name.
TELLING: Final = frozenset({OPERATION, TOOL_NAME})
"""The attributes that say of what a span is; of other spans nothing else is read."""
_OLDER_NAMES: Final = re.compile(r"execute_tool\b|running tool\Z")

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
NANOSECONDS: Final = 10**9
TIME_MAX: Final = 2**64 - 1
_WORKER: Final = ("service.instance.id", "service.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a tool's execution. Times are nanoseconds since 1970, and `start` is 0 where none
    was said; `status` is the number of its code: 0 unset, 1 ok, 2 error."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    start: int = 0
    end: int
    status: int = 0
    message: str = ""
    attributes: Members = field(default_factory=Members)
    events: tuple[Members, ...] = ()
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSpan:
    """A span that cannot be read: as it came, what is wrong, and its ids as far as they are known.
    Whether it speaks of a tool may not be known."""

    raw: bytes
    fault: Unreadable
    trace_id: str = ""
    span_id: str = ""


Read = Span | BadSpan | None
"""None: a span of something else than a tool's execution."""


def bad(raw: bytes, fault: Unreadable, known: tuple[str, str]) -> BadSpan:
    # Its traceback would keep everything alive that was read so far.
    fault = fault.with_traceback(None)
    return BadSpan(raw=raw, fault=fault, trace_id=known[0], span_id=known[1])


class Undecodable(ValueError):
    """Why a body holds no request of OTLP."""


# Attributes


def attributes(pairs: Iterable[tuple[str, Any]]) -> Members:
    """Attributes in the order of their names, since their own order says nothing. One that is said
    twice with the same value is one; with two values both stay, for whoever asks for it."""
    known = {(name, canonical(value)): value for name, value in pairs}
    return Members((name, known[name, text]) for name, text in sorted(known))


def attribute(found: Members, name: str) -> Any:
    """The value of an attribute, or None. Raises `Unreadable` where it has two values."""
    values = [value for known, value in found if known == name]
    if len(values) > 1:
        says = f"The attribute {name} appears twice, with different values."
        raise Unreadable("duplicate_member", says, f"attributes.{name}")
    return values[0] if values else None


def first_text(found: Members, names: Iterable[str]) -> str:
    """The first of these attributes that says something; a number is taken as its digits."""
    texts = (attribute(found, name) for name in names)
    return next((str(text) for text in texts if isinstance(text, str) and text), "")


def is_of_a_tool(found: Members, name: str) -> bool:
    """Whether a span tells of a tool's execution: by its operation, or as older emitters say it."""
    operations = [value for known, value in found if known == OPERATION]
    if operations:
        return EXECUTE_TOOL in operations
    named = any(known == TOOL_NAME for known, _ in found)
    return named and _OLDER_NAMES.match(name) is not None


def worker_of(resource: Members) -> str:
    """The process that ran the tool, as its resource names it."""
    return first_text(resource, _WORKER)


# Values that both encodings write differently


def double(value: float) -> Any:
    """A double as JSON can hold it: its shortest digits, or the name of what is no number."""
    text = repr(value)
    if text in _NO_NUMBER:
        return _NO_NUMBER[text]
    return Digits(text)


_NO_NUMBER: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def ids(trace_id: bytes, span_id: bytes) -> tuple[str, str]:
    """Both ids in hex. Raises `Unreadable` for ids of another length, or of zeros alone: they would
    be those of strangers as well."""
    for name, found, size in (
        ("traceId", trace_id, TRACE_ID_BYTES),
        ("spanId", span_id, SPAN_ID_BYTES),
    ):
        if len(found) != size or not any(found):
            says = f"{name} is not {size} bytes that are not all zero, so the span has no identity."
            raise Unreadable("ids_invalid", says, name)
    return trace_id.hex(), span_id.hex()


def ended(end: int) -> int:
    """The end of a span, which it must have. Raises `Unreadable`."""
    if not end:
        says = "endTimeUnixNano is missing: the span has not ended. Send it when it has."
        raise Unreadable("not_ended", says, "endTimeUnixNano")
    return end


# The item


def source_of(trace_id: str) -> str:
    """The source of the items of a trace; empty where the trace is not known."""
    return SOURCE_PREFIX + trace_id if trace_id else ""


def item_of(span: Span) -> bytes:
    """The span as an item of ingest."""
    said = {
        "name": span.name,
        "parent": span.parent_id,
        "start": Digits(span.start) if span.start else "",
        "end": Digits(span.end),
        "status": Digits(span.status),
        "message": span.message,
        "attributes": span.attributes,
        "events": list(span.events),
        "worker": span.worker,
    }
    item = Members([
        ("source", source_of(span.trace_id)),
        ("id", span.span_id),
        ("type", SPAN_TYPE),
        ("time", moment(span.end)),
        ("data", Members((name, value) for name, value in said.items() if value != "")),
    ])  # fmt: skip
    return written(item)


def moment(nanoseconds: int) -> str:
    """The time as RFC 3339 writes it. The latest that 64 bits can name lies in the year 2554."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def written(value: Any) -> bytes:
    """The value as JSON in ASCII, whatever its strings hold and however deep it is."""
    out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, _Literal):
            out.append(one.text)
        elif isinstance(one, Members):
            out.append("{")
            todo.append(_Literal("}"))
            for number, (name, inner) in reversed(list(enumerate(one))):
                comma = "," if number else ""
                todo += [inner, _Literal(f"{comma}{encode_basestring_ascii(name)}:")]
        elif isinstance(one, list):
            out.append("[")
            todo.append(_Literal("]"))
            for number, inner in reversed(list(enumerate(one))):
                todo += [inner, _Literal("," if number else "")]
        else:
            out.append(_scalar(one))
    return "".join(out).encode()


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str


_WORDS: Final = {None: "null", True: "true", False: "false"}


def _scalar(value: Any) -> str:
    if isinstance(value, Digits):
        return str(value)
    return encode_basestring_ascii(value) if isinstance(value, str) else _WORDS[value]
