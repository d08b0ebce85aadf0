"""A finished history, held against the provider's truth: every bad outcome has a name."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from uuid import UUID

from effects.core.fold import LoggedEvent, fold
from effects.core.states import is_allowed
from effects.core.vocabulary import ClaimState, EventKind, SightingWord, Verdict
from tests.laws.simulator import History

PERMITS_ONE_MORE = frozenset({Verdict.RELEASE_NEW, Verdict.NOT_HAPPENED})
FACTS = frozenset({EventKind.REPORTED, EventKind.SIGHTING})
# Facts may change places between two of these acts, which speak of what was recorded before them.
BOUNDS = frozenset({Verdict.REOPEN, Verdict.RELEASE_SAME, Verdict.RELEASE_NEW})


def bad_outcomes(history: History) -> list[str]:
    """What went wrong, claim by claim and between claims; empty when nothing did."""
    bad: list[str] = []
    for claim_id in history.claims:
        history.world.touch(claim_id)
        bad += _of_claim(history, claim_id)
    bad += _between_claims(history)
    return bad


def _of_claim(history: History, claim_id: UUID) -> Iterator[str]:
    world = history.world
    state, fence = world.row(claim_id).state, world.row(claim_id).fence
    events = world.events(claim_id)
    fences = sorted(e.fence for e in events if e.kind is EventKind.GRANTED)
    if fences != list(range(1, fence + 1)):
        yield f"attempts are numbered {fences}"
    if state in (ClaimState.IN_FLIGHT, ClaimState.RELEASED):
        yield f"stuck: {state}"
    decided = Counter(e.word for e in events if e.kind is EventKind.DECIDED)
    permitted = sum(decided[verdict] for verdict in PERMITS_ONE_MORE)
    effects = history.provider.objects_of(claim_id)
    if len(effects) > 1 + permitted:
        yield "two effects of one operation"
    firmly_no = state is ClaimState.NOT_EXECUTED and not fold(events).conditional
    if firmly_no and effects and not decided[Verdict.NOT_HAPPENED]:
        yield "a false did-not-happen"
    if effects:
        word = SightingWord.FOUND if len(effects) == 1 else SightingWord.FOUND_MANY
        world.observe(claim_id, word, fence, objects=effects)
    yield from _final_word(world.row(claim_id).state, len(effects), decided)
    events = world.events(claim_id)
    if not _order_free(events, history.random):
        yield "the order of facts matters"
    yield from _transitions_nobody_meant(events)


def _final_word(state: ClaimState, effects: int, decided: Counter[str | None]) -> Iterator[str]:
    """What the claim says once the provider was read whole."""
    told_happened = bool(decided[Verdict.HAPPENED])
    if effects == 0 and state is ClaimState.COMPLETED and not told_happened:
        yield "completed without an effect"
    if effects == 0 and state is ClaimState.CONFLICTED and not told_happened:
        yield "conflicted without an effect"
    if effects == 1 and state is not ClaimState.COMPLETED:
        yield f"one effect, but {state}"
    if effects > 1 and state is not ClaimState.CONFLICTED and not decided[Verdict.SETTLE]:
        yield f"several effects, but {state}"


def _transitions_nobody_meant(events: tuple[LoggedEvent, ...]) -> Iterator[str]:
    """The claim, event by event, held against the one transition table."""
    before = fold(events[:1]).state
    for count, event in enumerate(events[1:], start=2):
        after = fold(events[:count]).state
        word = event.word if event.kind is not EventKind.SIGHTING or event.counts else None
        if not is_allowed(before, event.kind, word, after):
            yield f"{event.kind} {event.word} led from {before} to {after}"
        before = after


def _between_claims(history: History) -> Iterator[str]:
    """Two claims of one intention both had an effect, and nobody named that."""
    acting = {effect.claim_id for effect in history.provider.effects}
    for left, right in combinations(sorted(acting), 2):
        first, second = history.claims[left], history.claims[right]
        if not first.asks_for_the_same(second) or history.permissions:
            continue
        licensed = right in history.licensed[left] or left in history.licensed[right]
        if not licensed and not _person_permitted(history, left, right):
            yield "two claims of one intention had effects"


def _person_permitted(history: History, *claims: UUID) -> bool:
    return any(
        e.kind is EventKind.DECIDED and e.word in PERMITS_ONE_MORE
        for claim_id in claims
        for e in history.world.events(claim_id)
    )


def _order_free(events: tuple[LoggedEvent, ...], rng: random.Random) -> bool:
    """The same facts in another order between the same acts give the same answer."""
    expected = fold(events)
    bounds = [
        e.seq
        for e in events
        if e.kind in (EventKind.RELEASE_LAPSED, EventKind.ABSENCE_LAPSED) or e.word in BOUNDS
    ]
    shuffled = list(events)
    for low, high in zip([0, *bounds], [*bounds, 1_000_000], strict=True):
        facts = [e for e in events if e.kind in FACTS and low < e.seq < high]
        numbers = [e.seq for e in facts]
        rng.shuffle(numbers)
        for fact, seq in zip(facts, numbers, strict=True):
            shuffled[shuffled.index(fact)] = replace(fact, seq=seq)
    rng.shuffle(shuffled)
    return fold(shuffled) == expected
