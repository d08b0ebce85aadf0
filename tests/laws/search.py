"""Every order of events of one claim's small world, breadth first, over the product's own law.

    python -m tests.laws.search [--unkeyed] [--attempts 3] [--decisions 2] [--window 3] ...

Prints how many states there are and, for each law that does not hold, the shortest trace to a state
in which it does not.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from effects.core.states import DECISIONS, FACTS, GRANTED_FROM
from effects.core.vocabulary import ClaimState, EventKind, SightingWord, Verdict
from tests.laws.search_claim import (
    EVENTS,
    TICKS_UNTIL_QUIET,
    Broken,
    Claim,
    Law,
    Row,
    decided,
    last_reopened,
)
from tests.laws.search_people import objects_of
from tests.laws.search_world import Move, Reading, Size, State, World

STATES_MAX = 5_000_000
UNSWEPT_TICKS = (2, 3, TICKS_UNTIL_QUIET)
SETTLED = frozenset({ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED})
PERMITS_ONE_MORE = (Verdict.RELEASE_NEW, Verdict.NOT_HAPPENED)

CameFrom = dict[State, tuple[State | None, str]]


@dataclass(kw_only=True)
class Found:
    """What a search came to. `broken`: each law that does not hold, with its shortest trace."""

    states: int = 0
    claims: int = 0
    rows: set[Row] = field(default_factory=set)
    reached: set[ClaimState] = field(default_factory=set)
    effects_max: int = 0
    broken: dict[str, list[str]] = field(default_factory=dict)


def search(size: Size, *, first_only: bool = False) -> Found:
    """Visits every reachable state. `first_only` stops at the first law that does not hold."""
    law = Law(keyed=size.keyed, window_ticks=size.window_ticks)
    world = World(size=size, law=law)
    found = Found(rows=law.rows)
    came_from: CameFrom = {}
    queue: deque[State] = deque()
    sound: dict[tuple[int, int], list[str]] = {}
    _arrive(world.first(), None, came_from, queue)
    while queue and not (first_only and found.broken):
        state = queue.popleft()
        try:
            key = (state.claim, state.effects)
            if key not in sound:
                sound[key] = list(complaints(world, state))
            for complaint in sound[key]:
                found.broken.setdefault(complaint, _trace(came_from, state))
            _arrive(world.moves(state), state, came_from, queue)
        except Broken as broken:
            found.broken.setdefault(str(broken), [*_trace(came_from, state), "and what comes next"])
        assert len(came_from) < STATES_MAX, f"more than {STATES_MAX} states: choose a smaller size"
    found.states, found.claims = len(came_from), len(law.claims)
    found.reached = {law.folded(state.claim).state for state in came_from}
    found.effects_max = max(state.effects for state in came_from)
    return found


def _arrive(
    moves: Iterable[Move], state: State | None, came_from: CameFrom, queue: deque[State]
) -> None:
    for label, after in moves:
        if after not in came_from:
            came_from[after] = (state, label)
            queue.append(after)


def _trace(came_from: CameFrom, state: State) -> list[str]:
    steps: list[str] = []
    place: State | None = state
    while place is not None:
        place, label = came_from[place]
        steps.append(label)
    return steps[::-1]


# The laws, in one state


def complaints(world: World, state: State) -> Iterator[str]:
    """Every law that does not hold of a claim with so many effects."""
    claim = world.law.claims[state.claim]
    yield from _of_effects(world, claim, state.effects)
    yield from _of_what_was_told(world, claim)
    yield from _of_late_truth(world, claim, state.effects)
    yield from _of_time(world, state.claim)
    yield from _of_ways_out(world, state)


def _of_effects(world: World, claim: Claim, effects: int) -> Iterator[str]:
    folded = world.law.fold(claim.log)
    if effects > 1 + decided(claim.log, *PERMITS_ONE_MORE):
        yield "two effects, and no person chose that"
    firm = folded.state is ClaimState.NOT_EXECUTED and not folded.conditional
    if firm and effects and not decided(claim.log, Verdict.NOT_HAPPENED):
        yield "a false 'did not happen'"
    told_happened = decided(claim.log, Verdict.HAPPENED)
    if folded.state is ClaimState.CONFLICTED and effects < 2 and not told_happened:
        yield "a false Duplicate"
    if folded.state is ClaimState.COMPLETED and not effects and not told_happened:
        yield "happened, but nothing did"


def _of_what_was_told(world: World, claim: Claim) -> Iterator[str]:
    """Counted here once more, and simpler than the fold does it."""
    since = [e for e in EVENTS.of(claim.log) if e.seq > last_reopened(claim.log)]
    named = {e.object for e in since if e.kind is EventKind.REPORTED and e.object}
    named |= {o for e in since if e.kind is EventKind.SIGHTING for o in e.objects}
    completed = any(e.kind is EventKind.REPORTED and e.word == "completed" for e in since)
    folded = world.law.fold(claim.log)
    if not named <= folded.effects or (completed and not folded.effects):
        yield "a truth that was told is forgotten"
    told = named or completed
    if told and folded.state not in (ClaimState.COMPLETED, ClaimState.CONFLICTED):
        yield "a truth that was told does not count"
    settled = decided(claim.log, Verdict.SETTLE)
    if len(named) > 1 and folded.state is ClaimState.COMPLETED and not settled:
        yield "two effects were told, and nobody is asked"


def _of_late_truth(world: World, claim: Claim, effects: int) -> Iterator[str]:
    """Whenever the provider is read whole, the claim says what is true."""
    if not effects:
        return
    word = SightingWord.FOUND if effects == 1 else SightingWord.FOUND_MANY
    reading = Reading(word, objects_of(effects), 1, counts=True, conditional=False)
    state = world.law.folded(world._recorded(claim, reading)).state  # noqa: SLF001 - one model
    if effects == 1 and state is not ClaimState.COMPLETED:
        yield f"one effect, read whole, and the claim is {state}"
    if (
        effects > 1
        and state is not ClaimState.CONFLICTED
        and not decided(claim.log, Verdict.SETTLE)
    ):
        yield f"several effects, read whole, and the claim is {state}"


def _of_time(world: World, number: int) -> Iterator[str]:
    """Nothing is in flight or released for ever, and no outcome depends on a sweep."""
    law = world.law
    swept = number
    for ticks in range(1, TICKS_UNTIL_QUIET + 1):
        swept = law.later(swept, 1)
        if ticks in UNSWEPT_TICKS:
            alone = law.later(number, ticks)
            if _outcome(law, swept) != _outcome(law, alone):
                yield "the outcome depends on whether a sweep ran"
    left = law.claims[swept]
    if law.folded(swept).state in (ClaimState.IN_FLIGHT, ClaimState.RELEASED) or left.held:
        yield f"stuck: {law.folded(swept).state} for ever"


def _outcome(law: Law, number: int) -> tuple[object, ...]:
    claim, folded = law.claims[number], law.folded(number)
    return (folded.state, folded.conditional, folded.fresh_key, folded.effects, claim.grant_ends)


def _of_ways_out(world: World, state: State) -> Iterator[str]:
    """Once time has passed and nobody of ours does anything more, people or rules can settle it."""
    quiet = state._replace(claim=world.law.later(state.claim, TICKS_UNTIL_QUIET))
    seen: set[int] = set()
    ahead = deque([quiet.claim])
    while ahead:
        number = ahead.popleft()
        if world.law.folded(number).state in SETTLED:
            return
        seen.add(number)
        spare = quiet._replace(claim=number, decisions=1)
        for _, after in world._people(spare):  # noqa: SLF001 - one model
            later = world.law.later(after.claim, TICKS_UNTIL_QUIET)
            if later not in seen:
                ahead.append(later)
    yield f"stuck: no act leads out of {world.law.folded(quiet.claim).state}"


# The transition table: which of its rows the search has seen


def rows_of_the_table() -> set[str]:
    """Every row of `core.states`, in words."""
    rows = {
        f"{kind} {word or ''} -> {to}" for (kind, word), targets in FACTS.items() for to in targets
    }
    rows |= {
        f"decided {verdict} -> {to}" for verdict, targets in DECISIONS.items() for to in targets
    }
    return rows | {f"granted from {state}" for state in GRANTED_FROM}


def rows_reached(rows: set[Row]) -> set[str]:
    """The rows of the table that these transitions are instances of."""
    reached = set()
    for before, kind, word, after in rows:
        if kind is EventKind.GRANTED:
            reached.add(f"granted from {before}")
        elif before is not after:
            reached.add(f"{kind} {word or ''} -> {after}")
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unkeyed", action="store_true")
    parser.add_argument("--attempts", type=int, default=2)
    parser.add_argument("--decisions", type=int, default=1)
    parser.add_argument("--budget", type=int, default=2)
    parser.add_argument("--window", type=int, default=3, help="in ticks; the margin is one")
    parser.add_argument("--silent-objects", action="store_true")
    parser.add_argument("--sends-after-the-window", action="store_true")
    parser.add_argument("--no-errors", action="store_true")
    said = parser.parse_args()
    found = search(
        Size(
            keyed=not said.unkeyed,
            attempts=said.attempts,
            decisions=said.decisions,
            budget=said.budget,
            window_ticks=said.window,
            errors=not said.no_errors,
            silent_objects=said.silent_objects,
            sends_after_the_window=said.sends_after_the_window,
        )
    )
    print(f"{found.states} states, {found.claims} claims, at most {found.effects_max} effects")
    print("reached:", ", ".join(sorted(found.reached)))
    for row in sorted(rows_of_the_table() - rows_reached(found.rows)):
        print("never reached:", row)
    for complaint, trace in found.broken.items():
        print(f"\n{complaint}:")
        for step in trace:
            print("   ", step)
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
