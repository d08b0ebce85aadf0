"""What endpoints promise about reading on and repeating a key, and whether a promise holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from effects.core.recovery_messages import (
    Bar,
    Concurrent,
    EndpointContract,
    KeyedSend,
    RecoveryRecord,
    ReplayContract,
    RequestFailure,
    ResumeContract,
)
from effects.core.streams.reader import Protocol
from effects.core.vocabulary import Terminal

GONE: Final = frozenset({404, 410})

_NOTHING: Final = EndpointContract()
ENDPOINTS: Final[Mapping[Protocol, EndpointContract]] = {
    # None of these documents that it deduplicates a generation by key; the header that the SDKs
    # prepare for it is never sent.
    Protocol.ANTHROPIC: _NOTHING,
    Protocol.OPENAI_CHAT: _NOTHING,
    # Read on with `starting_after`, for about ten minutes; closing any other stream ends it.
    # https://developers.openai.com/docs/guides/background
    Protocol.OPENAI_RESPONSES: EndpointContract(resume=ResumeContract(kept_seconds=600)),
}
"""What the model endpoints document, to be changed with `model_copy` where yours documents more."""

_SAFE_BESIDE_THE_FIRST: Final = frozenset({Concurrent.REFUSED, Concurrent.JOINED})
_NOTHING_TO_REPLAY: Final = frozenset({Terminal.SUCCESS, Terminal.INCOMPLETE})
"""Ends after which a replay would say nothing else."""
_NOTHING_TO_READ: Final = frozenset({Terminal.INCOMPLETE, Terminal.ERROR_EVENT})
"""Ends that were read already and say it all; a success that was not kept may be read again."""


def resume_bar(
    record: RecoveryRecord, failure: RequestFailure, contract: ResumeContract | None, now: datetime
) -> Bar | None:
    """Why a response may not be read on; None: the endpoint documents that it can be."""
    if contract is None:
        return Bar.ENDPOINT_CANNOT
    if record.operation_id is None:
        return Bar.NO_OPERATION_ID
    if contract.only_background and not record.background:
        return Bar.NOT_BACKGROUND
    if contract.only_stored and not record.stored:
        return Bar.NOT_STORED
    if record.terminal in _NOTHING_TO_READ:
        return Bar.ENDED
    return _resume_time_bar(record, failure, contract, now)


def _resume_time_bar(
    record: RecoveryRecord, failure: RequestFailure, contract: ResumeContract, now: datetime
) -> Bar | None:
    if not record.resumes.left:
        return Bar.RESUMES_SPENT
    if record.last_event_at is None:
        return Bar.NOT_DATED
    gone = record.resumes.made > 0 and failure.http_status in GONE
    old = now - record.last_event_at >= timedelta(seconds=contract.kept_seconds)
    return Bar.NO_LONGER_KEPT if gone or old else None


def generation_replay_bar(
    record: RecoveryRecord, contract: ReplayContract | None, now: datetime
) -> Bar | None:
    """Why the model's request may not be submitted again under its key."""
    if record.terminal in _NOTHING_TO_REPLAY:
        return Bar.ENDED
    if not record.sends.left:
        return Bar.SENDS_SPENT
    return replay_bar(record.keyed, contract, now)


def replay_bar(  # noqa: PLR0911 - one line a condition
    keyed: KeyedSend | None, contract: ReplayContract | None, now: datetime
) -> Bar | None:
    """Why a request may not be submitted again under its key; None: the contract makes it safe."""
    if contract is None:
        return Bar.ENDPOINT_CANNOT
    if keyed is None:
        return Bar.NO_KEY
    if keyed.digest != keyed.sent_digest:
        return Bar.OTHER_PARAMETERS
    if keyed.scope != contract.scope:
        return Bar.OTHER_SCOPE
    if contract.concurrent not in _SAFE_BESIDE_THE_FIRST:
        return Bar.CONCURRENCY_NOT_SAFE
    if keyed.first_sent_at - now > timedelta(seconds=contract.margin_seconds):
        return Bar.CLOCKS_DISAGREE
    # A key that the provider has forgotten protects nothing: the repeat would be a second request.
    return Bar.WINDOW_CLOSED if now >= safe_until(keyed, contract) else None


def safe_until(keyed: KeyedSend, contract: ReplayContract) -> datetime:
    """The instant from which on a repeat of the key is no longer safe."""
    safe_seconds = contract.window_seconds - contract.margin_seconds
    return keyed.first_sent_at + timedelta(seconds=safe_seconds)
