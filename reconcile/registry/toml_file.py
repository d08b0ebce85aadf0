"""The registry as a TOML file: in one order, with comments that explain, and read back exactly.

A field's name in the file is its name in the registry. Values keep their type; what TOML has no
word for is written as a word of ours: a figure that nobody published as "not published", no
connection as "". The settings of a look-up are JSON, as in the form.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Table

from effects.models import Tool
from effects.tools import FIELD_WORDS, snapshot

FORMAT: Final = 1
BYTES_MAX: Final = 1024 * 1024
TOOLS_MAX: Final = 500
NOT_PUBLISHED: Final = "not published"

_OPTIONAL_FIGURES: Final = frozenset({"window_seconds", "server_working_seconds_max"})
_RULE_LISTS: Final = ("volatile", "drop_null", "instants", "business")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "window_seconds": (int, str),
    "margin_seconds": (int,),
    "lease_seconds": (int,),
    "attempt_seconds_max": (int,),
    "attempts_max": (int,),
    "release_lapse_minutes": (float, int),
    "server_working_seconds_max": (int, str),
    "horizon_days": (int,),
    "lookups_max": (int,),
    "hold_in_turn": (bool,),
    "agent_may_repeat": (bool,),
    "sends_offline": (bool,),
    "amount_is_minor": (bool,),
    "argument_rules": (dict,),
}
_WORDS: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
FIELDS: Final = tuple(name for name in FIELD_WORDS if name != "registered")
NAMES: Final = ("name", *FIELDS)
_COMMENTS: Final = {
    "effect_class": "read, keyed_write or unkeyed_write",
    "window_seconds": f'how long the provider honours a key, or "{NOT_PUBLISHED}"',
    "server_working_seconds_max": f'how long the provider may still work, or "{NOT_PUBLISHED}"',
    "connection": "the name of a connection, or empty",
    "lookup": "JSON, as in the form",
    "argument_rules": "how arguments are compared; a default is the text of a JSON value",
}
_HEAD: Final = (
    "The tools of Counterfoil: what each may do to the world, and what its provider promises.",
    "An import shows what it would add and change, and saves nothing before that is confirmed.",
    "A field that is left out stays as it is. A tool that is left out stays as it is, too.",
    "Seconds are whole seconds.",
)


class CannotRead(Exception):
    """The file is none of ours. `line` counts from 1; 0 speaks of the whole file."""

    def __init__(self, reason: str, *, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool of a file: its fields as the registry has them, and where they stand. `faults` are
    reasons by the line that they speak of; an entry with one is not taken."""

    name: str
    values: Mapping[str, Any]
    line: int
    lines: Mapping[str, int]
    faults: tuple[tuple[int, str], ...] = ()


# Writing


def write(tools: Iterable[Tool]) -> str:
    """The file of these tools, by name. The same tools make the same file, byte for byte."""
    document = tomlkit.document()
    for sentence in _HEAD:
        document.add(tomlkit.comment(sentence))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(FORMAT))
    tables = tomlkit.aot()
    for tool in sorted(tools, key=lambda one: one.name):
        tables.append(_table(tool))
    if len(tables):
        document.add("tool", tables)
    return tomlkit.dumps(document)


def _table(tool: Tool) -> Table:
    table = tomlkit.table()
    table.add("name", tool.name)
    values = snapshot(tool)
    for name in FIELDS:
        table.add(name, _item(name, values[name]))
    for name, words in _COMMENTS.items():
        table[name].comment(words)
    return table


def _item(name: str, value: Any) -> Item:
    if value is None:
        return tomlkit.item("" if name == "connection" else NOT_PUBLISHED)
    if name == "lookup":
        return _text(json.dumps(value, indent=2, ensure_ascii=False) if value else "")
    if name == "argument_rules":
        return _inline(value)
    return _text(value) if isinstance(value, str) else tomlkit.item(value)


def _text(text: str) -> Item:
    # The line break right after the opening quotes would be dropped by whoever reads it.
    as_block = "\n" in text and "\r" not in text and not text.startswith("\n")
    return tomlkit.string(text, multiline=as_block)


def _inline(rules: Mapping[str, Any]) -> Item:
    table = tomlkit.inline_table()
    for name in (*_RULE_LISTS, "defaults"):
        if name in rules:
            table.append(name, rules[name])
    return table


# Reading


