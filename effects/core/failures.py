"""What an exception proves about the request that a tool was sending.

The libraries of the providers are not imported here: their exceptions are recognised by package
and name, along the whole chain of causes and contexts, so that a tool may use any of them.

NOT_SENT needs a proof that no byte of the request left: the connection was refused, the name did
not resolve, the connection was not ready in time, the TLS handshake failed, no connection was free.
A read timeout, a reset or a cut body comes after the send began and proves nothing, and so does
every exception that is not listed. Two things destroy a proof:

* an earlier request of the same attempt: a library that repeats or follows redirects raises the
  error of its *last* request. The traceback shows whether there was one;
* another exception in the chain that is no part of this one: then something else failed first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from types import FrameType
from typing import Any, Final

from effects.core.answers import Contract, classify_answer, explain_answer
from effects.core.redact import redacted
from effects.core.vocabulary import Outcome

__all__ = [
    "Contract",
    "Failure",
    "NotSent",
    "SendTooLate",
    "classify_answer",
    "classify_exception",
]

ERROR_CHARACTERS_MAX: Final = 2000
CHAIN_LENGTH_MAX: Final = 40
FRAMES_MAX: Final = 2000


class NotSent(Exception):
    """Raised by a tool that knows that nothing was sent: the attempt ends as `not_sent`.

    The tool's word is the proof, so raise it only before the request is handed to a library.
    """


class SendTooLate(NotSent):
    """The time in which this attempt may send is over. Nothing was sent; ask for a new attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an attempt failed. `why` is one clause for people; `error` is the exception's own text,
    credentials removed. `replayed`: the answer said that it is the provider's stored one."""

    outcome: Outcome
    why: str
    error: str
    http_status: int | None = None
    provider_code: str | None = None
    request_id: str | None = None
    replayed: bool | None = None
    retry_after_seconds: int | None = None


class _Says(Enum):
    UNSENT = "no byte of the request was sent"
    DEPENDS = "its cause says"
    AT_WHICH_STAGE = "unsent if raised while connecting"


def _listed(says: _Says, names: str) -> dict[str, _Says]:
    return dict.fromkeys(names.split(), says)


_EXCEPTIONS: Final[dict[str, _Says]] = {
    # Exact classes only, named by top package: a subclass from elsewhere may mean anything.
    **_listed(
        _Says.UNSENT,
        """
        httpx.ConnectError httpx.ConnectTimeout httpx.PoolTimeout
        httpx.ProxyError httpx.UnsupportedProtocol httpx.InvalidURL
        httpx2.ConnectError httpx2.ConnectTimeout httpx2.PoolTimeout
        httpx2.ProxyError httpx2.UnsupportedProtocol httpx2.InvalidURL
        httpcore.ConnectError httpcore.ConnectTimeout httpcore.PoolTimeout
        httpcore.ProxyError httpcore.UnsupportedProtocol
        httpcore2.ConnectError httpcore2.ConnectTimeout httpcore2.PoolTimeout
        httpcore2.ProxyError httpcore2.UnsupportedProtocol
        requests.ConnectTimeout requests.MissingSchema requests.InvalidSchema
        requests.InvalidURL requests.InvalidHeader
        urllib3.NewConnectionError urllib3.NameResolutionError urllib3.ConnectTimeoutError
        urllib3.EmptyPoolError urllib3.ClosedPoolError urllib3.LocationParseError
        socket.gaierror builtins.ConnectionRefusedError
        """,
    ),
    **_listed(
        _Says.DEPENDS,
        """
        requests.ConnectionError requests.SSLError requests.ProxyError
        urllib3.MaxRetryError urllib3.SSLError urllib3.ProxyError urllib3.ProtocolError
        urllib.URLError stripe.APIConnectionError
        builtins.ExceptionGroup builtins.BaseExceptionGroup
        """,
    ),
    **_listed(
        _Says.AT_WHICH_STAGE,
        """
        builtins.OSError builtins.TimeoutError builtins.ConnectionResetError
        builtins.ConnectionAbortedError builtins.BrokenPipeError
        asyncio.CancelledError asyncio.TimeoutError concurrent.CancelledError
        ssl.SSLError ssl.SSLCertVerificationError ssl.SSLEOFError ssl.SSLZeroReturnError
        ssl.SSLSyscallError
        """,
    ),
}

_CONNECTING: Final = frozenset(
    {
        ("socket", "create_connection"),
        ("ssl", "do_handshake"),
        ("urllib3", "create_connection"),
        ("asyncio", "create_connection"),
        ("anyio", "connect_tcp"),
        ("httpcore", "connect_tcp"),
        ("httpcore", "start_tls"),
        ("httpcore2", "connect_tcp"),
        ("httpcore2", "start_tls"),
    }
)
"""Functions (top package, name) that are over before the first byte of a request is sent."""

