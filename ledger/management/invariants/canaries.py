"""No credential and no card number in what the product itself wrote down.

Arguments, results and raw answers are the customer's own and are not read here. What is found is
named by its kind and its place, and never printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection

from ledger.management.invariants.base import Check, Difference

# A payment card begins with 2 to 6; milliseconds and nanoseconds since 1970 begin with 1. Digits
# inside a word (a digest, an id) or behind a decimal point are no number that somebody wrote.
_CARD: Final = re.compile(
    r"(?<![\w.-])(?:"
    r"[2-6][0-9]{12,18}"
    r"|[2-6][0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1?[0-9]{1,3})?"
    r"|3[47][0-9]{2}([ -])[0-9]{6}\2[0-9]{5}"
    r")(?![\w-]|\.[0-9])"
)
# A marker (cf_, 32 hexadecimal digits, a number) is no token: it is meant to be seen.
_CREDENTIALS: Final = (
    ("a provider's live key", re.compile(r"\b[sr]k_live_[0-9A-Za-z]{4,}")),
    ("a webhook's secret", re.compile(r"\bwhsec_[0-9A-Za-z+/=]{8,}")),
    ("a token of this ledger", re.compile(r"\bcf_[0-9a-f]{8}_[0-9a-f]{64}")),
    ("a bearer token", re.compile(r"\bbearer\s+[\w.~+/=-]{16,}", re.IGNORECASE)),
)
# What the database looks for first, so that only suspects are carried here.
_SUSPECT: Final = (
    r"[0-9]{13}|[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}|3[47][0-9]{2}[ -][0-9]{6}"
    r"|[sr]k_live_|whsec_|cf_[0-9a-f]{8}_|bearer\s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Texts of one table: `of` names the row, `text` is all that is read of it."""

    table: str
    of: str
    where: str
    text: str


PLACES: Final = (
    Place(
        table="ledger_event",
        of="claim_id::text",
        where="'event ' || seq",
        text="data::text",
    ),
    Place(
        table="ledger_decision",
        of="'decision ' || id",
        where="'a reason'",
        text="concat_ws(E'\\n', reason, approval_reason, typed)",
    ),
    Place(
        table="ledger_case",
        of="'case ' || id",
        where="'its data or note'",
        text="concat_ws(E'\\n', data::text, closed_note)",
    ),
    Place(
        table="ledger_ingestitem",
        of="'item ' || id",
        where="'what was said of it'",
        text="says",
    ),
)


def canaries() -> Iterator[Difference]:
    """Every text of ours that holds what looks like a card number or a credential."""
    for place in PLACES:
        # A cursor of the server's: suspects come a few at a time.
        with connection.chunked_cursor() as cursor:
            # The places are our own, never from outside.
            cursor.execute(
                f"SELECT {place.of}, {place.where}, {place.text} FROM {place.table}"  # noqa: S608 - see above
                f" WHERE {place.text} ~* %s",
                [_SUSPECT],
            )
            for of, where, text in cursor:
                for kind in suspects(text):
                    yield Difference(of=of, says=f"{where} holds what looks like {kind}")


def suspects(text: str) -> list[str]:
    """The kinds of secret that `text` seems to hold."""
    found = [kind for kind, shape in _CREDENTIALS if shape.search(text)]
    numbers = (re.sub(r"[ -]", "", match[0]) for match in _CARD.finditer(text))
    if any(passes_luhn(number) for number in numbers):
        found.append("a card number")
    return found


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = (int(d) * 2 for d in digits[-2::-2])
    return (sum(int(d) for d in digits[::-2]) + sum(d // 10 + d % 10 for d in doubled)) % 10 == 0


CHECKS: Final = (
    Check(
        id="I22",
        sentence="No card number and no credential stands in what the product wrote itself.",
        find=canaries,
    ),
)
