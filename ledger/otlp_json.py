"""OTLP/JSON: the spans of a request in JSON.

This is not the JSON that protobuf's own libraries write: ids are hex and not base64, enums are
numbers and never names, and the names of members are lowerCamelCase. 64-bit numbers come as strings
or as numbers, and members that nobody knows are passed over (opentelemetry-proto,
docs/specification.md, "JSON Protobuf Encoding").
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Container, Iterator
from decimal import Decimal
from typing import Any, Final

from ledger.ingest_json import Digits, Members, Unreadable, members
from ledger.otlp_span import (
    TELLING,
    TIME_MAX,
    Read,
    Span,
    Undecodable,
    attributes,
    bad,
    double,
    ended,
    ids,
    is_of_a_tool,
    worker_of,
    written,
)

PARTS_MAX: Final = 4_000_000
"""Most values and members of one body: each costs many times the bytes that it is written with."""
NUMBER_CHARACTERS_MAX: Final = 64

_WHOLE: Final = re.compile(r"-?[0-9]+")
_DOUBLE: Final = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Digits, parse_float=Digits, parse_constant=str
)


def spans(raw: bytes) -> Iterator[Read]:
    """The spans of a body, in order. Raises `Undecodable`; a fault of one span costs only it."""
    for resource_spans in _objects(_body(raw), "resourceSpans"):
        worker = _worker(resource_spans)
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            for span in _list(scope_spans, "spans"):
                yield _read(span, worker)


# The frame


def _body(raw: bytes) -> dict[str, Any]:
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > PARTS_MAX:
        raise Undecodable(f"it has more parts than the limit PARTS_MAX, {PARTS_MAX}")
    # What is no UTF-8 is kept as it came until the span that holds it is read.
    text = raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    try:
        body = _frame(_DECODER.decode(text))
    except json.JSONDecodeError as error:
        raise Undecodable(f"it is not JSON: {error.msg} (offset {error.pos})") from None
    except RecursionError:
        raise Undecodable("it is nested too deep") from None
    if "resource_spans" in body and "resourceSpans" not in body:
        raise Undecodable("resource_spans is written resourceSpans in OTLP/JSON")
    return body


def _frame(value: Any) -> dict[str, Any]:
    try:
        return {} if value is None else members(value, "the request")
    except Unreadable as fault:
        raise Undecodable(fault.says) from None


def _list(found: dict[str, Any], name: str) -> list[Any]:
    inner = found.get(name)
    if inner is None:
        return []
    if not isinstance(inner, list) or isinstance(inner, Members):
        raise Undecodable(f"{name} is no array")
    return inner


def _objects(found: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    return (_frame(inner) for inner in _list(found, name))


def _worker(resource_spans: dict[str, Any]) -> str:
    """What the resource says of the process. A resource that cannot be read costs no span."""
    try:
        return worker_of(_attributes(_object(resource_spans.get("resource"), "resource")))
    except (Unreadable, RecursionError):
        return ""


# One span


def _read(value: Any, worker: str) -> Read:
    known = ("", "")
    try:
        found = _object(value, "the span")
        if not is_of_a_tool(_attributes(found, TELLING), _text(found, "name")):
            return None
        known = ids(_hex(found, "traceId"), _hex(found, "spanId"))
        return _span(found, known, worker)
    except Unreadable as unreadable:
        fault = unreadable
    except RecursionError:
        fault = Unreadable("too_deep", "The span is nested too deep to be read.")
    return bad(written(value), fault, known)


def _span(found: dict[str, Any], known: tuple[str, str], worker: str) -> Span:
    status = _object(found.get("status"), "status")
    return Span(
        trace_id=known[0],
        span_id=known[1],
        parent_id=_hex(found, "parentSpanId").hex(),
        name=_text(found, "name"),
        start=_time(found, "startTimeUnixNano"),
        end=ended(_time(found, "endTimeUnixNano")),
        status=_enum(status, "code"),
        message=_text(status, "message"),
        attributes=_attributes(found),
        events=tuple(map(_event, _array(found, "events"))),
        worker=worker,
    )


def _event(value: Any) -> Members:
    found = _object(value, "events")
    return Members([
        ("name", _text(found, "name")),
        ("time", Digits(_time(found, "timeUnixNano"))),
        ("attributes", _attributes(found)),
    ])  # fmt: skip


# Members


def _object(value: Any, place: str) -> dict[str, Any]:
    """An object; null and absent are the empty one, as everywhere in protobuf."""
    return {} if value is None else members(value, place)


def _array(found: dict[str, Any], name: str) -> list[Any]:
    inner = found.get(name)
    if inner is None:
        return []
    if not isinstance(inner, list) or isinstance(inner, Members):
        raise Unreadable("not_an_array", f"{name} is no array.", name)
    return inner


def _text(found: dict[str, Any], name: str) -> str:
    text = found.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or isinstance(text, Digits):
        raise Unreadable("not_a_text", f"{name} is no string.", name)
    return text


def _hex(found: dict[str, Any], name: str) -> bytes:
    text = _text(found, name)
    if not _HEX.fullmatch(text):
        says = f"{name} is not hex, in which OTLP/JSON writes ids (not base64)."
        raise Unreadable("ids_invalid", says, name)
    return bytes.fromhex(text)


def _enum(found: dict[str, Any], name: str) -> int:
    number = found.get(name)
    if number is None:
        return 0
    if not isinstance(number, Digits) or not _WHOLE.fullmatch(number) or len(number) > 10:
        says = f"{name} is not a number, by which alone OTLP/JSON writes an enum."
        raise Unreadable("enum_invalid", says, name)
    return int(number)


def _time(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    if value is None or value == "":
        return 0
    number = _whole(value, name)
    if len(number) > NUMBER_CHARACTERS_MAX or not 0 <= int(number) <= TIME_MAX:
        raise Unreadable("time_unreadable", f"{name} is no time of 64 bits.", name)
    return int(number)


def _whole(value: Any, place: str) -> str:
    """The digits of a whole number that came as a string or a number, perhaps with an exponent."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        sign, digits = ("-", value[1:]) if value[0] == "-" else ("", value)
        digits = digits.lstrip("0")
        return sign + digits if digits else "0"
    if isinstance(value, Digits) and len(value) <= NUMBER_CHARACTERS_MAX:
        number = Decimal(value)
        if number.adjusted() < NUMBER_CHARACTERS_MAX and number == number.to_integral_value():
            return str(int(number))
    raise Unreadable("number_invalid", f"{place} is no whole number.", place)


