"""What people read instead of JSON: a call's one line, its amount and its customer.

These helpers are asked about arguments that a model wrote, so no text is odd enough to make them
raise: what cannot be read is said to be not given.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Final, Protocol

from effects.core.canonical import Number, Refused, Value, parse_arguments
from effects.money import Money, from_major, from_minor

SUMMARY_CHARACTERS_MAX: Final = 200
"""Longest line; the rest is cut with an ellipsis."""
VALUE_CHARACTERS_MAX: Final = 60
"""Longest single value inside a line."""
FIELDS_WITHOUT_TEMPLATE_MAX: Final = 3
"""How many plain arguments are named when a tool has no summary template."""
DIGITS_SHOWN_MAX: Final = 30
"""A number that needs more digits than this is shown in its canonical form and is no amount."""

NOT_GIVEN: Final = "(not given)"
FIXED_CURRENCY: Final = "="
"""A currency field that starts with this names the currency itself: "=EUR"."""

_HOLE = re.compile(r"\{([^{}]*)\}")
_PATH = re.compile(r"[^.{}\s]+(?:\.[^.{}\s]+)*")
_ID = re.compile(r"([A-Za-z]{2,10}_)(?:[A-Za-z0-9]+_)*[A-Za-z0-9]{9,}")
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_DECIMAL = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,10})?")


class Described(Protocol):
    """The part of a tool that says how its arguments are read."""

    name: str
    contract: str
    summary: str
    amount_field: str
    amount_is_minor: bool
    currency_field: str
    customer_field: str


def summary_line(tool: Described, arguments_text: str | None) -> str:
    """One line that says what the call was to do: "Charge 149.00 EUR to cus_…9X2".

    `{amount}` and `{customer}` stand for the tool's own amount and customer fields; every other
    hole is a path of member names, and a number in it picks from a list: `{items.0.sku}`. Without
    a template the line names the tool and its first plain arguments.
    """
    arguments = _read(arguments_text)
    if arguments is None:
        return f"{tool.name}, arguments cannot be read"
    if tool.summary.strip():
        line = _HOLE.sub(lambda hole: _fill(tool, arguments, hole[1].strip()), tool.summary)
    else:
        line = _line_without_template(tool, arguments)
    return _clipped(_one_line(line), SUMMARY_CHARACTERS_MAX)


def amount(tool: Described, arguments_text: str | None) -> Money | None:
    """The money that the call is about, exact, or None if the arguments do not say it.

    An amount without a currency is None: a figure that may be yen or euros is no figure.
    """
    arguments = _read(arguments_text)
    return None if arguments is None else _amount(tool, arguments)


def customer(tool: Described, arguments_text: str | None) -> str | None:
    """Whom the call concerns, as the arguments name them, in full; None if they do not."""
    arguments = _read(arguments_text)
    if arguments is None or not tool.customer_field:
        return None
    return _plain(_at(arguments, tool.customer_field))


def has_value(arguments_text: str | None, path: str) -> bool:
    """Whether the arguments have anything at a path: a list and an object count, null does not."""
    arguments = _read(arguments_text)
    return arguments is not None and _at(arguments, path) is not None


def field_paths(template: str) -> tuple[str, ...]:
    """The paths that a summary template names, in order, `amount` and `customer` among them."""
    return tuple(hole.strip() for hole in _HOLE.findall(template))


def template_fault(template: str) -> str | None:
    """What is wrong with a summary template, in one sentence, or None."""
    for path in field_paths(template):
        if not _PATH.fullmatch(path):
            shown = "{" + path + "}"
            return f"{shown} is not a field. Write names joined by dots, for example {{order.id}}."
    rest = _HOLE.sub("", template)
    if "{" in rest or "}" in rest:
        return "A brace is open or closed alone. Write each field as {name}."
    return None


def field_fault(path: str) -> str | None:
    """What is wrong with a field's path, in one sentence, or None; an empty path is no field."""
    if not path.strip() or _PATH.fullmatch(path.strip()):
        return None
    return "This is not a field. Write names joined by dots, for example price.value."


