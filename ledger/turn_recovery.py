"""What is safe after a recorded response broke off: the client's own decision, from what is stored.

The record knows how a response ended, what it announced, and what became of each claim. It knows
neither the model's endpoint nor what that promises, so nothing is called resumable or replayable
here; the agent, who knows, asks the same function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from effects.core.recovery import recover
from effects.core.recovery_messages import (
    CALLS_MAX,
    Budget,
    CallFacts,
    EndpointContract,
    Received,
    RecoveryRecord,
    RequestFailure,
)
from effects.core.recovery_words import MECHANISMS, OBSERVATIONS, STEPS
from effects.core.streams.record import ArgumentsState, CallRecord, Dispatched, StreamRecord, Where
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Terminal

if TYPE_CHECKING:
    from ledger.models import Call, Claim, Stream

_NOT_SAID: Final = frozenset({"not_resumed", "not_replayed"})
"""Why it is not resumed or replayed: here only because the record does not know the endpoint."""

_OUTCOME_OF: Final[Mapping[ClaimState, Outcome | None]] = {
    ClaimState.IN_FLIGHT: None,
    ClaimState.UNKNOWN: Outcome.UNKNOWN,
    ClaimState.COMPLETED: Outcome.COMPLETED,
    ClaimState.NOT_EXECUTED: Outcome.NOT_SENT,
    # A person's decision: the truth of some attempt is open all the same.
    ClaimState.RELEASED: Outcome.UNKNOWN,
    ClaimState.CONFLICTED: Outcome.UNKNOWN,
    ClaimState.CLOSED: Outcome.UNKNOWN,
}
_DISPATCHED_OF: Final[Mapping[ClaimState, Dispatched]] = {
    ClaimState.COMPLETED: Dispatched.RETURNED,
    ClaimState.NOT_EXECUTED: Dispatched.NOT_STARTED,
}
UNCLAIMED: Final = (
    "A whole call was announced and no claim was made for it here: whether it ran, this record "
    "cannot tell. Find that out before anything is asked again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a turn beside one of its responses, because asking again concerns them all:
    what became of its claims, which claims an announced call has (their states, by the call's own
    number), the calls that may have run without a claim (by their response), which tools only read,
    and how many responses there were, and whether one ended well."""

    claims: tuple[CallFacts, ...]
    claimed_as: Mapping[int, tuple[ClaimState, ...]]
    unclaimed: tuple[tuple[int, CallFacts], ...]
    reads: frozenset[str]
    streams: int
    ended_well: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecovery:
    """`where` is the place at which the response ended, and `tools` what that means for them.
    `decision` is what may be done, as the API tells it; None of a response that ended well.
    `step`, `mechanism`, `says` and `rests_on` are the decision in words. `elsewhere`: another
    response of the same turn ended well."""

    where: str
    tools: str
    decision: dict[str, Any] | None = None
    step: str = ""
    mechanism: str = ""
    says: str = ""
    rests_on: tuple[str, ...] = ()
    elsewhere: bool = False


def is_of(call: Call, claim: Claim) -> bool:
    """Whether a claim was made for an announced call: the same id, or the same place and tool."""
    if call.call_id and claim.call_id:
        return call.call_id == claim.call_id
    return call.position == claim.position and call.tool in {None, claim.tool.name}


def known_of(
    claims: Sequence[tuple[Claim, ClaimState]],
    streams: Sequence[Stream],
    announced: Sequence[Call],
    reads: frozenset[str],
) -> Known:
    """`claims` with the states that they are shown in; `reads` are names of tools."""
    claimed_as = {
        call.pk: tuple(state for claim, state in claims if is_of(call, claim)) for call in announced
    }
    return Known(
        claims=tuple(_claimed(claim, state) for claim, state in claims),
        claimed_as=claimed_as,
        unclaimed=tuple(
            (call.stream_id, _unclaimed(call, reads))
            for call in announced
            if _may_have_run(call, claimed_as, reads)
        ),
        reads=reads,
        streams=len(streams),
        ended_well=any(stream.terminal == Terminal.SUCCESS for stream in streams),
    )


