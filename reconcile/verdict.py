"""What is known about a call, in sentences that a person can repeat.

`verdict` is pure. It says what happened, what that rests on and how strong it is, and what a
customer may be told. Nothing here is guessed: where nobody knows, the sentence says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from effects.core.vocabulary import ClaimState, Outcome, Reason, SightingWord
from effects.times import duration_words
from reconcile.actions import instant_words
from reconcile.customer.kinds import Tell
from reconcile.situation import Evidence, Situation, Strength


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictBox:
    """`says` is one or two plain sentences; `rests_on` names the evidence behind them; `strength`
    is None where no provider was asked; `kind` says which text a customer may be told."""

    says: str
    rests_on: str
    strength: Strength | None
    kind: Tell
    cites: tuple[int, ...] = ()


def verdict(situation: Situation) -> VerdictBox:  # noqa: PLR0911 - one line a state
    """What the call page says first about the situation."""
    match situation.state:
        case ClaimState.IN_FLIGHT:
            return _in_flight(situation)
        case ClaimState.UNKNOWN:
            return _unknown(situation)
        case ClaimState.COMPLETED:
            return _completed(situation)
        case ClaimState.NOT_EXECUTED:
            return _not_executed(situation)
        case ClaimState.RELEASED:
            return _released(situation)
        case ClaimState.CONFLICTED:
            return _conflicted(situation)
        case ClaimState.CLOSED:
            return _closed(situation)
        case _:
            assert_never(situation.state)


# One function per state


def _in_flight(situation: Situation) -> VerdictBox:
    newest = situation.attempts[0]
    held = duration_words((situation.now - newest.granted_at).total_seconds())
    return VerdictBox(
        says=f"A worker has held this call for {held} and has not said yet how it ended. Its lease "
        f"ends at {instant_words(situation.lease_until, situation.now)}.",
        rests_on="the ledger: attempt granted, no report",
        strength=None,
        kind=Tell.IN_FLIGHT,
    )


def _unknown(situation: Situation) -> VerdictBox:
    what, items = _unknown_words(situation)
    return VerdictBox(
        says=f"{_how_it_ended(situation)} {what}",
        rests_on=_rests(items),
        strength=items[0].strength if items else None,
        kind=Tell.UNKNOWN,
        cites=_cites(items),
    )


def _completed(situation: Situation) -> VerdictBox:
    named = f" as {situation.object}" if situation.object else ""
    found = situation.found
    told = [a for a in situation.attempts if a.outcome is Outcome.COMPLETED]
    kind = Tell.COMPLETED
    if otherwise := _shown_otherwise(situation):
        return VerdictBox(
            says=f"It happened{named}, and {situation.provider} shows it otherwise since. "
            f"{otherwise.why}",
            rests_on=_rests((otherwise,)),
            strength=otherwise.strength,
            kind=Tell.CONTRADICTION,
            cites=_cites((otherwise,)),
        )
    if found:
        says = f"It happened{named}: {situation.provider} shows it."
        rests, strength = _rests(found), found[0].strength
    elif told and all(attempt.watched for attempt in told):
        says = (
            "It seems to have happened: the tool's code returned, as a span of it says. "
            f"{situation.provider} was not asked."
        )
        rests, strength, kind = "a span of the tool", Strength.WEAK, Tell.WATCHED
    elif told:
        says = f"It happened{named}: the worker reported the result."
        rests, strength = "the worker's own report", Strength.STRONG
    else:
        says = f"A person decided that it happened{named}."
        rests, strength = "the decision below", None
    if situation.reason is Reason.TOLD_OTHERWISE:
        says += " The agent had been told otherwise before; it must be told again."
    return VerdictBox(
        says=says,
        rests_on=rests,
        strength=strength,
        kind=kind,
        cites=_cites(found),
    )


def _shown_otherwise(situation: Situation) -> Evidence | None:
    """The newest answer about the effect that is known, where it says something else of it."""
    for item in situation.standing:
        if item.word is SightingWord.FOUND_DIFFERENT and situation.object in item.objects:
            return item
        if item.word in {SightingWord.FOUND, SightingWord.FOUND_MANY}:
            break
    return None


def _not_executed(situation: Situation) -> VerdictBox:
    absences = situation.settling_absence
    proven = [attempt.outcome for attempt in situation.attempts]
    if absences:
        says = f"It did not happen: {situation.provider} has no record of it{_route(absences[0])}."
        rests, strength = _rests(absences), absences[0].strength
    elif proven and all(outcome is Outcome.NOT_SENT for outcome in proven):
        says = "It did not happen: the request never left the worker."
        rests, strength = "the worker's own report", Strength.STRONG
    elif proven and all(outcome in _REFUSED for outcome in proven):
        says = f"It did not happen: {situation.provider} refused the request."
        rests, strength = "the provider's answer to the worker", Strength.STRONG
    else:
        says = "It did not happen: every attempt is proven not sent, refused or absent."
        rests, strength = "the attempts and the decisions below", None
    kind = Tell.NOT_EXECUTED
    if absences and all(absence.conditional for absence in absences):
        says += " This holds only while the key is honoured: a worker may still send."
        kind = Tell.NOT_EXECUTED_FOR_NOW
    if situation.fence >= situation.budget:
        says += " All attempts are used up; only a release lets the agent try again."
    return VerdictBox(
        says=says, rests_on=rests, strength=strength, kind=kind, cites=_cites(absences)
    )


def _released(situation: Situation) -> VerdictBox:
    key = "with a new key" if situation.fresh_key else "with the same key"
    return VerdictBox(
        says=f"A person allowed one more attempt {key}. No worker has taken it up yet. What became "
        "of the earlier attempt is still unknown.",
        rests_on="the decision below",
        strength=None,
        kind=Tell.RELEASED_NEW_KEY if situation.fresh_key else Tell.RELEASED,
    )


def _conflicted(situation: Situation) -> VerdictBox:
    found = situation.found
    objects = {name for item in found for name in item.objects}
    effects = objects | ({situation.object} if situation.object else set())
    completions = sum(attempt.outcome is Outcome.COMPLETED for attempt in situation.attempts)
    if len(effects) > 1 or completions > 1:
        named = f": {', '.join(sorted(effects))}" if effects else ""
        return VerdictBox(
            says=f"More than one effect is recorded for one intent{named}. It may have happened "
            "twice; a person has to say which one stands.",
            rests_on=_rests(found) if found else "the workers' own reports",
            strength=found[0].strength if found else Strength.STRONG,
            kind=Tell.DUPLICATE,
            cites=_cites(found),
        )
    if ended := _shown_otherwise(situation):
        # Late truth: a payout that was paid can fail days later.
        return VerdictBox(
            says=f"It happened as {situation.object}, and {situation.provider} says since that it "
            f"did not last. {ended.why}",
            rests_on=_rests((ended,)),
            strength=ended.strength,
            kind=Tell.UNDONE,
            cites=_cites((ended,)),
        )
    items = situation.standing
    return VerdictBox(
        says="What was decided and what the evidence shows contradict each other. Nothing is sent "
        "until a person has settled it.",
        rests_on=_rests(items),
        strength=items[0].strength if items else None,
        kind=Tell.CONTRADICTION,
        cites=_cites(items),
    )


def _closed(situation: Situation) -> VerdictBox:
    items = situation.standing
    return VerdictBox(
        says="A person stopped this call while its outcome was unknown. It is not retried, and it "
        "counts as exposure.",
        rests_on=_rests(items) if items else "the decision below",
        strength=items[0].strength if items else None,
        kind=Tell.CLOSED,
        cites=_cites(items),
    )


# Words for an unknown outcome


_REFUSED = (Outcome.REFUSED, Outcome.REFUSED_STORED)


def _how_it_ended(situation: Situation) -> str:
    newest = situation.attempts[0]
    count = len(situation.attempts)
    which = "The request" if count == 1 else f"Attempt {newest.fence}"
    match newest.outcome:
        case Outcome.UNKNOWN if newest.http_status is not None:
            return f"{which} was answered with HTTP {newest.http_status}, which proves nothing."
        case Outcome.UNKNOWN:
            return f"{which} may have been sent, and its answer was lost."
        case Outcome.NOT_SENT:
            return f"{which} was not sent, but an earlier one may have been."
        case Outcome.REFUSED | Outcome.REFUSED_STORED:
            return f"{which} was refused, but an earlier one may have gone through."
        case Outcome.COMPLETED:
            return f"{which} was reported as done, and a person reopened the call since."
        case None:
            return "The worker never said how it ended, and its lease is over."
        case _:
            assert_never(newest.outcome)


def _unknown_words(situation: Situation) -> tuple[str, tuple[Evidence, ...]]:
    """What the standing evidence adds, and which of it was used, the deciding answer first."""
    items = situation.standing
    if not items:
        nobody = (
            "Nobody has asked the provider yet."
            if situation.can_look_up
            else "This tool has no look-up, so only a person can find out."
        )
        return nobody, ()
    if situation.strong_absence:
        absences = situation.strong_absence
        words = (
            f"{_capital(situation.provider)} has no record of it{_route(absences[0])}. A person "
            "still has to decide, because a worker may be able to send."
        )
        return words, absences
    telling = tuple(item for item in items if item.word not in _SILENT)
    if len({item.word for item in telling}) > 1:
        return f"The answers of {situation.provider} do not agree.", telling[:3]
    newest = (telling or items)[0]
    return f"{_capital(situation.provider)}: {_word(newest)}", (newest,)


_SILENT = frozenset(
    {
        SightingWord.LOOKUP_FAILED,
        SightingWord.MISCONFIGURED,
        SightingWord.RATE_LIMITED,
        SightingWord.UNMAPPED,
    }
)
"""Answers that say nothing in either direction; one of them hides no older one that does."""


def _word(item: Evidence) -> str:  # noqa: C901, PLR0911 - one line a word
    match item.word:
        case SightingWord.FOUND:
            return f"it shows {_objects(item)}, but that alone does not settle this call."
        case SightingWord.FOUND_MANY:
            return f"it shows more than one match: {_objects(item)}."
        case SightingWord.FOUND_DIFFERENT:
            return f"it shows {_objects(item)}, which differs from what was asked."
        case SightingWord.PENDING:
            return "it is still working on it."
        case SightingWord.ABSENT:
            return (
                f"it has no record of it{_route(item)}, which does not prove that nothing happened."
            )
        case SightingWord.LOOKUP_FAILED:
            return "it could not be asked; that says nothing."
        case SightingWord.MISCONFIGURED:
            return "the look-up is set up wrongly, so nothing was learnt."
        case SightingWord.RATE_LIMITED:
            return "it asked us to wait; nothing was learnt."
        case SightingWord.UNMAPPED:
            return "it answered with a word that this tool's look-up does not know."
        case _:
            assert_never(item.word)


def _objects(item: Evidence) -> str:
    return ", ".join(item.objects[:5]) if item.objects else "an object"


def _route(item: Evidence) -> str:
    return f", asked through {item.route}" if item.route else ""


def _rests(items: tuple[Evidence, ...]) -> str:
    if not items:
        return "no evidence yet"
    numbers = [str(item.number) for item in items[:3]]
    listed = numbers[0] if len(numbers) == 1 else f"{', '.join(numbers[:-1])} and {numbers[-1]}"
    return f"evidence {listed}"


def _cites(items: tuple[Evidence, ...]) -> tuple[int, ...]:
    return tuple(item.number for item in items[:3])


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
