"""What all answers about one claim amount to. Pure and total.

Only an effect that matches, and an absence that is strong, may settle a claim by rule. Everything
else waits for more, or for a person. Giving up is never an answer: it leaves `unknown`. A judgement
names its rule and the evidence that it rests on.

The sightings are a set: they are ordered by their own time, never by how they arrived. A weaker one
never turns `unclear` into a verdict, and one that says nothing changes nothing that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import Look
from reconcile.judge_facts import (
    FOUND,
    SILENT,
    AttemptFacts,
    ClaimFacts,
    Meaning,
    Rule,
    Sighting,
    readings,
)
from reconcile.judge_weight import AFTER_THE_INSTANT, CONFIRM_AFTER, CONFIRM_WITHIN, weigh
from reconcile.situation import Strength

__all__ = [
    "AFTER_THE_INSTANT",
    "CONFIRM_AFTER",
    "CONFIRM_WITHIN",
    "AttemptFacts",
    "ClaimFacts",
    "Finding",
    "Judgement",
    "Meaning",
    "Rule",
    "Sighting",
    "judge",
    "judge_all",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known by all sightings. `evidence` are the numbers of those that it rests on, in
    their order; empty where only the record itself says it. `strength` is that of the strongest."""

    meaning: Meaning
    rule: Rule
    evidence: tuple[int, ...] = ()
    strength: Strength = Strength.SAYS_NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is known once one more answer has come, and how far that answer itself goes.

    `meaning`, `rule` and `evidence` are of all answers together; 0 in `evidence` is the new one,
    which has no number yet. `strength`, `why`, `counts` (it may settle the claim by rule),
    `conditional` (only while the provider honours the key), `too_early` (the provider may still be
    at work), `contradicts` (it speaks against what was told) and `look_again_at` are those of the
    new answer.
    """

    meaning: Meaning
    strength: Strength
    why: str
    rule: Rule
    evidence: tuple[int, ...] = ()
    counts: bool = False
    conditional: bool = False
    too_early: bool = False
    contradicts: bool = False
    look_again_at: datetime | None = None

    @property
    def recorded(self) -> dict[str, Any]:
        """What is kept of it beside the sighting; `facts.earlier_looks` reads it back."""
        return {
            "meaning": self.meaning,
            "rule": self.rule,
            "evidence": list(self.evidence),
            "strength": self.strength,
            "why": self.why,
            "too_early": self.too_early or None,
        }


def judge(
    facts: ClaimFacts,
    look: Look,
    earlier: Sequence[Sighting] = (),
    *,
    heard: bool = False,
    believed: bool = True,
) -> Judgement:
    """What is known after `look` and all sightings before it.

    `heard`: somebody sent it on their own; such an answer confirms no other, because it may be a
    copy of it. Not `believed`: it settles nothing, whatever it says.
    """
    weight = weigh(facts, look, () if heard else earlier)
    if weight.counts and not believed:
        weight = replace(weight, counts=False, conditional=False, strength=Strength.FAIR)
    newest = Sighting(
        number=0,
        look=look,
        fence=facts.newest_open,
        strength=weight.strength,
        counts=weight.counts,
        conditional=weight.conditional,
        too_early=weight.too_early,
        heard=heard,
    )
    finding = judge_all(facts, (*earlier, newest))
    return Judgement(
        meaning=finding.meaning,
        strength=weight.strength,
        why=weight.why,
        rule=finding.rule,
        evidence=finding.evidence,
        counts=weight.counts,
        conditional=weight.conditional,
        too_early=weight.too_early,
        contradicts=weight.contradicts,
        look_again_at=weight.look_again_at,
    )


def judge_all(facts: ClaimFacts, sightings: Iterable[Sighting]) -> Finding:
    """What the sightings of a claim amount to, the newest answer about each object first."""
    known = _Known(facts, sightings)
    found = (rule(known) for rule in _RULES)
    return next(finding for finding in found if finding is not None)


class _Known:
    """The sightings of one claim, sorted by what they can say."""

    def __init__(self, facts: ClaimFacts, sightings: Iterable[Sighting]) -> None:
        self.facts = facts
        self.standing = tuple(
            sorted((one for one in sightings if not one.rejected), key=lambda one: one.order)
        )
        self.readings = readings(self.standing)
        counted = {o for one in self._found if one.counts for o in one.objects}
        self.effects = facts.effects | counted
        self.doubted = {
            o
            for one in self._found
            if one.strength is not Strength.SAYS_NOTHING
            for o in one.objects
            if self.readings[o].word in FOUND
        } | self.effects

    @property
    def _found(self) -> tuple[Sighting, ...]:
        return tuple(one for one in self.standing if one.word in FOUND)

    def naming(self, objects: Iterable[str]) -> tuple[Sighting, ...]:
        """The sightings that show one of the objects as an effect."""
        wanted = frozenset(objects)
        return tuple(one for one in self._found if one.objects & wanted)

    def open_objects(self, word: SightingWord) -> tuple[Sighting, ...]:
        """The newest answers about objects of this call that have this word."""
        last = {one.order: one for o, one in self.readings.items() if o in one.objects}
        return tuple(one for _, one in sorted(last.items()) if one.word is word)

    def absences(self) -> tuple[Sighting, ...]:
        return tuple(one for one in self.standing if one.word is SightingWord.ABSENT)


def _finding(meaning: Meaning, rule: Rule, rests_on: Sequence[Sighting]) -> Finding:
    strengths = {one.strength for one in rests_on}
    return Finding(
        meaning=meaning,
        rule=rule,
        evidence=tuple(dict.fromkeys(one.number for one in rests_on)),
        strength=next((s for s in Strength if s in strengths), Strength.SAYS_NOTHING),
    )


# The rules, first match wins. An effect that was seen outweighs everything that was not.


def _two_effects(known: _Known) -> Finding | None:
    if len(known.effects) > 1:
        return _finding(Meaning.DUPLICATED, Rule.TWO_EFFECTS, known.naming(known.effects))
    if len(known.doubted) > 1:
        return _finding(Meaning.DUPLICATED, Rule.TWO_EFFECTS_DOUBTED, known.naming(known.doubted))
    return None


def _no_longer_so(known: _Known) -> Finding | None:
    """The effect was there, and the newest reading of it says something else."""
    ended = [
        one
        for o, one in known.readings.items()
        if o in known.effects and one.word is SightingWord.FOUND_DIFFERENT
    ]
    return _finding(Meaning.DIFFERS, Rule.NO_LONGER_SO, ended) if ended else None


def _happened(known: _Known) -> Finding | None:
    if known.effects or known.facts.unnamed_effects:
        shown = known.naming(known.effects)
        return _finding(Meaning.HAPPENED, Rule.FOUND if shown else Rule.RECORDED, shown)
    if known.doubted:
        return _finding(Meaning.HAPPENED, Rule.FOUND_DOUBTED, known.naming(known.doubted))
    return None


def _open(known: _Known) -> Finding | None:
    """An object of this call is there, and it is not the effect, or not yet."""
    if unmapped := known.open_objects(SightingWord.UNMAPPED):
        return _finding(Meaning.UNMAPPED, Rule.STATUS_UNMAPPED, unmapped)
    if pending := known.open_objects(SightingWord.PENDING):
        partly = tuple(one for one in pending if one.look.partly)
        if partly:
            return _finding(Meaning.PARTLY, Rule.PARTLY_DONE, partly)
        return _finding(Meaning.NOT_YET, Rule.NOT_FINISHED, pending)
    if different := known.open_objects(SightingWord.FOUND_DIFFERENT):
        return _finding(Meaning.DIFFERS, Rule.FOUND_DIFFERENT, different)
    return None


def _absent(known: _Known) -> Finding | None:
    covering = [
        one for one in known.absences() if one.counts and one.fence >= known.facts.newest_open
    ]
    if firm := [one for one in covering if not one.conditional]:
        return _finding(Meaning.DID_NOT_HAPPEN, Rule.STRONG_ABSENCE, firm)
    if covering:
        return _finding(Meaning.DID_NOT_HAPPEN, Rule.ABSENCE_WHILE_KEY_HOLDS, covering)
    return None


def _nothing_seen(known: _Known) -> Finding | None:
    """Words without an object, the newest that says anything at all."""
    telling = [
        one
        for one in known.standing
        if one.word not in SILENT | FOUND and one.strength is not Strength.SAYS_NOTHING
    ]
    if not telling:
        return None
    newest = telling[-1]
    if newest.word is SightingWord.PENDING:
        meaning, rule = (
            (Meaning.PARTLY, Rule.PARTLY_DONE)
            if newest.look.partly
            else (Meaning.NOT_YET, Rule.NOT_FINISHED)
        )
    elif newest.word is SightingWord.FOUND_DIFFERENT:
        meaning, rule = Meaning.DIFFERS, Rule.FOUND_DIFFERENT
    elif newest.too_early:
        meaning, rule = Meaning.NOT_YET, Rule.ABSENCE_TOO_EARLY
    else:
        meaning, rule = Meaning.UNCLEAR, Rule.WEAK_ABSENCE
    return _finding(meaning, rule, [newest])


_SAID: Final = {
    SightingWord.MISCONFIGURED: (Meaning.MISCONFIGURED, Rule.LOOKUP_MISCONFIGURED),
    SightingWord.UNMAPPED: (Meaning.UNMAPPED, Rule.ANSWER_UNMAPPED),
}


def _silent(known: _Known) -> Finding:
    if not known.standing:
        return Finding(meaning=Meaning.UNCLEAR, rule=Rule.NOBODY_ASKED)
    unmapped = [one for one in known.standing if one.word is SightingWord.UNMAPPED]
    newest = (unmapped or known.standing)[-1]
    meaning, rule = _SAID.get(newest.word, (Meaning.UNCLEAR, Rule.NO_ANSWER))
    return _finding(meaning, rule, [newest])


_RULES: Final[tuple[Callable[[_Known], Finding | None], ...]] = (
    _two_effects,
    _no_longer_so,
    _happened,
    _open,
    _absent,
    _nothing_seen,
    _silent,
)
