"""How a registry entry says which of a provider's objects are this call's, and what they say. Pure.

The three adapters that know no provider by name (HTTP, GraphQL, SQL) read objects in the same way:
an object is a mapping of JSON values, and JMESPath expressions find its members.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final, Literal, Self

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from effects.core.canonical import Number
from effects.core.identity import read_marker
from effects.core.vocabulary import SightingWord
from effects.money import Money, from_major, from_minor
from reconcile.adapters.base import KeyLife, Probe, Stranger, checked_map, literal
from reconcile.adapters.matching import Match

EXPRESSION_CHARACTERS_MAX: Final = 300
OBJECT_CHARACTERS_MAX: Final = 255
COMPARED_MAX: Final = 10
ARGUMENT_PREFIX: Final = "arguments."
OWN_REFERENCES: Final = frozenset({"marker", "key"})
"""References of which each generation of the key has its own."""
_SHOWN_CHARACTERS_MAX: Final = 200


def _checked_expression(expression: str) -> str:
    try:
        jmespath.compile(expression or "@")
    except JMESPathError as error:
        raise ValueError(f"is not a JMESPath expression: {error}") from None
    return expression


Expression = Annotated[
    str, Field(max_length=EXPRESSION_CHARACTERS_MAX), AfterValidator(_checked_expression)
]


class ObjectRules(BaseModel):
    """What all three kinds of entry say.

    `reference` is what tells this call's objects from all others: the marker, the key, the claim's
    id, or a member of the arguments ("arguments.order_id"). It must be part of every request that
    this tool sends, because absence rests on it, and of no other call's. `reference_field` is where
    an object shows it. `compare` names members of the arguments and where the object shows the same
    ("metadata.order": "order_id"). `live` is true, or "live", in an object of the live mode.
    `created` is an instant, as text or in seconds since 1970.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reference: Annotated[str, Field(max_length=200)] = "marker"
    reference_field: Expression = ""
    id: Expression = "id"
    status: Expression = "status"
    amount: Expression = ""
    amount_is_minor: bool = True
    currency: Expression = ""
    customer: Expression = ""
    live: Expression = ""
    created: Expression = ""
    compare: Annotated[dict[Expression, Expression], Field(max_length=COMPARED_MAX)] = {}
    map: Annotated[dict[str, str], Field(min_length=1), AfterValidator(checked_map)]
    delay_class: Literal["none", "eventual", "unknown"] = "unknown"
    marker_in_every_request: bool = False

    @model_validator(mode="after")
    def _reference_is_one(self) -> Self:
        known = self.reference in OWN_REFERENCES | {"claim"}
        if not known and not self.reference.startswith(ARGUMENT_PREFIX):
            odd = f"reference is {self.reference!r}; say marker, key, claim or arguments.<member>"
            raise ValueError(odd)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One reference to look for, and the generation of the key that it belongs to, if to one."""

    reference: str
    life: KeyLife | None


def wanted(probe: Probe, rules: ObjectRules) -> tuple[Wanted, ...]:
    """Every reference by which an object may be this call's. Raises ValueError where there is none.

    One for each generation of the key, or one in all where they share it.
    """
    match rules.reference:
        case "marker":
            return tuple(Wanted(reference=life.marker, life=life) for life in probe.generations)
        case "key":
            return tuple(Wanted(reference=life.key, life=life) for life in probe.generations)
        case "claim":
            return (Wanted(reference=str(probe.claim_id), life=None),)
        case path:
            return (Wanted(reference=argument(probe, path), life=None),)


def argument(probe: Probe, path: str) -> str:
    """The text at "arguments.<member>". Raises ValueError where there is none."""
    value = search(path.removeprefix(ARGUMENT_PREFIX), probe.arguments)
    if isinstance(value, str) and value:
        return value
    # 7 and 7.0 are the same argument and two references: a number cannot be asked about.
    raise ValueError(f"the arguments hold no text at {path.removeprefix(ARGUMENT_PREFIX)}")


def reference_of(rules: ObjectRules, item: Any) -> str | None:
    """What an object shows at `reference_field`; None where it shows nothing."""
    value = search(rules.reference_field, item) if rules.reference_field else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def match_of(probe: Probe, rules: ObjectRules, item: Any, life: KeyLife | None) -> Match:
    """One object of this call. Raises ValueError for one without a name."""
    status = search(rules.status, item)
    word = rules.map.get(status) if isinstance(status, str) else None
    requested, found = _compared(probe, rules, item)
    return Match(
        id=_object_id(search(rules.id, item)),
        status=status if isinstance(status, str) else literal(_plain(status)),
        word=SightingWord(word) if word else None,
        open=life is None or life.open,
        requested=requested,
        found=found,
    )


def stranger_of(rules: ObjectRules, item: Any) -> Stranger | None:
    """An object that is no probe's, as far as it has a name."""
    try:
        name = _object_id(search(rules.id, item))
    except ValueError:
        return None
    reference = reference_of(rules, item) or ""
    status = search(rules.status, item)
    amount, currency = _figure(rules, item), search(rules.currency or "`null`", item)
    return Stranger(
        id=name,
        noun="Object",
        created_at=_instant(search(rules.created, item)) if rules.created else None,
        status=status[:_SHOWN_CHARACTERS_MAX] if isinstance(status, str) else "",
        marker=reference if read_marker(reference) else "",
        amount=f"{amount} {currency}" if amount and isinstance(currency, str) else amount,
    )


