"""The canonical form of a tool call's arguments, version 1.

Two requests are the same operation only if their arguments mean the same, so arguments are
compared by this text and never by the bytes that a client happened to write:

* an object is written with its members sorted by the code points of their names (the order of
  their UTF-8 bytes), without spaces;
* a string is never changed; only ``"``, ``\\`` and the characters below U+0020 are escaped;
* a number is its exact decimal value, ``<sign><digits>e<power>`` without outer zeros: ``1``,
  ``1.0`` and ``10e-1`` are all ``1e0``, and every zero is ``0``. It never passes through a float,
  which would merge 2^53 and 2^53 + 1, and it is never expanded, which would let nine characters
  fill the memory.

What cannot be compared safely is refused with a code and a position: nothing has run yet, so a
refusal costs one corrected request, while a guess could cost a second payment.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final, TypeAlias

ARGUMENTS_BYTES_MAX: Final = 256 * 1024
"""Longest arguments text, in bytes of UTF-8, as received."""
DEPTH_MAX: Final = 64
"""Deepest object or array; the arguments object itself is depth 0, plain values do not count."""
DIGITS_MAX: Final = 1000
"""Most digits of one number before its exponent, as written, leading zeros included."""
EXPONENT_DIGITS_MAX: Final = 9
"""Most digits of a number's power of ten, as written and as it stands in the canonical text."""

JSON_SPACE: Final = " \t\n\r"
"""White space of RFC 8259; any other space is part of the text."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact decimal number, held as its canonical text, for example ``42e2`` for 4,200."""

    text: str


Value: TypeAlias = "bool | str | Number | list[Value] | dict[str, Value] | None"