_FOLLOWS_UP: Final = frozenset({("requests", "resolve_redirects"), ("urllib", "http_error_302")})
"""Functions that run only after an earlier request has been answered."""


def classify_exception(
    error: BaseException,
    *,
    contract: Contract | None = None,
    outside: BaseException | None = None,
) -> Failure:
    """Sorts the exception of a tool into not sent, refused (or refused and stored) or unknown.

    `contract` is the provider's; without it Stripe's own exceptions are read by "stripe.v1" and
    everything else by "generic". `outside` is the exception that was being handled when the tool
    was called: the chain ends there, since what came before is not of this attempt.
    """
    if isinstance(error, NotSent):
        return _failure(error, Outcome.NOT_SENT, "the tool says that nothing was sent")
    chain = list(_chain(error, outside))
    earlier = _earlier_request(chain)
    answered = _read_answer(error, contract, earlier, alone=len(chain) == 1)
    if answered is not None:
        return answered
    if earlier is not None:
        return _failure(error, Outcome.UNKNOWN, earlier)
    return _failure(error, *_proven(chain))


def _failure(error: BaseException, outcome: Outcome, why: str) -> Failure:
    text = redacted(f"{_name(error)}: {error}")
    return Failure(outcome=outcome, why=why, error=text[:ERROR_CHARACTERS_MAX])


def _name(error: BaseException) -> str:
    """Top package and class: "requests.ConnectTimeout", wherever the library keeps the class."""
    kind = type(error)
    return f"{_top(kind.__module__)}.{kind.__name__}"


def _top(module: str) -> str:
    return module.partition(".")[0]


def _chain(error: BaseException, outside: BaseException | None) -> Iterator[BaseException]:
    """The exception, its causes, its contexts (also where they are not shown), the members of a
    group and the reasons that urllib3 and urllib keep in an attribute; each once."""
    seen: set[int] = set() if outside is None else {id(outside)}
    waiting: list[BaseException] = [error]
    while waiting:
        this = waiting.pop()
        if id(this) in seen:
            continue
        seen.add(id(this))
        yield this
        if len(seen) > CHAIN_LENGTH_MAX:
            yield RuntimeError("The chain of exceptions is too long to be read.")
            return
        further = [this.__context__, this.__cause__, getattr(this, "reason", None)]
        further += getattr(this, "exceptions", ())
        waiting += [one for one in further if isinstance(one, BaseException)]


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    for _ in range(FRAMES_MAX):
        if trace is None:
            return
        yield trace.tb_frame
        trace = trace.tb_next


def _place(frame: FrameType) -> tuple[str, str]:
    return _top(str(frame.f_globals.get("__name__", ""))), frame.f_code.co_name


def _proven(chain: list[BaseException]) -> tuple[Outcome, str]:
    """NOT_SENT only if every exception of the chain is listed, and at least one proves it."""
    proof = None
    for one in chain:
        says = _says(one)
        if says is None:
            return Outcome.UNKNOWN, f"{_name(one)} is no proof that nothing was sent"
        if says is _Says.AT_WHICH_STAGE and not _connecting(one):
            return Outcome.UNKNOWN, f"{_name(one)} was raised when the send may have begun"
        if says is not _Says.DEPENDS:
            proof = one
    # An exception that was never raised here has no traceback, so an earlier request of the same
    # attempt could not have been seen.
    if proof is None or chain[0].__traceback__ is None:
        return Outcome.UNKNOWN, f"nothing says when {_name(chain[0])} was raised"
    return Outcome.NOT_SENT, f"{_name(proof)} was raised before a byte of the request was sent"


def _says(error: BaseException) -> _Says | None:
    if isinstance(error, TimeoutError) and isinstance(error.__cause__, asyncio.CancelledError):
        # asyncio.timeout raises at its own place; where the task was cancelled tells the stage.
        return _Says.DEPENDS
    return _EXCEPTIONS.get(_name(error))


def _connecting(error: BaseException) -> bool:
    return any(_place(frame) in _CONNECTING for frame in _frames(error))


# Earlier requests of the same attempt


def _earlier_request(chain: list[BaseException]) -> str | None:
    """Why an earlier request may have reached the provider, or None if the traces show none."""
    for one in chain:
        frames = list({id(frame): frame for frame in _frames(one)}.values())
        if any(_place(frame) in _FOLLOWS_UP for frame in frames):
            return "an earlier request was answered with a redirect"
        if _repeats(frames) or any(_has_history(frame) for frame in frames):
            return "the library had sent an earlier request, whose outcome is not known"
    return None


