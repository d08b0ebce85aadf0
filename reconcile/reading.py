"""Texts of agents and providers, made fit to be looked at. Nothing here changes what is kept."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

ROWS_MAX: Final = 200
VALUE_CHARACTERS_MAX: Final = 2000
RAW_CHARACTERS_SHOWN_MAX: Final = 16_000

_KEPT: Final = frozenset("\n\t")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Digits(str):
    """A number as it was written: 1.10 stays 1.10, and 2^53 + 1 stays itself."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object as they were written, a name that comes twice included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRow:
    """One plain value: its path (`metadata.order`, `items[0].sku`), and how it was written."""

    path: str
    text: str
    is_text: bool
    cut: bool = False


def visible(text: str) -> str:
    """The text with every character that is not seen written out: U+202E would turn a line round,
    so "gpj.exe" could read as "exe.jpg"."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}U+{ord(character):04X}"
        "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
        if unicodedata.category(character) in _UNSEEN and character not in _KEPT
        else character
        for character in text
    )


def argument_rows(text: str | None) -> tuple[ArgumentRow, ...] | None:
    """The arguments as rows of path and value, at most `ROWS_MAX`; None where they are no object.

    Numbers are never converted: their digits are shown as they were received.
    """
    if text is None:
        return None
    try:
        value = _read(text)
        if isinstance(value, str) and not isinstance(value, Digits):
            value = _read(value)  # A model may hand its object over as a JSON string.
        if not isinstance(value, Members):
            return None
        rows = []
        for row in _flat("", value):
            rows.append(row)
            if len(rows) == ROWS_MAX:
                break
    except (ValueError, RecursionError):
        return None
    return tuple(rows)


def _read(text: str) -> Any:
    return json.loads(
        text,
        parse_int=Digits,
        parse_float=Digits,
        parse_constant=Digits,
        object_pairs_hook=Members,
    )


def _flat(path: str, value: Any) -> Iterator[ArgumentRow]:
    if isinstance(value, Members) and value:
        for name, inner in value:
            yield from _flat(f"{path}.{name}" if path else name, inner)
    elif isinstance(value, list) and not isinstance(value, Members) and value:
        for number, inner in enumerate(value):
            yield from _flat(f"{path}[{number}]", inner)
    else:
        text = _plain(value)
        yield ArgumentRow(
            path=path,
            text=text[:VALUE_CHARACTERS_MAX],
            is_text=isinstance(value, str) and not isinstance(value, Digits),
            cut=len(text) > VALUE_CHARACTERS_MAX,
        )


def _plain(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Members():
            return "{}"
        case _:
            return "[]"
