"""What a webhook means for one claim. Pure.

A webhook shows the object as it was when the event was made, and events come in any order. So it
may settle a call only where nothing was told before and the status is one after which no other
comes. Everything else is kept, and where it speaks against the record the provider is asked afresh:
only that answer moves the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.adapters.base import Look
from reconcile.judge import ClaimFacts, Judgement, Sighting, judge
from reconcile.judge_facts import FOUND
from reconcile.situation import Strength

SETTLED: Final = frozenset({ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """How far an event can be believed. `final`: no other status comes after this one. `named`:
    it carries our marker or our key. `beginning`: it tells of the object being made. `outdated`: a
    later event of the same object is known."""

    final: bool
    named: bool
    beginning: bool = False
    outdated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """`judgement` None: it says nothing that is worth keeping beside what is known. `read_afresh`:
    the provider is asked what is true now."""

    judgement: Judgement | None
    read_afresh: bool
    why: str


def judge_webhook(
    facts: ClaimFacts, look: Look, snapshot: Snapshot, earlier: Sequence[Sighting] = ()
) -> Heard:
    """What becomes of one event for one claim, after the sightings that its record holds."""
    if snapshot.outdated and look.word is SightingWord.PENDING:
        return _history(look)
    if facts.state in SETTLED and look.word not in FOUND:
        return _after_the_end(facts, look, snapshot, earlier)
    # Two webhooks never confirm each other: a second one may be a copy of the first.
    judged = judge(facts, look, earlier, heard=True)
    if not judged.counts:
        doubtful = judged.look_again_at is not None
        return Heard(judgement=judged, read_afresh=doubtful, why=judged.why)
    if not (snapshot.final and snapshot.named):
        return _not_enough(judge(facts, look, earlier, heard=True, believed=False), snapshot)
    return Heard(judgement=judged, read_afresh=False, why=judged.why)


def _after_the_end(
    facts: ClaimFacts, look: Look, snapshot: Snapshot, earlier: Sequence[Sighting]
) -> Heard:
    """An event that shows no effect, or another one, for a call that is settled."""
    pending = look.word is SightingWord.PENDING
    if (snapshot.beginning and pending) or facts.state is not ClaimState.COMPLETED:
        return _history(look)
    judged = replace(
        judge(facts, look, earlier, heard=True),
        counts=False,
        strength=Strength.FAIR,
        why=f"{look.why} The call is known to have happened, so the provider is asked afresh.",
    )
    return Heard(judgement=judged, read_afresh=True, why=judged.why)


def _history(look: Look) -> Heard:
    why = f"{look.why} That came before what is known, or says no more than it."
    return Heard(judgement=None, read_afresh=False, why=why)


def _not_enough(judged: Judgement, snapshot: Snapshot) -> Heard:
    fault = (
        "This status can still change, so the provider is asked what it is now."
        if snapshot.named
        else "The event itself names neither our marker nor our key, so the provider is asked."
    )
    doubted = replace(judged, why=f"{judged.why} {fault}")
    return Heard(judgement=doubted, read_afresh=True, why=doubted.why)