def _repeats(frames: list[FrameType]) -> bool:
    """Whether urllib3 called itself: it repeats and follows redirects by recursion."""
    codes = [
        frame.f_code
        for frame in frames
        if _place(frame) == ("urllib3", "urlopen") and "retries" in frame.f_code.co_varnames
    ]
    return len(codes) != len(set(codes))


def _has_history(frame: FrameType) -> bool:
    place = _place(frame)
    if place[0] in {"httpx", "httpx2"} and place[1].startswith("_send_handling_"):
        return bool(frame.f_locals.get("history", ()))
    if place[0] == "stripe" and place[1].startswith("_request_with_retries_internal"):
        return bool(frame.f_locals.get("num_retries", "missing") != 0)
    return False


# Answers that a library raised as an exception


def _read_answer(
    error: BaseException, contract: Contract | None, earlier: str | None, *, alone: bool
) -> Failure | None:
    answer = _answer_of(error)
    if answer is None:
        return None
    by = contract or answer.contract
    first_send = alone and earlier is None and answer.single
    replayed = by is Contract.STRIPE_V1 and answer.headers.get("idempotent-replayed") == "true"
    meaning = explain_answer(
        by, answer.status, answer.code, first_send=first_send, replayed=replayed
    )
    return replace(
        _failure(error, meaning.outcome, meaning.why),
        http_status=answer.status,
        provider_code=answer.code and answer.code[:255],
        request_id=_request_id(answer.headers),
        replayed=replayed,
        retry_after_seconds=_seconds(answer.headers.get("retry-after", "")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """`single`: the library can have sent no other request before the one that this answers."""

    status: int
    code: str | None
    headers: dict[str, str]
    single: bool
    contract: Contract


def _answer_of(error: BaseException) -> _Answer | None:
    packages = {_top(kind.__module__) for kind in type(error).__mro__}
    if "stripe" in packages and isinstance(getattr(error, "http_status", None), int):
        return _stripe_answer(error)
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if packages & {"httpx", "httpx2", "requests"} and isinstance(status, int):
        return _http_answer(response, status)
    if _name(error) == "urllib.HTTPError" and isinstance(getattr(error, "code", None), int):
        headers = _lowered(getattr(error, "headers", None))
        return _Answer(
            status=error.code,  # type: ignore[attr-defined]  # urllib's HTTPError, by name
            code=None,
            headers=headers,
            single=True,
            contract=Contract.GENERIC,
        )
    return None


def _stripe_answer(error: Any) -> _Answer:
    detail = getattr(error, "error", None)
    return _Answer(
        status=error.http_status,
        code=_error_code(getattr(detail, "type", None), error.code),
        headers=_lowered(error.headers),
        single=_stripe_sends_once(error),
        contract=Contract.STRIPE_V1,
    )


def _stripe_sends_once(error: BaseException) -> bool:
    """Whether the SDK was told not to repeat. `stripe.X.create` repeats twice by default, and an
    answer does not say whether it was the first."""
    for frame in _frames(error):
        if _place(frame)[0] == "stripe" and frame.f_code.co_name in {"request", "request_async"}:
            options = frame.f_locals.get("options") or {}
            repeats = options.get("max_network_retries")
            if repeats is None:
                requestor = frame.f_locals.get("requestor")
                settings = getattr(requestor, "_options", None)
                repeats = getattr(settings, "max_network_retries", "missing")
            return bool(repeats is None or repeats == 0)
    return False


def _http_answer(response: Any, status: int) -> _Answer:
    retries = getattr(getattr(response, "raw", None), "retries", None)
    return _Answer(
        status=status,
        code=_body_code(response),
        headers=_lowered(response.headers),
        single=not response.history and not getattr(retries, "history", ()),
        contract=Contract.GENERIC,
    )


def _body_code(response: Any) -> str | None:
    """The code in a JSON error body, in the two shapes that are common; never raises."""
    try:
        body = response.json()
    except Exception:  # noqa: BLE001 - an unread, cut or foreign body simply has no code
        return None
    error = body.get("error", body) if isinstance(body, dict) else None
    return _error_code(error.get("type"), error.get("code")) if isinstance(error, dict) else None


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


def _request_id(headers: dict[str, str]) -> str | None:
    found = headers.get("request-id") or headers.get("x-request-id")
    return found[:255] if found else None


def _seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
