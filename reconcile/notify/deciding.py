"""What people are told now: a pure function of the instant, the rules and what is open.

No clock, no database, no order: the same facts in any order give the same notices. A rule is true
of a *subject*, which is a call or a connection, in a *situation*: what exactly is so ("closes at
14:32"). The log and the acknowledgements speak of a rule, a subject and a situation together, so
that neither what was told nor what was acknowledged ever hides another call or another trouble.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from effects.money import Money
from reconcile.notify.facts import (
    Ack,
    Condition,
    Item,
    Notice,
    Quiet,
    Rule,
    State,
    Subject,
    Told,
    Why,
)

ACK_MAX: Final = timedelta(hours=24)
LEAD: Final = timedelta(minutes=30)
"""What a person needs to act: an acknowledgement ends so long before the window closes, and quiet
hours do not hold back what would leave less than that after their end."""


type _Named = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    told: Mapping[_Named, datetime] = field(default_factory=dict)
    acks: Mapping[_Named, Ack] = field(default_factory=dict)


def what_to_send(
    now: datetime,
    rules: Iterable[Rule],
    subjects: Iterable[Subject],
    acks: Iterable[Ack],
    log: Iterable[Told],
) -> list[Notice]:
    """The notices that leave at `now`, by the number of their rule. Total: it never raises."""
    states = standing(now, rules, subjects, acks, log)
    return [
        Notice(
            rule_id=rule_id,
            items=state.told_now,
            why=state.why,
            of_all=len(state.true_of),
            total=state.total,
        )
        for rule_id, state in sorted(states.items())
        if state.told_now
    ]


def standing(
    now: datetime,
    rules: Iterable[Rule],
    subjects: Iterable[Subject],
    acks: Iterable[Ack],
    log: Iterable[Told],
) -> dict[int, State]:
    """How each rule stands at `now`. Pages show it, and `what_to_send` sends what it tells."""
    known = _Known(told=_newest(log), acks=_longest(acks))
    listed = sorted(subjects, key=urgency)
    return {rule.id: _state(now, rule, listed, known) for rule in rules}


def urgency(subject: Subject) -> tuple[bool, datetime | None, Decimal, str]:
    """Sorts the nearest deadline first, then the largest amount; no two subjects tie."""
    amount = subject.money.amount if subject.money else Decimal(0)
    # With no deadline the second place is the same for all, and None is never compared.
    return (subject.deadline is None, subject.deadline, -amount, subject.key)


def ack_until(now: datetime, subject_deadline: datetime | None) -> datetime | None:
    """Until when a call may be acknowledged at `now`, or None where it is too late for that."""
    last = now + ACK_MAX
    until = last if subject_deadline is None else min(last, _ack_end(last, subject_deadline, now))
    return until if until > now else None


def _ack_end(last: datetime, deadline: datetime, now: datetime) -> datetime:
    # A window that has closed drives nobody any more; until then its last half hour is spoken of.
    return last if deadline <= now else deadline - LEAD


def _newest(log: Iterable[Told]) -> dict[_Named, datetime]:
    newest: dict[_Named, datetime] = {}
    for told in log:
        named = (told.rule_id, told.key, told.situation)
        newest[named] = max(told.at, newest.get(named, told.at))
    return newest


def _longest(acks: Iterable[Ack]) -> dict[_Named, Ack]:
    longest: dict[_Named, Ack] = {}
    for ack in acks:
        named = (ack.rule_id, ack.key, ack.situation)
        known = longest.get(named)
        if known is None or (ack.until, ack.at) > (known.until, known.at):
            longest[named] = ack
    return longest


def _state(now: datetime, rule: Rule, listed: Sequence[Subject], known: _Known) -> State:
    true_of, total = _true_of(now, rule, listed)
    due = [item for item in true_of if _is_due(now, rule, item, known)]
    end = quiet_end(now, rule.quiet)
    if end is None or rule.quiet is None:
        return State(true_of=tuple(true_of), told_now=tuple(due), total=total)
    reasons = {item.subject.key: _reason_to_wake(now, rule.quiet, end, item) for item in due}
    awake = tuple(item for item in due if reasons[item.subject.key])
    closes_first = Why.CLOSES_FIRST in {reasons[item.subject.key] for item in awake}
    return State(
        true_of=tuple(true_of),
        told_now=awake,
        held=tuple(item for item in due if not reasons[item.subject.key]),
        quiet_until=end,
        why=(Why.CLOSES_FIRST if closes_first else Why.WAKES) if awake else Why.TRUE,
        total=total,
    )


def _is_due(now: datetime, rule: Rule, item: Item, known: _Known) -> bool:
    named = (rule.id, item.subject.key, item.situation)
    told, ack = known.told.get(named), known.acks.get(named)
    if ack is not None:
        end = _bounded(ack, item.subject.deadline)
        if now < end:
            return False
        if told is None or told < end:
            return True  # The acknowledgement has ended, and it is still so.
    return told is None or now >= told + rule.repeat


def _bounded(ack: Ack, deadline: datetime | None) -> datetime:
    """When an acknowledgement ends, whatever was stored: a window may have become shorter."""
    last = min(ack.until, ack.at + ACK_MAX)
    if deadline is None or deadline <= ack.at:
        return last
    return min(last, max(deadline - LEAD, ack.at))


def _reason_to_wake(now: datetime, quiet: Quiet, end: datetime, item: Item) -> Why | None:
    known = (item.of_use_until, item.subject.deadline)
    last = min((one for one in known if one is not None and one > now), default=None)
    if last is None:
        return None
    if quiet.wake_below is not None and last - now < quiet.wake_below:
        return Why.WAKES
    return Why.CLOSES_FIRST if last < end + LEAD else None


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def quiet_end(now: datetime, quiet: Quiet | None) -> datetime | None:
    """When the quiet hours that `now` lies in end, or None outside of them."""
    if quiet is None or quiet.start == quiet.end:
        return None
    zone = _zone(quiet.zone)
    local = now.astimezone(zone)
    at = local.time()
    over_midnight = quiet.start > quiet.end
    if over_midnight:
        if quiet.end <= at < quiet.start:
            return None
    elif not quiet.start <= at < quiet.end:
        return None
    day = local.date() + timedelta(days=1 if over_midnight and at >= quiet.start else 0)
    # In the zone's own time, so that a night with a change of the clocks ends when people rise.
    end = datetime.combine(day, quiet.end, tzinfo=zone).astimezone(now.tzinfo)
    return end if end > now else None


# What a rule is true of


def _true_of(
    now: datetime, rule: Rule, listed: Sequence[Subject]
) -> tuple[list[Item], Money | None]:
    mine = [subject for subject in listed if _concerns(rule, subject)]
    if rule.condition is Condition.EXPOSURE:
        return _exposed(rule, mine)
    return list(_each(now, rule, mine)), None


def _concerns(rule: Rule, subject: Subject) -> bool:
    """Whether the rule's narrowing lets this subject through. A connection is of no tool."""
    if subject.claim_id is None:
        return not (rule.tool or rule.effect_class or rule.amount_from is not None)
    if rule.tool and subject.tool != rule.tool:
        return False
    if rule.effect_class and subject.effect_class != rule.effect_class:
        return False
    return rule.amount_from is None or _is_large(rule, rule.amount_from, subject.money)


