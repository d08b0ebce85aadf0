"""The ledger and its twin, side by side: both are asked, and every difference is an error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from effects.core.claim_rows import call_facts
from effects.core.clock import ClaimClock, Pending
from effects.core.decision import Asked, Policy, Remembered, StoredClaim, Told, decide_claim
from effects.core.fold import Folded, LoggedEvent, fold
from effects.core.identity import Identities, identities
from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Settle
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
    Verdict,
)
from effects.models import Tool
from ledger import append, claiming
from ledger.functions import call
from tests.support.clock import FrozenClock

CLAIMS = """
SELECT c.id::text, c.tool_id, c.scope, c.turn, c.local, c.call, c.caller, c.repeat, c.business,
  c.arguments_digest, c.lease_until, c.window_until, t.margin_seconds, t.release_lapse_minutes,
  d.verdict::text, d.effective_at, d.object, d.objects_named, c.decided_at, c.grant_until,
  c.completed_at, c.granted_at, c.budget, c.fence, c.generation, c.position, c.response_id,
  c.call_id, c.nonce
FROM ledger_claim c JOIN effects_tool t ON t.id = c.tool_id
LEFT JOIN ledger_decision d ON d.id = c.pending_decision_id
WHERE c.workspace_id = %s ORDER BY c.id
"""
EVENTS = """
SELECT e.claim_id::text, e.seq, e.kind::text, e.word::text, e.fence, e.generation, e.object,
  e.objects_seen, coalesce(e.replayed, false), coalesce(e.counts, false),
  coalesce(e.conditional, false)
FROM ledger_event e JOIN ledger_claim c ON c.id = e.claim_id
WHERE c.workspace_id = %s AND (%s::uuid IS NULL OR c.id = %s) ORDER BY e.claim_id, e.seq
"""
ROW = """
SELECT state::text, fresh_key, state = 'not_executed' AND grant_until IS NOT NULL, open_truth,
  version, fence, pending_decision_id FROM ledger_claim WHERE id = %s
