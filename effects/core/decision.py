"""What a claim request is told: the table, as a pure function.

The database decides in production (`ledger_claim_v1`, one statement, one commit). This twin states
the same rules where they can be read and tested; the laws compare both, answer by answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from effects.core.clock import ClaimClock, advance
from effects.core.fold import Folded
from effects.core.identity import Identities
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    EventKind,
    Flag,
    Outcome,
)

OPEN_STATES = frozenset(
    {
        ClaimState.IN_FLIGHT,
        ClaimState.UNKNOWN,
        ClaimState.RELEASED,
        ClaimState.CONFLICTED,
        ClaimState.CLOSED,
    }
)


HOLDS_BACK = frozenset({AnswerCode.HELD, AnswerCode.ALREADY_DONE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the tool's contract says. `window` null: not published, or no key."""

    effect_class: EffectClass
    lease: timedelta
    window: timedelta | None
    margin: timedelta
    hold_in_turn: bool = False
    agent_may_repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: who asks, as far as identities do not already say it."""

    identities: Identities
    tool: int
    position: int = 0
    response_id: str | None = None
    call_id: str | None = None
    nonce: bytes | None = None
    repeat_of: str | None = None

    @property
    def asker(self) -> bytes:
        return asker_of(self.identities)


def asker_of(ids: Identities) -> bytes:
    """The operation that asks, under one digest: what a remembered request is filed under."""
    if ids.turn is not None:
        return ids.turn
    assert ids.caller is not None, "a request without turn and caller key was refused before"
    # A caller's key says nothing about the arguments, and what a person allows is what they saw.
    return hashlib.sha256(ids.caller + ids.arguments).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClaim:
    """A claim near the request. Rows are ordered by id, which is the order of their creation."""

    id: str
    tool: int
    identities: Identities
    clock: ClaimClock
    granted_at: datetime
    budget: int
    fence: int
    generation: int
    position: int
    response_id: str | None
    call_id: str | None
    nonce: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A held request. `answered`: it no longer stands in anybody's way; `allowed`: it may run."""

    blocker: str
    asker: bytes
    code: AnswerCode
    allowed: bool
    answered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer. `claim` is the claim that it speaks of: the blocker where there is one."""

    code: AnswerCode
    claim: str | None = None
    fence: int = 0
    generation: int = 0
    send_within: timedelta | None = None
    flags: frozenset[Flag] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A stored claim as the clock leaves it now."""

    stored: StoredClaim
    clock: ClaimClock
    folded: Folded

    @property
    def blocks_others(self) -> bool:
        """A conditional absence frees its own key only, for nobody else."""
        return self.folded.state in OPEN_STATES or (
            self.folded.state is ClaimState.NOT_EXECUTED and self.folded.conditional
        )


def see(stored: StoredClaim, now: datetime) -> _Seen:
    clock, folded = advance(stored.clock, now)
    return _Seen(stored=stored, clock=clock, folded=folded)


def equal(left: bytes | None, right: bytes | None) -> bool:
    """Digests are equal only if both are there."""
    return left is not None and left == right


def from_other_response(stored: StoredClaim, response_id: str | None) -> bool:
    """Only two known ids that differ prove two responses; nobody invents one."""
    return bool(stored.response_id and response_id and stored.response_id != response_id)


def decide_claim(
    asked: Asked,
    near: Iterable[StoredClaim],
    remembered: Iterable[Remembered],
    policy: Policy,
    now: datetime,
) -> Told:
    """What `asked` is told at `now`, given every stored claim that shares a digest with it."""
    claims = sorted(near, key=lambda claim: claim.id)
    flags: set[Flag] = set()
    if asked.identities.weak_call_id:
        flags.add(Flag.WEAK_TOOL_CALL_ID)
    hits = [c for c in claims if _same_operation(c, asked, flags)]
    if len(hits) > 1:
        return Told(code=AnswerCode.IDENTITIES_DISAGREE, claim=hits[0].id)
    guard = _Guard(
        asked=asked,
        claims=claims,
        remembered=tuple(remembered),
        policy=policy,
        now=now,
        flags=flags,
    )
    if not hits:
        if asked.identities.weak_call_id and _id_is_taken(asked, claims):
            flags.add(Flag.DUPLICATE_TOOL_CALL_ID)
        return guard.stop(None) or Told(
            code=AnswerCode.GRANTED,
            fence=1,
            generation=1,
            send_within=_send_within(policy, now, now + policy.window if policy.window else None),
            flags=frozenset(flags),
        )
    return _answer_known(see(hits[0], now), asked, guard)


