"""Values on the line to PostgreSQL, results in the types' binary form, which no setting changes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

__all__ = ["reader", "written"]

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


def written(value: Any) -> bytes | None:
    """A parameter: bytes and a UUID in binary form, everything else as PostgreSQL's text."""
    write = _WRITERS.get(type(value))
    return str(value).encode() if write is None else write(value)


_WRITERS: Final[dict[type, Callable[[Any], bytes | None]]] = {
    type(None): lambda _: None,
    str: str.encode,
    bytes: bytes,
    int: lambda number: b"%d" % number,
    bool: lambda yes: b"t" if yes else b"f",
    UUID: lambda known: known.bytes,
}


def _moment(raw: bytes) -> datetime:
    return EPOCH + timedelta(microseconds=int.from_bytes(raw, signed=True))


def _duration(raw: bytes) -> timedelta:
    microseconds, days, months = struct.unpack("!qii", raw)
    return timedelta(days=days + 30 * months, microseconds=microseconds)


def _texts(raw: bytes) -> list[str]:
    """An array of one dimension, without nulls."""
    dimensions, _, _ = struct.unpack_from("!iii", raw)
    if not dimensions:
        return []
    (size,) = struct.unpack_from("!i", raw, 12)
    at, found = 20, []
    for _ in range(size):
        (length,) = struct.unpack_from("!i", raw, at)
        found.append(raw[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return found


_READERS: Final[dict[int, Callable[[bytes], Any]]] = {
    16: lambda raw: raw == b"\x01",
    20: lambda raw: int.from_bytes(raw, signed=True),
    23: lambda raw: int.from_bytes(raw, signed=True),
    1009: _texts,
    1184: _moment,
    1186: _duration,
    2950: lambda raw: UUID(bytes=bytes(raw)),
}
"""By the number that PostgreSQL gives to a type, the same everywhere."""


def reader(type_number: int) -> Callable[[bytes], Any]:
    """How a column's value is read. Texts, and the words of our own enums, are the rest."""
    return _READERS.get(type_number, bytes.decode)