def search(expression: str, value: Any) -> Any:
    """What is found at a JMESPath expression, None where nothing is."""
    try:
        return jmespath.search(expression, value)
    except (JMESPathError, TypeError, ValueError, ArithmeticError):
        # A function that meets another type than it expects finds nothing.
        return None


def decoded(body: bytes) -> Any:
    """The JSON of an answer. Raises ValueError with a sentence for people."""
    try:
        # Through `Decimal`, because an amount that passed through a float is another amount.
        return json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        raise ValueError(f"it is not JSON but {literal(body[:60])}.") from None


def checked_items(items: Any, *, named: str) -> list[Any]:
    """The objects of an answer. Raises ValueError where what is there is no list of objects."""
    if not isinstance(items, list):
        gives = f"{named} gives {literal(items)}, not a list."
        raise ValueError(gives)  # noqa: TRY004 - it is the answer that is wrong, not the code
    if not all(isinstance(item, dict) and item for item in items):
        raise ValueError("it holds something that is not an object.")
    return items


# Inside


def _compared(probe: Probe, rules: ObjectRules, item: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that say whether this is what was asked for, on both sides."""
    requested, found = {}, {}
    asked, there = probe.amount, _money(probe, rules, item)
    if asked is not None and rules.amount:
        requested["amount"] = asked.figure
        found["amount"] = "nothing" if there is None else there.figure
    if asked is not None and rules.currency:
        requested["currency"] = asked.currency
        found["currency"] = str(search(rules.currency, item)).upper()
    if probe.customer and rules.customer:
        requested["customer"] = probe.customer
        found["customer"] = str(_plain(search(rules.customer, item)))
    if rules.live:
        requested["mode"] = probe.place.mode
        found["mode"] = "live" if search(rules.live, item) in (True, "live") else "test"
    for path, where in rules.compare.items():
        wish = search(path, probe.arguments)
        if wish is not None:
            requested[path], found[path] = shown(wish), shown(search(where, item))
    return requested, found


def _money(probe: Probe, rules: ObjectRules, item: Any) -> Money | None:
    asked = probe.amount
    figure = _decimal(search(rules.amount, item)) if rules.amount else None
    if asked is None or figure is None:
        return None
    currency = search(rules.currency, item) if rules.currency else None
    make = from_minor if rules.amount_is_minor else from_major
    there = make(figure, currency if isinstance(currency, str) else asked.currency)
    return Money(amount=there.amount, currency=there.currency, places=asked.places)


def _figure(rules: ObjectRules, item: Any) -> str:
    figure = _decimal(search(rules.amount, item)) if rules.amount else None
    currency = search(rules.currency, item) if rules.currency else None
    if figure is None or not isinstance(currency, str):
        return ""
    make = from_minor if rules.amount_is_minor else from_major
    return make(figure, currency).figure


def shown(value: Any) -> str:
    """A value of either side in one spelling: 7, 7.0 and "7" are the same; long text is cut."""
    plain = _plain(value)
    number = _decimal(plain)
    if number is not None:
        return f"{number.normalize():f}"
    if not isinstance(plain, str):
        return literal(plain)
    if len(plain) <= _SHOWN_CHARACTERS_MAX:
        return plain
    # Two long texts that begin alike are still two texts.
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{plain[:_SHOWN_CHARACTERS_MAX]}... (SHA-256 {digest}...)"


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Number) else value


def _object_id(value: Any) -> str:
    """The name of a provider object. Raises ValueError where there is none: two effects without a
    name could not be told from one."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError(f"an object is named {literal(value)}, which is no name.")
    name = str(value)
    if len(name) > OBJECT_CHARACTERS_MAX:
        raise ValueError(f"an object's name is longer than {OBJECT_CHARACTERS_MAX} characters.")
    return name


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 30 else None


def _instant(value: Any) -> datetime | None:
    """Text as ISO 8601 writes it, with its zone, or seconds since 1970."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo else None
        seconds = _decimal(value)
        return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None
