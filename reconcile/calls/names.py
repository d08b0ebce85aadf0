"""Who is meant by the numbers in a call's record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.contrib.auth.models import User

from effects.core.vocabulary import Verdict
from reconcile.history import Names

if TYPE_CHECKING:
    from ledger.models import Decision, Event


def names_of(events: Iterable[Event], decisions: Iterable[Decision]) -> Names:
    """The people whom these events and decisions name, and what the decisions said."""
    ids = {(event.data or {}).get("user_id") for event in events}
    numbers = [pk for pk in ids if isinstance(pk, int)]
    people = User.objects.filter(pk__in=numbers) if numbers else []
    made = list(decisions)
    return Names(
        people={user.pk: user.get_full_name() or user.get_username() for user in people},
        authors={one.pk: author(one) for one in made},
        verdicts={one.pk: Verdict(one.verdict) for one in made},
    )


def author(made: Decision) -> str:
    """Who decided: one person, two, one alone where two were needed, or a rule."""
    if made.decided_by is None:
        return f"rule {made.rule}"
    first = made.decided_by.get_full_name() or made.decided_by.get_username()
    if made.approved_by is not None:
        second = made.approved_by.get_full_name() or made.approved_by.get_username()
        return f"{first}, approved by {second}"
    return f"{first}, alone" if made.alone else first
