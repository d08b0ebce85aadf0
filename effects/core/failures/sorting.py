"""Sorts the exception of a tool: not sent, refused (or refused and stored), or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from effects.core.answers import (
    TABLES,
    AnswerMeaning,
    Contract,
    explain_grpc_status,
)
from effects.core.failures.answered import CODE_CHARACTERS_MAX, Answer, answer_of, is_echo
from effects.core.failures.chain import chain_of, frames_of, name_of, names_of, place_of
from effects.core.failures.row import ErrorProof
from effects.core.failures.rows_python import CONNECTING
from effects.core.failures.sends import Sends, sends_in_traces
from effects.core.failures.table import ErrorRow, ErrorRules, error_rules, listed_row
from effects.core.redact import redacted
from effects.core.refusals import RefusalTable, explain_codes
from effects.core.vocabulary import Outcome

__all__ = ["Failure", "NotSent", "SendTooLate", "classify_exception"]

ERROR_CHARACTERS_MAX: Final = 2000


class NotSent(Exception):
    """Raised by a tool that knows that nothing was sent: the attempt ends as `not_sent`.

    The tool's word is the proof, so raise it only before the request is handed to a library.
    """


class SendTooLate(NotSent):
    """The time in which this attempt may send is over. Nothing was sent; ask for a new attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an attempt failed. `why` is one clause for people; `error` is the exception's own text,
    credentials removed. `replayed`: the answer said that it is the provider's stored one.
    `sends_seen` counts the requests that the library is known to have begun in this attempt, the
    last one included, at least; None: nothing says."""

    outcome: Outcome
    why: str
    error: str
    http_status: int | None = None
    provider_code: str | None = None
    request_id: str | None = None
    replayed: bool | None = None
    retry_after_seconds: int | None = None
    sends_seen: int | None = None


@dataclass(frozen=True, slots=True)
class _Saying:
    """What a row says of one exception. `own`: the row is the user's."""

    proof: ErrorProof
    when: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    """One failure as it is read: its chain, the exception first, and what the traces show."""

    chain: Sequence[BaseException]
    rules: ErrorRules
    sends: Sends

    @property
    def error(self) -> BaseException:
        return self.chain[0]


def classify_exception(
    error: BaseException,
    *,
    contract: ErrorRules | Contract | None = None,
    outside: BaseException | None = None,
) -> Failure:
    """Sorts the exception of a tool into not sent, refused (or refused and stored) or unknown.

    `contract` is the provider's, alone or with rows of the user's own; without it Stripe's own
    exceptions are read by "stripe.v1" and everything else by "generic". `outside` is the exception
    that was being handled when the tool was called: the chain ends there, since what came before is
    not of this attempt.
    """
    if isinstance(error, NotSent):
        return _failure(error, Outcome.NOT_SENT, "the tool says that nothing was sent")
    chain = list(chain_of(error, outside))
    case = _Case(chain, error_rules(contract), sends_in_traces(chain))
    found = _answered(case)
    if found is not None:
        return _by_answer(case, *found)
    seen = case.sends
    if seen.doubt is not None:
        failure = _failure(error, Outcome.UNKNOWN, seen.doubt)
    else:
        failure = _failure(error, *_proven(case))
    return replace(failure, sends_seen=seen.begun)


def _failure(error: BaseException, outcome: Outcome, why: str) -> Failure:
    text = redacted(f"{name_of(type(error))}: {error}")
    return Failure(outcome=outcome, why=why, error=text[:ERROR_CHARACTERS_MAX])


def _saying(error: BaseException, rules: ErrorRules) -> _Saying | None:
    own: ErrorRow | None = rules.row_for(error)
    if own is not None:
        return _Saying(own.proof, own.why, own=True)
    cause = names_of(type(error.__cause__)) if error.__cause__ is not None else []
    if isinstance(error, TimeoutError) and "asyncio.CancelledError" in cause:
        # asyncio.timeout raises at its own place; where the task was cancelled tells the stage.
        return _Saying(ErrorProof.ITS_CAUSE, "a timeout of asyncio")
    row = listed_row(error)
    return None if row is None else _Saying(row.proof, row.when)


# Proof that nothing was sent