"""


class DifferenceError(AssertionError):
    """The database and the law disagree."""


@dataclass(frozen=True, slots=True)
class Row:
    state: ClaimState
    version: int
    fence: int
    pending_decision_id: int | None


def digest_of(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@dataclass
class World:
    """One workspace with one tool under a clock that only the test moves."""

    tool: Tool
    clock: FrozenClock
    counted: Counter[str] = field(default_factory=Counter)

    @property
    def workspace_id(self) -> int:
        return self.tool.workspace_id

    @property
    def now(self) -> datetime:
        return self.clock.now

    @property
    def policy(self) -> Policy:
        tool = self.tool
        keyed = tool.effect_class == EffectClass.KEYED_WRITE
        seconds = tool.window_seconds if keyed else None
        return Policy(
            effect_class=EffectClass(tool.effect_class),
            lease=timedelta(seconds=tool.lease_seconds),
            window=None if seconds is None else timedelta(seconds=seconds),
            margin=timedelta(seconds=tool.margin_seconds),
            hold_in_turn=tool.hold_in_turn,
            agent_may_repeat=tool.agent_may_repeat,
        )

    def ask(self, request: ClaimRequest) -> ClaimAnswer:
        """Asks the law first, then the ledger."""
        self.clock.tell()
        expected = self._expected(request)
        answer = claiming.claim(self.workspace_id, request)
        self._compare(expected, answer)
        self.counted["answers compared"] += 1
        if answer.claim_id is not None:
            self.check(answer.claim_id)
        return answer

    def _expected(self, request: ClaimRequest) -> Told:
        rules = claiming.rules_of(self.tool)
        asked = Asked(
            identities=identities(call_facts(self.workspace_id, request, rules)),
            tool=self.tool.pk,
            position=request.position,
            response_id=request.response_id,
            call_id=request.call_id,
            nonce=bytes.fromhex(request.nonce) if request.nonce else None,
            repeat_of=str(request.repeat_of) if request.repeat_of else None,
        )
        return decide_claim(asked, self.stored(), self._remembered(), self.policy, self.now)

    def _compare(self, expected: Told, answer: ClaimAnswer) -> None:
        granted = answer.code is AnswerCode.GRANTED
        named = answer.blocker or answer.claim_id
        actual = Told(
            code=answer.code or AnswerCode.GRANTED,
            claim=None if granted and expected.claim is None else str(named),
            fence=answer.fence if granted else 0,
            generation=answer.generation if granted else 0,
            send_within=timedelta(seconds=answer.send_within_seconds)
            if granted and answer.send_within_seconds is not None
            else None,
            flags=frozenset(answer.flags) if granted else frozenset(),
        )
        wanted = Told(
            code=expected.code,
            claim=expected.claim,
            fence=expected.fence if granted else 0,
            generation=expected.generation if granted else 0,
            send_within=expected.send_within if granted else None,
            flags=expected.flags if granted else frozenset(),
        )
        if actual != wanted:
            raise DifferenceError(f"the ledger answered {actual}, the law says {wanted}")

    def stored(self) -> list[StoredClaim]:
        events = self._events(None)
        return [_stored(row, events) for row in call(CLAIMS, [self.workspace_id])]

    def _events(self, claim_id: UUID | None) -> dict[str, tuple[LoggedEvent, ...]]:
        logged: dict[str, tuple[LoggedEvent, ...]] = {}
        for row in call(EVENTS, [self.workspace_id, claim_id, claim_id]):
            logged[row[0]] = (*logged.get(row[0], ()), _event(row))
        return logged

    def events(self, claim_id: UUID) -> tuple[LoggedEvent, ...]:
        return self._events(claim_id)[str(claim_id)]

    def _remembered(self) -> list[Remembered]:
        return [
            Remembered(
                blocker=str(blocker),
                asker=bytes(asker),
                code=AnswerCode(code),
                allowed=allowed and not used,
                answered=answered,
            )
            for blocker, asker, code, allowed, used, answered in call(
                "SELECT blocker_id, asker, code::text, allowed_by IS NOT NULL, used_at IS NOT NULL,"
                " answered_at IS NOT NULL FROM ledger_heldrequest WHERE workspace_id = %s",
                [self.workspace_id],
            )
        ]

    # What happens to a claim; the row is compared with the fold after each.

    def report(
        self,
        claim_id: UUID,
        fence: int,
        outcome: Outcome,
        provider_object: str | None = None,
        *,
        replayed: bool | None = None,
    ) -> ClaimState:
        self.clock.tell()
        settle: Settle = Settle(fence=fence, provider_object=provider_object, replayed=replayed)
        if outcome is Outcome.COMPLETED:
            settle = Complete(**settle.model_dump(), result='{"ok":true}')
        append.report(self.workspace_id, claim_id, outcome, settle)
        return self.check(claim_id).state

    def observe(
        self,
        claim_id: UUID,
        word: SightingWord,
        fence: int,
        *,
        counts: bool = True,
        conditional: bool = False,
        objects: tuple[str, ...] = (),
    ) -> ClaimState:
        self.clock.tell()
        observation = append.Observation(
            word=word, fence=fence, counts=counts, conditional=conditional, objects=objects
        )
        append.observe(self.workspace_id, claim_id, observation)
        return self.check(claim_id).state

    def decide(
        self,
        claim_id: UUID,
        verdict: Verdict,
        *,
        version: int | None = None,
        hold_seconds: int = 60,
        objects: tuple[str, ...] = (),
        provider_object: str | None = None,
    ) -> append.DecisionHeld:
        self.clock.tell()
        decision = append.NewDecision(
            verdict=verdict,
            claim_version=self.row(claim_id).version if version is None else version,
            reason="because",
            rule="test",
            hold_seconds=hold_seconds,
            provider_object=provider_object,
            objects=objects,
        )
        try:
            return append.decide(self.workspace_id, claim_id, decision)
        finally:
            self.check(claim_id)

    def undo(self, claim_id: UUID) -> bool:
        self.clock.tell()
        pending = self.row(claim_id).pending_decision_id
        assert pending is not None, "nothing is held"
        try:
            return append.withdraw(self.workspace_id, claim_id, pending, user_id=1)
        finally:
            self.check(claim_id)

    def heartbeat(self, claim_id: UUID, fence: int) -> str:
        self.clock.tell()
        word = append.heartbeat(self.workspace_id, claim_id, fence).word
        self.check(claim_id)
        return word

    def touch(self, claim_id: UUID) -> ClaimState:
        self.clock.tell()
        call("SELECT ledger_touch_v1(%s, %s)", [self.workspace_id, claim_id])
        return self.check(claim_id).state

    def row(self, claim_id: UUID) -> Row:
        ((state, _, _, _, version, fence, pending),) = call(ROW, [claim_id])
        return Row(ClaimState(state), version, fence, pending)

    def check(self, claim_id: UUID) -> Folded:
        """The row is what the law makes of its events."""
        folded = fold(self.events(claim_id))
        ((state, fresh_key, conditional, open_truth, *_),) = call(ROW, [claim_id])
        law = (folded.state, folded.fresh_key, folded.conditional, bool(folded.open_attempts))
        if (state, fresh_key, conditional, open_truth) != law:
            raise DifferenceError(
                f"the row says {(state, fresh_key, conditional, open_truth)}, the fold {law}"
            )
        return folded


def _event(row: Any) -> LoggedEvent:
    return LoggedEvent(
        seq=row[1],
        kind=EventKind(row[2]),
        word=row[3],
        fence=row[4],
        generation=row[5],
        object=row[6],
        objects=tuple(row[7] or ()),
        replayed=row[8],
        counts=row[9],
        conditional=row[10],
    )


def _stored(row: Any, events: dict[str, tuple[LoggedEvent, ...]]) -> StoredClaim:
    (claim_id, tool, scope, turn, local, call, caller, repeat, business, arguments) = row[:10]
    (lease_until, window_until, margin, lapse, verdict, effective_at, held_object, held_objects) = (
        row[10:18]
    )
    (decided_at, grant_until, completed_at, granted_at, budget, fence, generation) = row[18:25]
    position, response_id, call_id, nonce = row[25:]
    pending = (
        Pending(
            verdict=Verdict(verdict),
            effective_at=effective_at,
            object=held_object,
            objects=tuple(held_objects or ()),
        )
        if verdict
        else None
    )
    return StoredClaim(
        id=claim_id,
        tool=tool,
        identities=Identities(
            scope=digest_of(scope),
            turn=digest_of(turn),
            slot=None,
            local=digest_of(local),
            call=digest_of(call),
            caller=digest_of(caller),
            repeat=digest_of(repeat),
            business=digest_of(business),
            arguments=bytes(arguments),
            weak_call_id=False,
        ),
        clock=ClaimClock(
            events=events[claim_id],
            lease_until=lease_until,
            window_until=window_until,
            margin=timedelta(seconds=margin),
            release_lapse=timedelta(minutes=lapse),
            pending=pending,
            decided_at=decided_at,
            grant_until=grant_until,
            completed_at=completed_at,
        ),
        granted_at=granted_at,
        budget=budget,
        fence=fence,
        generation=generation,
        position=position,
        response_id=response_id,
        call_id=call_id,
        nonce=digest_of(nonce),
    )
