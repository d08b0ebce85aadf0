"""What one answer proves, by how it was come by. Pure and total.

Only an effect that matches, and an absence that is strong, may settle a claim by rule. A weight
says how far one answer goes; what all of them amount to is `reconcile.judge`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, assert_never

from effects.core.vocabulary import ClaimState, EffectClass, SightingWord
from reconcile.adapters.base import Delay, Look, MatchedBy
from reconcile.judge_facts import (
    SILENT,
    AttemptFacts,
    ClaimFacts,
    Sighting,
    readings,
)
from reconcile.situation import Strength

CONFIRM_WITHIN: Final = timedelta(minutes=15)
"""A second read confirms a first one that is at most this old."""
CONFIRM_AFTER: Final = timedelta(seconds=2)
"""How soon an answer that contradicts what was told is asked for again."""
AFTER_THE_INSTANT: Final = timedelta(seconds=1)
"""How long after an absence becomes strong the look-up is planned."""
INSTANT: Final = "%Y-%m-%d %H:%M:%S UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """`counts`: it may settle the claim by rule; `conditional`: only while the provider honours the
    key; `too_early`: it would count, if the provider could not still be at work. `look_again_at`:
    an instant at which asking again may say more. `contradicts`: it speaks against what was told,
    and waits for a second read."""

    strength: Strength
    why: str
    counts: bool = False
    conditional: bool = False
    too_early: bool = False
    contradicts: bool = False
    look_again_at: datetime | None = None


def weigh(facts: ClaimFacts, look: Look, earlier: Sequence[Sighting] = ()) -> Weight:
    """How far `look` goes, after the answers before it."""
    match look.word:
        case SightingWord.FOUND | SightingWord.FOUND_MANY:
            return _seen(facts, look, earlier)
        case SightingWord.ABSENT:
            return _absent(facts, look, earlier)
        case SightingWord.FOUND_DIFFERENT:
            return _different(facts, look, earlier)
        case SightingWord.PENDING:
            return Weight(strength=Strength.FAIR, why=look.why)
        case (
            SightingWord.LOOKUP_FAILED
            | SightingWord.MISCONFIGURED
            | SightingWord.RATE_LIMITED
            | SightingWord.UNMAPPED
        ):
            return _says_nothing(look.why)
    assert_never(look.word)


# An effect was seen


def _seen(facts: ClaimFacts, look: Look, earlier: Sequence[Sighting]) -> Weight:
    if not look.objects or not look.right_place:
        return _says_nothing(f"{look.why} It does not say which object, or not whose.")
    if not _contradicts(facts, look) or _confirmed(look, earlier):
        return Weight(strength=Strength.STRONG, why=look.why, counts=True)
    return _read_again(look)


def _different(facts: ClaimFacts, look: Look, earlier: Sequence[Sighting]) -> Weight:
    """An object that is not, or no longer, the effect that was asked for. It settles nothing, but
    it may undo what was told: a payout that was paid can fail days later."""
    if not look.right_place or not undone(facts, look):
        return Weight(strength=Strength.FAIR, why=look.why)
    if not _confirmed(look, earlier):
        return _read_again(look)
    return Weight(strength=Strength.STRONG, why=look.why, counts=True)


def undone(facts: ClaimFacts, look: Look) -> frozenset[str]:
    """The effects of the record that this answer shows as ended: same fields, another status. An
    effect with another amount is a difference, which no rule settles."""
    if look.word is not SightingWord.FOUND_DIFFERENT or look.found != look.requested:
        return frozenset()
    return facts.effects & frozenset(look.objects)


def _read_again(look: Look) -> Weight:
    # What was told may already have been acted on: one answer alone does not turn it round.
    return Weight(
        contradicts=True,
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


def _confirmed(look: Look, earlier: Sequence[Sighting]) -> bool:
    """Whether the newest answer before this one that says anything at all says the same."""
    telling = [one for one in earlier if one.word not in SILENT and not one.rejected]
    if not telling:
        return False
    last = max(telling, key=lambda one: one.order)
    same = last.word is look.word and set(last.look.objects) == set(look.objects)
    return same and timedelta(0) < look.asked_at - last.at <= CONFIRM_WITHIN


# Nothing was seen


def _absent(facts: ClaimFacts, look: Look, earlier: Sequence[Sighting]) -> Weight:
    fault = (
        _fault_of_the_route(facts, look)
        or _fault_of_the_marker(facts, look)
        or _fault_of_the_attempts(facts, look)
        or _fault_of_the_rest(look, earlier)
    )
    if fault is not None:
        return _weak_absence(look, fault)
    strong_from = facts.absence_strong_from
    assert strong_from is not None, "without an open attempt there is a fault"
    if look.asked_at < strong_from:
        return Weight(
            too_early=True,
            strength=Strength.WEAK,
            why=f"{look.why} Too early: the provider may still be at work until "
            f"{strong_from:{INSTANT}}.",
            look_again_at=strong_from + AFTER_THE_INSTANT,
        )
    if _contradicts(facts, look) and not _confirmed(look, earlier):
        return _read_again(look)
    if any(attempt.ended_at is None for attempt in facts.open_attempts):
        return Weight(
            strength=Strength.FAIR,
            why=f"{look.why} A worker that fell silent could still send, but only with the same "
            f"key, which the provider honours until {facts.same_key_until:{INSTANT}}.",
            counts=True,
            conditional=True,
        )
    return Weight(strength=Strength.STRONG, why=look.why, counts=True)


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


def _fault_of_the_rest(look: Look, earlier: Sequence[Sighting]) -> str | None:
    """Why it does not agree with what was seen before: an object of this call was there, and this
    answer does not say what became of it."""
    standing = tuple(one for one in earlier if not one.rejected)
    this = Sighting(number=0, look=look)
    left = sorted(o for o, last in readings((*standing, this)).items() if last is not this)
    if not left:
        return None
    return f"It does not say what became of {', '.join(left[:3])}, which was seen before."


def _weak_absence(look: Look, fault: str) -> Weight:
    return Weight(strength=Strength.WEAK, why=f"{look.why} {fault}")


def _says_nothing(why: str) -> Weight:
    return Weight(strength=Strength.SAYS_NOTHING, why=why)
