"""Reads a text once and says what of it is to be replaced, and where it stands.

JSON is followed member by member, without building its value: so whatever is not replaced stays as
it was received, byte for byte. A string that holds JSON is followed in the same way, and what is
found there is placed in the outermost text. A text that is no JSON, or stops being it, is read by
its lines, and then by its words.

Nothing here calls itself but for JSON inside strings, `STRINGS_DEEP_MAX` levels at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from effects.core.redaction_paths import Path
from effects.core.redaction_secrets import (
    Secret,
    is_card_number,
    is_stand_in,
    may_hold_a_secret,
    names_a_secret,
    stand_in,
)
from effects.core.redaction_words import (
    Active,
    Edit,
    Looking,
    apart,
    edits_in_words,
    moved,
    place_in_words,
)

__all__ = ["scan"]

STRINGS_DEEP_MAX: Final = 6
"""Deepest JSON text inside a JSON string; below it a string is read by its words."""


def scan(text: str, looking: Looking) -> list[Edit]:
    """The edits of a text in their order; none overlaps another."""
    return apart(_edits(text, looking, looking.first(), (), 0))


def _edits(
    text: str, looking: Looking, active: Active, place: tuple[str | int, ...], deep: int
) -> list[Edit]:
    reader = _Reader(text, looking, active, place, deep)
    end = reader.read()
    if end == len(text):
        return reader.edits
    if reader.edits or end:
        # It began as JSON and went on otherwise, or was cut: what is left is read by its words.
        end = reader.unread_from(end)
        return [*reader.edits, *moved(edits_in_words(text[end:], looking, place), end)]
    return _lines(text, looking, active, place, deep)


# Text that is no JSON

_LINE_OF_A_STREAM: Final = re.compile(r"(?:data:)?[ \t]*(?=[{\[])")


def _lines(
    text: str, looking: Looking, active: Active, place: tuple[str | int, ...], deep: int
) -> list[Edit]:
    """Lines of JSON, as NDJSON and server-sent events have them; the others by their words."""
    if "\n" not in text or "{" not in text:
        return edits_in_words(text, looking, place)
    found: list[Edit] = []
    at = 0
    for line in text.splitlines(keepends=True):
        begins = _LINE_OF_A_STREAM.match(line)
        skip = begins.end() if begins else 0
        body = line[skip:].rstrip("\r\n")
        inner = (
            _edits(body, looking, active, place, deep)
            if begins
            else edits_in_words(body, looking, place)
        )
        found += moved(inner, at + skip)
        at += len(line)
    return found + [one for one in edits_in_words(text, looking, place) if "\n" in one.value]


# JSON

_TOKEN: Final = re.compile(
    r'[ \t\n\r]*(?:"([^"\\]*(?:\\.[^"\\]*)*)"|([\[\]{},:])'
    r"|(-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity))",
    re.DOTALL,
)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PAIR_NAMES: Final = frozenset({"name", "key", "header", "field"})
_PAIR_VALUES: Final = frozenset({"value", "val", "content"})


@dataclass(slots=True)
class _Open:
    """An object or array that is being read. `hides`: everything below it is a secret by name."""

    is_object: bool
    start: int
    active: Active
    key: str | int = 0
    hit: int | None = None  # the rule that fits the whole of it
    hides: bool = False
    awaits: str = "first"  # first, key, colon, value or comma
    named: str = ""
    values: list[tuple[int, int, str, str]] = field(default_factory=list)


class _Reader:
    def __init__(
        self,
        text: str,
        looking: Looking,
        active: Active,
        place: tuple[str | int, ...],
        deep: int,
    ) -> None:
        self.text = text
        self.looking = looking
        self.root = active
        self.place = place
        self.deep = deep
        self.open: list[_Open] = []
        self.edits: list[Edit] = []
        self.done = False
        self.name_at = 0

    def read(self) -> int:
        """Reads as far as it is JSON; answers where that ends."""
        at, match = 0, _TOKEN.match
        while not self.done:
            token = match(self.text, at)
            if token is None or not self._take(token):
                return at
            at = token.end()
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def unread_from(self, end: int) -> int:
        """Where to go on after `end`: a value that was cut is read together with its name."""
        cut = bool(self.open) and self.open[-1].awaits in {"colon", "value"}
        return self.name_at if cut and self.open[-1].is_object else end

    def _take(self, token: re.Match[str]) -> bool:
        """Takes one token. False: it may not stand here."""
        mark = token[2]
        top = self.open[-1] if self.open else None
        if mark is None:
            if top is not None and top.is_object and top.awaits in {"first", "key"}:
                return self._name(top, token)
            return self._may_stand(top) and self._plain(token)
        if mark in "{[":
            return self._may_stand(top) and self._begin(token)
        if top is None:
            return False
        if mark in "}]":
            return self._end(top, token, mark)
        return self._between(top, mark)

    @staticmethod
    def _may_stand(top: _Open | None) -> bool:
        return top is None or top.awaits in ({"value"} if top.is_object else {"first", "value"})

    @staticmethod
    def _between(top: _Open, mark: str) -> bool:
        if mark == ":" and top.awaits == "colon":
            top.awaits = "value"
            return True
        if mark == "," and top.awaits == "comma":
            top.awaits = "key" if top.is_object else "value"
            if not top.is_object and isinstance(top.key, int):
                top.key += 1
            return True
        return False

    def _name(self, top: _Open, token: re.Match[str]) -> bool:
        if token[1] is None:
            return False
        top.key = _decoded(token[1])
        top.awaits = "colon"
        self.name_at = token.start()
        return True

    def _begin(self, token: re.Match[str]) -> bool:
        active, hit = self._below()
        top = self.open[-1] if self.open else None
        hides = top is not None and (top.hides or (token[2] == "{" and _names_a_store(top.key)))
        hides = hides or (
            token[2] == "[" and top is not None and top.is_object and self._secret_by_name(top)
        )
        self.open.append(
            _Open(token[2] == "{", token.end() - 1, active, hit=hit, hides=hides and self._by_name)
        )
        return True

    @property
    def _by_name(self) -> bool:
        return Secret.NAME in self.looking.secrets

    def _end(self, top: _Open, token: re.Match[str], mark: str) -> bool:
        if top.is_object is not (mark == "}") or top.awaits not in {"first", "comma"}:
            return False
        self.open.pop()
        self._pairs(top)
        if top.hit is not None and not self._kept():
            body = self.text[top.start : token.end()]
            self._edit(top.start, token.end(), '"...."', body, top.hit)
        self._value_ended()
        return True

    def _value_ended(self) -> None:
        if self.open:
            self.open[-1].awaits = "comma"
        else:
            self.done = True

    def _below(self) -> tuple[Active, int | None]:
        """Which rules may fit below the value that begins, and which fits the value itself."""
        if not self.open:
            hit = next((n for n, at in self.root if at == len(self.looking.paths[n])), None)
            return self.root, hit
        top = self.open[-1]
        if not top.active:
            return (), None
        return _stepped(self.looking.paths, top.active, top.key)

    # Plain values

    def _plain(self, token: re.Match[str]) -> bool:
        active, hit = self._below()
        top = self.open[-1] if self.open else None
        if not self._kept():
            if token[1] is not None:
                self._string(token, top, active, hit)
            else:
                self._scalar(token, top, hit)
        self._value_ended()
        return True

    def _string(
        self, token: re.Match[str], top: _Open | None, active: Active, hit: int | None
    ) -> None:
        start, end = token.span(1)
        if start == end:
            return
        value = _decoded(token[1])
        if top is not None:
            self._remember(top, start, end, value)
        cause: int | Secret | None = hit
        if cause is None and top is not None and (top.hides or self._secret_by_name(top)):
            cause = Secret.NAME
        if cause is None:
            self._inside(start, token[1], value, active)
        elif not is_stand_in(value):
            self._edit(start, end, stand_in(value), value, cause)

    def _secret_by_name(self, top: _Open) -> bool:
        return self._by_name and isinstance(top.key, str) and names_a_secret(top.key)

    def _scalar(self, token: re.Match[str], top: _Open | None, hit: int | None) -> None:
        value, (start, end) = token[3], token.span(3)
        cause: int | Secret | None = hit
        is_number = value[0] in "-0123456789"
        if cause is None and is_number:
            cause = self._of_number(value, top)
        if cause is not None and value != "null":
            self._edit(start, end, f'"{stand_in(value)}"', value, cause)

    def _of_number(self, value: str, top: _Open | None) -> Secret | None:
        if top is not None and (top.hides or self._secret_by_name(top)):
            return Secret.NAME
        if Secret.CARD in self.looking.secrets and is_card_number(value):
            return Secret.CARD
        return Secret.NAME if value in self.looking.known else None

    def _inside(self, start: int, raw: str, value: str, active: Active) -> None:
        """What of a string is hidden: in the JSON that it holds, or among its words."""
        if not active and not may_hold_a_secret(value) and not self._holds_known(value):
            return
        place = self._here()
        if self.deep < STRINGS_DEEP_MAX and value.lstrip(" \t\r\n")[:1] in {"{", "[", '"'}:
            inner = apart(_edits(value, self.looking, active, place, self.deep + 1))
        else:
            inner = edits_in_words(value, self.looking, place)
        if not inner:
            return
        offset = _offsets(raw) if "\\" in raw else None
        for edit in inner:
            first, last = (
                (edit.start, edit.end) if offset is None else (offset[edit.start], offset[edit.end])
            )
            by = json.dumps(edit.by)[1:-1]
            self.edits.append(
                Edit(start + first, start + last, by, edit.path, edit.value, edit.cause)
            )

    def _holds_known(self, value: str) -> bool:
        return any(one in value for one in self.looking.known)

    # Names and values apart: {"name": "Authorization", "value": "..."}, ["Authorization", "..."]

    def _remember(self, top: _Open, start: int, end: int, value: str) -> None:
        if not self._by_name:
            return
        if isinstance(top.key, int):
            if top.key <= 2:
                top.values.append((start, end, value, ""))
        elif top.key.lower() in _PAIR_NAMES:
            top.named = value
        elif top.key.lower() in _PAIR_VALUES:
            top.values.append((start, end, value, top.key))

    def _pairs(self, top: _Open) -> None:
        if top.is_object:
            pairs = top.values if names_a_secret(top.named) else []
        elif top.key == 1 and len(top.values) == 2 and names_a_secret(top.values[0][2]):
            pairs = top.values[1:]
        else:
            return
        for start, end, value, key in pairs:
            if not is_stand_in(value):
                place = (*self._here(), key or 1)
                self.edits.append(
                    Edit(start, end, stand_in(value), place_in_words(place), value, Secret.NAME)
                )

    # Places

    def _here(self) -> tuple[str | int, ...]:
        return (*self.place, *(one.key for one in self.open))

    def _kept(self) -> bool:
        keeps = self.looking.keeps
        if not keeps:
            return False
        here = self._here()
        return any(here[: len(keep)] == keep for keep in keeps)

    def _edit(self, start: int, end: int, by: str, value: str, cause: int | Secret) -> None:
        self.edits.append(Edit(start, end, by, place_in_words(self._here()), value, cause))


def _names_a_store(key: str | int) -> bool:
    """An object of this name holds nothing but secrets, whatever its members are called."""
    plain = key.lower() if isinstance(key, str) else ""
    return plain.endswith(("secret", "secrets", "password", "passwords", "credentials"))


def _stepped(paths: tuple[Path, ...], active: Active, key: str | int) -> tuple[Active, int | None]:
    below: list[tuple[int, int]] = []
    hit: int | None = None
    for number, at in active:
        path = paths[number]
        if at == len(path):
            continue
        step = path[at]
        if step.deep:
            below.append((number, at))
        if step.fits(key):
            below.append((number, at + 1))
            if at + 1 == len(path) and hit is None:
                hit = number
    return tuple(dict.fromkeys(below)), hit


def _decoded(raw: str) -> str:
    """The text that a JSON string stands for; one that is none is taken as it is written."""
    if "\\" not in raw:
        return raw
    try:
        value: str = _DECODE(f'"{raw}"')
    except ValueError:
        return raw
    return value


_DECODE: Final[Callable[[str], str]] = json.JSONDecoder(strict=False).decode

_UNIT: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


def _offsets(raw: str) -> list[int]:
    """Where each character of a decoded string begins in its written form, and where it ends."""
    found = [unit.start() for unit in _UNIT.finditer(raw)]
    found.append(len(raw))
    return found
