"""aiohttp: one exception class for almost everything, and one status that no server gave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.effects.failing import NOT_SENT, REFUSED, UNKNOWN, Case, every_case, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    closing_the_port,
    deaf_port,
    faulty,
    in_turn,
    stall,
    talk_nonsense,
)
from tests.effects.sdk_senders import aiohttp_sender
from tests.support.awaiting import awaited

SHORT = aiohttp.ClientTimeout(total=0.2)
LONG_ENOUGH_TO_CONNECT = aiohttp.ClientTimeout(total=0.5)


def post(behaviour: Behaviour, method: str = "POST", *, tls: bool = False, **how: Any) -> object:
    with faulty(behaviour, tls=tls) as server:
        return aiohttp_sender(method, **how)(server.url)


def through_a_proxy(url: str) -> object:
    return aiohttp_sender(proxy=url)("https://pay.invalid")


def through_a_refusing_proxy() -> object:
    with faulty(answers(403)) as proxy:
        try:
            return through_a_proxy(proxy.url)
        finally:
            assert proxy.requests[0].startswith(b"CONNECT "), "the request itself was not sent"


def over_a_path(path: Path) -> object:
    return aiohttp_sender(
        session=lambda: aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)))
    )("http://pay.invalid")


def without_a_free_connection() -> object:
    async def ask() -> object:
        with faulty(stall) as server:
            timeout = aiohttp.ClientTimeout(connect=0.05)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
                first = asyncio.create_task(session.post(server.url).__aenter__())
                await asyncio.to_thread(server.read.wait, 5)
                try:
                    return await session.post(server.url, timeout=timeout)
                finally:
                    first.cancel()
                    await asyncio.gather(first, return_exceptions=True)
                    assert len(server.requests) == 1

    return awaited(ask())


def deaf(**how: Any) -> object:
    with deaf_port() as port:
        return aiohttp_sender(**how)(f"http://127.0.0.1:{port}")


NO_PATH = Path("/nowhere/at/all")
AROUND = answers(307, location="/v1/payment_intents")
ELSEWHERE = answers(307, location="ftp://elsewhere.invalid/")

CASES = [
    Case(
        "aiohttp.ServerFingerprintMismatch",
        NOT_SENT,
        lambda: post(answers(200), tls=True, ssl=aiohttp.Fingerprint(b"0" * 32)),
    ),
    Case(
        "aiohttp.ClientProxyConnectionError",
        NOT_SENT,
        lambda: through_a_proxy(f"http://127.0.0.1:{closed_port()}"),
    ),
    Case("aiohttp.ClientHttpProxyError", NOT_SENT, through_a_refusing_proxy),
    Case(
        "aiohttp.UnixClientConnectorError builtins.FileNotFoundError",
        NOT_SENT,
        lambda: over_a_path(NO_PATH),
    ),
    Case("aiohttp.ConnectionTimeoutError", NOT_SENT, without_a_free_connection),
    Case("aiohttp.InvalidUrlClientError", NOT_SENT, lambda: aiohttp_sender()("http://")),
    Case("aiohttp.NonHttpUrlClientError", NOT_SENT, lambda: aiohttp_sender()("ftp://a.invalid")),
    Case("builtins.TimeoutError asyncio.CancelledError", NOT_SENT, lambda: deaf(timeout=SHORT)),
    Case("builtins.TimeoutError", UNKNOWN, lambda: post(stall, timeout=LONG_ENOUGH_TO_CONNECT)),
    Case("aiohttp.TooManyRedirects", UNKNOWN, lambda: post(AROUND)),
    Case("aiohttp.NonHttpUrlRedirectClientError", UNKNOWN, lambda: post(ELSEWHERE)),
    Case(
        "aiohttp.ClientPayloadError",
        UNKNOWN,
        lambda: post(answers(200, b"no gzip", content_encoding="gzip")),
    ),
    Case("aiohttp.ClientResponseError", UNKNOWN, lambda: post(answers(409))),
]


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


def test_an_answer_that_is_no_http_is_not_taken_for_a_servers_400():
    failure = failure_of(lambda: post(talk_nonsense))
    assert (failure.outcome, failure.http_status) == (UNKNOWN, 400)
    assert failure_of(lambda: post(answers(400))).outcome is REFUSED


# What aiohttp repeats by itself


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_put_that_aiohttp_sent_twice_is_unknown_although_the_second_was_refused(method):
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(lambda: aiohttp_sender(method)(server.url))
        assert len(server.requests) == 1
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
    assert "earlier request" in failure.why


@pytest.mark.parametrize(("method", "outcome"), [("POST", REFUSED), ("PUT", UNKNOWN)])
def test_only_of_a_method_that_is_sent_once_is_the_answer_the_first_ones(method, outcome):
    failure = failure_of(lambda: post(answers(404), method))
    assert (failure.outcome, failure.http_status) == (outcome, 404)


def test_a_put_that_was_answered_with_404_the_second_time_is_unknown():
    with faulty(in_turn(close_after_reading, answers(404))) as server:
        failure = failure_of(lambda: aiohttp_sender("PUT")(server.url))
        assert len(server.requests) == 2
    assert failure.outcome is UNKNOWN


def test_a_put_whose_first_try_was_refused_is_not_sent():
    send = aiohttp_sender("PUT")
    assert failure_of(lambda: send(f"http://127.0.0.1:{closed_port()}")).outcome is NOT_SENT


Handler = Callable[[aiohttp.ClientRequest], Any]


async def again(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
    """A middleware as users write it: once more, whatever the first time met."""
    try:
        return await handler(request)  # type: ignore[no-any-return]  # as aiohttp types its handlers
    except aiohttp.ClientError:
        pass
    return await handler(request)  # type: ignore[no-any-return]  # the same


def test_behind_a_middleware_an_earlier_request_cannot_be_excluded():
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(lambda: aiohttp_sender(middlewares=(again,))(server.url))
        assert len(server.requests) == 1
    assert failure.outcome is UNKNOWN
    assert "middleware" in failure.why


def test_an_answer_behind_a_middleware_may_be_the_second_ones():
    send = aiohttp_sender(middlewares=(again,), raise_for_status=True)
    with faulty(in_turn(close_after_reading, answers(404))) as server:
        failure = failure_of(lambda: send(server.url))
        assert len(server.requests) == 2
    assert (failure.outcome, failure.http_status) == (UNKNOWN, 404)


def test_a_refused_connection_behind_a_redirect_proves_nothing():
    gone = answers(307, location=f"http://127.0.0.1:{closed_port()}/")
    failure = failure_of(lambda: post(gone))
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