# Reading


def _read(text: str | None) -> dict[str, Value] | None:
    if text is None:
        return None
    try:
        return parse_arguments(text)
    except (Refused, RecursionError):
        return None


def _at(arguments: Value, path: str) -> Value:
    """The value at a dotted path, or None. A member whose name holds dots wins over the path."""
    if isinstance(arguments, dict) and path in arguments:
        return arguments[path]
    value = arguments
    for name in path.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 6:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            return None
    return value


def _amount(tool: Described, arguments: dict[str, Value]) -> Money | None:
    if not tool.amount_field:
        return None
    figure = _decimal(_at(arguments, tool.amount_field))
    currency = _currency(tool.currency_field, arguments)
    if figure is None or currency is None:
        return None
    make = from_minor if tool.amount_is_minor else from_major
    return make(figure, currency, contract=tool.contract)


def _currency(field: str, arguments: dict[str, Value]) -> str | None:
    named: Value = field
    if not field.startswith(FIXED_CURRENCY):
        named = _at(arguments, field) if field else None
    if not isinstance(named, str):
        return None
    code = named.removeprefix(FIXED_CURRENCY).strip()
    return code.upper() if _CURRENCY.fullmatch(code) else None


def _decimal(value: Value) -> Decimal | None:
    """An exact decimal from a number or from a text that is nothing but one."""
    if isinstance(value, Number):
        return _small_decimal(value.text)
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        return Decimal(value.strip())
    return None


def _small_decimal(text: str) -> Decimal | None:
    # Nine characters of JSON can name a number of a thousand million digits: its size is looked at
    # before it is ever written out.
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > DIGITS_SHOWN_MAX:
        return None
    return number


# Writing


def _fill(tool: Described, arguments: dict[str, Value], path: str) -> str:
    if path == "amount" and tool.amount_field:
        money = _amount(tool, arguments)
        if money is not None:
            return str(money)
        return _short(_at(arguments, tool.amount_field))
    if path == "customer" and tool.customer_field:
        return _short(_at(arguments, tool.customer_field))
    return _short(_at(arguments, path))


def _line_without_template(tool: Described, arguments: dict[str, Value]) -> str:
    money = _amount(tool, arguments)
    parts = [str(money)] if money is not None else []
    if tool.customer_field:
        parts.append(_short(_at(arguments, tool.customer_field)))
    if not parts:
        plain = ((name, _plain(value)) for name, value in arguments.items())
        named = [f"{name} {_shortened(text)}" for name, text in plain if text is not None]
        parts = named[:FIELDS_WITHOUT_TEMPLATE_MAX]
    return f"{tool.name}: {', '.join(parts)}" if parts else tool.name


def _plain(value: Value) -> str | None:
    """A value that can stand in a sentence as text; None for an object, a list or nothing."""
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value if value.strip() else None
        case Number():
            small = _small_decimal(value.text)
            return value.text if small is None else f"{small:f}"
        case _:
            return None


def _short(value: Value) -> str:
    if isinstance(value, list):
        return f"{len(value)} items" if len(value) != 1 else "1 item"
    text = _plain(value)
    return NOT_GIVEN if text is None else _shortened(text)


def _shortened(text: str) -> str:
    # The end of a provider's id tells two apart; its middle tells nobody anything.
    identifier = _ID.fullmatch(text)
    if identifier is not None:
        return f"{identifier[1]}…{text[-3:]}"
    return _clipped(_one_line(text), VALUE_CHARACTERS_MAX)


def _one_line(text: str) -> str:
    """Without control and format characters: a model's text may not turn the line round or end it.

    U+202E would let "100" read as "001", and a line feed would forge a second row.
    """
    kept = (" " if unicodedata.category(c) in _UNSEEN else c for c in text)
    return " ".join("".join(kept).split())


_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _clipped(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else f"{text[: characters_max - 1].rstrip()}…"