class Refused(ValueError):
    """A request that must be corrected before it can be claimed.

    ``code`` is stable and for machines. ``at`` is the offset in characters, counted from 0, of
    the first fault in the arguments text, or None where no single place is at fault. ``str()``
    says what is wrong, where, and what to do.
    """

    def __init__(self, code: str, sentence: str, *, at: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRules:
    """What one tool declares about its arguments; all names are members of the top level.

    ``volatile`` members are left out of the comparison, ``drop_null`` members count as absent when
    they are null, a member equal to its entry in ``defaults`` (name -> JSON text) counts as
    absent, ``instants`` are compared as moments in UTC, and ``business`` names the members that
    together say which real-world act is meant. Nothing is guessed: without a rule, a string that
    looks like a date is a string.

    Raises `Refused` (``rules_invalid``) when a default is not JSON or a business member is
    volatile, because a rule that cannot be applied would silently stop protecting.
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
                sentence = f"The default of {_shown(name)} cannot be used. {fault}"
                raise Refused("rules_invalid", sentence) from fault
        for name in self.business:
            if name in self.volatile:
                sentence = (
                    f"The member {_shown(name)} is declared both volatile and part of the business "
                    "identity. Remove it from one of the two."
                )
                raise Refused("rules_invalid", sentence)


NO_RULES: Final = ArgumentRules()


def parse_arguments(text: str | None, rules: ArgumentRules = NO_RULES) -> dict[str, Value]:
    """The arguments object in a JSON text, after the tool's rules.

    A JSON string is decoded once and read as the object it holds, because half of all producers
    send the model's raw text; it is never decoded twice. An empty text is an empty object: that
    is what a model writes for a tool without parameters.

    Raises `Refused`: ``arguments_missing``, ``arguments_not_an_object``,
    ``arguments_decode_to_a_string``, and the codes of `parse_json`.
    """
    value = _decode_arguments(text)
    if value is None:
        raise Refused(
            "arguments_missing",
            "The call has no arguments. Send a JSON object; for a tool without parameters send {}.",
        )
    if not isinstance(value, dict):
        raise Refused(
            "arguments_not_an_object",
            f"The arguments are {_kind(value)}, not an object. Send one JSON object.",
        )
    return _apply(rules, value)


def parse_json(text: str) -> Value:
    """Any JSON text as a value, under the limits of this module.

    Raises `Refused`: ``too_long``, ``not_json``, ``duplicate_member``, ``nan_or_infinity``,
    ``lone_surrogate``, ``nul``, ``too_deep``, ``too_many_digits``, ``exponent_too_large``.
    """
    _check_length(text)
    try:
        value = _DECODER.decode(text)
        if _may_hide_a_fault(text):
            _check_strings_and_depth(value, depth=0)
    except json.JSONDecodeError as error:
        sentence = f"The text is not JSON: {error.msg} (offset {error.pos}). Send valid JSON."
        raise Refused("not_json", sentence, at=error.pos) from None
    except (_FaultSomewhere, RecursionError):
        fault = _first_fault(text)
        if fault is None:  # The caller had used up the stack; the text is not to blame.
            raise
        raise fault from None
    # Every hook below returns a Value, so the decoder, typed as Any, does too.
    result: Value = value
    return result


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
    kind = type(value).__name__
    raise TypeError(f"{kind} has no canonical form: build the value with parse_json.")


# Strings


_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def _quoted(text: str) -> str:
    # A printable string has no control character, so the standard library's fast writer, which
    # would write \n where this form says \u000a, escapes only quotes and backslashes in it.
    if text.isprintable():
        return encode_basestring(text)
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"


# Numbers


_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]*))?")


def _read_integer(literal: str) -> Number:
    if len(literal) > DIGITS_MAX:
        return _read_number(literal)
    digits = literal.rstrip("0")
    if digits in {"", "-"}:
        return ZERO
    return Number(f"{digits}e{len(literal) - len(digits)}")


def _read_number(literal: str) -> Number:
    number = _number_or_fault(literal)
    if isinstance(number, str):
        raise _FaultSomewhere
    return number


def _number_or_fault(literal: str) -> Number | str:
    """The number, or the code of the reason why it is refused."""
    match = _NUMBER.fullmatch(literal)
    if match is None:
        return "not_json"
    sign, whole, fraction, exponent_sign, exponent = match.groups(default="")
    if len(whole) + len(fraction) > DIGITS_MAX:
        return "too_many_digits"
    if len(exponent) > EXPONENT_DIGITS_MAX:
        return "exponent_too_large"
    significant = (whole + fraction).lstrip("0")
    digits = significant.rstrip("0")
    if not digits:
        return ZERO
    power = int(f"{exponent_sign}{exponent or 0}")
    power += len(significant) - len(digits) - len(fraction)
    # Moving the point may add a digit to the power. Were that let through, 10e999999999 would be
    # accepted and the same number written 1e1000000000 refused.
    if abs(power) >= 10**EXPONENT_DIGITS_MAX:
        return "exponent_too_large"
    return Number(f"{sign}{digits}e{power}")


ZERO: Final = Number("0")


# The fast reader: the standard library's decoder in C, with hooks that only say that something
# is wrong. What and where is found by a second, slower pass, which only a refusal pays for.


class _FaultSomewhere(Exception):
    """Raised inside the fast reader; never leaves this module."""


def _read_object(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _FaultSomewhere
    return members


def _refuse_constant(_: str) -> Value:
    raise _FaultSomewhere


_DECODER = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_int=_read_integer,
    parse_float=_read_number,
    parse_constant=_refuse_constant,
)


def _check_length(text: str) -> None:
    # Four bytes is the most that one character needs, so most texts need no encoding to be judged.
    if len(text) * 4 <= ARGUMENTS_BYTES_MAX:
        return
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > ARGUMENTS_BYTES_MAX:
        sentence = (
            f"The text has {size} bytes; the limit ARGUMENTS_BYTES_MAX is {ARGUMENTS_BYTES_MAX}. "
            "Send less, or send a reference to the data."
        )
        raise Refused("too_long", sentence)


def _may_hide_a_fault(text: str) -> bool:
    """Whether a look at every value is needed to know that strings and depth are in order.

    Surrogates and U+0000 come in by an escape or, surrogates only, as they are; and a text with
    few brackets cannot be deep. Most arguments have none of these.
    """
    return (
        "\\u" in text
        or text.count("{") + text.count("[") > DEPTH_MAX
        or (not text.isascii() and _UNSTORABLE.search(text) is not None)
    )


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _check_strings_and_depth(value: Value, *, depth: int) -> None:
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _FaultSomewhere
    elif isinstance(value, dict | list):
        if depth > DEPTH_MAX:
            raise _FaultSomewhere
        if isinstance(value, dict):
            for name in value:
                _check_strings_and_depth(name, depth=depth)
        for item in value.values() if isinstance(value, dict) else value:
            _check_strings_and_depth(item, depth=depth + 1)


# The slow pass: tokens in the order of the text, without recursion.


_TOKEN = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<name>[ \t\n\r]*:)?'
    r"|(?P<constant>-?Infinity|NaN)"
    r"|(?P<number>-?[0-9][0-9.eE+-]*)"
    r"|(?P<open>[\[{])|(?P<close>[\]}])",
    re.DOTALL,
)


def _first_fault(text: str) -> Refused | None:
    """The first thing in a text of well-formed tokens that this module refuses, if there is one."""
    members: list[set[str]] = []  # One set per open object or array: the names seen in it so far.
    for token in _TOKEN.finditer(text):
        code = ""
        if token["text"]:
            code = _string_fault(token, members)
        elif token["number"]:
            number = _number_or_fault(token["number"])
            code = number if isinstance(number, str) else ""
        elif token["constant"]:
            code = "nan_or_infinity"
        elif token["open"]:
            members.append(set())
            code = "too_deep" if len(members) > DEPTH_MAX + 1 else ""
        elif members:
            members.pop()
        if code:
            return _refusal(code, token)
    return None


def _string_fault(token: re.Match[str], members: list[set[str]]) -> str:
    decoded = json.loads(token["text"])
    unstorable = _UNSTORABLE.search(decoded)
    if unstorable:
        return "nul" if unstorable[0] == "\x00" else "lone_surrogate"
    if token["name"] and members:
        if decoded in members[-1]:
            return "duplicate_member"
        members[-1].add(decoded)
    return ""


_SENTENCES: Final[dict[str, Callable[[str], str]]] = {
    "duplicate_member": lambda found: (
        f"The member {found} appears twice in one object. Send it once: readers disagree about "
        "which of the two counts."
    ),
    "nan_or_infinity": lambda found: (
        f"{found} is not JSON. Send a number, null, or leave the member out."
    ),
    "lone_surrogate": lambda found: (
        f"The string {found} holds half of a surrogate pair, which no UTF-8 text can carry. "
        "Send whole characters; text was probably cut in the middle of one."
    ),
    "nul": lambda found: (
        f"The string {found} holds U+0000, which the ledger cannot store. Send it without."
    ),
    "too_deep": lambda _: (
        f"Objects and arrays are nested deeper than the limit DEPTH_MAX, {DEPTH_MAX}. Send flatter "
        "arguments."
    ),
    "too_many_digits": lambda found: (
        f"The number {found} has more digits than the limit DIGITS_MAX, {DIGITS_MAX}. "
        "Send it shorter, or as a string."
    ),
    "exponent_too_large": lambda found: (
        f"The power of ten of the number {found} has more digits than the limit "
        f"EXPONENT_DIGITS_MAX, {EXPONENT_DIGITS_MAX}. Send it as a string."
    ),
    "not_json": lambda found: f"{found} is not JSON. Send valid JSON.",
}


def _refusal(code: str, token: re.Match[str]) -> Refused:
    at = token.start()
    return Refused(
        code, f"{_SENTENCES[code](_cut(token['text'] or token[0]))} (Offset {at}.)", at=at
    )


def _shown(name: str) -> str:
    return _cut(json.dumps(name))


def _cut(text: str) -> str:
    # Messages go into logs and headers, which do not want a megabyte or half a surrogate.
    shown = text.encode("ascii", "backslashreplace").decode()
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


# Arguments and rules


def _decode_arguments(text: str | None) -> Value:
    if text is None:
        return None
    value = _parse_or_empty(text)
    if not isinstance(value, str):
        return value
    inner = _parse_or_empty(value)
    if isinstance(inner, str):
        raise Refused(
            "arguments_decode_to_a_string",
            "The arguments are a JSON string inside a JSON string. Send the object, or encode it "
            "once.",
        )
    return inner


def _parse_or_empty(text: str) -> Value:
    _check_length(text)  # Before the white space is looked through.
    return parse_json(text) if text.strip(JSON_SPACE) else {}


def _kind(value: Value) -> str:
    kinds = {list: "an array", bool: "true or false", Number: "a number"}
    return kinds.get(type(value), "null")


def _apply(rules: ArgumentRules, arguments: dict[str, Value]) -> dict[str, Value]:
    if rules is NO_RULES:
        return arguments
    return dict(_kept(rules, arguments))


def _kept(rules: ArgumentRules, arguments: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    for name, given in arguments.items():
        if name in rules.volatile or (given is None and name in rules.drop_null):
            continue
        value = _moment(given) if name in rules.instants else given
        if name in rules.defaults and canonical_text(value) == default_text(rules, name):
            continue
        yield name, value


def default_text(rules: ArgumentRules, name: str) -> str:
    """The canonical text of a member's declared default."""
    value = _read_default(rules.defaults[name])
    return canonical_text(_moment(value) if name in rules.instants else value)


@lru_cache(maxsize=1024)
def _read_default(text: str) -> Value:
    return parse_json(text)


_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _moment(value: Value) -> Value:
    """An RFC 3339 time as the same moment in UTC; anything else as it is.

    The fraction is kept to its last digit, because `datetime` would cut it at the microsecond and
    make two moments equal. A time without an offset names no moment and stays a string.
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
    return f"{moment:%Y-%m-%dT%H:%M:%S}{point}Z"