def read(text: str) -> tuple[Entry, ...]:
    """The tools that a file names, in its order. Raises `CannotRead` for what is no such file."""
    if len(text.encode()) > BYTES_MAX:
        raise CannotRead(f"The file is larger than {BYTES_MAX:,} bytes (BYTES_MAX).")
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        line = getattr(error, "line", 0)
        raise CannotRead(f"This is no TOML: {error}.", line=line) from None
    _check_head(document, text)
    tables = document.get("tool", [])
    if not isinstance(tables, AoT | list):
        raise CannotRead(
            "Tools are written as [[tool]], in two brackets.", line=_find(text, "tool")
        )
    if len(tables) > TOOLS_MAX:
        raise CannotRead(f"The file has {len(tables)} tools, more than {TOOLS_MAX} (TOOLS_MAX).")
    places = list(_places(text))
    seen: set[str] = set()
    return tuple(
        _entry(dict(table.unwrap()), *places[number], seen)
        if number < len(places)
        else _entry(dict(table.unwrap()), 0, {}, seen)
        for number, table in enumerate(tables)
    )


def _check_head(document: Mapping[str, Any], text: str) -> None:
    unknown = [name for name in document if name not in {"format", "tool"}]
    if unknown:
        raise CannotRead(_unknown(unknown[0], ("format", "tool")), line=_find(text, unknown[0]))
    if document.get("format") != FORMAT:
        raise CannotRead(
            f"The file has to say format = {FORMAT}, which is what this version reads.",
            line=_find(text, "format"),
        )


def _entry(table: dict[str, Any], line: int, lines: Mapping[str, int], seen: set[str]) -> Entry:
    name = table.pop("name", "")
    faults = list(_name_faults(name, line, seen))
    values: dict[str, Any] = {}
    for field, value in table.items():
        at = lines.get(field, line)
        if field not in FIELDS:
            faults.append((at, _unknown(field, NAMES)))
            continue
        try:
            values[field] = _value(field, value)
        except ValueError as fault:
            faults.append((at, f"{field}: {fault}"))
    return Entry(name=str(name), values=values, line=line, lines=dict(lines), faults=tuple(faults))


def _name_faults(name: Any, line: int, seen: set[str]) -> Iterator[tuple[int, str]]:
    if not isinstance(name, str) or not name:
        yield (line, "The tool has no name.")
    elif name in seen:
        yield (line, f"{name} stands in the file twice.")
    else:
        seen.add(name)


def _value(field: str, value: Any) -> Any:
    """The value as the registry has it. Raises ValueError, with what should stand there."""
    if field == "lookup":
        return _lookup(value)
    types = _TYPES.get(field, (str,))
    right = isinstance(value, types) and (isinstance(value, bool) <= (bool in types))
    if not right:
        wanted = " or ".join(_WORDS.get(one, "a table") for one in types)
        raise ValueError(f"should be {wanted}, and is {json.dumps(value, default=str)[:80]}.")
    if field in _OPTIONAL_FIGURES and isinstance(value, str):
        if value != NOT_PUBLISHED:
            raise ValueError(f'should be seconds or "{NOT_PUBLISHED}", and is {value[:80]!r}.')
        return None
    if field == "connection":
        return value or None
    if field == "argument_rules":
        return _rules(value)
    return float(value) if field == "release_lapse_minutes" else value


def _lookup(value: Any) -> Any:
    if value == "":
        return {}
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    raise ValueError("should be the text of one JSON object.")


def _rules(value: Mapping[str, Any]) -> dict[str, Any]:
    for name, rule in value.items():
        if name == "defaults":
            right = isinstance(rule, dict) and all(isinstance(one, str) for one in rule.values())
        elif name in _RULE_LISTS:
            right = isinstance(rule, list) and all(isinstance(one, str) for one in rule)
        else:
            raise ValueError(_unknown(name, (*_RULE_LISTS, "defaults")))
        if not right:
            raise ValueError(f"{name} should be {_rule_words(name)}.")
    return {name: rule for name, rule in value.items() if rule}


def _rule_words(name: str) -> str:
    return "a table of JSON texts" if name == "defaults" else "a list of names"


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"{name} is no name here." + (f" Did you mean {near[0]}?" if near else "")


# Where things stand

_HEADER: Final = re.compile(r"\s*\[\[\s*tool\s*\]\]")
_KEY: Final = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_-]+))\s*=""")


def _places(text: str) -> Iterator[tuple[int, dict[str, int]]]:
    """For each [[tool]], in order: its line, and the lines of the fields below it."""
    found: list[tuple[int, dict[str, int]]] = []
    for number, line in _outside_blocks(text):
        if _HEADER.match(line):
            found.append((number, {}))
        elif found and (key := _KEY.match(line)):
            name = key[1] or key[2] or key[3]
            found[-1][1].setdefault(name, number)
    yield from found


def _outside_blocks(text: str) -> Iterator[tuple[int, str]]:
    """The lines that do not stand inside a text of several lines, with their numbers."""
    closing = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            closing = "" if closing in line else closing
            continue
        yield number, line
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes


def _find(text: str, name: str) -> int:
    found = (
        n for n, line in _outside_blocks(text) if re.match(rf"\s*\[*\s*{re.escape(name)}", line)
    )
    return next(found, 0)