def _is_large(rule: Rule, amount_from: Decimal, money: Money | None) -> bool:
    if money is None:
        return True
    return (not rule.currency or money.currency == rule.currency) and money.amount >= amount_from


def _each(now: datetime, rule: Rule, subjects: Iterable[Subject]) -> Iterator[Item]:
    for subject in subjects:
        found = _situation(now, rule, subject)
        if found is not None:
            situation, of_use_until = found
            if of_use_until is None or now < of_use_until:
                yield Item(subject=subject, situation=situation, of_use_until=of_use_until)


def _situation(now: datetime, rule: Rule, subject: Subject) -> tuple[str, datetime | None] | None:
    """What is so about the subject by the rule's condition, and until when it helps to know."""
    match rule.condition:
        case Condition.CLOSING:
            return _closing(now, rule, subject)
        case Condition.UNTAKEN:
            return _untaken(now, rule, subject)
        case Condition.OTHERWISE:
            return (subject.otherwise, None) if subject.otherwise and _is_up(subject) else None
        case Condition.LOOKUPS:
            return (subject.ended, None) if subject.ended and _is_up(subject) else None
        case Condition.SECOND_PERSON:
            return (subject.waits, subject.waits_until) if subject.waits else None
        case Condition.EXPOSURE:
            return None  # A sum over calls, not a fact of one.
        case _ as never:
            assert_never(never)


def _is_up(subject: Subject) -> bool:
    """Not put off, and no decision about it held: somebody has it in mind then."""
    return not subject.resting


def _closing(now: datetime, rule: Rule, subject: Subject) -> tuple[str, datetime] | None:
    deadline = subject.deadline
    if (
        deadline is None
        or not subject.needs
        or not _is_up(subject)
        or deadline - now >= rule.within
    ):
        return None
    return f"closes {deadline.isoformat()}", deadline


def _untaken(now: datetime, rule: Rule, subject: Subject) -> tuple[str, None] | None:
    since = subject.untaken_since
    if since is None or not subject.needs or not _is_up(subject) or now - since < rule.within:
        return None
    return f"untaken {since.isoformat()}", None


def _exposed(rule: Rule, subjects: Sequence[Subject]) -> tuple[list[Item], Money | None]:
    """The calls of the rule's currency, where their sum is above its amount. What somebody put off
    counts in the sum, and is not told."""
    open_ones = [
        (subject, subject.money)
        for subject in subjects
        if subject.needs and subject.money and subject.money.currency == rule.currency
    ]
    total = sum((money.amount for _, money in open_ones), Decimal(0))
    if not open_ones or rule.amount is None or total <= rule.amount:
        return [], None
    situation = f"above {rule.amount.normalize():f} {rule.currency}"
    items = [
        Item(subject=subject, situation=situation, of_use_until=None)
        for subject, _ in open_ones
        if not subject.resting
    ]
    places = max(money.places for _, money in open_ones)
    return items, Money(amount=total, currency=rule.currency, places=places)
