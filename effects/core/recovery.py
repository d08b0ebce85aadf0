"""What is safe after a turn broke off: one decision from what was observed and what is promised.

Pure and total. Rules are tried in order and the first that applies answers; the order is the point.
A recorded success starts nothing. A tool whose effect is unknown comes before anything that could
propose it again. Cancelling is no permission. Only then is it asked whether the request may be
sent, read on or replayed, each on a proof or a documented contract; and what is left is kept and
told as what it is: unknown.

A proof about the last send is one about the operation only while nothing shows that the provider
ever had it: a refused connection says nothing of an earlier send, and a limiter's answer nothing of
a response that had begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from effects.core.recovery_contracts import (
    ENDPOINTS,
    generation_replay_bar,
    replay_bar,
    resume_bar,
    safe_until,
)
from effects.core.recovery_messages import (
    REFRESHES_MAX,
    Bar,
    CallAdvice,
    CallFacts,
    CallStep,
    EndpointContract,
    Mechanism,
    Observation,
    Partial,
    Received,
    RecoveryDecision,
    RecoveryReason,
    RecoveryRecord,
    RecoveryStep,
    RefreshFailure,
    RequestFailure,
)
from effects.core.recovery_words import CONTINUING, REASONS
from effects.core.streams.record import ArgumentsState, Dispatched
from effects.core.vocabulary import EffectClass, Outcome, Terminal

__all__ = [
    "ENDPOINTS",
    "EndpointContract",
    "RecoveryDecision",
    "RecoveryRecord",
    "RequestFailure",
    "observations",
    "recover",
]

Saw = Observation
R = RecoveryReason

TOO_MANY_REQUESTS: Final = 429

_OUTCOME_STANDS: Final = frozenset({Outcome.COMPLETED, Outcome.REFUSED, Outcome.REFUSED_STORED})
_INTERRUPTION: Final = (
    Saw.MAYBE_SENT,
    Saw.HEADERS_RECEIVED,
    Saw.PARTIAL_RECEIVED,
    Saw.NO_SUCCESSFUL_END,
)


def recover(
    record: RecoveryRecord, failure: RequestFailure, contract: EndpointContract, now: datetime
) -> RecoveryDecision:
    """What may be done about a turn. Raises ValueError if `now` has no time zone."""
    if now.tzinfo is None:
        raise ValueError("`now` has no time zone. Pass an aware datetime.")
    case = _Case(
        record=record,
        failure=failure,
        contract=contract,
        now=now,
        seen=observations(record, failure),
    )
    for rule in _RULES:
        decision = rule(case)
        if decision is not None:
            return decision
    raise AssertionError("the last rule always answers")


def observations(record: RecoveryRecord, failure: RequestFailure) -> frozenset[Observation]:
    """Everything that was seen; never empty."""
    return frozenset(_seen_of_request(record, failure)) | frozenset(_seen_beside(record, failure))


def _seen_of_request(record: RecoveryRecord, failure: RequestFailure) -> Iterator[Observation]:
    if record.untouched and failure.outcome is Outcome.NOT_SENT:
        yield Saw.NEVER_TRANSMITTED
        return
    if record.untouched and failure.outcome in {Outcome.REFUSED, Outcome.REFUSED_STORED}:
        yield Saw.REFUSED
        return
    begun = record.received is not Received.NOTHING or record.operation_id is not None
    declared = record.terminal in {Terminal.SUCCESS, Terminal.INCOMPLETE, Terminal.ERROR_EVENT}
    yield Saw.HEADERS_RECEIVED if begun or declared else Saw.MAYBE_SENT
    if record.received is Received.PARTIAL:
        yield Saw.PARTIAL_RECEIVED
    if record.terminal is Terminal.SUCCESS:
        yield Saw.SUCCESSFUL_END
    elif begun or record.terminal is not None:
        yield Saw.NO_SUCCESSFUL_END


def _seen_beside(record: RecoveryRecord, failure: RequestFailure) -> Iterator[Observation]:
    if any(call.has_run for call in record.calls):
        yield Saw.TOOL_DISPATCHED
    if failure.rejected_credentials:
        yield Saw.CREDENTIALS_REJECTED
    if record.was_cancelled:
        yield Saw.CANCELLED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    record: RecoveryRecord
    failure: RequestFailure
    contract: EndpointContract
    now: datetime
    seen: frozenset[Observation]

    @property
    def not_resumed(self) -> Bar | None:
        return resume_bar(self.record, self.failure, self.contract.resume, self.now)

    @property
    def not_replayed(self) -> Bar | None:
        return generation_replay_bar(self.record, self.contract.replay, self.now)

    def decided(
        self,
        step: RecoveryStep,
        mechanism: Mechanism,
        reason: RecoveryReason,
        rests_on: tuple[Observation, ...],
        **more: Any,
    ) -> RecoveryDecision:
        calls = tuple(_call_step(self, call) for call in self.record.calls)
        if mechanism is Mechanism.NONE and any(c.advice is CallAdvice.SAME_KEY for c in calls):
            mechanism = Mechanism.REPLAY
        more.setdefault("says", REASONS[reason])
        return RecoveryDecision(
            step=step,
            mechanism=mechanism,
            reason=reason,
            observations=tuple(one for one in Saw if one in self.seen and one in rests_on),
            calls=calls,
            **more,
        )

    def preserved(
        self, reason: RecoveryReason, *rests_on: Observation, **more: Any
    ) -> RecoveryDecision:
        return self.decided(RecoveryStep.PRESERVE, Mechanism.NONE, reason, rests_on, **more)

    def sent(
        self, mechanism: Mechanism, reason: RecoveryReason, proof: Observation
    ) -> RecoveryDecision:
        """A send that a proof allows, while the budget lasts."""
        if not self.record.sends.left:
            return self.preserved(R.SENDS_SPENT, proof, not_replayed=Bar.SENDS_SPENT)
        wait = self.failure.retry_after_seconds
        return self.decided(RecoveryStep.SEND, mechanism, reason, (proof,), wait_seconds=wait)


# The rules, in their order


def _success_is_recorded(case: _Case) -> RecoveryDecision | None:
    if not case.record.success_recorded:
        return None
    rests_on = (Saw.SUCCESSFUL_END, Saw.TOOL_DISPATCHED, Saw.CANCELLED)
    return case.decided(RecoveryStep.SETTLE, Mechanism.NONE, R.SUCCESS_RECORDED, rests_on)


def _an_effect_is_unknown(case: _Case) -> RecoveryDecision | None:
    if not any(call.effect_unknown for call in case.record.calls):
        return None
    rests_on = (Saw.TOOL_DISPATCHED, Saw.CANCELLED)
    return case.decided(RecoveryStep.RECONCILE, Mechanism.NONE, R.EFFECT_UNKNOWN, rests_on)


def _it_was_cancelled(case: _Case) -> RecoveryDecision | None:
    return case.preserved(R.CANCELLED, Saw.CANCELLED) if Saw.CANCELLED in case.seen else None


def _it_never_left(case: _Case) -> RecoveryDecision | None:
    if Saw.NEVER_TRANSMITTED not in case.seen:
        return None
    return case.sent(Mechanism.RECONNECT, R.NEVER_TRANSMITTED, Saw.NEVER_TRANSMITTED)


def _credentials_were_rejected(case: _Case) -> RecoveryDecision | None:
    record, failure = case.record, case.failure
    if not failure.rejected_credentials:
        return None
    if record.refresh_failed is RefreshFailure.UNAVAILABLE:
        return case.preserved(R.REFRESH_UNAVAILABLE, Saw.CREDENTIALS_REJECTED)
    hopeless = failure.refreshed or record.refresh_failed is RefreshFailure.REFUSED
    if hopeless or not case.contract.supports_refresh:
        return case.preserved(R.RECONNECTION_REQUIRED, Saw.CREDENTIALS_REJECTED)
    if record.refreshes_made < REFRESHES_MAX:
        reason, rests_on = R.CREDENTIALS_REJECTED, (Saw.CREDENTIALS_REJECTED,)
        return case.decided(RecoveryStep.REFRESH, Mechanism.RECONNECT, reason, rests_on)
    # They were refreshed since. What the rejected request itself proves is asked again.
    if failure.outcome is Outcome.REFUSED and Saw.REFUSED in case.seen:
        return case.sent(Mechanism.REPLAY, R.CREDENTIALS_REFRESHED, Saw.REFUSED)
    return None


def _it_was_refused(case: _Case) -> RecoveryDecision | None:
    if Saw.REFUSED not in case.seen or case.failure.rejected_credentials:
        return None
    limited = case.failure.http_status == TOO_MANY_REQUESTS
    if limited and case.failure.outcome is Outcome.REFUSED:
        return case.sent(Mechanism.REPLAY, R.TURNED_AWAY, Saw.REFUSED)
    return case.preserved(R.REFUSED, Saw.REFUSED)


def _it_can_be_read_on(case: _Case) -> RecoveryDecision | None:
    if case.not_resumed is not None:
        return None
    resume, at = case.contract.resume, case.record.last_event_at
    assert resume is not None, "the bar says so"
    assert at is not None, "the bar says so"
    return case.decided(
        RecoveryStep.RESUME,
        Mechanism.RESUME,
        R.RESUMABLE,
        (*_INTERRUPTION, Saw.SUCCESSFUL_END),
        operation_id=case.record.operation_id,
        cursor=case.record.cursor,
        until=at + timedelta(seconds=resume.kept_seconds),
    )


def _it_can_be_replayed(case: _Case) -> RecoveryDecision | None:
    if case.not_replayed is not None:
        return None
    keyed, contract = case.record.keyed, case.contract.replay
    assert keyed is not None, "the bar says so"
    assert contract is not None, "the bar says so"
    return case.decided(
        RecoveryStep.REPLAY,
        Mechanism.REPLAY,
        R.REPLAY_GUARANTEED,
        (*_INTERRUPTION, Saw.REFUSED),
        key=keyed.key,
        until=safe_until(keyed, contract),
        not_resumed=case.not_resumed,
    )


def _what_is_left(case: _Case) -> RecoveryDecision:
    record = case.record
    reason, offered = _left_over(record)
    offered = offered and record.sends.left
    return case.decided(
        RecoveryStep.PRESERVE,
        Mechanism.CONTINUE if offered else Mechanism.NONE,
        reason,
        (*_INTERRUPTION, Saw.SUCCESSFUL_END, Saw.REFUSED),
        says=f"{REASONS[reason]} {CONTINUING}" if offered else REASONS[reason],
        exclude=tuple(Partial) if offered else (),
        not_resumed=case.not_resumed,
        not_replayed=case.not_replayed,
    )


_RULES: Final[tuple[Callable[[_Case], RecoveryDecision | None], ...]] = (
    _success_is_recorded,
    _an_effect_is_unknown,
    _it_was_cancelled,
    _it_never_left,
    _credentials_were_rejected,
    _it_was_refused,
    _it_can_be_read_on,
    _it_can_be_replayed,
    _what_is_left,
)


def _left_over(record: RecoveryRecord) -> tuple[RecoveryReason, bool]:
    """Why the turn is only preserved, and whether there is something to continue from. Where
    nothing came, another generation would be the same request again without a contract."""
    match record.terminal:
        case Terminal.SUCCESS:
            return R.SUCCESS_NOT_RECORDED, False
        case Terminal.INCOMPLETE:
            return R.ENDED_BY_LIMIT, True
        case Terminal.ERROR_EVENT:
            return R.FAILED_IN_STREAM, True
        case Terminal.CUT | Terminal.CANCELLED | None:
            partial = record.received is Received.PARTIAL
            return (R.INTERRUPTED, True) if partial else (R.NO_ANSWER, False)


# Calls


def _call_step(case: _Case, call: CallFacts) -> CallStep:
    if call.effect_unknown:
        return _unknown_call(case, call)
    advice = CallAdvice.NOT_RUN
    returned = call.outcome is None and call.dispatched is Dispatched.RETURNED
    if call.outcome in _OUTCOME_STANDS or returned:
        advice = CallAdvice.SETTLED
    elif _may_be_dispatched(case, call):
        advice = CallAdvice.DISPATCH
    return CallStep(position=call.position, tool=call.tool, advice=advice)


def _unknown_call(case: _Case, call: CallFacts) -> CallStep:
    """A call whose effect is unknown: sent again only under its own contract, never while it may
    still run in somebody's hands, and never after a cancellation."""
    bar = replay_bar(call.keyed, call.contract, case.now)
    if bar is None and not call.sends.left:
        bar = Bar.SENDS_SPENT
    ended = call.outcome is Outcome.UNKNOWN
    if bar is not None or not ended or case.record.was_cancelled:
        return CallStep(
            position=call.position,
            tool=call.tool,
            advice=CallAdvice.RECONCILE,
            not_replayed=bar,
        )
    assert call.keyed is not None, "the bar says so"
    assert call.contract is not None, "the bar says so"
    return CallStep(
        position=call.position,
        tool=call.tool,
        advice=CallAdvice.SAME_KEY,
        key=call.keyed.key,
        until=safe_until(call.keyed, call.contract),
    )


def _may_be_dispatched(case: _Case, call: CallFacts) -> bool:
    """A call of a recorded response that has not run, or provably did nothing; a read may be made
    again."""
    ready = case.record.success_recorded and not case.record.was_cancelled
    whole = call.arguments is ArgumentsState.COMPLETE and call.tool is not None
    unrun = not call.has_run or call.outcome is Outcome.NOT_SENT
    return ready and whole and call.sends.left and (unrun or call.effect_class is EffectClass.READ)
