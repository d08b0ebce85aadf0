"""What is asked of the queue, as an address says it: view, filters, order, and where a page starts.

The query string is the one truth. Whatever leads to a list, a link, a bulk, a file, a saved view,
carries it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from effects.core.vocabulary import ClaimState, EffectClass
from effects.times import read_duration, write_duration
from reconcile.situation import Strength
from reconcile.views.amounts import read_amount

QUERY_CHARACTERS_MAX: Final = 200
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""What PostgreSQL cannot store, so nothing there can hold it."""
OLDER_SECONDS_MAX: Final = 366 * 24 * 3600
AMOUNT_MAX: Final = Decimal(10) ** 20
ID_MAX: Final = 2**63 - 1


class View(StrEnum):
    """The system views, each a tab or behind one of the five numbers."""

    OPEN = "open"
    MINE = "mine"
    MENTIONS = "mentions"
    UNTAKEN = "untaken"
    CLOSING = "closing"
    UNKEYED = "unkeyed"
    LATE = "late"
    SNOOZED = "snoozed"
    WAITING = "waiting"
    HELD = "held"
    RELEASED = "released"
    CLOSED = "closed"
    RESOLVED = "resolved"
    ALL = "all"

    @property
    def label(self) -> str:
        return VIEW_LABELS[self]


VIEW_LABELS: Final = {
    View.OPEN: "All undecided",
    View.MINE: "Mine",
    View.MENTIONS: "Mentions",
    View.UNTAKEN: "Untaken",
    View.CLOSING: "Closing soon",
    View.UNKEYED: "Unkeyed writes",
    View.LATE: "Window closed",
    View.SNOOZED: "Snoozed",
    View.WAITING: "Waiting for second person",
    View.HELD: "Held",
    View.RELEASED: "Released",
    View.CLOSED: "Closed, unknown",
    View.RESOLVED: "Resolved today",
    View.ALL: "All calls",
}


class Sort(StrEnum):
    WINDOW = "window"
    AMOUNT = "amount"
    AGE = "age"


class Group(StrEnum):
    """The headings inside the list that is sorted by window; each has one fixed place."""

    NO_KEY = "no_key"
    CLOSING = "closing"
    OPEN = "open"
    UNPUBLISHED = "unpublished"
    LATE = "late"
    NO_KEY_NO_AMOUNT = "no_key_no_amount"


GROUPS: Final = tuple(Group)

