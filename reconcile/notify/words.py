"""Rules, channels and how they stand, in the words of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User

from effects.money import from_major
from effects.templatetags.desk import CLASS_PARTS
from effects.times import write_duration
from reconcile.models import NotificationChannel, NotificationRule
from reconcile.notify.facts import State

_Condition = NotificationRule.Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleShown:
    """A rule in one line of the list. `state` None: it is paused."""

    kept: NotificationRule
    words: str
    quiet: str
    channels: tuple[NotificationChannel, ...]
    state: State | None


def condition_words(rule: NotificationRule) -> str:
    """When a rule speaks: "The window closes in less than 2 h; only charge_card"."""
    return "; ".join([_condition(rule), *_narrowing(rule)])


def quiet_words(rule: NotificationRule) -> str:
    """Its quiet hours with their zone, or nothing."""
    if rule.quiet_from is None or rule.quiet_until is None:
        return ""
    hours = f"{rule.quiet_from:%H:%M} to {rule.quiet_until:%H:%M} {rule.zone}"
    if rule.wake_seconds is None:
        return hours
    return f"{hours}; wakes below {write_duration(rule.wake_seconds)}"


def reaches(channel: NotificationChannel, people: Mapping[int, User]) -> list[str]:
    """Whom or where a channel reaches, nothing secret: names, a mailbox, or the receiver's host."""
    if channel.kind != NotificationChannel.Kind.EMAIL:
        return [channel.origin]
    named = [
        people[one].get_username() if one in people else "somebody who is no member any more"
        for one in channel.people
    ]
    return [*named, *([channel.address] if channel.address else [])]


def quiet_now(state: State | None) -> datetime | None:
    """Until when a rule holds back what it would tell, if it does."""
    return state.quiet_until if state and state.held else None


def _condition(rule: NotificationRule) -> str:
    within = write_duration(rule.within_seconds or 0)
    match rule.condition:
        case _Condition.CLOSING:
            return f"The window closes in less than {within}"
        case _Condition.UNTAKEN:
            return f"Nobody has the call for longer than {within}"
        case _Condition.EXPOSURE:
            return f"Exposure is above {_money(rule.amount, rule.currency)}"
        case _:
            return _Condition(rule.condition).label


def _narrowing(rule: NotificationRule) -> list[str]:
    said = []
    if rule.tool is not None:
        said.append(f"only {rule.tool.name}")
    if rule.effect_class:
        said.append(f"only {CLASS_PARTS[rule.effect_class][0]}s")
    if rule.amount_from is not None:
        said.append(f"only from {_money(rule.amount_from, rule.currency)} on")
    return said


def _money(amount: Decimal | None, currency: str) -> str:
    if amount is None:
        return ""
    return str(from_major(amount, currency)).strip()
