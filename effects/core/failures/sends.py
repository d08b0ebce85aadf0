"""How many requests a library began in one attempt, as far as its frames and its answer say.

A library that repeats or follows redirects raises the error of its *last* request. An earlier one
may have taken effect, so it destroys the proof that the last one was not sent or was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, TypeGuard

from effects.core.failures.chain import frames_of, name_of, place_of

__all__ = [
    "AIOHTTP_REPEATS",
    "RETRY_COUNT_HEADER",
    "Sends",
    "is_count",
    "sends_in_answer",
    "sends_in_result",
    "sends_in_traces",
]

RETRY_COUNT_HEADER: Final = "x-stainless-retry-count"
SENDS_MAX: Final = 1_000_000

REPEATERS: Final = frozenset(
    {"backoff", "httpx_retries", "opnieuw", "retry", "retrying", "stamina", "tenacity"}
)
"""Packages whose whole purpose is to call something again."""

STAINLESS: Final = frozenset({"anthropic", "openai"})
"""SDKs that one generator writes; they count their repeats in the same header."""

AIOHTTP_REPEATS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})
"""Methods that aiohttp sends a second time by itself when the server disconnects."""

NEVER_LEFT: Final = frozenset(
    {"urllib3.NewConnectionError", "urllib3.NameResolutionError", "urllib3.ConnectTimeoutError"}
)
"""What urllib3 keeps of an earlier try that only failed to connect."""

REDIRECTED: Final = "an earlier request was answered with a redirect"
REPEATED: Final = "the library had sent an earlier request, whose outcome is not known"
REPEATER: Final = "a library that repeats may have sent an earlier request"
MIDDLEWARE: Final = "a middleware of the client may have sent an earlier request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """What the traces of an attempt show. `begun` counts the requests that the library began, the
    last one included; None: no frame says. `doubt` is why an earlier one may have reached the
    provider, or None if none can have."""

    begun: int | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one frame shows: how many requests came before, and why they matter."""

    before: int = 0
    doubt: str | None = None


def _repeated(before: object) -> _Seen:
    """A count that cannot be read may be any."""
    count = before if isinstance(before, int) else 1
    return _Seen(count, REPEATED if count else None)


def _httpx(frame: FrameType) -> _Seen:
    return _repeated(len(frame.f_locals.get("history", ())))


def _redirects(frame: FrameType) -> _Seen:
    return _Seen(max(1, len(frame.f_locals.get("hist", ()))), REDIRECTED)


def _urllib3(frames: Sequence[FrameType]) -> _Seen:
    """urllib3 repeats and redirects by calling itself. What came before is in the history that a
    call was given; one that failed before it looked there still has the call around it, and one
    that holds an answer has had it."""
    calls = [frame for frame in frames if place_of(frame) == ("urllib3", "urlopen")]
    history: Sequence[Any] = max((_history(frame) for frame in calls), key=len, default=())
    again = len(calls) != len({frame.f_code for frame in calls})
    again = again or any(frame.f_locals.get("response") is not None for frame in calls)
    left = any(not _never_left(one) for one in history)
    doubt = REPEATED if left or (again and not history) else None
    return _Seen(max(len(history), int(again)), doubt)


def _history(frame: FrameType) -> Sequence[Any]:
    told = frame.f_locals
    retries = told.get("retries") or told.get("kw", {}).get("retries")
    history = getattr(retries, "history", ())
    return history if isinstance(history, Sequence) else ()


def _never_left(entry: Any) -> bool:
    """Whether a try that urllib3 remembers only failed to connect."""
    error = getattr(entry, "error", None)
    return isinstance(error, BaseException) and name_of(type(error)) in NEVER_LEFT


def _aiohttp(frame: FrameType) -> _Seen:
    told = frame.f_locals
    before = len(told.get("history", ()))
    may_repeat = getattr(told.get("self"), "_retry_connection", False)
    if may_repeat and told.get("method") in AIOHTTP_REPEATS:
        before += told.get("retry_persistent_connection") is False
    if not before and told.get("effective_middlewares"):
        return _Seen(0, MIDDLEWARE)
    return _repeated(before)


def _stripe(frame: FrameType) -> _Seen:
    return _repeated(frame.f_locals.get("num_retries", "missing"))


def _stainless(frame: FrameType) -> _Seen:
    before = frame.f_locals.get("retries_taken", 0)
    if not before and frame.f_locals.get("chain") is not None:
        return _Seen(0, MIDDLEWARE)
    return _repeated(before)


def _botocore(frame: FrameType) -> _Seen:
    attempts = frame.f_locals.get("attempts", 1)
    return _repeated(attempts - 1 if isinstance(attempts, int) else None)


