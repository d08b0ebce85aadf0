"""Seeded histories: agents that ask again, workers that freeze and die, answers that get lost,
look-ups that overlap with grants, people who decide, undo and act on stale pages.

Two assumptions bound what no ledger can prevent: a request is on the wire for at most
WIRE_SECONDS_MAX, and nobody stalls between the check and the send until the window is closed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.problems import LedgerProblem
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EventKind,
    Flag,
    Outcome,
    SightingWord,
    Verdict,
)
from ledger import append
from ledger.functions import call
from tests.laws.provider import Answer, Provider, Reply
from tests.laws.stories import ALWAYS, FIRST, SOMETIMES, Story
from tests.laws.world import World

WIRE_SECONDS_MAX = 25
NOT_GRANTED = frozenset({AnswerCode.HELD, AnswerCode.ALREADY_DONE, AnswerCode.REISSUED_DIFFERENTLY})
VERDICTS = {
    ClaimState.IN_FLIGHT: [Verdict.LOST, Verdict.CLOSE],
    ClaimState.UNKNOWN: [Verdict.RELEASE_SAME] * 4
    + [Verdict.RELEASE_NEW, Verdict.NOT_HAPPENED, Verdict.HAPPENED, Verdict.CLOSE],
    ClaimState.COMPLETED: [Verdict.REOPEN],
    ClaimState.NOT_EXECUTED: [Verdict.REOPEN, Verdict.CLOSE, Verdict.RELEASE_SAME],
    ClaimState.RELEASED: [Verdict.CLOSE],
    ClaimState.CONFLICTED: [Verdict.SETTLE, Verdict.REOPEN],
    ClaimState.CLOSED: [Verdict.REOPEN],
}


@dataclass
class Worker:
    """One attempt's process. `step`: what it does next; `frozen`: it does nothing for a while."""

    claim_id: UUID
    fence: int
    key: str | None
    story: str
    send_before: datetime
    window_until: datetime | None
    step: str = "check"  # check, send, wire, lost, answered, done
    frozen: bool = False
    dead: bool = False
    sent_at: datetime | None = None
    answer: Answer | None = None

    @property
    def is_running(self) -> bool:
        return not self.dead and self.step != "done"


