"""Logs as JSON lines: a provider's requests, a gateway's, and what a queue said of deliveries.

One JSON object a line. Every line says when (`at`, with an offset) and names the call that it
belongs to by `claim`, `key`, `idempotency_key` or `marker`, unless the import is about one call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from effects.core.delivery import delivery_of, retries_of
from reconcile.duplicates.importers.keeping import CannotImport, Line
from reconcile.models import ImportedEvidence

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
LINE_BYTES_MAX: Final = 64 * 1024
UPSTREAMS_MAX: Final = 20
TEXT_CHARACTERS_MAX: Final = 255
COUNT_MAX: Final = 1_000_000

_Source = ImportedEvidence.Source
_NAMES: Final = ("claim", "key", "idempotency_key", "marker")


def read(path: Path, source: ImportedEvidence.Source) -> Iterator[Line]:
    """The lines of a file. Raises `CannotImport` with the number of the line."""
    reader = READERS[source]
    for number, said in objects(path):
        try:
            yield reader(said, number)
        except (KeyError, TypeError, ValueError) as error:
            raise CannotImport(f"Line {number}: {_why(error)}") from None


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; empty lines are passed over."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise CannotImport(f"The file exceeds FILE_BYTES_MAX, {FILE_BYTES_MAX} bytes.")
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LINE_BYTES_MAX + 1), b""), 1):
                if len(line) > LINE_BYTES_MAX:
                    limit = f"LINE_BYTES_MAX, {LINE_BYTES_MAX} bytes"
                    raise CannotImport(f"Line {number} exceeds {limit}.")
                if line.strip():
                    yield number, _object(line, number)
    except OSError as error:
        raise CannotImport(f"The file cannot be read: {error.strerror}.") from None


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CannotImport(f"Line {number} is no JSON: {error}.") from None
    if not isinstance(said, dict):
        raise CannotImport(f"Line {number} is JSON, but no object.")
    return said


def _why(error: Exception) -> str:
    return f"{error.args[0]} is missing." if isinstance(error, KeyError) else f"{error}"


# One line of each source


def _request(said: Mapping[str, Any], _number: int) -> Line:
    """`idempotency_key` null says that the request came without one; left out, nobody looked."""
    request_id = text(said, "request_id")
    if request_id is None:
        raise KeyError("request_id")
    facts = {
        "request_id": request_id,
        "client_request_id": text(said, "client_request_id"),
        "body": text(said, "body_sha"),
        "key_seen": "idempotency_key" in said,
        "key": text(said, "idempotency_key"),
        "call_id": text(said, "tool_call_id"),
        "retry_count": _retries(said),
        "method": text(said, "method"),
        "attempt": text(said, "attempt"),
    }
    return Line(
        source=_Source.PROVIDER,
        name=request_id,
        at=moment(said, "at"),
        facts=known(facts),
        names=_names(said),
    )


def _gateway(said: Mapping[str, Any], _number: int) -> Line:
    request_id, upstreams = text(said, "request_id"), said["upstreams"]
    if request_id is None:
        raise KeyError("request_id")
    if not isinstance(upstreams, list) or len(upstreams) > UPSTREAMS_MAX:
        raise ValueError(f"upstreams is no list of at most {UPSTREAMS_MAX} (UPSTREAMS_MAX).")
    facts = {
        "upstreams": [
            known(
                {
                    "host": text(one, "host") or "",
                    "at": moment(one, "at").isoformat(),
                    "status": count(one, "status"),
                }
            )
            for one in upstreams
        ],
        "key_seen": "idempotency_key" in said,
        "key": text(said, "idempotency_key"),
    }
    return Line(
        source=_Source.GATEWAY,
        name=request_id,
        at=moment(said, "at"),
        facts=known(facts),
        names=_names(said),
    )


def _delivery(said: Mapping[str, Any], _number: int) -> Line:
    delivered = delivery_of(said)
    if delivered.delivery_count is None:
        raise ValueError("it says nothing of a delivery that is known here.")
    at = moment(said, "at")
    message = text(said, "message_id") or text(said, "MessageId") or text(said, "id") or "message"
    return Line(
        source=_Source.DELIVERIES,
        name=f"{message}/{delivered.delivery_count}/{at.isoformat()}",
        at=at,
        facts=known(delivered.parts),
        names=_names(said),
    )


READERS: Final[Mapping[ImportedEvidence.Source, Callable[[Mapping[str, Any], int], Line]]] = {
    _Source.PROVIDER: _request,
    _Source.GATEWAY: _gateway,
    _Source.DELIVERIES: _delivery,
}


# Members


def _names(said: Mapping[str, Any]) -> tuple[str, ...]:
    found = (text(said, name) for name in _NAMES)
    return tuple(name for name in found if name)


def _retries(said: Mapping[str, Any]) -> int | None:
    """The library's count, by itself or among the request's headers."""
    headers = said.get("headers")
    own = count(said, "retry_count")
    return retries_of(headers) if own is None and isinstance(headers, Mapping) else own


def text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
        raise ValueError(f"{name} is no text of at most {TEXT_CHARACTERS_MAX} characters.")
    return value


def count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise ValueError(f"{name} is no count.")
    return value


def moment(said: Mapping[str, Any], name: str) -> datetime:
    value = said[name]
    found = datetime.fromisoformat(value) if isinstance(value, str) else None
    if found is None or found.tzinfo is None:
        raise ValueError(f"{name} names no moment: write it with an offset, 2026-03-02T10:00:00Z.")
    return found


def known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
