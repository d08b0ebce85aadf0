"""JSON read exactly and strictly: what cannot be compared safely is refused.

Other readers disagree about a member that appears twice, round a number through a float, accept
NaN, or let through a string that no database stores. Here each of these is refused with a stable
code and a position: a request is judged before anything has run, so a refusal costs one corrected
request, while a guess could cost a second payment.

The standard library's decoder, which is written in C, does the reading; its hooks only notice
*that* something is wrong. *What* and *where* is found by a second and slower pass, which only a
refused text pays for.
"""

import json
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

ARGUMENTS_BYTES_MAX: Final = 256 * 1024
"""Longest text, in bytes of UTF-8, as received."""
DEPTH_MAX: Final = 64
"""Deepest object or array; the outermost is depth 0, plain values do not count."""
DIGITS_MAX: Final = 1000
"""Most digits of one number before its exponent, as written, leading zeros included."""
EXPONENT_DIGITS_MAX: Final = 9
"""Most digits of a number's power of ten, as written and as it stands in the canonical form."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact decimal number, held as its canonical text, for example ``42e2`` for 4,200."""

    text: str


Value: TypeAlias = "bool | str | Number | list[Value] | dict[str, Value] | None"


class Refused(ValueError):
    """A request that must be corrected before it can be claimed.

    ``code`` is stable and for machines. ``at`` is the offset of the fault in the text at fault,
    in characters counted from 0, or None where no single place is at fault. ``str()`` says what
    is wrong, where, and what to do.
    """

    def __init__(self, code: str, sentence: str, at: int | None = None) -> None:
        # All three go to ValueError, so that a refusal survives pickling between processes.
        super().__init__(code, sentence, at)
        self.code = code
        self.sentence = sentence
        self.at = at

    # typing.override came with Python 3.12; agents run 3.11 too.
    def __str__(self) -> str:  # type: ignore[explicit-override]
        return self.sentence


def parse_json(text: str) -> Value:
    """The value of a JSON text, every number exact.

    Raises `Refused`: ``too_long``, ``not_json``, ``duplicate_member``, ``nan_or_infinity``,
    ``lone_surrogate``, ``nul``, ``too_deep``, ``too_many_digits``, ``exponent_too_large``.
    """
    check_length(text)
    try:
        value: Value = _DECODER.decode(text)
        if _may_hide_a_fault(text):
            _check_strings_and_depth(value, depth=0)
    except json.JSONDecodeError as error:
        sentence = f"The text is not JSON: {error.msg} (offset {error.pos}). Send valid JSON."
        raise Refused("not_json", sentence, error.pos) from None
    except (_FaultSomewhere, RecursionError):
        fault = _first_fault(text)
        if fault is None:  # The caller had used up the stack; the text is not to blame.
            raise
        raise fault from None
    return value


def check_length(text: str) -> None:
    """Raises `Refused` (``too_long``) for a text above the limit."""
    # A character needs at most four bytes, so a short text need not be encoded to be judged.
    if len(text) * 4 <= ARGUMENTS_BYTES_MAX:
        return
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > ARGUMENTS_BYTES_MAX:
        sentence = (
            f"The text has {size} bytes; the limit ARGUMENTS_BYTES_MAX is {ARGUMENTS_BYTES_MAX}. "
            "Send less, or send a reference to the data."
        )
        raise Refused("too_long", sentence)


def shown(text: str) -> str:
    """A text as a message may quote it: short, and in ASCII, because messages end in logs."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain if len(plain) <= _QUOTED_CHARACTERS_MAX else f"{plain[:_QUOTED_CHARACTERS_MAX]}..."


_QUOTED_CHARACTERS_MAX: Final = 60


# The fast reader


class _FaultSomewhere(Exception):
    """Something is refused, somewhere. Never leaves this module."""


def _read_object(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _FaultSomewhere
    return members


def _read_integer(literal: str) -> Number:
    if len(literal) > DIGITS_MAX:
        return _read_number(literal)
    digits = literal.rstrip("0")
    if digits in {"", "-"}:
        return ZERO
    return Number(f"{digits}e{len(literal) - len(digits)}")


def _read_number(literal: str) -> Number:
    number = _number_or_code(literal)
    if isinstance(number, str):
        raise _FaultSomewhere
    return number


def _refuse_constant(_: str) -> Value:
    raise _FaultSomewhere


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_int=_read_integer,
    parse_float=_read_number,
    parse_constant=_refuse_constant,
)

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""U+0000, which PostgreSQL cannot store, and surrogates, which UTF-8 cannot carry."""


