"""What a customer may be told, by what is known; no built-in text claims more. Pure."""

from __future__ import annotations

import string
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

TEXT_CHARACTERS_MAX: Final = 1_000


class Tell(StrEnum):
    """The kinds of situation that a text is written for."""

    UNKNOWN = "unknown"
    IN_FLIGHT = "in_flight"
    COMPLETED = "completed"
    WATCHED = "watched"
    UNDONE = "undone"
    NOT_EXECUTED = "not_executed"
    NOT_EXECUTED_FOR_NOW = "not_executed_for_now"
    RELEASED = "released"
    RELEASED_NEW_KEY = "released_new_key"
    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    CLOSED = "closed"

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def must_not(self) -> str:
        """What a text for it must not say, for whoever writes one."""
        return _MUST_NOT[self]

    @property
    def built_in(self) -> str:
        return BUILT_IN[self]


_LABELS: Final = {
    Tell.UNKNOWN: "Unknown",
    Tell.IN_FLIGHT: "In flight",
    Tell.COMPLETED: "Happened",
    Tell.WATCHED: "Happened, by a span's word alone",
    Tell.UNDONE: "Happened, and failed afterwards",
    Tell.NOT_EXECUTED: "Did not happen",
    Tell.NOT_EXECUTED_FOR_NOW: "Did not happen so far",
    Tell.RELEASED: "Released with the same key",
    Tell.RELEASED_NEW_KEY: "Released with a new key",
    Tell.DUPLICATE: "Duplicate",
    Tell.CONTRADICTION: "Contradiction",
    Tell.CLOSED: "Closed, unknown",
}

BUILT_IN: Final = {
    Tell.UNKNOWN: (
        "We do not know yet whether this went through. We are finding out; please do not try "
        "again in the meantime."
    ),
    Tell.IN_FLIGHT: (
        "This is being carried out at this moment. Please wait; you do not need to try again."
    ),
    Tell.COMPLETED: "This went through once. You do not need to do anything.",
    Tell.WATCHED: (
        "This seems to have gone through, but nobody has checked it with the provider. Please do "
        "not try again yourself."
    ),
    Tell.UNDONE: (
        "This went through at first and failed afterwards. We are looking into it and will come "
        "back to you; please do not try again in the meantime."
    ),
    Tell.NOT_EXECUTED: (
        "This did not go through, and nothing was done. If you still want it, tell us instead of "
        "trying again yourself, so that it cannot happen twice."
    ),
    Tell.NOT_EXECUTED_FOR_NOW: (
        "So far nothing was done. We are still making sure; please do not try again yourself."
    ),
    Tell.RELEASED: (
        "We do not know whether the first try went through. It may now be tried once more in a "
        "way that cannot happen twice; you do not need to do anything."
    ),
    Tell.RELEASED_NEW_KEY: (
        "We do not know whether the first try went through, and it may be tried once more. If you "
        "see it twice, tell us at once."
    ),
    Tell.DUPLICATE: (
        "This seems to have happened twice. We are looking into it and will come back to you; "
        "please do not do anything yourself."
    ),
    Tell.CONTRADICTION: (
        "Our records and the provider's do not agree about this. We are finding out what is true "
        "and will come back to you; please do not try again in the meantime."
    ),
    Tell.CLOSED: (
        "We could not find out whether this went through. It will not be tried again by us; "
        "please check your own records before you do it once more."
    ),
}
"""In force until an admin writes another text. What nobody knows is said as not known."""

_NOBODY_KNOWS: Final = "Nobody knows: say neither that it went through nor that it did not."
_MUST_NOT: Final = {
    Tell.UNKNOWN: _NOBODY_KNOWS,
    Tell.IN_FLIGHT: "It is not over: do not say how it ends.",
    Tell.COMPLETED: "It happened once: do not ask the customer to try again.",
    Tell.WATCHED: "No provider was asked: do not say that it is certain.",
    Tell.UNDONE: "It did not last: do not say that all is well.",
    Tell.NOT_EXECUTED: "It did not happen: do not say that it may still come.",
    Tell.NOT_EXECUTED_FOR_NOW: "A worker may still send: do not promise that it will not happen.",
    Tell.RELEASED: _NOBODY_KNOWS,
    Tell.RELEASED_NEW_KEY: "It may happen twice: do not say that it cannot.",
    Tell.DUPLICATE: "Two effects are recorded: do not promise a refund, nobody has made one.",
    Tell.CONTRADICTION: _NOBODY_KNOWS,
    Tell.CLOSED: _NOBODY_KNOWS,
}

PLACEHOLDERS: Final = {
    "amount": "149.00 EUR",
    "customer": "cus_9X2",
    "summary": "Charge 149.00 EUR to cus_9X2 for order 8841",
    "tool": "charge_card",
    "when": "29 Nov 2026, 21:40 UTC",
    "reference": "3f2a91c4",
}
"""What a text may name, each with what it looks like."""


def fault_of(text: str) -> str:
    """What is wrong with a text, in one sentence; empty where nothing is."""
    if len(text) > TEXT_CHARACTERS_MAX:
        return f"At most {TEXT_CHARACTERS_MAX:,} characters."
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return "A brace is not closed. Write {{ and }} for braces that are meant as such."
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if name not in PLACEHOLDERS or spec or conversion:
            known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
            return f"{{{name}}} is no placeholder. There are: {known}."
    return ""


def filled(text: str, values: Mapping[str, str]) -> str | None:
    """The text with its placeholders filled in; None where one of them has no value here."""
    said: list[str] = []
    for literal, name, _, _ in string.Formatter().parse(text):
        said.append(literal)
        if name is None:
            continue
        value = values.get(name, "")
        if not value:
            return None
        said.append(value)
    return "".join(said)
