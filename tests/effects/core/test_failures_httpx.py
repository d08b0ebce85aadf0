"""httpx, its successor httpx2, and what only they raise."""

from __future__ import annotations

import asyncio
import threading
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from effects.core.failures import Failure, classify_exception
from tests.effects.failing import (
    NOT_SENT,
    UNKNOWN,
    Case,
    every_case,
    failure_of,
)
from tests.effects.faulty_server import answers, faulty, read_nothing, stall
from tests.effects.senders import TIMEOUT_SECONDS, by_httpx, by_httpx2
from tests.support.awaiting import awaited

LARGE = b"x" * 16 * 1024 * 1024
"""More than the buffers of a connection on loopback hold."""


def post(library: ModuleType, behaviour: Any, **how: Any) -> object:
    with (
        faulty(behaviour) as server,
        library.Client(timeout=TIMEOUT_SECONDS) as client,
    ):
        return client.post(server.url, **how).raise_for_status()


def tunnelled(library: ModuleType) -> object:
    """Through a proxy that opens no tunnel."""
    with (
        faulty(answers(403)) as proxy,
        library.Client(proxy=proxy.url, timeout=TIMEOUT_SECONDS) as client,
    ):
        try:
            return client.post("https://pay.invalid/")
        finally:
            assert proxy.requests[0].startswith(b"CONNECT "), "the request itself was not sent"


def without_a_free_connection(library: ModuleType) -> object:
    limits = library.Limits(max_connections=1)
    timeout = library.Timeout(5, pool=TIMEOUT_SECONDS)
    with faulty(stall) as server, library.Client(limits=limits, timeout=timeout) as client:

        def occupy() -> None:
            with pytest.raises(library.TransportError):
                client.post(server.url)

        occupied = threading.Thread(target=occupy)
        occupied.start()
        server.read.wait(5)
        try:
            return client.post(server.url)
        finally:
            server.over.set()
            occupied.join()
            assert len(server.requests) == 1


def over_a_path(library: ModuleType) -> object:
    """Awaited: the plain transport leaves the socket open that it could not connect."""

    async def ask() -> object:
        transport = library.AsyncHTTPTransport(uds="/nowhere/at/all")
        async with library.AsyncClient(transport=transport) as client:
            return await client.post("http://pay.invalid")

    return awaited(ask())


def cases(library: ModuleType, core: str) -> list[Case]:
    name = library.__name__
    in_two_lines = {"headers": {"x-a\n": "2"}}
    unpackable = answers(200, b"no gzip", content_encoding="gzip")
    around = answers(307, location="/again")
    return [
        Case(f"{name}.ProxyError {core}.ProxyError", NOT_SENT, lambda: tunnelled(library)),
        Case(
            f"{name}.UnsupportedProtocol {core}.UnsupportedProtocol",
            NOT_SENT,
            lambda: library.HTTPTransport().handle_request(
                library.Request("POST", "ftp://a.invalid")
            ),
        ),
        Case(
            f"{name}.PoolTimeout {core}.PoolTimeout",
            NOT_SENT,
            lambda: without_a_free_connection(library),
        ),
        Case(f"{name}.InvalidURL", NOT_SENT, lambda: library.post("http://" + "a" * 70_000)),
        Case(
            f"{name}.WriteTimeout",
            UNKNOWN,
            lambda: post(library, read_nothing, content=LARGE),
        ),
        Case(f"{name}.LocalProtocolError", UNKNOWN, lambda: post(library, stall, **in_two_lines)),
        Case(
            f"{name}.ConnectError builtins.FileNotFoundError",
            NOT_SENT,
            lambda: over_a_path(library),
        ),
        Case(f"{name}.DecodingError", UNKNOWN, lambda: post(library, unpackable)),
        Case(
            f"{name}.TooManyRedirects",
            UNKNOWN,
            lambda: post(library, around, follow_redirects=True),
        ),
        Case(f"{name}.HTTPStatusError", UNKNOWN, lambda: post(library, answers(409))),
    ]


MORE_THAN_SAID = {"content": b"longer", "headers": {"content-length": "2"}}
CASES = [
    *cases(httpx, "httpcore"),
    *cases(httpx2, "httpcore2"),
    Case("h11.LocalProtocolError", UNKNOWN, lambda: post(httpx2, stall, **MORE_THAN_SAID)),
]


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


async def cancelled(library: ModuleType, *, waiting: bool) -> Failure:
    """How a request is sorted whose task is cancelled: while it waits for the one connection of a
    pool, or while it waits for its answer."""
    with faulty(stall) as server:
        limits = library.Limits(max_connections=1)
        async with library.AsyncClient(limits=limits, timeout=5) as client:
            sorted_as: list[Failure] = []

            async def tool() -> None:
                try:
                    await client.post(server.url)
                except asyncio.CancelledError as error:
                    sorted_as.append(classify_exception(error))

            tasks = [asyncio.create_task(tool())]
            await asyncio.to_thread(server.read.wait, 5)
            if waiting:
                tasks.insert(0, asyncio.create_task(tool()))
                await asyncio.sleep(0.02)
            for task in tasks:
                task.cancel()
                await task
            assert len(server.requests) == 1
            return sorted_as[0]


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_cancelled_task_sent_nothing_only_while_it_waited_for_a_free_connection(library):
    assert awaited(cancelled(library, waiting=True)).outcome is NOT_SENT
    assert awaited(cancelled(library, waiting=False)).outcome is UNKNOWN


def test_a_connection_that_only_its_transport_repeats_is_not_sent():
    def send() -> object:
        with httpx.Client(transport=httpx.HTTPTransport(retries=1)) as client:
            return client.post("http://nowhere.invalid")

    assert failure_of(send).outcome is NOT_SENT


@pytest.mark.parametrize("send", [by_httpx, by_httpx2], ids=["httpx", "httpx2"])
def test_a_body_that_nobody_has_read_is_not_read_for_its_code(send):
    def unread(url: str) -> object:
        library = httpx if send is by_httpx else httpx2
        with library.stream("POST", url) as response:
            return response.raise_for_status()

    body = b'{"error": {"code": "duplicate"}}'
    with faulty(answers(400, body)) as server:
        assert failure_of(lambda: send(server.url)).provider_code == "duplicate"
        assert failure_of(lambda: unread(server.url)).provider_code is None
