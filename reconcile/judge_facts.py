"""What the judge is given: a claim as far as a look-up concerns it, and dated answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from effects.core.vocabulary import ClaimState, EffectClass, SightingWord
from reconcile.adapters.base import Look
from reconcile.situation import Strength

FOUND: Final = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})
SILENT: Final = frozenset(
    {
        SightingWord.LOOKUP_FAILED,
        SightingWord.MISCONFIGURED,
        SightingWord.RATE_LIMITED,
        SightingWord.UNMAPPED,
    }
)
"""Answers that say nothing in either direction, so none of them hides another that does."""
NOTHING_READ: Final = SILENT - {SightingWord.UNMAPPED}
"""Answers in which nobody read anything; an unmapped one may still name an object."""


class Meaning(StrEnum):
    """What all that is known amounts to. The last two are no news of the call: they say that its
    look-up is set up wrongly, or that the provider used a word that nobody mapped."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    DUPLICATED = "duplicated"
    DIFFERS = "differs"
    PARTLY = "partly"
    NOT_YET = "not_yet"
    UNCLEAR = "unclear"
    MISCONFIGURED = "misconfigured"
    UNMAPPED = "unmapped"


VERDICTS: Final = frozenset({Meaning.HAPPENED, Meaning.DID_NOT_HAPPEN, Meaning.DUPLICATED})
"""What may settle a call by rule."""


class Rule(StrEnum):
    """Why a judgement is what it is. The names are recorded beside each sighting and stay."""

    TWO_EFFECTS = "two_effects"
    TWO_EFFECTS_DOUBTED = "two_effects_doubted"
    NO_LONGER_SO = "no_longer_so"
    FOUND = "found"
    FOUND_DOUBTED = "found_doubted"
    RECORDED = "recorded"
    STATUS_UNMAPPED = "status_unmapped"
    PARTLY_DONE = "partly_done"
    NOT_FINISHED = "not_finished"
    FOUND_DIFFERENT = "found_different"
    STRONG_ABSENCE = "strong_absence"
    ABSENCE_WHILE_KEY_HOLDS = "absence_while_key_holds"
    ABSENCE_TOO_EARLY = "absence_too_early"
    WEAK_ABSENCE = "weak_absence"
    LOOKUP_MISCONFIGURED = "lookup_misconfigured"
    ANSWER_UNMAPPED = "answer_unmapped"
    NO_ANSWER = "no_answer"
    NOBODY_ASKED = "nobody_asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """One attempt whose truth is open.

    `ended_at`: when it reported its own end; None if it never did. `lease_over_at`: when its lease
    ended or will end. `marker_sent` None: nobody said. `server_error`: it was answered with a 5xx.
    """

    fence: int
    generation: int
    lease_over_at: datetime
    ended_at: datetime | None = None
    marker_sent: bool | None = None
    server_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """A claim as far as a look-up concerns it.

    `open_attempts` are those that are not proven no and did not complete. `effects` are the
    provider objects that the record already knows; `unnamed_effects`: somebody reported an effect
    and named no object. `window_until` belongs to `generation`, the
    newest key; None where the provider publishes no window. `every_request_marked` is the tool's
    contract saying that no request leaves without our marker.
    """

    effect_class: EffectClass
    state: ClaimState
    generation: int
    open_attempts: tuple[AttemptFacts, ...]
    window_until: datetime | None
    margin: timedelta
    server_working: timedelta
    effects: frozenset[str] = frozenset()
    unnamed_effects: bool = False
    every_request_marked: bool = False

    @property
    def absence_strong_from(self) -> datetime | None:
        """From when on an absence can be strong: no provider still works on the last send."""
        ends = [attempt.ended_at or attempt.lease_over_at for attempt in self.open_attempts]
        return max(ends) + self.server_working if ends else None

    @property
    def same_key_until(self) -> datetime | None:
        """The last instant at which a retry is sure to meet the same key at the provider."""
        return self.window_until - self.margin if self.window_until else None

    @property
    def newest_open(self) -> int:
        """The newest attempt whose truth is open; 0 where none is."""
        return max((attempt.fence for attempt in self.open_attempts), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One dated answer, with the weight that it was given when it came.

    `number` is its event's, 0 for the answer that has just come and is not recorded yet. `look` is
    the answer itself: route, delay class, interval, account and mode, completeness and time.
    `fence` is the newest attempt that it covers. `heard`: somebody sent it on their own, so it is
    no read of ours. `rejected`: a later decision reopened the call, so it counts no more.
    """

    number: int
    look: Look
    fence: int = 0
    strength: Strength = Strength.SAYS_NOTHING
    counts: bool = False
    conditional: bool = False
    too_early: bool = False
    heard: bool = False
    rejected: bool = False

    @property
    def word(self) -> SightingWord:
        return self.look.word

    @property
    def at(self) -> datetime:
        return self.look.asked_at

    @property
    def objects(self) -> frozenset[str]:
        """The objects that it shows as this call's own, whatever it says of them."""
        elsewhere = not self.look.right_place or self.word in NOTHING_READ
        return frozenset() if elsewhere else frozenset(self.look.objects)

    @property
    def accounted(self) -> frozenset[str]:
        """Every object that it says something about, also those that it calls no effect. Who found
        something and does not say what has said nothing about anything."""
        elsewhere = not self.look.right_place or self.word in NOTHING_READ
        nameless = self.word in FOUND and not self.look.objects
        return frozenset() if elsewhere or nameless else self.objects | frozenset(self.look.others)

    @property
    def order(self) -> tuple[datetime, bool, int]:
        """By the time of the answer; of two at one instant the one recorded later is the later."""
        return self.at, self.number == 0, self.number


def readings(sightings: tuple[Sighting, ...]) -> dict[str, Sighting]:
    """For each object the answer that says last what it is. A read of ours outweighs whatever
    somebody sent: an event shows its object as it was when the event was made."""
    last: dict[str, Sighting] = {}
    for sighting in sorted(sightings, key=lambda one: (not one.heard, one.order)):
        last |= dict.fromkeys(sighting.accounted, sighting)
    return last
