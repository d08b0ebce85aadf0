"""What a provider's answer means for one claim. Pure and total: every answer gets a judgement.

Only an effect that matches, and an absence that is strong, may settle a claim by rule. Everything
else waits for more, or for a person. Giving up is never an answer: it leaves `unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from effects.core.vocabulary import ClaimState, EffectClass, SightingWord
from reconcile.adapters.base import Delay, Look, MatchedBy
from reconcile.situation import Strength

CONFIRM_WITHIN: Final = timedelta(minutes=15)
"""A second read confirms a first one that is at most this old."""
CONFIRM_AFTER: Final = timedelta(seconds=2)
"""How soon an answer that contradicts what was told is asked for again."""
AFTER_THE_INSTANT: Final = timedelta(seconds=1)
"""How long after an absence becomes strong the look-up is planned."""


INSTANT: Final = "%Y-%m-%d %H:%M:%S UTC"


class Meaning(StrEnum):
    """What all that is known amounts to, as far as this answer goes."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    DUPLICATED = "duplicated"
    DIFFERS = "differs"
    PARTLY = "partly"
    NOT_YET = "not_yet"
    UNCLEAR = "unclear"


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
class Earlier:
    """An answer to an earlier look-up of the same claim."""

    word: SightingWord
    asked_at: datetime
    objects: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one answer means. `counts`: it may settle the claim by rule; `conditional`: only while
    the provider honours the key. `look_again_at`: an instant at which asking again may say more."""

    meaning: Meaning
    strength: Strength
    why: str
    counts: bool = False
    conditional: bool = False
    look_again_at: datetime | None = None


def judge(facts: ClaimFacts, look: Look, earlier: tuple[Earlier, ...] = ()) -> Judgement:
    """What `look` means. `earlier` holds the look-ups before it, newest first."""
    match look.word:
        case SightingWord.FOUND | SightingWord.FOUND_MANY:
            return _seen(facts, look, earlier)
        case SightingWord.ABSENT:
            return _absent(facts, look, earlier)
        case SightingWord.FOUND_DIFFERENT:
            return Judgement(meaning=Meaning.DIFFERS, strength=Strength.FAIR, why=look.why)
        case SightingWord.PENDING:
            meaning = Meaning.PARTLY if look.partly else Meaning.NOT_YET
            return Judgement(meaning=meaning, strength=Strength.FAIR, why=look.why)
        case (
            SightingWord.LOOKUP_FAILED
            | SightingWord.MISCONFIGURED
            | SightingWord.RATE_LIMITED
            | SightingWord.UNMAPPED
        ):
            return _says_nothing(look.why)
    assert_never(look.word)


# An effect was seen


def _seen(facts: ClaimFacts, look: Look, earlier: tuple[Earlier, ...]) -> Judgement:
    if not look.objects or not look.right_place:
        return _says_nothing(f"{look.why} It does not say which object, or not whose.")
    many = len(set(look.objects)) > 1
    meaning = Meaning.DUPLICATED if many else Meaning.HAPPENED
    if not _contradicts(facts, look) or _confirmed(look, earlier):
        return Judgement(meaning=meaning, strength=Strength.STRONG, why=look.why, counts=True)
    return _read_again(look, meaning)


def _read_again(look: Look, meaning: Meaning) -> Judgement:
    # What was told may already have been acted on: one answer alone does not turn it round.
    return Judgement(
        meaning=meaning,
        strength=Strength.FAIR,
        why=f"{look.why} It contradicts what was told before, so it is read a second time.",
        look_again_at=look.asked_at + CONFIRM_AFTER,
    )


def _contradicts(facts: ClaimFacts, look: Look) -> bool:
    """Whether the answer speaks against what the agent was told."""
    absent = look.word is SightingWord.ABSENT
    match facts.state:
        case ClaimState.COMPLETED:
            return absent or bool(facts.effects and set(look.objects) - facts.effects)
        case ClaimState.NOT_EXECUTED | ClaimState.CLOSED:
            return not absent
        case (
            ClaimState.IN_FLIGHT | ClaimState.UNKNOWN | ClaimState.RELEASED | ClaimState.CONFLICTED
        ):
            return False
    assert_never(facts.state)


def _confirmed(look: Look, earlier: tuple[Earlier, ...]) -> bool:
    if not earlier:
        return False
    last = earlier[0]
    same = last.word is look.word and set(last.objects) == set(look.objects)
    return same and timedelta(0) < look.asked_at - last.asked_at <= CONFIRM_WITHIN


# Nothing was seen


def _absent(facts: ClaimFacts, look: Look, earlier: tuple[Earlier, ...]) -> Judgement:
    fault = (
        _fault_of_the_route(facts, look)
        or _fault_of_the_marker(facts, look)
        or _fault_of_the_attempts(facts, look)
    )
    if fault is not None:
        return _weak_absence(look, fault)
    strong_from = facts.absence_strong_from
    assert strong_from is not None, "without an open attempt there is a fault"
    if look.asked_at < strong_from:
        return Judgement(
            meaning=Meaning.NOT_YET,
            strength=Strength.WEAK,
            why=f"{look.why} Too early: the provider may still be at work until "
            f"{strong_from:{INSTANT}}.",
            look_again_at=strong_from + AFTER_THE_INSTANT,
        )
    if _contradicts(facts, look) and not _confirmed(look, earlier):
        return _read_again(look, Meaning.DID_NOT_HAPPEN)
    if any(attempt.ended_at is None for attempt in facts.open_attempts):
        return Judgement(
            meaning=Meaning.DID_NOT_HAPPEN,
            strength=Strength.FAIR,
            why=f"{look.why} A worker that fell silent could still send, but only with the same "
            f"key, which the provider honours until {facts.same_key_until:{INSTANT}}.",
            counts=True,
            conditional=True,
        )
    return Judgement(
        meaning=Meaning.DID_NOT_HAPPEN, strength=Strength.STRONG, why=look.why, counts=True
    )


def _fault_of_the_route(facts: ClaimFacts, look: Look) -> str | None:
    """Why not seeing it there would not mean that it is not there."""
    knows_an_effect = bool(facts.effects) or facts.unnamed_effects
    faults = (
        (
            look.delay_class is not Delay.NONE,
            "This route may show an effect late, so not seeing one proves nothing yet.",
        ),
        (
            not look.pages_complete,
            "Not all pages were read, so it may be on one of the others.",
        ),
        (
            not look.right_place,
            "It is not certain that the right account and mode were asked.",
        ),
        (
            knows_an_effect,
            "It does not show the effect that the record already knows, so it proves nothing.",
        ),
    )
    return next((sentence for at_fault, sentence in faults if at_fault), None)


def _fault_of_the_marker(facts: ClaimFacts, look: Look) -> str | None:
    """Why the effect could be there and not be recognised."""
    if look.matched_by is MatchedBy.REFERENCE:
        return None
    for attempt in facts.open_attempts:
        # A worker that died told nobody what it built. The contract may say it for every request.
        nobody_said = attempt.marker_sent is None and attempt.ended_at is None
        if not (attempt.marker_sent or (nobody_said and facts.every_request_marked)):
            return (
                f"Attempt {attempt.fence} is not known to have carried our marker, so its effect "
                "could be there unrecognised."
            )
    return None


def _fault_of_the_attempts(facts: ClaimFacts, look: Look) -> str | None:
    """Why an effect could still come although none is there."""
    if not facts.open_attempts:
        return "No attempt's outcome is open, so there is nothing that it could settle."
    for attempt in facts.open_attempts:
        if attempt.server_error:
            return (
                f"Attempt {attempt.fence} was answered with a server error, after which the "
                "provider may still complete it at any time."
            )
        if attempt.ended_at is None and (fault := _fault_of_the_silent(facts, attempt, look)):
            return (
                f"Attempt {attempt.fence} never said that it ended: its worker may still send. "
                f"{fault}"
            )
    return None


def _fault_of_the_silent(facts: ClaimFacts, attempt: AttemptFacts, look: Look) -> str | None:
    """Why a worker that fell silent makes the absence worthless; None if the key protects."""
    if facts.effect_class is not EffectClass.KEYED_WRITE:
        return "This tool has no key that would make a second send harmless."
    if attempt.generation != facts.generation:
        return "It holds an older key than the next attempt would use."
    until = facts.same_key_until
    if until is None:
        return "How long the provider honours the key is not published."
    # The absence is conditional from the moment at which it could first count.
    strong_from = facts.absence_strong_from
    assert strong_from is not None
    if max(look.asked_at, strong_from) >= until:
        return "The provider no longer promises to know the key by then."
    return None


def _weak_absence(look: Look, fault: str) -> Judgement:
    return Judgement(meaning=Meaning.UNCLEAR, strength=Strength.WEAK, why=f"{look.why} {fault}")


def _says_nothing(why: str) -> Judgement:
    return Judgement(meaning=Meaning.UNCLEAR, strength=Strength.SAYS_NOTHING, why=why)
