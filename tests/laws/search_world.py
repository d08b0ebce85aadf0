"""The other half of the exhaustive search: workers, the wire, the provider, look-ups and people.

Two assumptions bound what no ledger can prevent, and both can be taken away: a request is on the
wire for at most one tick, and no worker sends once the window of its key, less the margin, is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from effects.core.fold import LoggedEvent
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
    Verdict,
)
from reconcile import judge as judging
from reconcile.adapters.base import Delay, Look
from tests.laws.search_claim import (
    EVENTS,
    FOUND,
    MARGIN_TICKS,
    NOW,
    TICK,
    Claim,
    Held,
    Law,
    newest_grant,
)
from tests.laws.search_people import key_holds, objects_of, offered

# What a worker does next. A frozen one is one that does nothing for a while, so it has no step of
# its own; neither has a dead one.
DEAF, READY, WAITING, DONE, FAILED = "deaf", "ready", "waiting", "done", "failed"
ERROR, GATE, REFUSED = "error 500", "at the gate", "refused"


class Worker(NamedTuple):
    """`heard`: the answer that it has read and not reported; `wire`: 0 nothing on the wire, else
    for how many ticks its request is still at most on its way."""

    step: str
    generation: int
    wire: int = 0
    heard: tuple[str, str | None, bool] | None = None


class Reading(NamedTuple):
    """A look-up that was judged and is not recorded yet."""

    word: SightingWord
    objects: tuple[str, ...]
    fence: int
    counts: bool
    conditional: bool


class State(NamedTuple):
    """`claim`: its number. `effects`: how often it happened. `keys`: what the provider stored under
    the key of each generation. `decisions`: how many people may still make."""

    claim: int
    workers: tuple[Worker, ...]
    effects: int
    keys: tuple[tuple[str, str | None] | None, ...]
    reading: Reading | None
    decisions: int


Move = tuple[str, State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of the world is explored. `holds`: for how many ticks a decision may be held."""

    keyed: bool
    attempts: int = 2
    decisions: int = 1
    budget: int = 2
    window_ticks: int = 3
    holds: tuple[int, ...] = (0, 1)
    errors: bool = True
    silent_objects: bool = False
    sends_after_the_window: bool = False
    a_grant_outdates_an_absence: bool = True


