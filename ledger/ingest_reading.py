"""One item, from its bytes to the message that it is, or to why it cannot be read."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pydantic

from effects.core.events import EVENT_TYPES, STREAM_RECORDED, STREAM_TYPES
from effects.core.messages import NAME_CHARACTERS_MAX, Message
from ledger.ingest_json import (
    Digits,
    Members,
    Unreadable,
    canonical,
    digest,
    members,
    read,
    text_of,
)
from ledger.otlp_facts import ToolSpan, facts_of
from ledger.otlp_span import SPAN_TYPE

ITEM_BYTES_MAX: Final = 2 * 1024 * 1024
EVENT_ID_CHARACTERS_MAX: Final = NAME_CHARACTERS_MAX
SOURCE_CHARACTERS_MAX: Final = NAME_CHARACTERS_MAX
FAULTS_SHOWN_MAX: Final = 5
INTEGER_DIGITS_MAX: Final = 30

JSON_TEXTS: Final = ("arguments", "result")
"""Members that hold JSON text; a JSON value in their place is taken as its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as it was read. Without a `message` it could not be: `reason` is a stable word,
    `says` a sentence, `at` the place. `mended` says what the readable copy has otherwise."""

    raw: bytes
    source: str = ""
    event_id: str = ""
    type: str | None = None
    said_at: datetime | None = None
    digest: bytes
    message: Message | None = None
    mended: tuple[str, ...] = ()
    reason: str | None = None
    says: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Which endpoint the item came through: what it may be, and what it is unless it says so.
    `facts` makes the members of its message of data that has another form."""

    name: str
    types: Mapping[str, type[Message]]
    usual_type: str | None = None
    facts: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None


EVENTS: Final = Door(name="events", types=EVENT_TYPES)
STREAMS: Final = Door(name="streams", types=STREAM_TYPES, usual_type=STREAM_RECORDED)
TRACES: Final = Door(name="traces", types={SPAN_TYPE: ToolSpan}, facts=facts_of)
DOORS: Final = {door.name: door for door in (EVENTS, STREAMS, TRACES)}


def read_item(raw: bytes, door: Door, *, is_cloudevent: bool = False) -> Item:
    """Total: whatever the bytes are, there is an item.

    Its source and id are read even where the rest cannot be, so that its sender can find it.
    """
    envelope: dict[str, Any] = {}
    mended: frozenset[str] = frozenset()
    try:
        _check_size(raw)
        value, mended = read(raw)
        envelope = members(value, "the item")
        return _understood(raw, envelope, mended, door, is_cloudevent=is_cloudevent)
    except Unreadable as fault:
        return Item(
            raw=raw,
            source=_name_or_empty(envelope.get("source")),
            event_id=_name_or_empty(envelope.get("id")),
            type=_name_or_empty(envelope.get("type"))[:100] or None,
            digest=digest("raw", raw.hex()),
            mended=tuple(sorted(mended)),
            reason=fault.code,
            says=fault.says,
            at=fault.at,
        )


def _check_size(raw: bytes) -> None:
    if len(raw) > ITEM_BYTES_MAX:
        says = f"The item has {len(raw)} bytes; the limit ITEM_BYTES_MAX is {ITEM_BYTES_MAX}."
        raise Unreadable("limit_exceeded", says)


def _understood(
    raw: bytes,
    envelope: dict[str, Any],
    mended: frozenset[str],
    door: Door,
    *,
    is_cloudevent: bool,
) -> Item:
    version = envelope.get("specversion", None if is_cloudevent else "1.0")
    if version != "1.0":
        raise Unreadable(
            "specversion_unknown", "specversion is not 1.0, which is read here.", "specversion"
        )
    source, event_id = _name(envelope, "source"), _name(envelope, "id")
    word = envelope.get("type", door.usual_type)
    if not isinstance(word, str) or word not in door.types:
        known = ", ".join(door.types)
        raise Unreadable("type_unknown", f"This type is not known here. Known: {known}.", "type")
    data = _data(envelope)
    said_at = _time(envelope.get("time"))
    moment = said_at.astimezone(UTC).isoformat() if said_at else ""
    return Item(
        raw=raw,
        source=source,
        event_id=event_id,
        type=word,
        said_at=said_at,
        digest=digest("item.v1", word, moment, canonical(data)),
        message=_message(door, word, data),
        mended=tuple(sorted(mended)),
    )


