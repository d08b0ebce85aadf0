"""Amounts of money: exact decimals with their currency, never a float."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, override

# ISO 4217, column "minor unit"; every currency that is not listed has two places.
_CURRENCIES_BY_PLACES: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_PLACES: Final = {
    code: places for places, codes in _CURRENCIES_BY_PLACES.items() for code in codes.split()
}
# Stripe's own list (https://docs.stripe.com/currencies): MGA has no minor unit there, and ISK and
# UGX are still sent with two places although nothing smaller than one whole unit is accepted.
_PLACES_AT_STRIPE: Final = {"ISK": 2, "MGA": 0, "UGX": 2}

PLACES_SHOWN_MAX: Final = 10
"""Most decimal places that are shown; a longer fraction is kept but shown cut, with an ellipsis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount in whole units (149.00 is `Decimal("149.00")`) of an ISO 4217 currency."""

    amount: Decimal
    currency: str
    places: int = 2

    @override
    def __str__(self) -> str:
        return f"{self.figure} {self.currency}"

    @property
    def figure(self) -> str:
        """The amount as people read it: grouped by thousands, with its currency's places."""
        exponent = self.amount.as_tuple().exponent
        written = -exponent if isinstance(exponent, int) else 0
        places = min(max(self.places, written), PLACES_SHOWN_MAX)
        text = f"{self.amount:,.{places}f}"
        return f"{text}…" if written > PLACES_SHOWN_MAX else text


def decimal_places(currency: str, *, contract: str = "") -> int:
    """How many places the minor unit stands for: 2 for EUR, 0 for JPY, 3 for KWD.

    `contract` is the tool's contract word; a provider that counts otherwise than ISO 4217 wins.
    """
    code = currency.upper()
    if contract.startswith("stripe") and code in _PLACES_AT_STRIPE:
        return _PLACES_AT_STRIPE[code]
    return _PLACES.get(code, 2)


def from_minor(minor: int | Decimal, currency: str, *, contract: str = "") -> Money:
    """Money from a count of minor units: 14900 EUR is 149.00 EUR, 14900 JPY is 14,900 JPY."""
    places = decimal_places(currency, contract=contract)
    return Money(amount=Decimal(minor).scaleb(-places), currency=currency.upper(), places=places)


def from_major(amount: Decimal, currency: str, *, contract: str = "") -> Money:
    """Money from an amount in whole units, as written: 149.5 EUR is 149.50 EUR."""
    places = decimal_places(currency, contract=contract)
    return Money(amount=amount, currency=currency.upper(), places=places)
