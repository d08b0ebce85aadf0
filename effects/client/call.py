"""One attempt in progress: what a tool needs while it runs, and how it says what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

from effects.client.clock import elapsed_clock_seconds
from effects.client.effect_result import Effect, effect_of
from effects.client.marker_check import marker_in_error, marker_in_result
from effects.client.reporting import Reporter
from effects.client.results import ObjectFrom, object_of, replayed_of, result_text
from effects.client.transport import Report
from effects.core.failures import (
    Contract,
    ErrorRules,
    Failure,
    NotSent,
    SendTooLate,
    classify_exception,
    sends_in_result,
)
from effects.core.identity import MARKER_METADATA_KEY
from effects.core.messages import ClaimAnswer, Complete, Fail, Heartbeat, Sent, Settle, Unknown
from effects.core.problems import LedgerProblem
from effects.core.vocabulary import ClaimState, Outcome

__all__ = ["Call"]

UNAUTHORISED: Final = 401
REPEATS_MAX: Final = 1_000_000
"""The most that a report can say."""

Answered = TypeVar("Answered")


class Call:
    """A granted attempt. The client makes it; a tool's function gets it as its first argument.

    Use it from the thread that runs the tool.
    """

    def __init__(
        self,
        *,
        answer: ClaimAnswer,
        send_until: float,
        reporter: Reporter,
        contract: ErrorRules | Contract | None = None,
        object_from: ObjectFrom | None = None,
        outside: BaseException | None = None,
    ) -> None:
        self.answer = answer
        self.fence = answer.fence
        self._send_until = send_until
        self._reporter = reporter
        self._contract = contract
        self._object_from = object_from
        self._outside = outside
        self._announced = 0
        self._checks_passed = 0
        self._marker_sent: bool | None = None
        self._effect: Effect | None = None
        self._told_to_stop = False

    @property
    def claim_id(self) -> UUID:
        assert self.answer.claim_id is not None, "a grant names its claim"
        return self.answer.claim_id

    @property
    def offline(self) -> bool:
        """Whether the ledger is away and did not grant this: there is a key and no marker."""
        return False

    # What to send

    @property
    def key(self) -> str:
        """The key to forward, for example as the header Idempotency-Key. It is the same for every
        attempt of this claim until the ledger says otherwise. Raises `NotSent` if there is none."""
        if self.answer.key is None:
            raise NotSent(f"The grant for {self.answer.tool} carries no key. Nothing was sent.")
        return self.answer.key

    @property
    def marker(self) -> str:
        """Our reference, to be put where the provider keeps it and shows it again. A look-up that
        does not find it proves something only if it was really sent."""
        if self.answer.marker is None:
            raise NotSent(f"The grant for {self.answer.tool} carries no marker. Nothing was sent.")
        return self.answer.marker

    @property
    def marker_metadata(self) -> dict[str, str]:
        """The marker as metadata of a provider object."""
        return {MARKER_METADATA_KEY: self.marker}

    # When to send

    @property
    def send_seconds_left(self) -> float:
        """How long this attempt may still begin to send; 0 or less when the time is over. A request
        timeout that is longer than this is too long."""
        return self._send_until - elapsed_clock_seconds()

    def check_send(self) -> None:
        """Call it directly before the request is written. Raises `SendTooLate` if the time in which
        this attempt may send is over: the provider may have forgotten the key by now, and another
        worker may have been granted the call."""
        self.check_grant()
        self._checks_passed += 1

    def check_grant(self) -> None:
        """The same check, made where no request follows directly. Raises `SendTooLate`."""
        if self._told_to_stop:
            raise SendTooLate(
                f"{self.answer.tool} may not be sent any more: {self._which} no longer counts. "
                "Nothing was sent; ask again for a new attempt."
            )
        if self.send_seconds_left <= 0:
            raise SendTooLate(
                f"{self.answer.tool} may not be sent any more: the grant of {self._which} is over. "
                "Nothing was sent; ask again for a new attempt."
            )

    @property
    def _which(self) -> str:
        return f"attempt {self.fence} of claim {self.claim_id}"

    def sent(self, *, marker: bool | None = None) -> None:
        """Says that a request is about to be written: a hint that dates the send. Its failure is
        nobody's concern. `marker` says whether the request carries the marker, for libraries whose
        requests cannot be read afterwards. Call it before `check_send`, once per request: a tool
        that announces two requests can no longer end as `not_sent` or `refused`."""
        self._announced += 1
        if marker is not None:
            self._marker_sent = marker
        self._hint()

    def _hint(self) -> None:
        self._reporter.hint(self.claim_id, Sent(fence=self.fence))

    def heartbeat(self) -> bool:
        """Keeps the lease of a long call; it happens by itself beside a decorated tool and a block.
        False if the tool should stop before it sends anything else, which `check_send` then
        enforces. A ledger that cannot be asked changes nothing, so that is True."""
        try:
            answer = self._reporter.heartbeat(self.claim_id, Heartbeat(fence=self.fence))
        except LedgerProblem:
            return True
        self._told_to_stop = self._told_to_stop or answer.word != "ok"
        return not self._told_to_stop

    @property
    def told_to_stop(self) -> bool:
        """Whether the ledger said that this attempt no longer counts: a person decided, or its
        lease is over. Do not send; if something was sent, say how it ended."""
        return self._told_to_stop

    def with_one_refresh(
        self, send: Callable[[], Answered], refresh: Callable[[], object]
    ) -> Answered:
        """Sends, and once more after `refresh` if the provider refused the credentials of a first
        request (401): that answer proves that nothing was done, so a second request is safe. It
        happens once; whatever the second request meets is raised. Checks the time before each."""
        self.check_send()
        try:
            return send()
        except Exception as error:
            if not self.was_refused_unauthorised(error):
                raise
        # Outside the handler: the first exception is no part of what the second request meets.
        self.forget_check()
        refresh()
        self.check_send()
        return send()

    def was_refused_unauthorised(self, error: Exception) -> bool:
        """Whether it proves that the provider refused the credentials and did nothing."""
        failure = classify_exception(error, contract=self._contract, outside=self._outside)
        return failure.outcome is Outcome.REFUSED and failure.http_status == UNAUTHORISED

    def forget_check(self) -> None:
        """The request that a check allowed provably did nothing."""
        self._checks_passed -= 1

    # How it ended

    @property
    def effect(self) -> Effect:
        """How this attempt ended. Raises RuntimeError while it runs."""
        if self._effect is None:
            raise RuntimeError("This attempt has not ended yet: read `effect` after it.")
        return self._effect

    @property
    def ended(self) -> bool:
        return self._effect is not None

    def complete(
        self, result: Any, *, provider_object: str | None = None, replayed: bool | None = None
    ) -> Effect:
        """Reports that the effect happened, with the tool's result.

        `provider_object` names what the provider made (two attempts that name the same one are one
        effect); without it the tool's `object_from` finds it. `replayed` says that the provider
        gave its stored answer; the Stripe SDK's objects say so themselves. A result that has no
        JSON form is reported as completed without its result. The first call decides.
        """
        if self._effect is not None:
            return self._effect
        text = result_text(result)
        report = Complete(
            fence=self.fence,
            provider_object=provider_object or object_of(result, self._object_from),
            replayed=replayed_of(result) if replayed is None else replayed,
            marker_sent=self._marker(marker_in_result(result, self.answer.marker or "")),
            retry_count=_repeats(sends_in_result(result)),
            result=text,
            result_stored=text is not None,
        )
        guess = self._guess(ClaimState.COMPLETED).model_copy(
            update={
                "provider_object": report.provider_object,
                "result": text,
                "result_stored": text is not None,
            }
        )
        return self._end(report, guess, value=result)

    def fail(self, error: BaseException) -> Effect:
        """Reports the exception that ended the tool, sorted into not sent, refused or unknown."""
        if self._effect is not None:
            return self._effect
        failure = self._sorted(error)
        guess = self._guess(_state_after(failure.outcome, self.fence))
        return self._end(self._report_of(failure, error), guess, error=error, failure=failure)

    def _sorted(self, error: BaseException) -> Failure:
        failure = classify_exception(error, contract=self._contract, outside=self._outside)
        if failure.outcome is Outcome.UNKNOWN:
            return failure
        if self._announced > 1:
            return _doubted(failure, "the tool announced more than one request")
        if isinstance(error, SendTooLate) and self._checks_passed:
            return _doubted(failure, "an earlier check had allowed a request")
        return failure

    def _report_of(self, failure: Failure, error: BaseException) -> Report:
        said = Settle(
            fence=self.fence,
            http_status=failure.http_status,
            provider_code=failure.provider_code,
            request_id=failure.request_id,
            replayed=failure.replayed,
            marker_sent=self._marker(marker_in_error(error, self.answer.marker or "")),
            error=failure.error,
            retry_count=_repeats(failure.sends_seen),
        ).model_dump()
        proof = _proof(failure.outcome)
        return Unknown(**said) if proof is None else Fail(proof=proof, **said)

    def _marker(self, seen: bool | None) -> bool | None:  # noqa: FBT001 - a plain value, no switch
        return seen if self.answer.marker and seen is not None else self._marker_sent

    def _guess(self, state: ClaimState) -> ClaimAnswer:
        """The answer to fall back on if the report cannot be delivered."""
        return ClaimAnswer(
            claim_id=self.claim_id, state=state, tool=self.answer.tool, fence=self.fence
        )

    def _end(
        self,
        report: Report,
        guess: ClaimAnswer,
        *,
        value: Any = None,
        error: BaseException | None = None,
        failure: Failure | None = None,
    ) -> Effect:
        told = self._reporter.deliver(self.claim_id, report)
        self._effect = effect_of(
            told.answer or guess,
            value=value,
            error=error,
            failure=failure,
            reported=told.answer is not None,
            kept=told.kept,
        )
        return self._effect


def _doubted(failure: Failure, why: str) -> Failure:
    return replace(failure, outcome=Outcome.UNKNOWN, why=why)


def _repeats(sends: int | None) -> int | None:
    """How often the library repeated the request, as a report says it."""
    return None if sends is None else min(sends - 1, REPEATS_MAX)


Proof = Literal[Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED]


def _proof(outcome: Outcome) -> Proof | None:
    match outcome:
        case Outcome.NOT_SENT | Outcome.REFUSED | Outcome.REFUSED_STORED:
            return outcome
        case Outcome.UNKNOWN:
            return None
        case Outcome.COMPLETED:
            raise AssertionError("an exception never proves that the effect happened")


def _state_after(outcome: Outcome, fence: int) -> ClaimState:
    # With an earlier attempt, this one's proof says nothing about the whole claim.
    proven = outcome is not Outcome.UNKNOWN and fence == 1
    return ClaimState.NOT_EXECUTED if proven else ClaimState.UNKNOWN
