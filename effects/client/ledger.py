"""The ledger as an agent sees it: ask before a tool runs, and ask again what became of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from effects.client.asking import Asked, Patience, ToolCall, claim_request
from effects.client.call import Call
from effects.client.clock import elapsed_clock_seconds
from effects.client.effect_result import Effect, effect_of
from effects.client.pulse import Pulse
from effects.client.reporting import Reporter, pauses_seconds
from effects.client.results import ObjectFrom, arguments_text, arguments_value
from effects.client.spool import Delivered, Spool
from effects.client.transport import Transport
from effects.client.transport_http import HttpTransport, Timeouts
from effects.client.turn import Turn
from effects.core.failures import Contract, ErrorRules
from effects.core.for_model import status_unavailable, unavailable
from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.problems import LedgerBehind, LedgerProblem, LedgerUnavailable
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass

if TYPE_CHECKING:
    from effects.client.offline import Offline
    from effects.client.recovering import Told
    from effects.core.recovery_messages import EndpointContract, RecoveryDecision, RecoveryRecord
    from effects.core.streams.record import StreamRecord

__all__ = ["Ledger", "NotGranted"]

POLL_SECONDS_MAX: Final = 30
"""Longest single long poll; `Ledger.wait` asks again until its own time is over."""

POSTGRES_SCHEMES: Final = ("postgresql://", "postgres://")

OPEN_STATES: Final = frozenset({ClaimState.IN_FLIGHT, ClaimState.UNKNOWN})
"""States in which waiting may still bring an answer."""


class NotGranted(Exception):
    """The ledger did not permit this call, so nothing was sent. `effect` says why, and holds the
    object for the model."""

    def __init__(self, effect: Effect) -> None:
        super().__init__(f"{effect.status}: {effect.for_model['detail']}")
        self.effect = effect


class Ledger:
    """A connection to the ledger. Safe to share between threads; one per process is enough.

    `url` is the address of the API, `token` a bearer token with the scope `claim`, or a function
    that returns one and is asked again once when the token is refused. Where `url` is that of the
    ledger's database (`postgresql://`), the agent's own role in it takes the place of both.

    While the ledger cannot be asked nothing is sent: the call comes back as `ledger_unavailable`,
    unless its tool opted in and every other condition of `docs/adr/0016` holds.
    An end that could not be reported comes back with `reported=False`. With a `spool`, a folder of
    this agent's own, it is kept there and delivered once the ledger answers again, by this process
    or by the next one that is given the folder. While a tool runs its lease is kept by heartbeats.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | Callable[[], str] = "",
        *,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
        patience: Patience | None = None,
        spool: Path | str | None = None,
    ) -> None:
        self._transport = transport or _transport(url or "", token, timeouts)
        self._patience = patience or Patience()
        kept_in = None if spool is None else Spool(spool)
        self._reporter = Reporter(self._transport, self._patience, spool=kept_in)
        self._offline = _offline(self._reporter, kept_in)
        self._pulse = Pulse()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def flush(self) -> Delivered:
        """Delivers what the spool holds, now, and says what is left. It happens by itself whenever
        the ledger answers; this is for the end of a process, and for jobs that only deliver."""
        return self._reporter.flush()

    @contextmanager
    def attempt(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        at: ToolCall,
        *,
        effect_class: EffectClass = EffectClass.UNKEYED_WRITE,
        contract: ErrorRules | Contract | None = None,
        object_from: ObjectFrom | None = None,
    ) -> Iterator[Call]:
        """One attempt as a block: ask, run the block, report.

        Raises `NotGranted` instead of running the block if the call may not be made now. The block
        says `call.complete(result)` when the effect has happened; a block that ends without saying
        so is reported as unknown. An exception is sorted, reported and raised again. Afterwards
        `call.effect` holds what to tell the model.
        """
        request = claim_request_of(tool, arguments, at, effect_class)
        begun = self.begin(
            Asked(
                request=request,
                contract=contract,
                object_from=object_from,
                outside=sys.exception(),
                received=at.received,
            )
        )
        if isinstance(begun, Effect):
            raise NotGranted(begun)
        try:
            with self.kept_alive(begun):
                yield begun
        except BaseException as error:
            begun.fail(error)
            raise
        if not begun.ended:
            begun.fail(RuntimeError("The block ended without saying whether the effect happened."))

    def begin(self, asked: Asked) -> Call | Effect:
        """Asks for the right to run one call: the attempt, or what to say instead of running it.

        The plain form under the decorator and the block. Whoever uses it must end the attempt with
        `complete` or `fail`. Raises `BadRequest`, `TokenRefused` or `ScopeMissing` if the question
        itself is wrong; nothing was granted then.
        """
        try:
            (answer,), asked_at = self._ask([asked], lambda: [self._transport.claim(asked.request)])
        except LedgerUnavailable as problem:
            return self._away(asked, problem)
        return self._begun(asked, answer, asked_at)

    def begin_all(self, calls: Sequence[Asked]) -> list[Call | Effect]:
        """Asks for several calls at once, in one request; answers in their order.

        A claim that is wrong comes back as an effect with the status `refused` and its `error`; the
        others are answered all the same.
        """
        if not calls:
            return []
        requests = [asked.request for asked in calls]
        try:
            answers, asked_at = self._ask(calls, lambda: self._transport.claim_batch(requests))
        except LedgerUnavailable as problem:
            return [self._away(asked, problem) for asked in calls]
        return [
            _refused(answer)
            if isinstance(answer, LedgerProblem)
            else self._begun(asked, answer, asked_at)
            for asked, answer in zip(calls, answers, strict=True)
        ]

    @contextmanager
    def kept_alive(self, call: Call) -> Iterator[None]:
        """Heartbeats for the call beside whatever runs in the block."""
        beats, lease_seconds = self._patience.beats_per_lease, call.answer.send_within_seconds
        if not beats or lease_seconds is None:
            yield
            return
        beating = self._pulse.begin(lease_seconds / beats, call.heartbeat)
        try:
            yield
        finally:
            self._pulse.end(beating)

    def turn(self, conversation: str, index: int, **more: Any) -> Turn:
        """The turn's calls, whose places are then counted by themselves. `index` is the number of
        assistant messages committed before the model was asked; `more` are further parts of a
        `ToolCall` that all its calls share, such as `response_id` and `worker`."""
        return Turn(self, ToolCall(conversation=conversation, turn_index=index, **more))

    def _begun(self, asked: Asked, answer: ClaimAnswer, asked_at: float) -> Call | Effect:
        self._reporter.ledger_answered()
        if answer.code not in {AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN}:
            return effect_of(answer)
        assert answer.send_within_seconds is not None, "checked by _usable"
        call = Call(
            answer=answer,
            send_until=asked_at + answer.send_within_seconds,
            reporter=self._reporter,
            contract=asked.contract,
            object_from=asked.object_from,
            outside=asked.outside,
        )
        return _in_time(call)

    def _away(self, asked: Asked, problem: LedgerUnavailable) -> Call | Effect:
        """Nobody answered, or nobody in a way that can be used."""
        going = None if self._offline is None else self._offline.begin(asked)
        return _away(asked.request, problem) if going is None else _in_time(going)

    def _heard(self, calls: Sequence[Asked], answers: Sequence[Any] | None = None) -> None:
        """The ledger, or somebody in its place, has said something to these calls."""
        if self._offline is None:
            return
        for asked, answer in zip(calls, answers or [None] * len(calls), strict=True):
            self._offline.heard(asked.request, answer if isinstance(answer, ClaimAnswer) else None)

    def _ask(
        self, calls: Sequence[Asked], ask: Callable[[], Sequence[ClaimAnswer | LedgerProblem]]
    ) -> tuple[list[Any], float]:
        """The answers and when they were asked for. Lost answers are asked for again: the same
        nonce gets the same grant, with what is left of its time."""
        pauses = pauses_seconds(self._patience, self._patience.claim_tries_max)
        while True:
            asked_at = elapsed_clock_seconds()
            try:
                answers = ask()
                self._heard(calls, answers)
                return [_usable(answer) for answer in answers], asked_at
            except LedgerProblem as problem:
                if not problem.facts.get("away"):
                    self._heard(calls)
                if isinstance(problem, LedgerBehind) or not isinstance(problem, LedgerUnavailable):
                    raise
                pause_seconds = next(pauses, None)
                if pause_seconds is None:
                    raise
                time.sleep(pause_seconds)

    def status(self, claim: UUID | str) -> Effect:
        """What is known about a call now, by its claim id or its key: the status tool's answer.

        `answer.decision` holds a person's decision, `for_model` and `result` are what to feed to
        the model. Raises `ClaimNotFound` if no such claim is in the token's workspace.
        """
        try:
            return effect_of(self._transport.status(str(claim)))
        except LedgerUnavailable as problem:
            told = status_unavailable(str(claim))
            return Effect(status=told["status"], for_model=told, error=problem)

    def recover(
        self,
        stream: StreamRecord | None,
        error: BaseException | None = None,
        *,
        known: RecoveryRecord | None = None,
        calls: Mapping[int, Told | UUID | str] | None = None,
        contract: EndpointContract | None = None,
    ) -> RecoveryDecision:
        """What may be done about a turn that broke off, by the same rules as `POST recover`.

        `stream` is the record of its response, None if none began, and `error` what was raised.
        `calls` tells by position what became of each tool call: an `Effect`, a claim's id or key,
        an `Outcome` or a `Dispatched`. The ledger is asked again about every claim that is not
        settled. `known` says the rest: what was durably kept and applied, the budgets, a
        cancellation; `contract` what the model's endpoint documents, see `ENDPOINTS`.
        """
        # Only an agent that recovers pays for loading the rules.
        from effects.client.recovering import decide  # noqa: PLC0415

        return decide(self.status, stream, error, known=known, calls=calls, contract=contract)

    def wait(self, claim_id: UUID | str, seconds: float) -> Effect:
        """The same, but waits up to `seconds` for the claim to be settled or decided."""
        claim_id = claim_id if isinstance(claim_id, UUID) else UUID(claim_id)
        until = elapsed_clock_seconds() + seconds
        pause_seconds = self._patience.pause_seconds_first
        while True:
            left_seconds = until - elapsed_clock_seconds()
            if left_seconds <= 0:
                return self.status(claim_id)
            begun = elapsed_clock_seconds()
            try:
                poll_seconds = max(1, min(POLL_SECONDS_MAX, int(left_seconds)))
                answer = self._transport.wait(claim_id, seconds=poll_seconds)
            except LedgerUnavailable:
                answer = None
            if answer is not None and answer.state not in OPEN_STATES:
                return effect_of(answer)
            if elapsed_clock_seconds() - begun < pause_seconds:
                # An answer that comes at once with nothing new must not become a storm.
                left_seconds = until - elapsed_clock_seconds()
                time.sleep(max(0.0, min(pause_seconds, left_seconds)))
                pause_seconds = min(pause_seconds * 2, self._patience.pause_seconds_max)


