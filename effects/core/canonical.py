"""The canonical form of a tool call's arguments, version 1.

Two requests are the same operation only if their arguments mean the same, so arguments are
compared by this text and never by the bytes that a client happened to write:

* an object is written with its members sorted by the code points of their names, which is the
  order of their UTF-8 bytes, without spaces;
* a string is never changed; only ``"``, ``\\`` and the characters below U+0020 (as ``\\u00xx``)
  are escaped;
* a number is its exact decimal value, ``<sign><digits>e<power>`` without outer zeros: ``1``,
  ``1.0`` and ``10e-1`` are all ``1e0``, and every zero is ``0``. It never passes through a float,
  which would merge 2^53 and 2^53 + 1, and it is never expanded, which would let ten characters
  fill the memory.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final

from effects.core.exact_json import (
    ARGUMENTS_BYTES_MAX,
    DEPTH_MAX,
    DIGITS_MAX,
    EXPONENT_DIGITS_MAX,
    Number,
    Refused,
    Value,
    check_length,
    parse_json,
    shown,
)

__all__ = [
    "ARGUMENTS_BYTES_MAX",
    "DEPTH_MAX",
    "DIGITS_MAX",
    "EXPONENT_DIGITS_MAX",
    "NO_RULES",
    "ArgumentRules",
    "Number",
    "Refused",
    "Value",
    "canonical_text",
    "default_text",
    "parse_arguments",
    "parse_json",
    "utc_moment",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRules:
    """What one tool declares about its arguments; all names are members of the top level.

    ``volatile`` members are left out of the comparison; ``drop_null`` members count as absent when
    they are null; a member equal to its entry in ``defaults`` (name -> JSON text) counts as
    absent; ``instants`` are compared as moments in UTC; ``business`` names the members that
    together say which act in the world is meant. Nothing is guessed: without a rule, a string that
    looks like a date is a string.

    Raises `Refused` (``rules_invalid``) when a default is not JSON or a business member is
    volatile: a rule that cannot be applied would protect nothing and say nothing.
    """

    drop_null: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    volatile: tuple[str, ...] = ()
    instants: tuple[str, ...] = ()
    business: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, text in self.defaults.items():
            try:
                _read_default(text)
            except Refused as fault:
                sentence = f"The default of {shown(name)} cannot be used. {fault}"
                raise Refused("rules_invalid", sentence, fault.at) from fault
        for name in self.business:
            if name in self.volatile:
                sentence = (
                    f"{shown(name)} is declared both volatile and part of the business identity. "
                    "Remove it from one of the two."
                )
                raise Refused("rules_invalid", sentence)


NO_RULES: Final = ArgumentRules()


def parse_arguments(text: str | None, rules: ArgumentRules = NO_RULES) -> dict[str, Value]:
    """The arguments object in a JSON text, after the tool's rules.

    A JSON string is decoded once and read as the object that it holds, because many producers
    send the model's text as they got it; it is never decoded twice. An empty text is an empty
    object: that is what a model writes for a tool without parameters.

    Raises `Refused`: ``arguments_missing``, ``arguments_not_an_object``,
    ``arguments_decode_to_a_string``, and the codes of `parse_json`.
    """
    value = None if text is None else _read_or_empty(text)
    if isinstance(value, str):
        value = _read_inner(value)
    if value is None:
        raise Refused(
            "arguments_missing",
            "The call has no arguments. Send a JSON object; for a tool without parameters send {}.",
        )
    if not isinstance(value, dict):
        kind = {list: "an array", bool: "true or false"}.get(type(value), "a number")
        sentence = f"The arguments are {kind}, not an object. Send one JSON object."
        raise Refused("arguments_not_an_object", sentence)
    return value if rules is NO_RULES else dict(_compared(rules, value))


def canonical_text(value: Value) -> str:
    """The canonical form of a value made by `parse_arguments` or `parse_json`."""
    if type(value) is str:
        return _quoted(value)
    if type(value) is Number:
        return value.text
    if type(value) is dict:
        members = [f"{_quoted(name)}:{canonical_text(value[name])}" for name in sorted(value)]
        return "{" + ",".join(members) + "}"
    if type(value) is list:
        return "[" + ",".join([canonical_text(item) for item in value]) + "]"
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    # A float or an int here was read by another reader, which may have rounded it.
    raise TypeError(f"{type(value).__name__} has no canonical form: read the text with parse_json.")


_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')


def _quoted(text: str) -> str:
    # A printable string has no control character, so the standard library's fast writer, which
    # would write \n where this form says \u000a, escapes only quotes and backslashes in it.
    if text.isprintable():
        return encode_basestring(text)
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"


# Reading the object


_JSON_SPACE: Final = " \t\n\r"
"""White space of RFC 8259; any other space is part of a text."""


def _read_or_empty(text: str) -> Value:
    check_length(text)  # Before a long run of spaces is stripped.
    return parse_json(text) if text.strip(_JSON_SPACE) else {}


def _read_inner(text: str) -> Value:
    try:
        value = _read_or_empty(text)
    except Refused as fault:
        sentence = f"{fault} This is about the text inside the JSON string."
        raise Refused(fault.code, sentence, fault.at) from None
    if isinstance(value, str):
        sentence = (
            "The arguments are a JSON string inside a JSON string. Send the object, or encode it "
            "once."
        )
        raise Refused("arguments_decode_to_a_string", sentence)
    return value


# The tool's rules


def default_text(rules: ArgumentRules, name: str) -> str:
    """The canonical text of a member's declared default, compared as its values are."""
    value = _read_default(rules.defaults[name])
    return canonical_text(utc_moment(value) if name in rules.instants else value)


@lru_cache(maxsize=1024)
def _read_default(text: str) -> Value:
    return parse_json(text)


def _compared(rules: ArgumentRules, arguments: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    """The members that count, as they are compared."""
    for name, given in arguments.items():
        if name in rules.volatile or (given is None and name in rules.drop_null):
            continue
        value = utc_moment(given) if name in rules.instants else given
        if name in rules.defaults and canonical_text(value) == default_text(rules, name):
            continue
        yield name, value


_HOUR: Final = "(?:[01][0-9]|2[0-3])"
_MOMENT: Final = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]({_HOUR}:[0-5][0-9]:[0-5][0-9])(?:\.([0-9]+))?"
    rf"([Zz]|[+-]{_HOUR}:[0-5][0-9])"
)


def utc_moment(value: Value) -> Value:
    """An RFC 3339 time as the same moment in UTC; anything else as it is.

    The pattern is ours, because what `datetime.fromisoformat` accepts grows from one Python to the
    next, and it would cut the fraction at the microsecond and make two moments equal. A time
    without an offset names no moment and stays a string.
    """
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    date, time, fraction, offset = match.groups(default="")
    try:
        moment = datetime.fromisoformat(f"{date}T{time}{offset.upper()}").astimezone(UTC)
    except (ValueError, OverflowError):  # The 31st of June, or an hour before the year 1.
        return value
    fraction = fraction.rstrip("0")
    point = f".{fraction}" if fraction else ""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}{point}Z"