def _proven(case: _Case) -> tuple[Outcome, str]:
    """NOT_SENT only if every exception of the chain is listed, and at least one proves it."""
    proof = None
    for one in case.chain:
        said = _saying(one, case.rules)
        objection = _objection(one, said)
        if objection is not None:
            return Outcome.UNKNOWN, objection
        assert said is not None, "an exception without a row is objected to"
        if said.proof is not ErrorProof.ITS_CAUSE:
            proof = one, said
    # An exception that was never raised here has no traceback, so an earlier request of the same
    # attempt could not have been seen.
    if proof is None or case.error.__traceback__ is None:
        return Outcome.UNKNOWN, f"nothing says when {name_of(type(case.error))} was raised"
    why = f"{name_of(type(proof[0]))} was raised before a byte of the request was sent"
    return Outcome.NOT_SENT, f"{why}, by a row of yours: {proof[1].when}" if proof[1].own else why


def _objection(one: BaseException, said: _Saying | None) -> str | None:
    """Why this exception of a chain takes the proof away, or None."""
    name = name_of(type(one))
    if said is None:
        return f"{name} is no proof that nothing was sent"
    if said.proof is ErrorProof.WHILE_CONNECTING and not _connecting(one):
        return f"{name} was raised when the send may have begun"
    if said.proof in {ErrorProof.NOTHING, ErrorProof.ITS_ANSWER}:
        whose = ", by a row of yours" if said.own else ""
        return f"{name} is no proof that nothing was sent{whose}: {said.when}"
    return None


def _connecting(error: BaseException) -> bool:
    return any(place_of(frame) in CONNECTING for frame in frames_of(error))


# Answers that a library raised as an exception


def _answered(case: _Case) -> tuple[BaseException, Answer] | None:
    """The exception that carries the provider's answer: the one raised, or the one within those
    that a user's row calls wrappers."""
    for one in case.chain:
        said = _saying(one, case.rules)
        if said is None:
            return None
        if said.proof is ErrorProof.ITS_ANSWER:
            answer = answer_of(one)
            return None if answer is None else (one, answer)
        if not (said.own and said.proof is ErrorProof.ITS_CAUSE):
            return None
    return None


def _by_answer(case: _Case, answered: BaseException, answer: Answer) -> Failure:
    by = case.rules.contract or answer.contract
    replayed = _replayed(by, answer)
    first = answer.begun == 1 and case.sends.doubt is None and _alone(case, answered)
    meaning = _meaning(by, answer, first_send=first, replayed=replayed is True)
    counts = [count for count in (answer.begun, case.sends.begun) if count is not None]
    return replace(
        _failure(case.error, meaning.outcome, meaning.why),
        http_status=answer.status,
        provider_code=answer.code and answer.code[:CODE_CHARACTERS_MAX],
        request_id=answer.request_id,
        replayed=replayed,
        retry_after_seconds=answer.retry_after_seconds,
        sends_seen=max(counts, default=None),
    )


def _replayed(by: Contract | RefusalTable, answer: Answer) -> bool | None:
    """Whether the answer is the stored one of an earlier request; None where it cannot say."""
    return _table(by).says_replayed(answer.headers)


def _alone(case: _Case, answered: BaseException) -> bool:
    """Whether the chain holds nothing else that went wrong: only wrappers that a user's row names,
    and exceptions that carry the same response once more."""
    return all(
        one is answered or is_echo(one, answered) or _is_wrapper(one, case.rules)
        for one in case.chain
    )


def _is_wrapper(one: BaseException, rules: ErrorRules) -> bool:
    own = rules.row_for(one)
    return own is not None and own.proof is ErrorProof.ITS_CAUSE


def _meaning(
    by: Contract | RefusalTable, answer: Answer, *, first_send: bool, replayed: bool
) -> AnswerMeaning:
    if answer.status is None:
        return explain_grpc_status(by, answer.code or "", first_send=first_send)
    codes = answer.codes or ((answer.code,) if answer.code else ())
    table = _table(by)
    return explain_codes(table, answer.status, codes, first_send=first_send, replayed=replayed)


def _table(by: Contract | RefusalTable) -> RefusalTable:
    return by if isinstance(by, RefusalTable) else TABLES[by]