COLUMNS: Final = {
    "tool": "Tool",
    "amount": "Amount",
    "evidence": "Last evidence",
    "check": "Next check",
    "who": "Who",
    "age": "Age",
}
"""The columns that can be hidden; window, state and what a call is cannot."""
NO_EVIDENCE: Final = "none"
STRENGTHS: Final = (*(str(strength) for strength in Strength), NO_EVIDENCE)
ME: Final = "me"
NOBODY: Final = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page of the list starts: after this row, as of this instant."""

    at: datetime
    group: int
    first: Decimal
    second: Decimal
    claim_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something in the address that could not be read and so filters nothing: what was typed into
    which field, and what is wrong with it."""

    name: str
    typed: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked of the queue. Empty words filter nothing.

    `who` is "me", "nobody" or a person's number; amounts are in whole units. `saved` is the view
    that the list began with; `user_id` says whose calls "Mine" are and is never in an address.
    """

    view: View = View.OPEN
    tool: str = ""
    state: str = ""
    q: str = ""
    effect_class: str = ""
    strength: str = ""
    who: str = ""
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None
    currency: str = ""
    older_seconds: int = 0
    sort: Sort = Sort.WINDOW
    hide: tuple[str, ...] = ()
    saved: int | None = None
    after: Place | None = None
    user_id: int = 0
    faults: tuple[Fault, ...] = field(default=(), compare=False)

    @property
    def narrowed(self) -> bool:
        """Whether something beside the view decides what is listed."""
        narrowing = (
            *(self.tool, self.state, self.q, self.effect_class, self.strength, self.who),
            *(self.amount_from is not None, self.amount_to is not None, self.currency),
            self.older_seconds,
        )
        return any(narrowing)

    def said(self) -> dict[str, str]:
        """The members of the query string, in its order; what is usual is left out."""
        members = {
            "view": str(self.view),
            "tool": self.tool,
            "state": self.state,
            "q": self.q,
            "class": self.effect_class,
            "strength": self.strength,
            "who": self.who,
            "from": "" if self.amount_from is None else f"{self.amount_from:f}",
            "to": "" if self.amount_to is None else f"{self.amount_to:f}",
            "currency": self.currency,
            "older": write_duration(self.older_seconds) if self.older_seconds else "",
            "sort": "" if self.sort is Sort.WINDOW else str(self.sort),
            "hide": ",".join(self.hide),
            "saved": "" if self.saved is None else str(self.saved),
            "after": cursor_of(self.after) if self.after else "",
        }
        return {name: value for name, value in members.items() if value}

    def address(self, **changes: Any) -> str:
        """The query string of these filters, changed; a change starts at the first page again.

        The view is always said: an address without any word is where a person's own view begins.
        """
        return f"?{urlencode(replace(self, **({'after': None} | changes)).said())}"

    def to_keep(self) -> str:
        """What a saved view keeps: all of it but the page and where it came from."""
        return urlencode(replace(self, after=None, saved=None).said())


def is_bare(query: Mapping[str, str]) -> bool:
    """Whether an address says nothing of what is to be listed."""
    return not any(name in query for name in NAMES)


def names_saved_alone(query: Mapping[str, str]) -> bool:
    """Whether an address names a saved view and nothing else: then the view says the rest."""
    return "saved" in query and not any(name in query for name in NAMES - {"saved"})


NAMES: Final = frozenset(
    {
        *("view", "tool", "state", "q", "class", "strength", "who", "from", "to", "currency"),
        *("older", "sort", "hide", "saved", "after"),
    }
)


def read_filters(query: Mapping[str, str]) -> Filters:
    """The filters in a query string. What cannot be read filters nothing and is a fault."""
    reading = _Reading(query)
    filters = Filters(
        view=View(reading.one_of("view", View, usual=View.OPEN)),
        tool=reading.text("tool"),
        state=reading.one_of("state", ClaimState),
        q=reading.text("q"),
        effect_class=reading.one_of("class", EffectClass),
        strength=reading.one_of("strength", STRENGTHS),
        who=reading.who(),
        amount_from=reading.amount("from"),
        amount_to=reading.amount("to"),
        currency=reading.currency(),
        older_seconds=reading.older(),
        sort=Sort(reading.one_of("sort", Sort, usual=Sort.WINDOW)),
        hide=reading.hidden(),
        saved=reading.number("saved"),
        after=place_of(query.get("after", "")),
    )
    return replace(filters, faults=tuple(reading.faults))


class _Reading:
    """One query string, read member by member; what cannot be read is noted."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self.query = query
        self.faults: list[Fault] = []

    def text(self, name: str) -> str:
        return UNSTORABLE.sub("", self.query.get(name, "")).strip()[:QUERY_CHARACTERS_MAX]

    def one_of(self, name: str, words: Any, *, usual: str = "") -> str:
        text = self.text(name)
        if text in list(words):
            return text
        return usual

    def number(self, name: str) -> int | None:
        text = self.text(name)
        usable = text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= ID_MAX
        return int(text) if usable else None

    def hidden(self) -> tuple[str, ...]:
        """The columns: an address names them in one word, a form each in its own."""
        listed = getattr(self.query, "getlist", lambda name: [self.query.get(name, "")])("hide")
        names = ",".join(listed[: len(COLUMNS)]).split(",")
        return tuple(name for name in COLUMNS if name in names)

    def who(self) -> str:
        text = self.text("who")
        number = self.number("who")
        return text if text in {ME, NOBODY} else "" if number is None else str(number)

    def amount(self, name: str) -> Decimal | None:
        text = self.text(name)
        if not text:
            return None
        typed = read_amount(text)
        if typed is None or typed.currency or max(typed.amounts) > AMOUNT_MAX:
            self._fault(name, "is no amount. Write it as 149.00, without its currency.")
            return None
        if len(typed.amounts) > 1:
            both = " or ".join(f"{amount:f}" for amount in typed.amounts)
            self._fault(name, f"may be {both}. Write the one that is meant.")
            return None
        return typed.amounts[0]

    def currency(self) -> str:
        text = self.text("currency").upper()
        if text and not re.fullmatch(r"[A-Z]{3}", text):
            self._fault("currency", "is no currency. Write its three letters, such as EUR.")
            return ""
        return text

    def older(self) -> int:
        text = self.text("older")
        if not text:
            return 0
        seconds = read_duration(text)
        if not seconds or seconds > OLDER_SECONDS_MAX:
            self._fault("older", "is no age. Write a number and its unit, such as 30 m, 2 h, 3 d.")
            return 0
        return seconds

    def _fault(self, name: str, sentence: str) -> None:
        typed = self.text(name)
        self.faults.append(Fault(name=name, typed=typed, sentence=f"“{typed}” {sentence}"))


# Where a page starts


def cursor_of(place: Place) -> str:
    said = [
        place.at.isoformat(),
        place.group,
        str(place.first),
        str(place.second),
        str(place.claim_id),
    ]
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


def place_of(cursor: str) -> Place | None:
    """The place in a cursor, or None (the first page) where it is not one of ours."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, group, first, second, claim_id = json.loads(base64.urlsafe_b64decode(padded))
        place = Place(
            at=datetime.fromisoformat(at),
            group=int(group),
            first=Decimal(first),
            second=Decimal(second),
            claim_id=UUID(claim_id),
        )
    except (ValueError, TypeError, AttributeError, binascii.Error, InvalidOperation):
        return None
    usable = place.at.tzinfo is not None and place.first.is_finite() and place.second.is_finite()
    return place if usable and 0 <= place.group < len(GROUPS) else None
