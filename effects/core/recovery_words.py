"""The recovery words, explained to people. The guide and the turn's page are made from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from effects.core.recovery_messages import (
    Bar,
    CallAdvice,
    Mechanism,
    Observation,
    RecoveryReason,
    RecoveryStep,
)

R = RecoveryReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An observation as a clause, what stays uncertain after it, and what may be done."""

    says: str
    uncertain: str
    then: str


OBSERVATIONS: Final[Mapping[Observation, Seen]] = {
    Observation.NEVER_TRANSMITTED: Seen(
        says="the transport proves that the request was never transmitted",
        uncertain="nothing about this send; an earlier one may be open",
        then="send, within the budget",
    ),
    Observation.REFUSED: Seen(
        says="the provider refused the request instead of working on it",
        uncertain="nothing about this send; an earlier one may be open",
        then="send again once what was refused has changed, within the budget",
    ),
    Observation.MAYBE_SENT: Seen(
        says="the request may have been sent, and no response came",
        uncertain="whether it was accepted, what was generated, what the provider's own tools did",
        then="look the operation up, or replay under a contract; else it stays ambiguous",
    ),
    Observation.HEADERS_RECEIVED: Seen(
        says="the response had begun",
        uncertain="whether output or effects exist beyond what was received",
        then="keep the operation's id; read it on where the endpoint documents that",
    ),
    Observation.PARTIAL_RECEIVED: Seen(
        says="part of a text or of a tool call was received",
        uncertain="the rest, what the provider's own tools did, how far consumers came",
        then="keep it; resume, or continue after everything is reconciled",
    ),
    Observation.TOOL_DISPATCHED: Seen(
        says="a tool call was dispatched, or may have been",
        uncertain="whether it took effect, unless its outcome is known",
        then="reconcile it, or retry that tool under its own contract",
    ),
    Observation.SUCCESSFUL_END: Seen(
        says="the provider's own successful end was seen",
        uncertain="whether the tools are done and the result is kept",
        then="record it, then settle the other operations one by one",
    ),
    Observation.NO_SUCCESSFUL_END: Seen(
        says="the response ended, or stopped coming, without a successful end",
        uncertain="whether the generation finished elsewhere",
        then="call it interrupted; the end of a connection is never success",
    ),
    Observation.CREDENTIALS_REJECTED: Seen(
        says="the provider rejected the credentials",
        uncertain="whether the account is still connected; what earlier sends did",
        then="refresh once, whatever the cached expiry says, then ask again",
    ),
    Observation.CANCELLED: Seen(
        says="somebody cancelled the turn",
        uncertain="what was already under way",
        then="start nothing; what is unknown is still found out",
    ),
}

STEPS: Final[Mapping[RecoveryStep, str]] = {
    RecoveryStep.SETTLE: "Settle the remaining tool calls and the delivery",
    RecoveryStep.RECONCILE: "Find out what became of a tool call first",
    RecoveryStep.SEND: "Send the request",
    RecoveryStep.REFRESH: "Refresh the credentials once, then ask again what to do",
    RecoveryStep.RESUME: "Read the response on, after what was applied",
    RecoveryStep.REPLAY: "Send the request again with the same key",
    RecoveryStep.PRESERVE: "Keep what was received, and say that the outcome is not known",
}

MECHANISMS: Final[Mapping[Mechanism, str]] = {
    Mechanism.RECONNECT: "a connection is made; nothing says that any work survived",
    Mechanism.RESUME: "an existing operation is read on from a position",
    Mechanism.REPLAY: "an operation is submitted again",
    Mechanism.CONTINUE: "another generation, informed by what is known",
    Mechanism.NONE: "nothing is repeated",
}