def _name(envelope: Mapping[str, Any], member: str) -> str:
    found = envelope.get(member)
    if isinstance(found, Digits):  # A table's own number is a fair id.
        found = str(found)
    if not isinstance(found, str) or not found:
        raise Unreadable("name_missing", f"{member} is missing, or is no text.", member)
    if len(found) > NAME_CHARACTERS_MAX:
        limit = "EVENT_ID_CHARACTERS_MAX" if member == "id" else "SOURCE_CHARACTERS_MAX"
        says = f"{member} has {len(found)} characters; the limit {limit} is {NAME_CHARACTERS_MAX}."
        raise Unreadable("limit_exceeded", says, member)
    if "\ufffd" in found or "\u2400" in found:
        says = f"{member} holds characters that cannot be kept, so it could stand for another."
        raise Unreadable("name_unstorable", says, member)
    return found


def _name_or_empty(found: Any) -> str:
    return found if isinstance(found, str) and len(found) <= NAME_CHARACTERS_MAX else ""


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")


def _time(said: Any) -> datetime | None:
    """The sender's time with its offset; a time without one names no moment."""
    if said is None:
        return None
    match = _TIME.fullmatch(said) if isinstance(said, str) else None
    moment = None if match is None else _moment(match[0])
    if moment is None:
        says = "time is no RFC 3339 time with an offset, for example 2026-11-30T10:00:00Z."
        raise Unreadable("time_unreadable", says, "time")
    return moment


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.upper())
        moment.astimezone(UTC)
    except (ValueError, OverflowError):  # The 31st of June, or an hour before the year 1.
        return None
    return moment


def _data(envelope: Mapping[str, Any]) -> Any:
    kind = envelope.get("datacontenttype", "application/json")
    plain = str(kind).partition(";")[0].strip().lower()
    if plain != "application/json" and not plain.endswith("+json"):
        raise Unreadable("data_not_json", "datacontenttype is not JSON.", "datacontenttype")
    encoded = envelope.get("data_base64")
    if encoded is None:
        return envelope.get("data")
    try:
        inner = base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        raise Unreadable("data_not_json", "data_base64 is no base64.", "data_base64") from None
    value, _ = read(inner)
    return value


def _message(door: Door, word: str, data: Any) -> Message:
    found = members(data, "data")
    if door.facts is not None:
        found = door.facts(found)
    for name in JSON_TEXTS:
        value = found.get(name)
        if value is not None and (isinstance(value, Digits) or not isinstance(value, str)):
            found[name] = text_of(value)
    if isinstance(found.get("calls"), list):
        found["calls"] = [_call(call, f"data.calls[{n}]") for n, call in enumerate(found["calls"])]
    try:
        message = door.types[word].model_validate_json(json.dumps(_plain(found)))
    except pydantic.ValidationError as error:
        raise _fault_of(error) from None
    _check_names(message)
    return message


def _call(value: Any, place: str) -> dict[str, Any]:
    call = members(value, place)
    arguments = call.get("arguments")
    if arguments is not None and (isinstance(arguments, Digits) or not isinstance(arguments, str)):
        call["arguments"] = text_of(arguments)
    return call


def _plain(value: Any) -> Any:
    """The value for pydantic. Its messages hold small whole numbers; any other number stays text
    and is then refused by name."""
    if isinstance(value, Digits):
        whole = value.lstrip("-").isdigit() and len(value) <= INTEGER_DIGITS_MAX
        return int(value) if whole else str(value)
    if isinstance(value, Members):
        return {name: _plain(inner) for name, inner in value}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


NAMES: Final = frozenset(
    {"claim", "attempt", "stream", "tool", "conversation", "response_id", "call_id", "caller_key",
     "key", "provider_object"}
)  # fmt: skip


def _check_names(message: Message) -> None:
    """A mended name could be another's, so a name is never mended."""
    for name in NAMES & set(type(message).model_fields):
        found = getattr(message, name)
        if found is not None and ("\ufffd" in found or "\u2400" in found):
            says = f"data.{name} holds characters that cannot be kept, so it could name another."
            raise Unreadable("name_unstorable", says, f"data.{name}")


def _fault_of(error: pydantic.ValidationError) -> Unreadable:
    """Where data does not have its shape. The values stay out of it: they may be secrets."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    places = [".".join(["data", *map(str, e["loc"])]) for e in found]
    listed = "; ".join(
        f"{place}: {e['msg']}" for place, e in zip(places, found[:FAULTS_SHOWN_MAX], strict=False)
    )
    return Unreadable("data_invalid", f"The data cannot be read. {listed}.", places[0])
