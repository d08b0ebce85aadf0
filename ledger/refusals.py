"""Every answer of the API that is not a plain yes, in one place.

A refusal is a problem document (RFC 9457): a stable `code` for machines, a sentence for people that
says what happened, to what, and what to do. Which HTTP status goes with which word of the ledger is
the table `ANSWER_STATUS`. A lost database is 503 and never 500: the agent must be able to tell
"nobody can say now, ask again" from "this request will never work".
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, Final

import psycopg
import pydantic
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse

from effects.core.canonical import Refused
from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, Problem
from effects.core.problems import (
    BadRequest,
    LedgerProblem,
    LedgerUnavailable,
    TokenRefused,
    problem_of_refusal,
)
from effects.core.vocabulary import AnswerCode

logger = logging.getLogger(__name__)

PROBLEM_TYPE: Final = "application/problem+json"
RETRY_AFTER_LOST_DATABASE_SECONDS: Final = 2
ERRORS_SHOWN_MAX: Final = 20

ANSWER_STATUS: Final = {
    AnswerCode.GRANTED: HTTPStatus.CREATED,
    AnswerCode.GRANTED_AGAIN: HTTPStatus.OK,
    AnswerCode.REPLAYED: HTTPStatus.OK,
    AnswerCode.IN_FLIGHT: HTTPStatus.CONFLICT,
    AnswerCode.UNKNOWN: HTTPStatus.CONFLICT,
    AnswerCode.CONFLICTED: HTTPStatus.CONFLICT,
    AnswerCode.CLOSED: HTTPStatus.CONFLICT,
    AnswerCode.ATTEMPTS_EXHAUSTED: HTTPStatus.CONFLICT,
    AnswerCode.HELD: HTTPStatus.CONFLICT,
    AnswerCode.ALREADY_DONE: HTTPStatus.CONFLICT,
    AnswerCode.REISSUED_DIFFERENTLY: HTTPStatus.CONFLICT,
    AnswerCode.IDENTITIES_DISAGREE: HTTPStatus.CONFLICT,
    AnswerCode.MISMATCH: HTTPStatus.UNPROCESSABLE_ENTITY,
}
"""What a claim request is answered with. Below 400 the answer is the body itself; from 400 on it
stands in the problem document as `answer`. Only `granted` and `granted_again` permit a send."""

NOT_GRANTED: Final = {
    AnswerCode.IN_FLIGHT: "Not granted: an attempt is running.",
    AnswerCode.UNKNOWN: "Not granted: nobody can say yet what became of an earlier attempt.",
    AnswerCode.CONFLICTED: "Not granted: what is known about this claim contradicts itself.",
    AnswerCode.CLOSED: "Not granted: a person stopped this claim.",
    AnswerCode.ATTEMPTS_EXHAUSTED: "Not granted: every attempt that the tool allows was used.",
    AnswerCode.HELD: "Not granted: an earlier claim for the same thing is not settled.",
    AnswerCode.ALREADY_DONE: "Not granted: an earlier claim for the same thing has happened.",
    AnswerCode.REISSUED_DIFFERENTLY: "Not granted: this place of the turn asked otherwise.",
    AnswerCode.IDENTITIES_DISAGREE: "Not granted: the request looks like two different claims.",
    AnswerCode.MISMATCH: "Not granted: this identity was used with another tool or arguments.",
}


class TokenMissing(TokenRefused):
    """The request carries no bearer token. Send the header `Authorization: Bearer <token>`; an
    admin issues tokens."""

    code = "token_missing"


class InputInvalid(BadRequest):
    """The request does not have the shape that this endpoint reads. `errors` says where and why;
    correct those places and send it again."""

    code, status = "input_invalid", 422


class MediaTypeUnsupported(BadRequest):
    """The body is not declared as JSON. Send the header `Content-Type: application/json`."""

    code, status = "media_type_unsupported", 415


class IngestMediaUnsupported(BadRequest):
    """The body is of no kind that the ledger takes apart. Send JSON (one item or an array), NDJSON,
    or CloudEvents as `application/cloudevents+json` or `application/cloudevents-batch+json`."""

    code, status = "ingest_media_unsupported", 415


class BodyUnreadable(BadRequest):
    """The body cannot be taken apart into items. It is kept as it came, and nothing of it was
    applied; send it again, whole."""

    code, status = "body_unreadable", 400


class LengthRequired(BadRequest):
    """The body comes without its length. Send the header `Content-Length`."""

    code, status = "length_required", 411


class NoSuchEndpoint(BadRequest):
    """The API has nothing at this address. That says nothing about any claim; the addresses are
    listed at /api/docs."""

    code, status = "no_such_endpoint", 404


class MethodNotAllowed(BadRequest):
    """This address does not take this method. `allowed` lists those that it takes."""

    code, status = "method_not_allowed", 405


class InternalError(LedgerProblem):
    """The ledger met a fault of its own. Whether anything was recorded is not known: ask for the
    claim by its key before you do anything else."""

    code, status = "internal_error", 500


OWN_KINDS: Final[tuple[type[LedgerProblem], ...]] = (
    TokenMissing,
    InputInvalid,
    MediaTypeUnsupported,
    IngestMediaUnsupported,
    BodyUnreadable,
    LengthRequired,
    NoSuchEndpoint,
    MethodNotAllowed,
    InternalError,
)
"""The kinds that only the API knows. A client reads an unknown code by its status."""


def answered(answer: ClaimAnswer) -> HttpResponse:
    """The response to a claim request: the answer, or a problem document with the answer inside."""
    if answer.for_model is None:
        answer = answer.model_copy(update={"for_model": for_model(answer)})
    # No code: the tool is a read, nothing was recorded, and the call may go ahead.
    status = HTTPStatus.OK if answer.code is None else ANSWER_STATUS[answer.code]
    if answer.code is None or status < HTTPStatus.BAD_REQUEST:
        return answer_response(answer, status=status)
    assert answer.for_model is not None
    problem = Problem(
        type=_type_of(answer.code),
        title=NOT_GRANTED[answer.code],
        status=status,
        detail=f"{answer.for_model['detail']} {answer.for_model['next_step']}",
        code=answer.code,
        answer=answer,
    )
    return _problem_response(problem, retry_after_seconds=answer.retry_after_seconds)


def answer_response(answer: ClaimAnswer, *, status: int = HTTPStatus.OK) -> HttpResponse:
    """A claim's answer as it is. `Retry-After` says when asking again may bring something new."""
    response = HttpResponse(
        answer.model_dump_json(exclude_none=True), status=status, content_type="application/json"
    )
    if answer.retry_after_seconds is not None:
        response["Retry-After"] = str(answer.retry_after_seconds)
    return _not_cached(response)


