"""One call as people judge it: what the ledger, the tool's contract and the provider say.

These are plain values. `reconcile.queries` reads them; `reconcile.actions` and `reconcile.verdict`
decide from them and from nothing else, so what a page shows and what a POST enforces cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Reason, SightingWord
from effects.money import Money

SERVER_WORKING_SECONDS_ASSUMED = 900
"""How long a provider may still work on a request, where its own figure is not published."""

HOLD_SECONDS = 60
"""How long a decision waits before it is in force, so that its author can take it back."""

HOLD_WAIVED_NEAR_DEADLINE_SECONDS = 300
"""With less than this left of the window a decision is in force at once: waiting would waste it."""


HEARTBEATS_PER_LEASE = 3
"""A living worker says so about this often while its lease runs."""


class Strength(StrEnum):
    """How much one provider answer proves; shown as bars and a word."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"
    SAYS_NOTHING = "says_nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One dated provider answer. `number` is its event's number: decisions cite it.

    `fence` is the newest attempt that the answer covers; `rejected` is set once a later decision
    reopened the claim, because from then on a fact must be observed anew to count. `rule` names
    what the judge made of all answers when this one came, and `rests_on` those that it used.
    """

    number: int
    word: SightingWord
    fence: int
    at: datetime
    strength: Strength = Strength.SAYS_NOTHING
    counts: bool = False
    conditional: bool = False
    objects: tuple[str, ...] = ()
    route: str = ""
    why: str = ""
    rejected: bool = False
    rule: str = ""
    rests_on: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another claim for the same thing that is open, or was completed after this one was made."""

    claim_id: UUID
    state: ClaimState


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """One attempt as it is known: `outcome` None means that it never said how it ended. `decided`:
    a decision in force has ended it since. `watched`: a span says how it ended, and nobody else."""

    fence: int
    granted_at: datetime
    outcome: Outcome | None = None
    ended_at: datetime | None = None
    http_status: int | None = None
    decided: bool = False
    watched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A claim at the instant `now`, as the clock leaves it: a lease that is over is unknown.

    `window_until` is None for a tool without a key and where no window is published; `budget` is
    how many attempts may be granted without another release; `evidence` is newest first.
    `effects` are all effects that somebody saw, where there may be more than one: provider objects,
    and completions that named none ("attempt 2"). `held_open`: how many requests it
    holds back that nobody has answered. `amount_unreadable`: the tool says where the
    amount stands, and it is not there.
    """

    now: datetime
    claim_id: UUID
    state: ClaimState
    reason: Reason | None = None
    effect_class: EffectClass
    version: int
    fence: int
    generation: int = 1
    budget: int
    fresh_key: bool = False
    open_truth: bool = True
    decision_pending: bool = False
    attempts: tuple[AttemptSeen, ...]  # newest first
    lease_until: datetime
    lease_seconds: int
    window_until: datetime | None
    margin_seconds: int
    attempt_seconds_max: int
    can_look_up: bool
    provider: str = "the provider"
    object: str | None = None
    evidence: tuple[Evidence, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    effects: tuple[str, ...] = ()
    held_open: int = 0
    money: Money | None = None
    amount_unreadable: bool = False

    @property
    def keyed(self) -> bool:
        return self.effect_class is EffectClass.KEYED_WRITE

    @property
    def safe_retry_until(self) -> datetime | None:
        """The last instant of the window less the margin; None where there is no window."""
        if self.window_until is None:
            return None
        return self.window_until - timedelta(seconds=self.margin_seconds)

    @property
    def sign_of_life_at(self) -> datetime:
        """When the worker was last heard of: its grant, or the heartbeat that set the lease."""
        heard = self.lease_until - timedelta(seconds=self.lease_seconds)
        return max(heard, self.attempts[0].granted_at)

    @property
    def worker_heard_of(self) -> bool:
        """Whether a worker holds the call and gave a sign of life within two heartbeats."""
        if self.state is not ClaimState.IN_FLIGHT:
            return False
        silent_seconds = (self.now - self.sign_of_life_at).total_seconds()
        return silent_seconds < 2 * self.lease_seconds / HEARTBEATS_PER_LEASE

    @property
    def attempt_running(self) -> bool:
        """Whether the newest attempt may still report by its lease, whatever the state says."""
        newest = self.attempts[0]
        return newest.ended_at is None and not newest.decided and self.now < self.lease_until

    @property
    def standing(self) -> tuple[Evidence, ...]:
        """The evidence that no later decision has rejected, newest first."""
        return tuple(item for item in self.evidence if not item.rejected)

    @property
    def found(self) -> tuple[Evidence, ...]:
        """Answers that show an effect of this call."""
        words = (SightingWord.FOUND, SightingWord.FOUND_MANY)
        return tuple(item for item in self.standing if item.word in words)

    @property
    def strong_absence(self) -> tuple[Evidence, ...]:
        """Answers that prove that nothing happened, for every attempt there has been.

        An absence that covers only older attempts says nothing about the newest one, and an answer
        that shows an effect outweighs every absence.
        """
        if self.found:
            return ()
        return tuple(
            item
            for item in self.standing
            if item.word is SightingWord.ABSENT
            and item.strength is Strength.STRONG
            and item.fence >= self.fence
        )

    @property
    def settling_absence(self) -> tuple[Evidence, ...]:
        """Absences by which the ledger itself holds that nothing happened, for good or for as long
        as the key is honoured."""
        return tuple(
            item
            for item in self.standing
            if item.word is SightingWord.ABSENT and item.counts and item.fence >= self.fence
        )

    @property
    def server_error_seen(self) -> bool:
        """An attempt was answered with a 5xx: the provider may have stored it under the key."""
        return any(
            attempt.http_status is not None and attempt.http_status >= 500
            for attempt in self.attempts
        )

    @property
    def hold_seconds(self) -> int:
        """How long a decision of now is held: 60 s, or 0 with the deadline nearer than 5 minutes.

        A deadline that has passed is none: then nothing is lost by waiting.
        """
        until = self.safe_retry_until
        if until is None or until <= self.now:
            return HOLD_SECONDS
        left_seconds = (until - self.now).total_seconds()
        return 0 if left_seconds < HOLD_WAIVED_NEAR_DEADLINE_SECONDS else HOLD_SECONDS


def instant_words(instant: datetime, now: datetime) -> str:
    """An instant for a sentence: the time alone on the same day, else with its day; in UTC."""
    shape = "%H:%M:%S" if abs((instant - now).total_seconds()) < 120 else "%H:%M"
    if instant.date() != now.date():
        shape = f"%d %b {shape}"
    return f"{instant:{shape}} UTC"