REASONS: Final[Mapping[RecoveryReason, str]] = {
    R.SUCCESS_RECORDED: (
        "The response ended well and is kept. Nothing is asked again: what is left is each tool "
        "call's own outcome, and the delivery."
    ),
    R.EFFECT_UNKNOWN: (
        "A tool call may have run, and nobody knows whether it took effect. That comes before "
        "anything that could propose it a second time."
    ),
    R.NEVER_TRANSMITTED: (
        "Not one byte of the request left, and no earlier send is open: it may be sent, also where "
        "it offers tools."
    ),
    R.TURNED_AWAY: (
        "A limiter turned the request away before it was worked on: it may be sent again later."
    ),
    R.CREDENTIALS_REJECTED: (
        "The credentials were rejected. They are refreshed once, whatever their cached expiry "
        "says; then the original request is judged again."
    ),
    R.CREDENTIALS_REFRESHED: (
        "The rejected request proves that nothing was done, and the credentials are new: it may be "
        "sent again."
    ),
    R.RESUMABLE: (
        "The endpoint lets this response be read on. That starts nothing; what comes twice is "
        "applied once."
    ),
    R.REPLAY_GUARANTEED: (
        "The endpoint answers this key with the first result: same parameters, inside its window."
    ),
    R.CANCELLED: "The turn was cancelled. That is no permission to start a replacement.",
    R.RECONNECTION_REQUIRED: (
        "The credentials are rejected and cannot be refreshed here: a person has to connect the "
        "account again. What was received is kept."
    ),
    R.REFRESH_UNAVAILABLE: (
        "The credentials could not be refreshed now. That says nothing about them: refresh later. "
        "What was received is kept."
    ),
    R.REFUSED: (
        "The provider refused the request, so nothing was done. The same request is refused again: "
        "correct it."
    ),
    R.SENDS_SPENT: "The request may not be sent more often. What was received is kept.",
    R.SUCCESS_NOT_RECORDED: (
        "The response ended well, and its result is not kept yet: keep it before anything else. "
        "Nothing is asked again."
    ),
    R.ENDED_BY_LIMIT: (
        "A limit ended the response. What was received is kept; asked again as it is, it ends in "
        "the same place."
    ),
    R.FAILED_IN_STREAM: (
        "The provider sent an error inside the response, which had begun well. What was received "
        "is kept; it is not finished."
    ),
    R.INTERRUPTED: (
        "The response stopped in the middle. What was received is kept; whether the generation "
        "finished elsewhere is not known."
    ),
    R.NO_ANSWER: (
        "Nobody can say whether the provider did the work, and no contract makes a second request "
        "safe. The outcome stays ambiguous."
    ),
}

CONTINUING: Final = (
    "Another generation is the application's choice: it costs again, says other words, and the "
    "provider's own tools may run again. It leaves out tool-use and thinking blocks that were cut, "
    "and is told what the settled calls did."
)

BARS: Final[Mapping[Bar, str]] = {
    Bar.ENDPOINT_CANNOT: "the endpoint does not document it",
    Bar.NO_OPERATION_ID: "the provider's id of the response never arrived",
    Bar.NOT_BACKGROUND: "it is no background response: closing its stream ended it",
    Bar.NOT_STORED: "the response is not stored",
    Bar.NOT_DATED: "nobody knows when its last event came",
    Bar.NO_LONGER_KEPT: "the endpoint no longer keeps it",
    Bar.RESUMES_SPENT: "it was read on as often as allowed",
    Bar.ENDED: "the provider has ended it",
    Bar.NO_KEY: "it was sent without a key",
    Bar.OTHER_PARAMETERS: "the parameters differ from those first sent with the key",
    Bar.OTHER_SCOPE: "the key was used in another account, mode or endpoint",
    Bar.WINDOW_CLOSED: "the provider may have forgotten the key",
    Bar.CLOCKS_DISAGREE: "the first send lies in the future: the clocks disagree",
    Bar.CONCURRENCY_NOT_SAFE: "the first request may still run, and a second beside it is not safe",
    Bar.SENDS_SPENT: "it was sent as often as allowed",
}

ADVICE: Final[Mapping[CallAdvice, str]] = {
    CallAdvice.SETTLED: "its outcome is known and stands",
    CallAdvice.RECONCILE: "find out first whether it took effect",
    CallAdvice.SAME_KEY: "may be sent again with the same key",
    CallAdvice.DISPATCH: "has not run, and may: claim it first",
    CallAdvice.NOT_RUN: "has not run; no result is written for it",
}
