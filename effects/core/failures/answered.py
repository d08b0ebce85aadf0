"""Answers that a library raised as an exception: which status, which code, to which request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from effects.core.answers import Contract
from effects.core.failures.chain import frames_of, names_of, place_of
from effects.core.failures.sends import (
    AIOHTTP_REPEATS,
    RETRY_COUNT_HEADER,
    is_count,
    sends_in_answer,
)
from effects.core.refusals import codes_of_body

__all__ = ["Answer", "answer_of", "is_echo"]

BODY_BYTES_MAX: Final = 1024 * 1024
CODE_CHARACTERS_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an exception carries of the provider's answer.

    `status` is the HTTP status, or None where there is none: then `code` is the name of a gRPC
    status. `begun` counts the requests that the library can have begun up to this answer, the
    answered one included; None: it cannot be told, so an earlier one may have taken effect. `codes`
    are all that the body holds, where it was read: any of them may leave open what was done.
    """

    status: int | None
    code: str | None
    headers: Mapping[str, str]
    begun: int | None
    contract: Contract = Contract.GENERIC
    codes: tuple[str, ...] = ()

    @property
    def request_id(self) -> str | None:
        names = ("request-id", "x-request-id", "x-amzn-requestid", "x-amz-request-id")
        found = next((self.headers[name] for name in names if self.headers.get(name)), None)
        return found[:255] if found else None

    @property
    def retry_after_seconds(self) -> int | None:
        text = self.headers.get("retry-after", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def answer_of(error: BaseException) -> Answer | None:
    """The answer in an exception that the table lists as an answered one, or None.

    The body is read only where the library has read it already: nothing is asked for here.
    """
    for name in names_of(type(error)):
        reader = _READERS.get(name)
        if reader is not None:
            return reader(error)
    return None


def is_echo(one: BaseException, answered: BaseException) -> bool:
    """Whether an exception of the chain only carries the same response once more: the SDKs of
    openai and anthropic raise theirs while httpx2's is being handled."""
    response = getattr(answered, "response", None)
    return response is not None and getattr(one, "response", None) is response


def _status(value: object) -> int | None:
    return value if isinstance(value, int) and 100 <= value <= 599 else None


def _of_stripe(error: Any) -> Answer | None:
    status = _status(getattr(error, "http_status", None))
    if status is None:
        return None
    # The SDK leaves `code` empty on some of its classes; a lock that timed out is a RateLimitError.
    detail = getattr(error, "error", None)
    code = getattr(detail, "code", None) or error.code
    return Answer(
        status=status,
        code=_error_code(getattr(detail, "type", None), code),
        headers=_lowered(error.headers),
        begun=1 if _stripe_sends_once(error) else None,
        contract=Contract.STRIPE_V1,
    )


def _stripe_sends_once(error: BaseException) -> bool:
    """Whether the SDK was told not to repeat. `stripe.X.create` repeats twice by default, and an
    answer does not say whether it was the first."""
    for frame in frames_of(error):
        if place_of(frame) in {("stripe", "request"), ("stripe", "request_async")}:
            options = frame.f_locals.get("options") or {}
            repeats = options.get("max_network_retries")
            if repeats is None:
                requestor = frame.f_locals.get("requestor")
                settings = getattr(requestor, "_options", None)
                repeats = getattr(settings, "max_network_retries", "missing")
            return bool(repeats is None or repeats == 0)
    return False


def _of_response(error: Any) -> Answer | None:
    """httpx, httpx2 and requests."""
    response = getattr(error, "response", None)
    status = _status(getattr(response, "status_code", None))
    if status is None:
        return None
    body = _read_body(response)
    return Answer(
        status=status,
        code=_body_code(body),
        codes=codes_of_body(body),
        headers=_lowered(getattr(response, "headers", None)),
        begun=sends_in_answer(response),
    )


def _of_stainless(error: Any) -> Answer | None:
    """openai and anthropic. The request says by a header how often it had been repeated; a user who
    takes that header away leaves it open. One who writes it is found out by the traceback."""
    response = getattr(error, "response", None)
    status = _status(getattr(response, "status_code", None))
    if status is None:
        return None
    asked = _lowered(getattr(getattr(response, "request", None), "headers", None))
    repeats = asked.get(RETRY_COUNT_HEADER, "")
    body = getattr(error, "body", None)
    return Answer(
        status=status,
        code=_body_code(body) or _error_code(getattr(error, "type", None), None),
        codes=codes_of_body(body),
        headers=_lowered(getattr(response, "headers", None)),
        begun=int(repeats) + sends_in_answer(response) if is_count(repeats) else None,
    )


def _of_aiohttp(error: Any) -> Answer | None:
    status = _status(getattr(error, "status", None))
    if status is None:
        return None
    method = getattr(getattr(error, "request_info", None), "method", None)
    once = method is not None and method not in AIOHTTP_REPEATS
    return Answer(
        status=status,
        code=None,
        headers=_lowered(getattr(error, "headers", None)),
        begun=1 + len(getattr(error, "history", ())) if once else None,
    )


def _of_urllib(error: Any) -> Answer | None:
    status = _status(getattr(error, "code", None))
    if status is None:
        return None
    return Answer(status=status, code=None, headers=_lowered(error.headers), begun=1)


def _of_botocore(error: Any) -> Answer | None:
    told = getattr(error, "response", None)
    told = told if isinstance(told, Mapping) else {}
    metadata = told.get("ResponseMetadata", {})
    status = _status(metadata.get("HTTPStatusCode"))
    if status is None:
        return None
    repeats = metadata.get("RetryAttempts")
    code = told.get("Error", {}).get("Code")
    return Answer(
        status=status,
        code=_error_code(None, code),
        headers={
            **_lowered(metadata.get("HTTPHeaders")),
            **({"request-id": str(metadata["RequestId"])} if metadata.get("RequestId") else {}),
        },
        begun=repeats + 1 if isinstance(repeats, int) else None,
    )


def _of_grpc(error: Any) -> Answer | None:
    """`begun` is 1 only for a blocking or awaited unary call without an interceptor, which sends
    one message and then waits; any other may have been answered after it had sent several."""
    code = getattr(error, "code", None)
    name = getattr(code() if callable(code) else None, "name", None)
    if not isinstance(name, str):
        return None
    frames = list(frames_of(error))
    unary = any(map(_is_unary_call, frames)) and not any(map(_is_interceptor, frames))
    return Answer(status=None, code=name, headers={}, begun=1 if unary else None)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_unary_call(frame: FrameType) -> bool:
    if _module(frame) == "grpc._channel":
        return type(frame.f_locals.get("self")).__name__ == "_UnaryUnaryMultiCallable"
    if _module(frame) == "grpc.aio._call":
        return type(frame.f_locals.get("self")).__name__ == "UnaryUnaryCall"
    return False


def _is_interceptor(frame: FrameType) -> bool:
    return _module(frame) in {"grpc._interceptor", "grpc.aio._interceptor"}


_READERS: Final[dict[str, Callable[[Any], Answer | None]]] = {
    "stripe.StripeError": _of_stripe,
    "httpx.HTTPStatusError": _of_response,
    "httpx2.HTTPStatusError": _of_response,
    "requests.HTTPError": _of_response,
    "openai.APIStatusError": _of_stainless,
    "anthropic.APIStatusError": _of_stainless,
    "aiohttp.ClientResponseError": _of_aiohttp,
    "urllib.HTTPError": _of_urllib,
    "botocore.ClientError": _of_botocore,
    "grpc.RpcError": _of_grpc,
}


# Codes and headers


def _read_body(response: Any) -> object:
    """The JSON of a body that the library has read; None for an unread, cut or foreign one."""
    content = getattr(response, "_content", None)
    if not isinstance(content, bytes) or len(content) > BODY_BYTES_MAX:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _body_code(body: object) -> str | None:
    """The code in a JSON error body, in the shapes that are common."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    details = error.get("details")
    finer = details.get("error_code") if isinstance(details, dict) else None
    return _error_code(error.get("type"), finer or error.get("code"))


def _error_code(kind: object, code: object) -> str | None:
    # The type speaks first where it is "idempotency_error": such an error proves nothing, whatever
    # finer code it carries.
    if kind == "idempotency_error" and code != "idempotency_key_in_use":
        return "idempotency_error"
    for word in (code, kind):
        if isinstance(word, str) and word:
            return word
    return None


def _lowered(headers: Any) -> dict[str, str]:
    items = headers.items() if hasattr(headers, "items") else ()
    return {str(name).lower(): str(value) for name, value in items}