def _same_operation(claim: StoredClaim, asked: Asked, flags: set[Flag]) -> bool:
    mine, theirs = asked.identities, claim.identities
    if equal(mine.turn, theirs.turn) or equal(mine.caller, theirs.caller):
        return True
    if equal(mine.call, theirs.call):
        other_turn = not equal(mine.scope, theirs.scope)
        if not (other_turn and from_other_response(claim, asked.response_id)):
            return True
        # The id was seen in two responses of two turns: it is no identity here.
        flags.add(Flag.WEAK_TOOL_CALL_ID)
    return equal(mine.local, theirs.local)


def _id_is_taken(asked: Asked, claims: list[StoredClaim]) -> bool:
    """Another call of the same turn came under the same weak id: its layer hands out names."""
    scope = asked.identities.scope
    return any(equal(c.identities.scope, scope) and c.call_id == asked.call_id for c in claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guard:
    """What stops a grant although it is no repeat: a re-issued slot, or an open repeat elsewhere.

    Asked for a first grant and again for every regrant, then against the claim's own turn and slot:
    a redelivery may have been renumbered.
    """

    asked: Asked
    claims: list[StoredClaim]
    remembered: tuple[Remembered, ...]
    policy: Policy
    now: datetime
    flags: set[Flag]

    def stop(self, me: StoredClaim | None) -> Told | None:
        ids = me.identities if me else self.asked.identities
        position = me.position if me else self.asked.position
        asker = asker_of(ids)
        allowed = any(r.allowed and r.asker == asker for r in self.remembered)
        others = [see(c, self.now) for c in self.claims if me is None or c.id != me.id]
        return self._slot(others, ids, position, allowed=allowed) or self._repeats(
            others, ids, me, allowed=allowed
        )

    def _slot(
        self, others: list[_Seen], ids: Identities, position: int, *, allowed: bool
    ) -> Told | None:
        for seen in others:
            other = seen.stored
            same_slot = (
                equal(other.identities.scope, ids.scope)
                and other.tool == self.asked.tool
                and other.position == position
                and other.identities.arguments != ids.arguments
            )
            if not same_slot:
                continue
            if not from_other_response(other, self.asked.response_id):
                return Told(code=AnswerCode.MISMATCH, claim=other.id)
            firmly_no = seen.folded.state is ClaimState.NOT_EXECUTED and not seen.blocks_others
            if not firmly_no and not allowed:
                return Told(code=AnswerCode.REISSUED_DIFFERENTLY, claim=other.id)
        return None

    def _repeats(
        self, others: list[_Seen], ids: Identities, me: StoredClaim | None, *, allowed: bool
    ) -> Told | None:
        for seen in others:
            other = seen.stored
            business = equal(other.identities.business, ids.business)
            if not business and not equal(other.identities.repeat, ids.repeat):
                continue
            in_this_response = (
                equal(other.identities.scope, ids.scope)
                and not business
                and not from_other_response(other, self.asked.response_id)
            )
            if in_this_response and not self.policy.hold_in_turn:
                self.flags.add(Flag.IDENTICAL_IN_TURN)
            elif not allowed and (told := self._repeat(seen, me)):
                return told
        return None

    def _repeat(self, seen: _Seen, me: StoredClaim | None) -> Told | None:
        other = seen.stored
        if seen.blocks_others:
            return Told(code=AnswerCode.HELD, claim=other.id)
        if seen.folded.state is ClaimState.COMPLETED:
            done_at = seen.clock.completed_at
            assert done_at is not None, "a completed claim has a date"
            if me and done_at >= me.granted_at:
                return Told(code=AnswerCode.ALREADY_DONE, claim=other.id)
            if self._in_doubt(other):
                if not (self.policy.agent_may_repeat and self.asked.repeat_of == other.id):
                    return Told(code=AnswerCode.ALREADY_DONE, claim=other.id)
                self.flags.add(Flag.REPEAT_OF)
                return None
        self.flags.add(Flag.SAME_AS_EARLIER)
        return None

    def _in_doubt(self, other: StoredClaim) -> bool:
        """Whether somebody may be asking again only because the outcome was not known.

        A request that the claim held back is unanswered; or its own agent was told "unknown"
        before the truth came, and no repeat of it has been answered since.
        """
        mine = [r for r in self.remembered if r.blocker == other.id]
        unanswered = any(r.code in HOLDS_BACK and not r.answered for r in mine)
        told_unknown = any(
            e.kind is EventKind.LAPSED
            or (e.kind is EventKind.REPORTED and e.word == Outcome.UNKNOWN)
            for e in other.clock.events
        )
        return unanswered or (told_unknown and not any(r.answered for r in mine))

    def sibling(self, me: StoredClaim) -> str | None:
        """Another claim for the same thing that is open, or completed since `me` was granted."""
        for seen in (see(c, self.now) for c in self.claims if c.id != me.id):
            other = seen.stored
            near = (
                equal(other.identities.repeat, me.identities.repeat)
                or equal(other.identities.business, me.identities.business)
                or (
                    equal(other.identities.scope, me.identities.scope)
                    and other.tool == me.tool
                    and other.position == me.position
                )
            )
            if not near or self._is_parallel_call(other, me):
                continue
            done_at = seen.clock.completed_at
            if seen.blocks_others or (done_at is not None and done_at >= me.granted_at):
                return other.id
        return None

    def _is_parallel_call(self, other: StoredClaim, me: StoredClaim) -> bool:
        """Two equal calls of one response are two intended calls, unless the tool holds them."""
        return (
            equal(other.identities.scope, me.identities.scope)
            and other.position != me.position
            and not equal(other.identities.business, me.identities.business)
            and not from_other_response(other, me.response_id)
            and not self.policy.hold_in_turn
        )


TOLD_IN_STATE = {
    ClaimState.COMPLETED: AnswerCode.REPLAYED,
    ClaimState.IN_FLIGHT: AnswerCode.IN_FLIGHT,
    ClaimState.UNKNOWN: AnswerCode.UNKNOWN,
    ClaimState.CONFLICTED: AnswerCode.CONFLICTED,
    ClaimState.CLOSED: AnswerCode.CLOSED,
    # Both may be granted again; while a decision is in its minute nothing is.
    ClaimState.NOT_EXECUTED: AnswerCode.UNKNOWN,
    ClaimState.RELEASED: AnswerCode.UNKNOWN,
}
GRANTABLE = frozenset({ClaimState.NOT_EXECUTED, ClaimState.RELEASED})


def _answer_known(seen: _Seen, asked: Asked, guard: _Guard) -> Told:
    stored, state = seen.stored, seen.folded.state
    if stored.identities.arguments != asked.identities.arguments:
        return Told(code=AnswerCode.MISMATCH, claim=stored.id)
    if state in GRANTABLE and not seen.clock.pending:
        return _grant_again(seen, guard)
    code = TOLD_IN_STATE[state]
    if code is AnswerCode.IN_FLIGHT and equal(stored.nonce, asked.nonce):
        # The worker that never learnt its fence has sent nothing: it gets the same grant.
        code = AnswerCode.GRANTED_AGAIN
    return Told(code=code, claim=stored.id, fence=stored.fence, generation=stored.generation)


def _grant_again(seen: _Seen, guard: _Guard) -> Told:
    stored, policy, now = seen.stored, guard.policy, guard.now
    if seen.folded.state is ClaimState.NOT_EXECUTED:
        if stored.fence >= stored.budget:
            return Told(code=AnswerCode.ATTEMPTS_EXHAUSTED, claim=stored.id)
        if stopped := guard.stop(stored):
            return stopped
    elif not seen.folded.fresh_key and (sibling := guard.sibling(stored)):
        # The release was asked about siblings when it was decided; one may have run since.
        return Told(code=AnswerCode.HELD, claim=sibling)
    window_until = seen.clock.window_until
    closed = window_until is not None and now >= window_until - policy.margin
    generation = stored.generation
    if seen.folded.fresh_key or closed:
        generation += 1
        window_until = now + policy.window if policy.window else None
    return Told(
        code=AnswerCode.GRANTED,
        claim=stored.id,
        fence=stored.fence + 1,
        generation=generation,
        send_within=_send_within(policy, now, window_until),
        flags=frozenset(guard.flags),
    )


def _send_within(policy: Policy, now: datetime, window_until: datetime | None) -> timedelta:
    """The lease, or less where the provider's window closes before it ends."""
    if window_until is None:
        return policy.lease
    return min(policy.lease, window_until - policy.margin - now)
