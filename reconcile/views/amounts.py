"""Amounts as people type them: with a point or a comma, with thousands, with a currency."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, override

# A sign names its currency only where no other currency is written with it: $ and the yen sign are
# shared.
_SIGNS: Final = {"€": "EUR", "£": "GBP"}
_CURRENCY: Final = r"[A-Za-z]{3}|[€£]"
_TYPED: Final = re.compile(
    rf"(?:({_CURRENCY})\s*)?([0-9](?:[0-9.,' ]*[0-9])?)(?:\s*({_CURRENCY}))?"
)
_PLAIN: Final = re.compile(r"[0-9]{1,20}(?:[.,][0-9]{1,10})?")
_GROUPED: Final = (
    # Thousands by a comma, a blank or an apostrophe, places after a point; and thousands by a
    # point or a blank, places after a comma.
    (re.compile(r"[0-9]{1,3}(?:([, '])[0-9]{3})(?:\1[0-9]{3})*(?:\.[0-9]{1,10})?"), "."),
    (re.compile(r"[0-9]{1,3}(?:([. '])[0-9]{3})(?:\1[0-9]{3})*(?:,[0-9]{1,10})?"), ","),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """An amount that was typed. "1,490" may be two: both are in `amounts`.

    `currency` is an ISO 4217 code, or empty where none was typed.
    """

    amounts: tuple[Decimal, ...]
    currency: str

    @override
    def __str__(self) -> str:
        written = " or ".join(f"{amount:,f}" for amount in self.amounts)
        return f"{written} {self.currency}".rstrip()


def read_amount(text: str) -> Typed | None:
    """The amount that the text says: "149.00", "149,00", "1.490,00 EUR", "EUR 149"; None: none."""
    found = _TYPED.fullmatch(text.strip())
    if found is None:
        return None
    before, figure, behind = found.groups()
    if before and behind:
        return None
    amounts: list[Decimal] = []
    for grouped, point in _GROUPED:
        if grouped.fullmatch(figure):
            whole, _, places = figure.partition(point)
            digits = re.sub(r"[^0-9]", "", whole)
            amounts.append(Decimal(f"{digits}.{places}" if places else digits))
    if _PLAIN.fullmatch(figure):
        amounts.append(Decimal(figure.replace(",", ".")))
    sign = before or behind or ""
    currency = _SIGNS.get(sign, sign.upper())
    distinct = tuple(dict.fromkeys(amounts))
    return Typed(amounts=distinct, currency=currency) if distinct else None