@dataclass(slots=True, kw_only=True)
class World:
    """Everything that can happen next."""

    size: Size
    law: Law
    _judged: dict[tuple[object, ...], Reading] = field(default_factory=dict)

    def first(self) -> Iterator[Move]:
        claim = self.law.first(self.size.budget)
        for step in (READY, DEAF):
            worker = Worker(step=step, generation=1)
            yield (
                f"attempt 1 is granted{' and the answer is lost' * (step == DEAF)}",
                State(claim, (worker,), 0, (None,), None, self.size.decisions),
            )

    def moves(self, state: State) -> Iterator[Move]:
        yield from self._time(state)
        yield from self._agent(state)
        for place in range(len(state.workers)):
            yield from self._worker(state, place)
            yield from self._wire(state, place)
        yield from self._lookups(state)
        yield from self._people(state)

    # Time

    def _time(self, state: State) -> Iterator[Move]:
        if any(worker.wire == 1 for worker in state.workers):
            return  # a request on its way arrives, or is lost, before more time passes
        workers = tuple(w._replace(wire=max(0, w.wire - 1)) for w in state.workers)
        later = self.law.later(state.claim, 1)
        if (later, workers) != (state.claim, state.workers):
            yield "time passes", state._replace(claim=later, workers=workers)

    # The agent asks again

    def _agent(self, state: State) -> Iterator[Move]:
        claim = self.law.claims[state.claim]
        told = self.law.told(state.claim, same_nonce=False)
        if told.code is AnswerCode.GRANTED and len(state.workers) < self.size.attempts:
            granted = self.law.granted(claim, told)
            keys = (*state.keys, None) if told.generation > len(state.keys) else state.keys
            for step in (READY, DEAF):
                worker = Worker(step=step, generation=told.generation)
                lost = " and the answer is lost" * (step == DEAF)
                yield (
                    f"attempt {told.fence} is granted with key {told.generation}{lost}",
                    state._replace(claim=granted, workers=(*state.workers, worker), keys=keys),
                )
        newest = state.workers[-1]
        if newest.step == DEAF:
            again = self.law.told(state.claim, same_nonce=True)
            if again.code is AnswerCode.GRANTED_AGAIN:
                place = len(state.workers) - 1
                yield (
                    f"attempt {again.fence} is granted again",
                    _with(state, place, newest._replace(step=READY)),
                )

    # Workers and the wire

    def _worker(self, state: State, place: int) -> Iterator[Move]:
        worker, name = state.workers[place], f"worker {place + 1}"
        if worker.step == READY:
            if self._may_send(state, worker):
                sent = worker._replace(step=WAITING, wire=2)
                yield f"{name} sends", _with(state, place, sent)
            yield self._reports(state, place, Outcome.NOT_SENT)
        elif worker.step == WAITING and worker.heard is None:
            yield self._reports(state, place, Outcome.UNKNOWN)
        elif worker.step == WAITING:
            yield from self._reports_answer(state, place)

    def _may_send(self, state: State, worker: Worker) -> bool:
        windows = self.law.claims[state.claim].windows
        if not windows or self.size.sends_after_the_window:
            return True
        return windows[worker.generation - 1] > MARGIN_TICKS

    def _reports_answer(self, state: State, place: int) -> Iterator[Move]:
        worker = state.workers[place]
        assert worker.heard is not None
        word, named, replayed = worker.heard
        if word == ERROR:
            yield self._reports(state, place, Outcome.UNKNOWN, then=FAILED)
            return
        # It may have given up first, and have said so, before it reads the answer.
        yield self._reports(state, place, Outcome.UNKNOWN, then=WAITING)
        if word == GATE:
            yield self._reports(state, place, Outcome.REFUSED)
        elif word == REFUSED:
            outcome = Outcome.REFUSED_STORED if self.law.keyed else Outcome.REFUSED
            yield self._reports(state, place, outcome)
        else:
            for spoken in {named, None} if self.size.silent_objects else {named}:
                yield self._reports(
                    state, place, Outcome.COMPLETED, named=spoken, replayed=replayed
                )

    def _reports(
        self,
        state: State,
        place: int,
        outcome: Outcome,
        *,
        then: str = DONE,
        named: str | None = None,
        replayed: bool = False,
    ) -> Move:
        worker = state.workers[place]
        report = LoggedEvent(
            seq=0,
            kind=EventKind.REPORTED,
            word=outcome,
            fence=place + 1,
            generation=worker.generation,
            object=named,
            replayed=replayed,
        )
        claim = self.law.reported(self.law.claims[state.claim], report)
        heard = worker.heard if then == WAITING else None
        after = _with(state, place, worker._replace(step=then, heard=heard))
        return (
            f"worker {place + 1} reports {outcome} {named or ''}".rstrip(),
            after._replace(claim=claim),
        )

    def _wire(self, state: State, place: int) -> Iterator[Move]:
        worker = state.workers[place]
        if not worker.wire:
            return
        gone = worker._replace(wire=0)
        yield f"request {place + 1} is lost", _with(state, place, gone)
        for answer, after in self._provider(state, place):
            word, named, _ = answer
            says = f"the provider answers request {place + 1}: {word} {named or ''}".rstrip()
            if worker.step == WAITING:
                yield says, _with(after, place, gone._replace(heard=answer))
            yield f"{says}, and the answer is lost", _with(after, place, gone)

    def _provider(
        self, state: State, place: int
    ) -> Iterator[tuple[tuple[str, str | None, bool], State]]:
        """What the provider may answer, and what is true then."""
        worker = state.workers[place]
        windows = self.law.claims[state.claim].windows
        key = worker.generation - 1
        stored = state.keys[key] if windows and windows[key] > 0 else None
        if stored is not None:
            yield (*stored, True), state
            return
        yield (GATE, None, False), state
        happened = f"pi_{state.effects + 1}"
        outcomes: list[tuple[str, str | None, int]] = [(DONE, happened, 1), (REFUSED, None, 0)]
        if self.size.errors:
            outcomes += [(ERROR, happened, 1), (ERROR, None, 0)]
        for word, named, more in outcomes:
            keys = state.keys
            if windows:
                keys = (*keys[:key], (word, named), *keys[key + 1 :])
            yield (word, named, False), state._replace(effects=state.effects + more, keys=keys)

    # Look-ups, in two steps between which anything may happen

    def _lookups(self, state: State) -> Iterator[Move]:
        claim = self.law.claims[state.claim]
        if state.reading is None:
            if claim.held is None and (reading := self._read(state, claim)) is not None:
                says = f"a look-up reads {reading.word}{', conditional' * reading.conditional}"
                yield says, state._replace(reading=reading)
            return
        yield (
            f"the look-up is recorded ({state.reading.word})",
            state._replace(claim=self._recorded(claim, state.reading), reading=None),
        )

    def _read(self, state: State, claim: Claim) -> Reading | None:
        """What a strongly consistent route shows, as the product's judge takes it."""
        # The contract says how long the provider may work on a request whose worker is gone.
        working = any(w.wire and w.step in (DONE, FAILED) for w in state.workers)
        steps = tuple(worker.step for worker in state.workers)
        key = (state.claim, state.effects, working, steps)
        if key not in self._judged:
            self._judged[key] = self._judge(state, claim, working=working)
        reading = self._judged[key]
        if not reading.counts or self._recorded(claim, reading) == state.claim:
            return None  # it would change nothing
        return reading

    def _judge(self, state: State, claim: Claim, *, working: bool) -> Reading:
        folded = self.law.fold(claim.log)
        objects = objects_of(state.effects)
        word = (SightingWord.ABSENT, SightingWord.FOUND, SightingWord.FOUND_MANY)[
            min(2, len(objects))
        ]
        look = Look(
            word=word,
            why="",
            route="list",
            asked_at=NOW,
            delay_class=Delay.NONE,
            pages_complete=True,
            objects=objects,
        )
        keyed = self.law.keyed
        facts = judging.ClaimFacts(
            effect_class=EffectClass.KEYED_WRITE if keyed else EffectClass.UNKEYED_WRITE,
            state=folded.state,
            generation=newest_grant(claim.log).generation,
            open_attempts=tuple(
                self._attempt(state, claim, fence, working=working)
                for fence in folded.open_attempts
            ),
            window_until=self.law.clock_of(claim).window_until,
            margin=MARGIN_TICKS * TICK,
            server_working=timedelta(0),
            effects=frozenset(e for e in folded.effects if e.startswith("pi_")),
            unnamed_effects=any(not e.startswith("pi_") for e in folded.effects),
            every_request_marked=True,
        )
        earlier = replace(look, asked_at=NOW - timedelta(seconds=5))
        before = judging.Sighting(number=1, look=earlier)
        said = judging.judge(facts, look, (before,))
        return Reading(
            word,
            objects,
            newest_grant(claim.log).fence,
            said.counts,
            said.counts and said.conditional,
        )

    def _attempt(
        self, state: State, claim: Claim, fence: int, *, working: bool
    ) -> judging.AttemptFacts:
        worker = state.workers[fence - 1]
        granted = next(
            e for e in EVENTS.of(claim.log) if e.kind is EventKind.GRANTED and e.fence == fence
        )
        reported = any(
            e.kind is EventKind.REPORTED and e.fence == fence for e in EVENTS.of(claim.log)
        )
        newest = fence == newest_grant(claim.log).fence
        return judging.AttemptFacts(
            fence=fence,
            generation=granted.generation,
            lease_over_at=NOW + (claim.lease if newest else 0) * TICK,
            ended_at=(NOW + TICK if working else NOW - TICK) if reported else None,
            marker_sent=True if reported else None,
            server_error=worker.step == FAILED,
        )

    def _recorded(self, claim: Claim, reading: Reading) -> int:
        """`ledger_observe_v1`: a grant, or the end of the window, may have come between."""
        newest = newest_grant(claim.log)
        state = self.law.fold(claim.log).state
        if reading.word is SightingWord.ABSENT and self.size.a_grant_outdates_an_absence:
            holds = not reading.conditional or claim.windows[newest.generation - 1] > MARGIN_TICKS
            if reading.fence != newest.fence or state is ClaimState.IN_FLIGHT or not holds:
                return self.law.number(claim._replace(held=None))
        granted = next(
            e
            for e in EVENTS.of(claim.log)
            if e.kind is EventKind.GRANTED and e.fence == reading.fence
        )
        seen = reading.word in FOUND
        sighting = LoggedEvent(
            seq=0,
            kind=EventKind.SIGHTING,
            word=reading.word,
            # Of an effect that was seen, nothing but the objects says anything.
            fence=1 if seen else reading.fence,
            generation=1 if seen else granted.generation,
            objects=reading.objects,
            counts=True,
            conditional=reading.conditional and not seen,
        )
        return self.law.grown(claim._replace(held=None), sighting)

    # People

    def _people(self, state: State) -> Iterator[Move]:
        claim = self.law.claims[state.claim]
        if claim.held is not None:
            if claim.held.ticks > 0:
                undone = self.law.number(claim._replace(held=None))
                yield f"a person undoes {claim.held.verdict}", state._replace(claim=undone)
            return
        if not state.decisions:
            return
        for verdict, named, objects in offered(self.law, claim, state.effects):
            for ticks in self.size.holds:
                if verdict is Verdict.RELEASE_SAME and not key_holds(self.law, claim, ticks):
                    continue
                held = self.law.number(claim._replace(held=Held(verdict, named, objects, ticks)))
                after = self.law.later(held, 0)
                yield (
                    f"a person decides {verdict} {named or ''}, held for {ticks}",
                    state._replace(claim=after, decisions=state.decisions - 1),
                )


def _with(state: State, place: int, worker: Worker) -> State:
    workers = (*state.workers[:place], worker, *state.workers[place + 1 :])
    return state._replace(workers=workers)
