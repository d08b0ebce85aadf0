"""What deciding about notifications speaks of: rules, subjects, what was told and acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from effects.money import Money


class Condition(StrEnum):
    """What a rule looks for."""

    CLOSING = "closing"
    UNTAKEN = "untaken"
    EXPOSURE = "exposure"
    OTHERWISE = "otherwise"
    LOOKUPS = "lookups"
    SECOND_PERSON = "second_person"


class Why(StrEnum):
    """Why a notice leaves now."""

    TRUE = "true"
    WAKES = "wakes"  # in quiet hours: the window is shorter than what may wake people
    CLOSES_FIRST = "closes_first"  # in quiet hours: it would come too late after them


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Hours of every day in a named zone; over midnight where `start` is later than `end`.

    `wake_below`: with less time than that to the deadline it is told all the same.
    """

    start: time
    end: time
    zone: str
    wake_below: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`within` is how near (closing) or how long (untaken), `amount` in `currency` is the sum that
    may stand open (exposure).

    `tool`, `effect_class` and `amount_from` narrow: empty and None narrow nothing. A call whose
    amount is not known counts as large.
    """

    id: int
    condition: Condition
    repeat: timedelta
    within: timedelta = timedelta(0)
    amount: Decimal | None = None
    currency: str = ""
    tool: str = ""
    effect_class: str = ""
    amount_from: Decimal | None = None
    quiet: Quiet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An open call, or a connection (`claim_id` None), as far as rules look at it.

    `key` names it for ever. `deadline` is the end of the safe-retry window less its margin, None
    where there is none. `needs` says that a person has to decide; `resting` that somebody put the
    call off, or that a decision about it is held. `untaken_since` None: somebody has it.
    `otherwise`, `ended` and `waits` are situations in words of ours ("contradiction 7"), empty
    where the subject is in none; `waits_until` is when the request for a second person expires.
    """

    key: str
    claim_id: UUID | None = None
    tool: str = ""
    effect_class: str = ""
    money: Money | None = None
    deadline: datetime | None = None
    needs: bool = False
    resting: bool = False
    untaken_since: datetime | None = None
    otherwise: str = ""
    ended: str = ""
    waits: str = ""
    waits_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Somebody is at it: silence about one situation of one subject under one rule, for a time."""

    rule_id: int
    key: str
    situation: str
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told before, the newest time for each rule, subject and situation."""

    rule_id: int
    key: str
    situation: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One subject of a notice. `of_use_until`: after that, telling helps nobody any more."""

    subject: Subject
    situation: str
    of_use_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What one rule says now, the most urgent first. `of_all` counts what the rule is true of,
    also what was told before or is acknowledged; `total` is the sum of a rule about exposure."""

    rule_id: int
    items: tuple[Item, ...]
    why: Why
    of_all: int
    total: Money | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a rule stands: all that it is true of, and what of it is told now, held for the end of
    the quiet hours, or silent (told already, or acknowledged)."""

    true_of: tuple[Item, ...] = ()
    told_now: tuple[Item, ...] = ()
    held: tuple[Item, ...] = ()
    quiet_until: datetime | None = None
    why: Why = Why.TRUE
    total: Money | None = None