@dataclass
class History:
    world: World
    random: random.Random
    provider: Provider
    log: list[str] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    claims: dict[UUID, Story] = field(default_factory=dict)
    lost_answers: dict[UUID, tuple[Story, str]] = field(default_factory=dict)
    reads: list[tuple[UUID, tuple[str, ...], int, bool]] = field(default_factory=list)
    seen_versions: dict[UUID, int] = field(default_factory=dict)
    blockers: dict[str, UUID] = field(default_factory=dict)
    licensed: dict[UUID, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    permissions: int = 0

    def run(self) -> None:
        stories = [*ALWAYS, *(s for s in SOMETIMES if self.random.random() < 0.35)]
        for _ in range(self.random.randint(20, 60)):
            self._time_passes()
            self._something_happens(stories)
        self._everybody_finishes()

    def say(self, text: str) -> None:
        self.log.append(f"{self.world.now:%H:%M:%S} {text}")

    def _time_passes(self) -> None:
        usual = self.random.random() < 0.97
        seconds = self.random.choice((1, 1, 2, 5, 10, 25, 40, 70) if usual else (700, 3400, 4000))
        later = self.world.now + timedelta(seconds=seconds)
        for worker in self.workers:
            if worker.sent_at and (later - worker.sent_at).total_seconds() > WIRE_SECONDS_MAX:
                self._request_arrives(worker)
        self.world.clock.let_pass(seconds)

    def _something_happens(self, stories: list[Story]) -> None:
        pick = self.random.choice
        claims = list(self.claims)
        if not claims:
            self._ask(FIRST)
            return
        running = [w for w in self.workers if w.is_running] or self.workers
        on_the_wire = [w for w in self.workers if w.sent_at] or self.workers
        happenings: list[tuple[float, bool, Callable[[], object]]] = [
            (17, True, lambda: self._ask(pick(stories))),
            (38, bool(running), lambda: self._work(pick(running))),
            (18, bool(on_the_wire), lambda: self._request_arrives(pick(on_the_wire))),
            (6, True, lambda: self._read(pick(claims))),
            (6, bool(self.reads), self._record_read),
            (8, True, lambda: self._person(pick(claims))),
            (2, True, lambda: self.world.touch(pick(claims))),
            (2, bool(running), lambda: self._heartbeat(pick(running))),
            (1, bool(self.lost_answers), self._ask_with_same_nonce),
            (2, True, self._person_allows),
        ]
        possible = [(weight, happen) for weight, can, happen in happenings if can]
        (happen,) = self.random.choices(
            [happen for _, happen in possible], [weight for weight, _ in possible]
        )
        happen()

    def _heartbeat(self, worker: Worker) -> None:
        if worker.is_running and not worker.frozen:
            self.world.heartbeat(worker.claim_id, worker.fence)

    def _ask_with_same_nonce(self) -> None:
        story, nonce = self.lost_answers.pop(self.random.choice(list(self.lost_answers)))
        self._ask(story, nonce)

    # Agents

    def _ask(self, story: Story, nonce: str | None = None) -> None:
        nonce = nonce or self.random.randbytes(16).hex()
        repeat_of = self.blockers.get(story.name) if self.random.random() < 0.3 else None
        asked_at = self.world.now
        answer = self.world.ask(
            ClaimRequest(
                tool=self.world.tool.name,
                effect_class=self.world.policy.effect_class,
                arguments=story.arguments,
                conversation="conversation" if story.caller_key is None else None,
                turn_index=story.turn_index,
                position=story.position,
                ordinal=story.ordinal,
                response_id=story.response_id,
                call_id=story.call_id,
                caller_key=story.caller_key,
                nonce=nonce,
                repeat_of=repeat_of,
            )
        )
        self.say(f"{story.name} asks: {answer.code} fence {answer.fence} {' '.join(answer.flags)}")
        if answer.code in NOT_GRANTED and answer.blocker:
            self.blockers[story.name] = answer.blocker
        if answer.code in (AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN):
            self._granted(story, nonce, answer, asked_at)

    def _granted(self, story: Story, nonce: str, answer: ClaimAnswer, asked_at: datetime) -> None:
        claim_id = answer.claim_id
        assert claim_id is not None
        assert answer.send_within_seconds is not None
        self.claims.setdefault(claim_id, story)
        self.permissions += Flag.REPEAT_OF in answer.flags
        self.licensed[claim_id] |= self._settled_before(claim_id, answer)
        if any((w.claim_id, w.fence) == (claim_id, answer.fence) for w in self.workers):
            return
        if self.random.random() < 0.06:
            self.say("  the answer is lost")
            if self.random.random() < 0.5:
                self.lost_answers[claim_id] = (story, nonce)
            return
        ((window_until,),) = call("SELECT window_until FROM ledger_claim WHERE id = %s", [claim_id])
        self.workers.append(
            Worker(
                claim_id=claim_id,
                fence=answer.fence,
                key=answer.key,
                story=story.name,
                send_before=asked_at + timedelta(seconds=answer.send_within_seconds),
                window_until=window_until,
            )
        )

    def _settled_before(self, claim_id: UUID, answer: ClaimAnswer) -> set[UUID]:
        """The claims beside which this grant is rightly one more effect: those whose effect was
        known and never in doubt, and equal calls of the same response."""
        known = {
            c
            for c in self.claims
            if self._state(c) is ClaimState.COMPLETED and not self._was_unknown(c)
        }
        if Flag.IDENTICAL_IN_TURN in answer.flags:
            known |= {c for c, story in self.claims.items() if story.turn_index == 1}
        return known - {claim_id}

    def _was_unknown(self, claim_id: UUID) -> bool:
        return any(
            e.kind is EventKind.LAPSED
            or (e.kind is EventKind.REPORTED and e.word == Outcome.UNKNOWN)
            for e in self.world.events(claim_id)
        )

    def _state(self, claim_id: UUID) -> ClaimState:
        return self.world.row(claim_id).state

    # Workers and the wire

    def _work(self, worker: Worker) -> None:
        if not worker.is_running:
            return
        if worker.frozen:
            worker.frozen = self.random.random() > 0.35
            return
        chance = self.random.random()
        if chance < 0.07:
            worker.frozen = True
            self.say(f"worker {worker.fence} of {worker.story} freezes before {worker.step}")
        elif chance < 0.11:
            worker.dead = True
            self.say(f"worker {worker.fence} of {worker.story} is killed before {worker.step}")
        else:
            self._next_step(worker)

    def _next_step(self, worker: Worker) -> None:
        now = self.world.now
        match worker.step:
            case "check" if self.random.random() < 0.08 or now >= worker.send_before:
                self._end(worker, Outcome.NOT_SENT)
            case "check":
                worker.step = "send"
            case "send" if worker.window_until and now >= worker.window_until - self._margin:
                self._end(worker, Outcome.NOT_SENT)
            case "send":
                worker.step, worker.sent_at = "wire", now
                self.say(f"worker {worker.fence} of {worker.story} sends")
            case "wire" if self.random.random() < 0.2 and now > worker.send_before:
                self._end(worker, Outcome.UNKNOWN)
            case "lost":
                self._end(worker, Outcome.UNKNOWN)
            case "answered":
                self._report_answer(worker)
            case _:
                pass

    @property
    def _margin(self) -> timedelta:
        return self.world.policy.margin

    def _request_arrives(self, worker: Worker) -> None:
        if worker.sent_at is None:
            return
        worker.sent_at = None
        if self.random.random() < 0.12:
            worker.step = "lost" if worker.step == "wire" else worker.step
            return
        now = self.world.now
        worker.answer = self.provider.receive(worker.key, worker.claim_id, worker.story, now)
        self.say(f"the provider answers {worker.fence} of {worker.story}: {worker.answer}")
        if worker.step == "wire":
            worker.step = "answered" if self.random.random() < 0.8 else "lost"

    def _report_answer(self, worker: Worker) -> None:
        answer = worker.answer
        assert answer is not None
        outcome = {
            Reply.DONE: Outcome.COMPLETED,
            Reply.REFUSED: Outcome.REFUSED_STORED if worker.key else Outcome.REFUSED,
            Reply.AT_THE_GATE: Outcome.REFUSED,
            Reply.ERROR_500: Outcome.UNKNOWN,
        }[answer.reply]
        named = answer.object if outcome is Outcome.COMPLETED else None
        if self.random.random() < 0.1:
            self._report(worker, Outcome.UNKNOWN)
        spoken = named if self.random.random() < 0.95 else None
        self._report(worker, outcome, spoken, replayed=answer.replayed)
        if self.random.random() < 0.1:
            self._report(worker, outcome, named, replayed=answer.replayed)
        worker.step = "done"

    def _end(self, worker: Worker, outcome: Outcome) -> None:
        self._report(worker, outcome)
        worker.step = "done"

    def _report(
        self, worker: Worker, outcome: Outcome, named: str | None = None, **how: Any
    ) -> None:
        state = self.world.report(worker.claim_id, worker.fence, outcome, named, **how)
        self.say(
            f"worker {worker.fence} of {worker.story} reports {outcome} {named or ''}: {state}"
        )

    # Look-ups, in two steps, between which anything may happen

    def _read(self, claim_id: UUID) -> None:
        workers = [w for w in self.workers if w.claim_id == claim_id]
        if any(w.sent_at for w in workers):
            return  # the provider may still be working: the contract's bound has not passed
        objects = self.provider.objects_of(claim_id)
        newest = self.world.row(claim_id).fence
        reported = {e.fence for e in self.world.events(claim_id) if e.kind is EventKind.REPORTED}
        ended = reported >= set(range(1, newest + 1))
        if not objects and not ended and self.world.policy.window is None:
            return  # a lease that merely ran out: there a person decides
        self.reads.append((claim_id, objects, newest, not ended))

    def _record_read(self) -> None:
        claim_id, objects, newest, conditional = self.reads.pop(
            self.random.randrange(len(self.reads))
        )
        word = (
            SightingWord.ABSENT
            if not objects
            else SightingWord.FOUND
            if len(objects) == 1
            else SightingWord.FOUND_MANY
        )
        state = self.world.observe(
            claim_id, word, newest, conditional=conditional and not objects, objects=objects
        )
        self.say(f"look-up of {self.claims[claim_id].name}: {word} (if {conditional}): {state}")

    # People

    def _person(self, claim_id: UUID) -> None:
        row = self.world.row(claim_id)
        name = self.claims[claim_id].name
        if row.pending_decision_id is not None:
            if self.random.random() < 0.2:
                self.say(f"a person undoes on {name}: {self.world.undo(claim_id)}")
            return
        settled = row.state in (ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED)
        if settled and self.random.random() < 0.8:
            return
        verdict = self.random.choice(VERDICTS[row.state])
        version = row.version
        if self.random.random() < 0.2:
            version = self.seen_versions.get(claim_id, version)
        self.seen_versions[claim_id] = version
        effects = self.world.check(claim_id).effects
        try:
            self.world.decide(
                claim_id,
                verdict,
                version=version,
                hold_seconds=self.random.choice((60, 60, 0)),
                objects=tuple(sorted(effects)) if verdict is Verdict.SETTLE else (),
            )
            self.say(f"a person decides on {name} ({row.state}): {verdict}")
        except LedgerProblem as problem:
            self.say(f"a person may not decide on {name} ({row.state}): {verdict}, {problem}")

    def _person_allows(self) -> None:
        held = call(
            "SELECT h.id, c.version FROM ledger_heldrequest h JOIN ledger_claim c"
            " ON c.id = h.blocker_id WHERE h.workspace_id = %s AND answered_at IS NULL",
            [self.world.workspace_id],
        )
        if held:
            self.world.clock.tell()
            held_id, version = self.random.choice(held)
            allowance = append.NewAllowance(claim_version=version, user_id=1, reason="two orders")
            append.allow(self.world.workspace_id, held_id, allowance)
            self.permissions += 1
            self.say("a person allows a held request")

    def _everybody_finishes(self) -> None:
        for _ in range(60):
            if not any(worker.is_running or worker.sent_at for worker in self.workers):
                break
            self.world.clock.let_pass(3)
            for worker in self.workers:
                worker.frozen = False
                self._request_arrives(worker)
                if worker.is_running:
                    self._next_step(worker)
        self.world.clock.let_pass(1000)
