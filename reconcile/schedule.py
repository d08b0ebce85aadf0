"""When a provider is asked again. Pure.

Soon at first, because most answers that were lost come at once; then ever more slowly; and always
twice before the safe-retry window closes, while there is still a choice. When asking ends, nothing
is concluded from it: the claim stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from effects.core.vocabulary import ClaimState, SightingWord
from effects.times import CHECKS_BEFORE_DEADLINE
from reconcile.judge import AFTER_THE_INSTANT

FIRST_SECONDS: Final = 5.0
"""After the first look-up; doubled after each one that follows."""
SLOW_SECONDS: Final = 15 * 60.0
"""Where doubling ends."""
AGE_SHARE: Final = 5
"""Once that is less than a fifth of the claim's age, a fifth of its age: a provider that said
nothing new for a day is not asked every quarter of an hour. Fifty look-ups last for a month."""
SETTLED_SECONDS: Final = 60 * 60.0
"""Least pause for a claim that is settled while an attempt's own outcome is still open."""
MISCONFIGURED_SECONDS: Final = 15 * 60.0
"""Least pause after a look-up that could not be made as registered: that mends only by people, and
then nobody should have to press a button for every claim."""
LIMITED_SECONDS: Final = 30.0
"""Least pause after the provider asked for fewer questions and did not say for how long."""
WEBHOOKS_FIRST: Final = 3.0
"""Pauses are so many times longer while webhooks of the account arrive. The look-ups before a
window closes, and at which an absence begins to count, are made all the same."""

SETTLED: Final = frozenset(
    {
        ClaimState.COMPLETED,
        ClaimState.NOT_EXECUTED,
        ClaimState.CONFLICTED,
        ClaimState.CLOSED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the next look-up depends on, after the one that has just been made.

    `tries` counts it, `lookups_max` is the tool's budget. `look_again_at` is the judge's wish,
    `strong_from` the instant from which an absence proves something. `begun_at` is the first grant,
    or when a person had asking begin anew; no look-up is planned beyond `begun_at + horizon`.
    `heard_lately`: webhooks of this account arrive, so the provider tells most things by itself.
    """

    now: datetime
    tries: int
    word: SightingWord
    state: ClaimState
    begun_at: datetime
    horizon: timedelta
    lookups_max: int
    window_until: datetime | None = None
    strong_from: datetime | None = None
    look_again_at: datetime | None = None
    retry_after_seconds: int | None = None
    heard_lately: bool = False


def next_look(plan: Plan) -> datetime | None:
    """The next look-up, or None when nothing more is to be asked."""
    ends = plan.begun_at + plan.horizon
    return min((at for at in _instants(plan) if plan.now < at <= ends), default=None)


def before_the_window_closes(at: datetime, now: datetime, until: datetime | None) -> datetime:
    """`at`, or the next look-up that is always made before the window closes, if that is earlier:
    what is put off for the provider's sake is not put off beyond it."""
    checks = [until - before for before in CHECKS_BEFORE_DEADLINE] if until is not None else []
    return min([at, *(check for check in checks if check > now)])


def _instants(plan: Plan) -> Iterator[datetime]:
    yield from _anchors(plan)
    if plan.tries < plan.lookups_max:
        yield plan.now + timedelta(seconds=_pause_seconds(plan))
        if plan.look_again_at is not None:
            # The look-up itself may have taken longer than the pause that the judge wished for.
            yield max(plan.look_again_at, plan.now + AFTER_THE_INSTANT)


def _anchors(plan: Plan) -> Iterator[datetime]:
    """Instants that are asked at whatever the budget says: there are three of them at most."""
    if plan.state in SETTLED:
        return
    if plan.window_until is not None:
        for before in CHECKS_BEFORE_DEADLINE:
            yield plan.window_until - before
    if plan.strong_from is not None:
        yield plan.strong_from + AFTER_THE_INSTANT


def _pause_seconds(plan: Plan) -> float:
    age_seconds = (plan.now - plan.begun_at).total_seconds()
    doubled = FIRST_SECONDS * 2.0 ** min(max(plan.tries - 1, 0), 20)
    seconds = min(doubled, max(SLOW_SECONDS, age_seconds / AGE_SHARE))
    if plan.heard_lately:
        seconds *= WEBHOOKS_FIRST
    if plan.state in SETTLED:
        seconds = max(seconds, SETTLED_SECONDS, age_seconds / AGE_SHARE)
    if plan.word is SightingWord.MISCONFIGURED:
        seconds = max(seconds, MISCONFIGURED_SECONDS)
    if plan.word is SightingWord.RATE_LIMITED:
        seconds = max(seconds, plan.retry_after_seconds or LIMITED_SECONDS)
    return seconds
