"""Case files: one JSON object each, with an id, a kind, what comes in and what must come out.

A file may come from anybody. Whatever is wrong with it is said in one sentence; numbers keep their
digits, because a case about 8.0 is another than one about 8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
FILES_MAX: Final = 5_000
INTEGER_DIGITS_MAX: Final = 300
"""More digits than this stay text: Python refuses to read very long integers."""

RUN: Final = frozenset({"stream", "canonical", "ingest", "ledger", "classify", "reconcile"})
"""Kinds that the runner judges."""


class Digits(str):
    """A number as it stands in the file."""

    __slots__ = ()


class Unreadable(Exception):
    """A file that holds no case; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. `input` and `expected` are what is judged; the rest is told to people."""

    id: str
    kind: str
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    prose: Mapping[str, Any]


def files(folder: Path) -> list[Path]:
    """The case files of a folder, in the order of their names.

    Raises `Unreadable` for what is no folder, holds no case file, or more than `FILES_MAX`.
    """
    if not folder.is_dir():
        raise Unreadable(f"{folder} is no folder")
    found = sorted(folder.glob("*.json"))
    if not found:
        raise Unreadable(f"{folder} holds no *.json file")
    if len(found) > FILES_MAX:
        raise Unreadable(f"{folder} holds {len(found)} files; the limit FILES_MAX is {FILES_MAX}")
    return found


def read(path: Path) -> Case:
    """The case in a file. Raises `Unreadable`."""
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise Unreadable(f"{size} bytes; the limit FILE_BYTES_MAX is {FILE_BYTES_MAX}")
        return understand(loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise Unreadable(f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"no UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"no JSON: {error.msg} (line {error.lineno})") from None
    except RecursionError:
        raise Unreadable("nested too deep to be read") from None


def loads(text: str) -> Any:
    """JSON with every digit kept. A name that stands twice in one object is refused."""
    return json.loads(
        text,
        object_pairs_hook=_members,
        parse_int=_integer,
        parse_float=Digits,
        parse_constant=Digits,
    )


def _integer(written: str) -> int | Digits:
    return Digits(written) if len(written) > INTEGER_DIGITS_MAX else int(written)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f"the member {twice[:60]!a} stands twice in one object")
    return found


def understand(value: Any) -> Case:
    """The case that a file's JSON is. Raises `Unreadable`."""
    if not isinstance(value, dict):
        raise Unreadable("the file holds no JSON object")
    for name in ("id", "kind"):
        if not isinstance(value.get(name), str) or not value[name].strip():
            raise Unreadable(f"{name} is missing, or is no text")
    for name in ("input", "expected"):
        if not isinstance(value.get(name), dict):
            raise Unreadable(f"{name} is missing, or is no object")
    prose = {name: said for name, said in value.items() if name not in Case.__slots__}
    return Case(
        id=value["id"],
        kind=value["kind"],
        input=value["input"],
        expected=value["expected"],
        prose=prose,
    )


def to_text(value: Any) -> str:
    """The JSON text of a value that `loads` gave, with the digits that it had."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        inner = ",".join(f"{json.dumps(name)}:{to_text(item)}" for name, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(map(to_text, value))}]"
    return json.dumps(value)
