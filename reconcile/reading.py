"""Texts of agents and providers, made fit to be looked at. Nothing here changes what is kept."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

ROWS_MAX: Final = 200
ROWS_BYTES_MAX: Final = 60_000
"""Most bytes of markup that all rows of one call's arguments make together."""
VALUE_BYTES_MAX: Final = 4000
PATH_BYTES_MAX: Final = 600

_KEPT: Final = frozenset("\n\t")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK: Final = frozenset(
    "\N{COMBINING GRAPHEME JOINER}\N{HANGUL CHOSEONG FILLER}\N{HANGUL JUNGSEONG FILLER}"
    "\N{HANGUL FILLER}\N{HALFWIDTH HANGUL FILLER}\N{BRAILLE PATTERN BLANK}"
    "\N{KHMER VOWEL INHERENT AQ}\N{KHMER VOWEL INHERENT AA}"
)
"""Letters and marks by their category that nothing is drawn for."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRows:
    """The rows in the order in which they were written; `more`: there were others after them."""

    rows: tuple[ArgumentRow, ...]
    more: bool = False


def visible(text: str) -> str:
    """The text with every character that is not seen written out: U+202E would turn a line round,
    so "gpj.exe" could read as "exe.jpg"."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}U+{ord(character):04X}"
        "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
        if _is_unseen(character)
        else character
        for character in text
    )


def _is_unseen(character: str) -> bool:
    if character in _KEPT:
        return False
    return unicodedata.category(character) in _UNSEEN or character in _BLANK or _selects(character)


def _selects(character: str) -> bool:
    """Variation selectors: each hides in the character before it. The two that people type, of
    emoji, change how it is drawn and nothing else."""
    return "\ufe00" <= character <= "\ufe0d" or "\U000e0100" <= character <= "\U000e01ef"


def cut_to_shown(text: str, bytes_max: int) -> str:
    """The longest beginning of the text that makes at most `bytes_max` bytes of markup, once what
    is not seen is written out and the rest is escaped."""
    if len(text) * _MARKUP_BYTES_MAX <= bytes_max:
        return text
    left = bytes_max
    for at, character in enumerate(text):
        left -= _markup_bytes(character)
        if left < 0:
            return text[:at]
    return text


_ESCAPED: Final = {"&": 5, "<": 4, ">": 4, '"': 6, "'": 6}
_MARKUP_BYTES_MAX: Final = 14
"""What the longest character becomes: U+E0001 in its brackets."""


def _markup_bytes(character: str) -> int:
    if character.isascii() and character.isprintable():
        return _ESCAPED.get(character, 1)
    return len(visible(character).encode("utf-8", "surrogatepass"))


def is_json(text: str) -> bool:
    """Whether the text is JSON that other programs read, whatever its numbers."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinities are none of JSON's.


def argument_rows(text: str | None) -> ArgumentRows | None:
    """The arguments as rows of path and value, bounded in number and in size; None where they are
    no object.

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
        return _bounded(_flat("", value))
    except (ValueError, RecursionError):
        return None


def _bounded(found: Iterator[ArgumentRow]) -> ArgumentRows:
    rows: list[ArgumentRow] = []
    left = ROWS_BYTES_MAX
    for row in found:
        if len(rows) == ROWS_MAX or left <= 0:
            return ArgumentRows(rows=tuple(rows), more=True)
        path = cut_to_shown(row.path, PATH_BYTES_MAX)
        shown = cut_to_shown(row.text, min(VALUE_BYTES_MAX, left))
        left -= sum(map(_markup_bytes, path)) + sum(map(_markup_bytes, shown)) + _ROW_BYTES
        rows.append(
            ArgumentRow(
                path=path if path == row.path else f"{path}\N{HORIZONTAL ELLIPSIS}",
                text=shown,
                is_text=row.is_text,
                cut=len(shown) < len(row.text),
            )
        )
    return ArgumentRows(rows=tuple(rows))


_ROW_BYTES: Final = 40
"""The elements of one row."""


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
        yield ArgumentRow(
            path=path,
            text=_plain(value),
            is_text=isinstance(value, str) and not isinstance(value, Digits),
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
