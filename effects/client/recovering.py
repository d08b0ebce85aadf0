"""What a process knows of a turn that broke off, put together for the recovery decision.

Three sources: the stream's record (from bytes, or from an SDK's events), the exception that ended
the request, and what became of the tool calls. What none of them can know, the caller says in
`known`: above all how far the events were durably applied, which is not how far they were seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from effects.client.effect_result import Effect
from effects.core.failures import Failure, classify_exception
from effects.core.messages import NAME_CHARACTERS_MAX
from effects.core.problems import ClaimNotFound
from effects.core.recovery import recover
from effects.core.recovery_messages import (
    COUNT_MAX,
    SECONDS_MAX,
    Budget,
    CallFacts,
    EndpointContract,
    Received,
    RecoveryDecision,
    RecoveryRecord,
    RecoveryRequest,
    RequestFailure,
)
from effects.core.streams.record import (
    ArgumentsState,
    CallRecord,
    Dispatched,
    StreamRecord,
)
from effects.core.vocabulary import ClaimState, Outcome, Terminal

__all__ = ["Told", "decide", "recovery_request"]

Told = Effect | Outcome | Dispatched
"""What is known of one tool call: what the client gave back, the outcome, or how far it came."""

NOTHING_KNOWN: Final = RecoveryRecord()
NO_CALLS: Final[Mapping[int, Told]] = {}
NOTHING_PROMISED: Final = EndpointContract()

SUCCESS_STATUS: Final = 200
_OPENAI_ERROR_EVENT: Final = ("openai", "APIError")

OPEN_STATES: Final = frozenset({ClaimState.IN_FLIGHT, ClaimState.UNKNOWN})
"""States of which the ledger may know better by now."""

_OUTCOMES: Final[Mapping[str, Outcome | None]] = {
    "completed": Outcome.COMPLETED,
    "already_done": Outcome.COMPLETED,
    "not_executed": Outcome.NOT_SENT,
    # The ledger refused the call, or allows no more of it: it did not run, and is not run again.
    "refused": Outcome.REFUSED,
    "attempts_exhausted": Outcome.REFUSED,
    "in_flight": None,
}
"""What the word of an effect says of the call. Every other word leaves it unknown, also where only
an earlier request with the same content is: that one may have happened."""


def decide(
    status: Callable[[UUID | str], Effect],
    stream: StreamRecord | None,
    error: BaseException | None,
    *,
    known: RecoveryRecord | None,
    calls: Mapping[int, Told | UUID | str] | None,
    contract: EndpointContract | None,
) -> RecoveryDecision:
    """See `Ledger.recover`. `status` asks the ledger about a claim."""
    asked = recovery_request(
        stream,
        error,
        known=known or NOTHING_KNOWN,
        calls={place: _asked_again(status, told) for place, told in (calls or {}).items()},
        contract=contract or NOTHING_PROMISED,
    )
    return recover(asked.record, asked.failure, asked.contract, datetime.now(UTC))


def _asked_again(status: Callable[[UUID | str], Effect], told: Told | UUID | str) -> Told:
    """Asks about a claim that is not known to be settled. What nobody knows there stays unknown."""
    reference: UUID | str
    if isinstance(told, Effect):
        settled = told.answer is None or told.answer.state not in OPEN_STATES
        if told.claim_id is None or settled:
            return told
        reference = told.claim_id
    elif isinstance(told, (Outcome, Dispatched)):
        return told
    else:
        reference = told
    try:
        return status(reference)
    except ClaimNotFound:
        return Outcome.UNKNOWN


def recovery_request(
    stream: StreamRecord | None,
    error: BaseException | None,
    *,
    known: RecoveryRecord = NOTHING_KNOWN,
    calls: Mapping[int, Told] = NO_CALLS,
    contract: EndpointContract = NOTHING_PROMISED,
) -> RecoveryRequest:
    """The question about a turn. `stream` is None if no response began, `error` None if nothing was
    raised: an iterator that simply ends is no success. `calls` tells of tool calls by position.

    Raises pydantic's ValidationError if there are more calls than a decision takes.
    """
    failure = None if error is None else classify_exception(error)
    stream = _with_hidden_error_event(stream, error, failure)
    record = known.model_copy(
        update={
            **_seen(known, stream),
            "calls": _calls(stream, known, calls),
            "sends": _counted(known.sends, failure),
            "cancelled": known.cancelled or isinstance(error, _CANCELLING),
        }
    )
    return RecoveryRequest(
        record=RecoveryRecord.model_validate(record.model_dump()),
        failure=_request_failure(failure, record),
        contract=contract,
    )


_CANCELLING: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)


def _with_hidden_error_event(
    stream: StreamRecord | None, error: BaseException | None, failure: Failure | None
) -> StreamRecord | None:
    """Two SDKs raise an error event instead of handing it out, so their events only stop. The one
    of Anthropic gives it the status 200 with which its response had begun; the one of OpenAI, for
    Chat Completions, raises the bare base class of its errors."""
    if failure is None or (stream is not None and stream.terminal is not Terminal.CUT):
        return stream
    kind = type(error)
    bare = (kind.__module__.partition(".")[0], kind.__name__) == _OPENAI_ERROR_EVENT
    if failure.http_status != SUCCESS_STATUS and (stream is None or not bare):
        return stream
    begun = stream or StreamRecord(terminal=Terminal.CUT)
    return replace(begun, terminal=Terminal.ERROR_EVENT, error_type=failure.provider_code)


def _seen(known: RecoveryRecord, stream: StreamRecord | None) -> dict[str, Any]:
    if stream is None:
        return {}
    return {
        "terminal": stream.terminal,
        "received": max(known.received, _received(stream), key=list(Received).index),
        "operation_id": known.operation_id or _name(stream.response_id),
        # What was kept of a response with holes is not the response.
        "result_recorded": known.result_recorded and not stream.gaps,
    }


def _received(stream: StreamRecord) -> Received:
    if stream.calls or stream.orphans:
        return Received.PARTIAL
    declared = stream.terminal in {Terminal.SUCCESS, Terminal.INCOMPLETE, Terminal.ERROR_EVENT}
    seen = (stream.first_byte_at, stream.response_id, stream.model, stream.cursor)
    anything = declared or any(one is not None for one in seen) or bool(stream.usage)
    return Received.HEADERS if anything or stream.warnings else Received.NOTHING


def _counted(sends: Budget, failure: Failure | None) -> Budget:
    """With the requests that the SDK repeated by itself: they are sends as well."""
    seen = (failure.sends_seen if failure is not None else None) or 1
    return sends.model_copy(update={"made": min(sends.made + max(seen - 1, 0), COUNT_MAX)})


def _request_failure(failure: Failure | None, record: RecoveryRecord) -> RequestFailure:
    in_stream = record.terminal is Terminal.ERROR_EVENT
    if failure is None:
        return RequestFailure(in_stream=in_stream)
    status, wait = failure.http_status, failure.retry_after_seconds
    return RequestFailure.model_validate(
        {
            "outcome": failure.outcome,
            "http_status": status if status is not None and 100 <= status <= 599 else None,
            "provider_code": (failure.provider_code or "")[:NAME_CHARACTERS_MAX] or None,
            "in_stream": in_stream,
            "retry_after_seconds": None if wait is None else min(max(wait, 0), SECONDS_MAX),
            "why": failure.why,
        }
    )


def _calls(
    stream: StreamRecord | None, known: RecoveryRecord, told: Mapping[int, Told]
) -> tuple[CallFacts, ...]:
    """Every call that was announced, said in `known` or told of, by its position."""
    announced = {} if stream is None else {call.position: call for call in stream.calls}
    said = {call.position: call for call in known.calls}
    return tuple(
        _facts(position, announced.get(position), said.get(position), told.get(position))
        for position in sorted({*announced, *said, *told})
    )


def _facts(
    position: int, announced: CallRecord | None, said: CallFacts | None, told: Told | None
) -> CallFacts:
    facts = said or CallFacts(position=position, arguments=ArgumentsState.UNCONFIRMED)
    changes: dict[str, Any] = {}
    if announced is not None:
        changes = {"tool": _name(announced.name) or facts.tool, "arguments": announced.state}
    if isinstance(told, Dispatched):
        changes["dispatched"] = told
    elif isinstance(told, Outcome):
        changes |= {"dispatched": Dispatched.RETURNED, "outcome": told}
    facts = facts.model_copy(update=changes)
    return facts.model_copy(update=_of_effect(told, facts)) if isinstance(told, Effect) else facts


def _of_effect(told: Effect, facts: CallFacts) -> dict[str, Any]:
    """What the ledger said of a call. It grants the attempts of its claims, and nothing here may go
    around it, so a key and a contract that were said of the call are dropped."""
    outcome = Outcome.NOT_SENT if told.nothing_sent else _OUTCOMES.get(told.status, Outcome.UNKNOWN)
    answer = told.answer
    return {
        "outcome": outcome,
        "dispatched": Dispatched.IN_FLIGHT if outcome is None else Dispatched.RETURNED,
        "tool": (answer and _name(answer.tool)) or facts.tool,
        "effect_class": (answer and answer.effect_class) or facts.effect_class,
        "keyed": None,
        "contract": None,
    }


def _name(text: str | None) -> str | None:
    return (text or "")[:NAME_CHARACTERS_MAX] or None