def refused(problem: LedgerProblem) -> HttpResponse:
    """One problem as its response."""
    message = problem.to_message().model_copy(update={"type": _type_of(problem.code)})
    response = _problem_response(
        message, retry_after_seconds=problem.facts.get("retry_after_seconds")
    )
    if isinstance(problem, TokenRefused):
        response["WWW-Authenticate"] = 'Bearer realm="counterfoil"'
    return response


def problem_of(error: Exception) -> LedgerProblem:
    """The problem that an exception means to the agent. Total: what nobody foresaw is a 500."""
    match error:
        case LedgerProblem():
            return error
        case Http404():
            return NoSuchEndpoint()
        case Refused():
            return problem_of_refusal(error)
        case pydantic.ValidationError():
            return _problem_of_shape(error)
        case OperationalError() | InterfaceError() | psycopg.OperationalError():
            # The statement may have been committed although its answer was lost. The same request
            # with the same identity and nonce finds out, and cannot run anything twice.
            return LedgerUnavailable(
                "The ledger's database cannot be reached now, so nothing is permitted. If this was "
                "a report it may have been recorded: send it again later, it counts once.",
                retry_after_seconds=RETRY_AFTER_LOST_DATABASE_SECONDS,
            )
        case DatabaseError():
            logger.error("the database refused a statement", exc_info=error)
        case _:
            logger.error("unforeseen", exc_info=error)
    return InternalError()


def on_exception(_request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    """The API's one exception handler."""
    return refused(problem_of(error if isinstance(error, Exception) else error()))


def _problem_of_shape(error: pydantic.ValidationError) -> LedgerProblem:
    """Where a body does not have its shape. The values stay out of it: they may be secrets."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    errors = [{"at": _place(e["loc"]), "says": e["msg"]} for e in found[:ERRORS_SHOWN_MAX]]
    return input_invalid(errors)


def input_invalid(errors: list[dict[str, Any]]) -> InputInvalid:
    """The problem for places of a request, each `{"at": where, "says": what is wrong}`."""
    listed = "; ".join(f"{error['at']}: {error['says']}" for error in errors)
    return InputInvalid(f"The request cannot be read. {listed}.", errors=errors)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "body"


def _type_of(code: str) -> str:
    return f"/api/docs#{code}"


def _problem_response(problem: Problem, *, retry_after_seconds: int | None) -> HttpResponse:
    response = HttpResponse(
        problem.model_dump_json(exclude_none=True),
        status=problem.status,
        content_type=PROBLEM_TYPE,
    )
    if retry_after_seconds is not None:
        response["Retry-After"] = str(retry_after_seconds)
    return _not_cached(response)


def _not_cached(response: HttpResponse) -> HttpResponse:
    # An answer about a claim is true for the moment in which it was read.
    response["Cache-Control"] = "no-store"
    return response
