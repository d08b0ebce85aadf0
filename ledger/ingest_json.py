"""Reading evidence: whatever can be understood is understood, and what was mended is said.

A claim request with a lone surrogate is refused, because nothing has run yet. An event speaks of
what has happened, so here the same character is replaced in the readable copy, the bytes are kept,
and the item carries a marker. Numbers are never converted: their digits stay as they were written.
"""

from __future__ import annotations

import hashlib
import json
import re
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from effects.core.exact_json import Number, Refused, parse_json

ITEM_DEPTH_MAX: Final = 100
"""Deepest object or array in an item; ours and fixed, not the interpreter's."""

REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
NUL_SHOWN: Final = "\N{SYMBOL FOR NULL}"

_BYTES: Final = re.compile("[\udc80-\udcff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_STRUCTURE: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class Digits(str):
    """A number as it was written."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object as they were written, a name that comes twice included."""


class Unreadable(ValueError):
    """An item that its sender must correct: a stable word, a sentence, and the place."""

    def __init__(self, code: str, says: str, at: str | None = None) -> None:
        super().__init__(says)
        self.code = code
        self.says = says
        self.at = at


def read(raw: bytes) -> tuple[Any, frozenset[str]]:
    """The value of one JSON text in bytes, and what was mended in it.

    Objects are `Members`, numbers `Digits`. Raises `Unreadable`: ``too_deep``, ``not_json``,
    ``nan_or_infinity``.
    """
    _check_depth(raw)
    mended = set()
    text = raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if _BYTES.search(text):
        mended.add("invalid_utf8")
        text = _BYTES.sub(REPLACED, text)
    try:
        value = _DECODER.decode(text)
    except _ConstantError as error:
        at = f"offset {_constant_at(text)}"
        says = f"{error} is not JSON. Send a number, a string or null ({at})."
        raise Unreadable("nan_or_infinity", says, at) from None
    except json.JSONDecodeError as error:
        at = f"offset {error.pos}"
        raise Unreadable("not_json", f"The item is not JSON: {error.msg} ({at}).", at) from None
    return _whole(value, mended), frozenset(mended)


class _ConstantError(ValueError):
    """A word that Python reads as a number and JSON does not know."""


def _refuse_constant(word: str) -> Any:
    raise _ConstantError(word)


_CONSTANT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|NaN)', re.DOTALL)


def _constant_at(text: str) -> int:
    """Where the first such word stands outside of strings; the decoder does not say."""
    return next((token.start() for token in _CONSTANT.finditer(text) if token[1]), 0)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_int=Digits,
    parse_float=Digits,
    parse_constant=_refuse_constant,
)


def _check_depth(raw: bytes) -> None:
    depth = 0
    for token in _STRUCTURE.finditer(raw):
        if token[0] in b"[{":
            depth += 1
            if depth > ITEM_DEPTH_MAX:
                says = f"The item is nested deeper than the limit ITEM_DEPTH_MAX, {ITEM_DEPTH_MAX}."
                raise Unreadable("too_deep", says, f"offset {token.start()}")
        elif token[0] in b"]}":
            depth -= 1


def _whole(value: Any, mended: set[str]) -> Any:
    """The value with every string fit to be stored."""
    if isinstance(value, Digits) or not isinstance(value, str | list):
        return value
    if isinstance(value, str):
        return _mend(value, mended)
    if isinstance(value, Members):
        return Members((_mend(name, mended), _whole(inner, mended)) for name, inner in value)
    return [_whole(inner, mended) for inner in value]


def _mend(text: str, mended: set[str]) -> str:
    if "\x00" in text:
        mended.add("nul")
        text = text.replace("\x00", NUL_SHOWN)
    if _SURROGATE.search(text):
        mended.add("lone_surrogate")
        text = _SURROGATE.sub(REPLACED, text)
    return text


def members(value: Any, place: str) -> dict[str, Any]:
    """An object as a dictionary.

    Raises `Unreadable`: ``not_an_object``, and ``duplicate_member`` where a name comes twice with
    different values: readers disagree about which of the two counts.
    """
    if not isinstance(value, Members):
        raise Unreadable("not_an_object", f"{place} is not an object.", place)
    found: dict[str, Any] = {}
    for name, inner in value:
        if name in found and canonical(found[name]) != canonical(inner):
            says = f"The member {name[:60]!a} of {place} appears twice, with different values."
            raise Unreadable("duplicate_member", says, place)
        found[name] = inner
    return found


def canonical(value: Any) -> str:
    """A text that is equal for equal contents, however they were written down."""
    if isinstance(value, Digits):
        return _number(value)
    if isinstance(value, Members):
        parts = sorted((name, canonical(inner)) for name, inner in value)
        return "{" + ",".join(f"{encode_basestring_ascii(n)}:{text}" for n, text in parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(inner) for inner in value) + "]"
    return encode_basestring_ascii(value) if isinstance(value, str) else json.dumps(value)


def _number(literal: Digits) -> str:
    try:
        number = parse_json(literal)
    except Refused:  # More digits than may be compared: equal only as written.
        return str(literal)
    assert isinstance(number, Number)
    return number.text


def digest(*parts: str) -> bytes:
    """SHA-256 over parts with their lengths."""
    written = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return hashlib.sha256(written).digest()


def text_of(value: Any) -> str:
    """The value as JSON text, its numbers as they were written and a repeated member repeated."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, Members):
        inner = ",".join(f"{json.dumps(n, ensure_ascii=False)}:{text_of(v)}" for n, v in value)
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ",".join(text_of(inner) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)