def unstorable_at(text: str) -> int | None:
    """The offset of the first character that no UTF-8 column can hold, or None."""
    match = _UNSTORABLE.search(text)
    return match.start() if match else None


def _may_hide_a_fault(text: str) -> bool:
    """Whether every value must be looked at to know that strings and depth are in order.

    U+0000 comes in by an escape, a surrogate also as it is, and a text with few brackets cannot be
    deep. Most arguments have none of these and are spared the walk.
    """
    return (
        "\\u" in text
        or text.count("{") + text.count("[") > DEPTH_MAX
        or unstorable_at(text) is not None
    )


def _check_strings_and_depth(value: Value, *, depth: int) -> None:
    if isinstance(value, str):
        if unstorable_at(value) is not None:
            raise _FaultSomewhere
    elif isinstance(value, dict | list):
        if depth > DEPTH_MAX:
            raise _FaultSomewhere
        for item in value:  # Of an object: the names.
            _check_strings_and_depth(item, depth=depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                _check_strings_and_depth(item, depth=depth + 1)


# Numbers


ZERO: Final = Number("0")

_NUMBER: Final = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]*))?")


def _number_or_code(literal: str) -> Number | str:
    """The exact number, or the code of the reason why it is refused.

    Digits and power are taken apart as text: `int` refuses long digits with an error of its own,
    and a float would round them.
    """
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


# The slow pass: the tokens in the order of the text, without recursion. The fast reader has
# accepted the grammar up to the first fault, so only the faults themselves are looked for.


_TOKEN: Final = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<names>[ \t\n\r]*:)?'
    r"|(?P<constant>-?Infinity|NaN)"
    r"|(?P<number>-?[0-9][0-9.eE+-]*)"
    r"|(?P<open>[\[{])"
    r"|(?P<close>[\]}])",
    re.DOTALL,
)


def _first_fault(text: str) -> Refused | None:
    """The first thing in a text that this module refuses, if there is one."""
    names: list[set[str]] = []  # For every open object or array, the names that it has so far.
    for token in _TOKEN.finditer(text):
        code = _fault_of(token, names)
        if code:
            sentence = _SENTENCES[code].format(found=shown(token["text"] or token[0]))
            return Refused(code, f"{sentence} (Offset {token.start()}.)", token.start())
    return None


def _fault_of(token: re.Match[str], names: list[set[str]]) -> str:
    """The code of a token's fault, or an empty text. Keeps `names` up to date."""
    match token.lastgroup:
        case "text" | "names":
            return _string_fault(token, names)
        case "number":
            number = _number_or_code(token[0])
            return number if isinstance(number, str) else ""
        case "constant":
            return "nan_or_infinity"
        case "open":
            names.append(set())
            return "too_deep" if len(names) > DEPTH_MAX + 1 else ""
        case _:
            names.pop()
            return ""


def _string_fault(token: re.Match[str], names: list[set[str]]) -> str:
    decoded = json.loads(token["text"])
    at = unstorable_at(decoded)
    if at is not None:
        return "nul" if decoded[at] == "\x00" else "lone_surrogate"
    if token["names"]:
        if decoded in names[-1]:
            return "duplicate_member"
        names[-1].add(decoded)
    return ""


_SENTENCES: Final = {
    "not_json": "{found} is not JSON. Send valid JSON.",
    "duplicate_member": (
        "The member {found} appears twice in one object. Send it once: readers disagree about "
        "which of the two counts."
    ),
    "nan_or_infinity": "{found} is not JSON. Send a number or null, or leave the member out.",
    "lone_surrogate": (
        "The string {found} holds half of a surrogate pair, which no UTF-8 text can carry. Send "
        "whole characters: the text was probably cut in the middle of one."
    ),
    "nul": "The string {found} holds U+0000, which the ledger cannot store. Send it without.",
    "too_deep": (
        f"Objects and arrays are nested deeper than the limit DEPTH_MAX, {DEPTH_MAX}. Send flatter "
        "arguments."
    ),
    "too_many_digits": (
        f"The number {{found}} has more digits than the limit DIGITS_MAX, {DIGITS_MAX}. Send it "
        "shorter, or as a string."
    ),
    "exponent_too_large": (
        f"The power of ten of {{found}} has more digits than the limit EXPONENT_DIGITS_MAX, "
        f"{EXPONENT_DIGITS_MAX}. Send the number as a string."
    ),
}
