"""Stripe's form encoding, read back: ``metadata[order]=7&types[0]=a`` becomes nested values.

Every reader raises ``Refused`` with a 400 that names the parameter, as Stripe does. An unknown
parameter is refused, never ignored: a filter that is silently dropped would make a look-up lie.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from reconcile.sandbox.provider import errors

METADATA_ENTRIES_MAX: Final = 50
METADATA_NAME_LENGTH_MAX: Final = 40
METADATA_VALUE_LENGTH_MAX: Final = 500
AMOUNT_MAX: Final = 99_999_999
CURRENCIES: Final = ("chf", "eur", "gbp", "jpy", "nok", "sek", "usd")

_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The parameters of one request: pairs as sent, and readers that check them."""

    pairs: Sequence[tuple[str, str]]

    @classmethod
    def decode(cls, form: str) -> "Params":
        """Read a query string or a form body."""
        return cls(pairs=tuple(parse_qsl(form, keep_blank_values=True)))

    def normalised(self) -> list[list[str]]:
        """The pairs without the order in which they were sent: what "same parameters" compares."""
        return sorted([name, value] for name, value in self.pairs)

    def only(self, known: Sequence[str]) -> None:
        """Refuse every parameter that this endpoint does not have."""
        for name, _ in self.pairs:
            root = _root(name)
            if root not in known:
                raise errors.invalid(
                    f"Received unknown parameter: {root}", param=root, code="parameter_unknown"
                )

    def text(self, name: str, *, choices: Sequence[str] = ()) -> str | None:
        """A string, one of ``choices`` if there are any; None if it was not sent."""
        values = [value for sent, value in self.pairs if sent == name]
        if not values or values[-1] == "":
            return None
        if choices and values[-1] not in choices:
            wanted = ", ".join(choices)
            raise errors.invalid(f"Invalid {name}: must be one of {wanted}", param=name)
        return values[-1]

    def required(self, name: str) -> str:
        """A string that must be there."""
        value = self.text(name)
        if value is None:
            raise errors.invalid(
                f"Missing required param: {name}.", param=name, code="parameter_missing"
            )
        return value

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number between two bounds; None if it was not sent."""
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"-?[0-9]{1,20}", value):
            raise errors.invalid(
                f"Invalid integer: {value}", param=name, code="parameter_invalid_integer"
            )
        number = int(value)
        if not least <= number <= most:
            raise errors.invalid(
                f"{name} must be between {least} and {most}",
                param=name,
                code="parameter_invalid_integer",
            )
        return number

    def flag(self, name: str) -> bool:
        """A boolean; False if it was not sent."""
        return self.text(name, choices=("true", "false")) == "true"

    def sent(self, name: str) -> bool:
        """Whether it was sent at all: an empty one unsets a field."""
        return any(sent == name for sent, _ in self.pairs)

    def amount(self) -> int:
        """The amount that must be there, in the currency's smallest unit."""
        amount = self.whole("amount", least=1, most=AMOUNT_MAX)
        if amount is None:
            self.required("amount")
        assert amount is not None
        return amount

    def currency(self, default: str | None = None) -> str:
        """The currency, which must be there where there is no default."""
        currency = (self.text("currency") or default or self.required("currency")).lower()
        if currency not in CURRENCIES:
            raise errors.invalid(f"Invalid currency: {currency}", param="currency")
        return currency

    def texts(self, name: str, *, items_max: int) -> list[str]:
        """A list of strings (``name[0]``, ``name[1]`` or ``name[]``)."""
        items = [value for sent, value in self.pairs if re.fullmatch(rf"{name}\[[0-9]*\]", sent)]
        if len(items) > items_max:
            raise errors.invalid(f"{name} takes at most {items_max} items", param=name)
        return items

    def entries(self, name: str) -> dict[str, str]:
        """An object of strings (``name[a]``, ``name[b]``)."""
        found = {}
        for sent, value in self.pairs:
            match = _NAME.match(sent)
            if match and match[1] == name and match[2]:
                found[match[2].strip("[]")] = value
        return found

    def metadata_changes(self) -> dict[str, str | None] | None:
        """What an update does to the metadata: None for a name unsets it; None for all unsets all
        (https://docs.stripe.com/api/metadata)."""
        if self.sent("metadata") and self.text("metadata") is None:
            return None
        kept = self.metadata()
        return {name: kept.get(name) for name in self.entries("metadata")}

    def metadata(self) -> dict[str, str]:
        """The metadata object, within Stripe's limits."""
        entries = {name: value for name, value in self.entries("metadata").items() if value != ""}
        if len(entries) > METADATA_ENTRIES_MAX:
            raise errors.invalid("You have too many metadata keys", param="metadata")
        for name, value in entries.items():
            too_long = len(name) > METADATA_NAME_LENGTH_MAX
            if too_long or len(value) > METADATA_VALUE_LENGTH_MAX:
                raise errors.invalid(f"metadata[{name}] is too long", param=f"metadata[{name}]")
        return entries


def _root(name: str) -> str:
    return name.partition("[")[0]