def recovery_of(
    stream: Stream, announced: Iterable[Call], known: Known, *, now: datetime
) -> TurnRecovery:
    """Where one response ended, and what may be done if it did not end well."""
    own = [call for call in announced if call.stream_id == stream.pk]
    terminal = Terminal(stream.terminal) if stream.terminal else None
    where, tools = _where(terminal, own, known)
    if terminal is Terminal.SUCCESS:
        return TurnRecovery(where=where, tools=tools)
    record = RecoveryRecord(
        terminal=Terminal.SUCCESS if known.ended_well else terminal,
        result_recorded=True,
        received=Received.PARTIAL if own else Received.HEADERS,
        operation_id=stream.response_id or None,
        calls=_facts(stream, own, known),
        # How often an agent may ask is its own affair: the record only counts.
        sends=Budget(made=known.streams, limit=known.streams + 1),
    )
    failure = RequestFailure(in_stream=terminal is Terminal.ERROR_EVENT)
    decision = recover(record, failure, EndpointContract(), now)
    return TurnRecovery(
        where=where,
        tools=tools,
        decision=decision.model_dump(mode="json", exclude=set(_NOT_SAID), exclude_none=True),
        step=STEPS[decision.step],
        mechanism=MECHANISMS[decision.mechanism],
        says=decision.says,
        rests_on=tuple(OBSERVATIONS[seen].says for seen in decision.observations),
        elsewhere=known.ended_well,
    )


def _where(terminal: Terminal | None, own: Iterable[Call], known: Known) -> tuple[str, str]:
    calls = tuple(
        CallRecord(
            position=call.position,
            call_id=call.call_id,
            name=call.tool,
            state=ArgumentsState.COMPLETE if call.complete else ArgumentsState.PARTIAL,
            raw="",
            why_not=None,
        )
        for call in own
    )
    record = StreamRecord(terminal=terminal or Terminal.CUT, calls=calls)
    death = record.where_it_died({n: call.dispatched for n, call in enumerate(known.claims)})
    if known.unclaimed and death.where is not Where.OUTSTANDING:
        return Where.OUTSTANDING.name.lower(), UNCLAIMED
    return death.where.name.lower(), death.says


def _may_have_run(
    call: Call, claimed_as: Mapping[int, tuple[ClaimState, ...]], reads: frozenset[str]
) -> bool:
    """A tool that runs without a claim leaves no trace, so silence does not say that it did not."""
    return call.complete and call.tool not in reads and not claimed_as[call.pk]


def _facts(stream: Stream, own: Iterable[Call], known: Known) -> tuple[CallFacts, ...]:
    """What was claimed in the turn, what may have run without a claim, and the response's other
    calls. Of more than a decision takes, those whose effect is unknown come first."""
    facts = [*known.claims, *(fact for _, fact in known.unclaimed)]
    loose = {fact.position for of, fact in known.unclaimed if of == stream.pk}
    facts += [
        _unclaimed(call, known.reads)
        for call in own
        if not known.claimed_as[call.pk] and call.position not in loose
    ]
    facts.sort(key=lambda fact: not fact.effect_unknown)
    return tuple(sorted(facts[:CALLS_MAX], key=lambda fact: fact.position))


def _unclaimed(call: Call, reads: frozenset[str]) -> CallFacts:
    read = call.tool in reads
    return CallFacts(
        position=call.position,
        tool=call.tool or None,
        effect_class=EffectClass.READ if read else EffectClass.UNKEYED_WRITE,
        arguments=ArgumentsState.COMPLETE if call.complete else ArgumentsState.PARTIAL,
        outcome=Outcome.UNKNOWN if call.complete and not read else None,
    )


def _claimed(claim: Claim, state: ClaimState) -> CallFacts:
    return CallFacts(
        position=claim.position,
        tool=claim.tool.name,
        effect_class=EffectClass(claim.effect_class),
        arguments=ArgumentsState.COMPLETE,
        dispatched=_DISPATCHED_OF.get(state, Dispatched.IN_FLIGHT),
        outcome=_OUTCOME_OF[state],
        sends=Budget(made=claim.fence, limit=claim.budget),
    )
