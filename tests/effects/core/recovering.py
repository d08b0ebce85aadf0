"""A turn that broke off, to be changed by each test: it was sent once, no more is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from effects.core.recovery import recover
from effects.core.recovery_messages import (
    CallFacts,
    Concurrent,
    EndpointContract,
    KeyedSend,
    Received,
    RecoveryDecision,
    RecoveryRecord,
    ReplayContract,
    RequestFailure,
    ResumeContract,
)
from effects.core.streams import ArgumentsState, Dispatched
from effects.core.vocabulary import Outcome, Terminal

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
A_DAY = ReplayContract(window_seconds=86_400, concurrent=Concurrent.REFUSED)
READABLE = EndpointContract(resume=ResumeContract(kept_seconds=600))
KEYED = EndpointContract(replay=A_DAY)
REFRESHES = EndpointContract(supports_refresh=True)
EVERYTHING = EndpointContract(resume=READABLE.resume, replay=A_DAY, supports_refresh=True)

SENT = RecoveryRecord()
CUT_TEXT = RecoveryRecord(terminal=Terminal.CUT, received=Received.PARTIAL)
ENDED_WELL = RecoveryRecord(
    terminal=Terminal.SUCCESS, received=Received.PARTIAL, result_recorded=True
)

UNSENT = RequestFailure(outcome=Outcome.NOT_SENT)
LOST = RequestFailure()
UNAUTHORISED = RequestFailure(outcome=Outcome.REFUSED, http_status=401)
LIMITED = RequestFailure(outcome=Outcome.REFUSED, http_status=429, retry_after_seconds=7)


def decided(
    record: RecoveryRecord,
    failure: RequestFailure = LOST,
    contract: EndpointContract | None = None,
    now: datetime = NOW,
) -> RecoveryDecision:
    return recover(record, failure, contract or EndpointContract(), now)


def a_key(seconds_ago: float = 60, **changes: Any) -> KeyedSend:
    usual: dict[str, Any] = {
        "key": "op-1",
        "sent_digest": "d1",
        "digest": "d1",
        "first_sent_at": NOW - timedelta(seconds=seconds_ago),
    }
    return KeyedSend(**(usual | changes))


def a_call(**changes: Any) -> CallFacts:
    """A whole call of a write that nobody has run."""
    usual: dict[str, Any] = {"position": 0, "tool": "pay", "arguments": ArgumentsState.COMPLETE}
    return CallFacts(**(usual | changes))


def lost_call(**changes: Any) -> CallFacts:
    """A call that was dispatched and whose effect nobody knows."""
    return a_call(**({"dispatched": Dispatched.RETURNED, "outcome": Outcome.UNKNOWN, **changes}))


def background(**changes: Any) -> RecoveryRecord:
    """A stored background response that was cut after event 10; up to 8 everything is applied."""
    usual: dict[str, Any] = {
        "terminal": Terminal.CUT,
        "received": Received.PARTIAL,
        "operation_id": "resp_1",
        "background": True,
        "stored": True,
        "cursor": 8,
        "last_event_at": NOW - timedelta(seconds=30),
    }
    return RecoveryRecord(**(usual | changes))