def _transport(url: str, token: str | Callable[[], str], timeouts: Timeouts | None) -> Transport:
    if url.startswith(POSTGRES_SCHEMES):
        try:
            # Only who asks for it needs psycopg.
            from effects.client.transport_postgres import PostgresTransport  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            needs = "A ledger in PostgreSQL needs psycopg: pip install 'counterfoil[postgres]'."
            raise ModuleNotFoundError(needs, name=missing.name) from missing
        return PostgresTransport(url, password=token, timeouts=timeouts)
    if not url or not token:
        raise ValueError("A ledger needs its url and a token. Pass both.")
    return HttpTransport(url, token, timeouts=timeouts)


def claim_request_of(
    tool: str, arguments: Mapping[str, Any] | str, at: ToolCall, effect_class: EffectClass
) -> ClaimRequest:
    """The claim request for arguments as the model wrote them, or as a mapping. Raises
    `ArgumentsRefused` and `BadRequest`; nothing has been asked then."""
    text = arguments if isinstance(arguments, str) else arguments_text(arguments)
    arguments_value(text)
    return claim_request(tool=tool, effect_class=effect_class, arguments=text, at=at)


def _offline(reporter: Reporter, spool: Spool | None) -> Offline | None:
    if spool is None:
        return None
    # Only an agent that keeps records on disk pays for loading the rule.
    from effects.client.offline import Offline  # noqa: PLC0415

    return Offline(reporter, spool)


def _in_time(call: Call) -> Call | Effect:
    try:
        call.check_grant()
    except Exception as error:  # noqa: BLE001 - whatever it is, the tool has not run
        return call.fail(error)
    return call


def _away(request: ClaimRequest, problem: LedgerUnavailable) -> Effect:
    told = unavailable(request.tool)
    return Effect(status=told["status"], for_model=told, error=problem, nothing_sent=True)


def _refused(problem: LedgerProblem) -> Effect:
    step = "Nothing was sent. Correct the call before it is made again."
    told = {"status": "refused", "detail": problem.detail, "next_step": step}
    return Effect(status="refused", for_model=told, error=problem)


def _usable(answer: ClaimAnswer | LedgerProblem) -> ClaimAnswer | LedgerProblem:
    """A grant without its parts permits nothing: which attempt it is could not be reported."""
    if isinstance(answer, LedgerProblem):
        return answer
    granted = answer.code in {AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN}
    whole = answer.claim_id is not None and answer.fence > 0
    if granted and not (whole and answer.send_within_seconds is not None):
        raise LedgerUnavailable("The ledger's grant lacks its claim, its fence or its time.")
    return answer