_COUNTERS: Final[dict[tuple[str, str], Callable[[FrameType], _Seen]]] = {
    **{
        (package, name): _httpx
        for package in ("httpx", "httpx2")
        for name in ("_send_handling_auth", "_send_handling_redirects")
    },
    ("requests", "resolve_redirects"): _redirects,
    ("urllib", "http_error_302"): _redirects,
    ("aiohttp", "_request"): _aiohttp,
    ("stripe", "_request_with_retries_internal"): _stripe,
    ("stripe", "_request_with_retries_internal_async"): _stripe,
    ("openai", "request"): _stainless,
    ("anthropic", "_request"): _stainless,
    ("botocore", "_send_request"): _botocore,
}


def sends_in_traces(chain: Iterable[BaseException]) -> Sends:
    """What the frames of every exception of the chain show.

    Two functions of one package may count the same requests, so the greater count stands for the
    package; requests of different layers add up.
    """
    chain = list(chain)
    frames = list({id(frame): frame for one in chain for frame in frames_of(one)}.values())
    seen = [
        (_layer(frame), counter(frame))
        for frame in frames
        if (counter := _COUNTERS.get(place_of(frame))) is not None
    ]
    if any(place_of(frame) == ("urllib3", "urlopen") for frame in frames):
        seen.append(("urllib3", _urllib3(frames)))
    seen += [("a repeater", one) for one in _repeaters(frames)]
    seen += [("an SDK", _repeated(count)) for one in chain for count in _said_by_request(one)]
    if not seen:
        return Sends()
    before: dict[str, int] = {}
    for package, one in seen:
        before[package] = max(before.get(package, 0), one.before)
    doubt = next((one.doubt for _, one in seen if one.doubt is not None), None)
    return Sends(begun=1 + sum(before.values()), doubt=doubt)


def _layer(frame: FrameType) -> str:
    package, _ = place_of(frame)
    return "an SDK" if package in STAINLESS else package


def _said_by_request(error: BaseException) -> Iterator[int]:
    """How often an SDK had repeated the request that an exception names, by its own header. It is
    all there is once a stream has begun: the call that asked is over then."""
    if name_of(type(error)).partition(".")[0] not in STAINLESS | {"httpx", "httpx2"}:
        return
    try:
        said = error.request.headers.get(RETRY_COUNT_HEADER, "")  # type: ignore[attr-defined]  # by name
    except (AttributeError, RuntimeError):
        return  # httpx raises RuntimeError where no request was set.
    if is_count(said):
        yield int(said)


def is_count(text: object) -> TypeGuard[str]:
    """Whether a header's text is a number of requests that somebody may have made."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 7


def _repeaters(frames: Iterable[FrameType]) -> list[_Seen]:
    """What packages that repeat show: tenacity counts, of the others only their presence is."""
    mine = [frame for frame in frames if place_of(frame)[0] in REPEATERS]
    if not mine:
        return []
    states = [frame.f_locals.get("retry_state") for frame in mine]
    counted = [getattr(state, "attempt_number", None) for state in states]
    tries = [number for number in counted if isinstance(number, int)]
    if not tries:
        return [_Seen(0, REPEATER)]
    return [_repeated(max(tries) - 1)]


# What an answer, or a result, says of the requests before it


def sends_in_answer(response: Any) -> int:
    """How many requests stand behind a response of httpx, httpx2 or requests: redirects, and what
    a `Retry` of urllib3 remembers."""
    retries = getattr(getattr(response, "raw", None), "retries", None)
    return 1 + _length(getattr(response, "history", ())) + _length(getattr(retries, "history", ()))


def sends_in_result(result: object) -> int | None:
    """How many requests a library says that it began for a result, or None where it says nothing.

    Read from botocore's `ResponseMetadata`, from the raw responses of openai and anthropic, and
    from the responses of httpx, httpx2 and requests. Never raises.
    """
    try:
        return _sends_in_result(result)
    except Exception:  # noqa: BLE001 - a foreign object; its count is not worth its effect
        return None


def _sends_in_result(result: Any) -> int | None:
    if isinstance(result, Mapping):
        told = result.get("ResponseMetadata")
        return _after(told.get("RetryAttempts")) if isinstance(told, Mapping) else None
    package = type(result).__module__.partition(".")[0]
    if package in STAINLESS:
        return _after(getattr(result, "retries_taken", None))
    if package in {"httpx", "httpx2", "requests"} and hasattr(result, "status_code"):
        return sends_in_answer(result)
    return None


def _after(repeats: object) -> int | None:
    counted = isinstance(repeats, int) and not isinstance(repeats, bool)
    return repeats + 1 if counted and 0 <= repeats < SENDS_MAX else None  # type: ignore[operator]  # an int, as just asked


def _length(history: object) -> int:
    return len(history) if isinstance(history, Sequence) else 0