# Values of attributes


def _attributes(found: dict[str, Any], only: Container[str] | None = None) -> Members:
    return attributes(_pairs(_array(found, "attributes"), only))


def _pairs(array: list[Any], only: Container[str] | None = None) -> Iterator[tuple[str, Any]]:
    for one in array:
        pair = _object(one, "attributes")
        name = _text(pair, "key")
        if only is None or name in only:
            yield name, _any(pair.get("value"))


def _any(value: Any) -> Any:
    """One value as the JSON that it stands for; null where nothing was set."""
    found = _object(value, "value")
    for name, read in _KINDS.items():
        inner = found.get(name)
        if inner is not None:
            return read(inner, name)
    return None


def _string(inner: Any, name: str) -> str:
    return _text({name: inner}, name)


def _bool(inner: Any, name: str) -> bool:
    if not isinstance(inner, bool):
        raise Unreadable("value_invalid", f"{name} is neither true nor false.", name)
    return inner


def _int(inner: Any, name: str) -> Digits:
    return Digits(_whole(inner, name))


def _double(inner: Any, name: str) -> Any:
    if not isinstance(inner, str) or not _DOUBLE.fullmatch(inner):
        raise Unreadable("number_invalid", f"{name} is no number.", name)
    return double(float(inner))


def _values(inner: Any, name: str) -> list[Any]:
    return [_any(one) for one in _array(_object(inner, name), "values")]


def _kvlist(inner: Any, name: str) -> Members:
    return attributes(_pairs(_array(_object(inner, name), "values")))


def _bytes(inner: Any, name: str) -> str:
    try:
        return base64.b64encode(base64.b64decode(_string(inner, name), validate=True)).decode()
    except (binascii.Error, ValueError):
        raise Unreadable("value_invalid", f"{name} is no base64.", name) from None


_KINDS: Final = {
    "stringValue": _string,
    "boolValue": _bool,
    "intValue": _int,
    "doubleValue": _double,
    "arrayValue": _values,
    "kvlistValue": _kvlist,
    "bytesValue": _bytes,
}
