"""Python itself: sockets, TLS, cancellation and timeouts."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable

import pytest

from effects.core.failures import Failure, classify_exception
from tests.effects.failing import NOT_SENT, UNKNOWN, Case, every_case
from tests.effects.faulty_server import (
    close_after_reading,
    close_at_once,
    closed_port,
    deaf_port,
    faulty,
    read_nothing,
    reset_after_reading,
    stall,
)
from tests.effects.senders import TIMEOUT_SECONDS
from tests.support.awaiting import awaited

REQUEST = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"


def without_a_route() -> object:
    """From an address that this machine does not have."""
    here = ("127.0.0.1", closed_port())
    return socket.create_connection(here, timeout=1, source_address=("192.0.2.1", 0))


def closed_in_the_handshake() -> object:
    with faulty(close_at_once) as server:
        plain = socket.create_connection(("127.0.0.1", server.port), timeout=1)
        with plain, ssl.create_default_context().wrap_socket(plain, server_hostname="a.invalid"):
            return "connected"


def a_handshake_that_is_given_up() -> object:
    async def ask() -> object:
        with faulty(read_nothing) as server:
            return await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=True, ssl_handshake_timeout=0.1
            )

    return awaited(ask())


def written_after_the_other_side_closed() -> object:
    with faulty(close_after_reading) as server:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=1)
        with connection:
            connection.sendall(REQUEST)
            while connection.recv(1):
                pass
            for _ in range(100):  # The first of these is what makes the other side say so.
                connection.sendall(REQUEST)
                time.sleep(0.01)
    return "written"


def reset_while_reading() -> object:
    with faulty(reset_after_reading) as server:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=1)
        with connection:
            connection.sendall(REQUEST)
            return connection.recv(1)


def no_room_to_write() -> None:
    with faulty(read_nothing) as server:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_SECONDS)
        with connection:
            connection.sendall(b"x" * 16 * 1024 * 1024)


def in_a_group(*sends: Callable[[], Awaitable[object]]) -> object:
    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            for send in sends:
                group.create_task(_raised(send))

    return awaited(together())


async def _raised(send: Callable[[], Awaitable[object]]) -> None:
    await send()


async def refused() -> object:
    return await asyncio.open_connection("127.0.0.1", closed_port())


def an_exit_in_a_group() -> object:
    raise BaseExceptionGroup("both", [KeyboardInterrupt()])


CASES = [
    Case("builtins.OSError", NOT_SENT, without_a_route),
    Case("ssl.SSLEOFError", NOT_SENT, closed_in_the_handshake),
    Case("builtins.ConnectionAbortedError", NOT_SENT, a_handshake_that_is_given_up),
    Case("builtins.BrokenPipeError", UNKNOWN, written_after_the_other_side_closed),
    Case("builtins.ConnectionResetError", UNKNOWN, reset_while_reading),
    Case("builtins.TimeoutError", UNKNOWN, no_room_to_write),
    Case("builtins.ExceptionGroup", NOT_SENT, lambda: in_a_group(refused)),
    Case("builtins.BaseExceptionGroup", UNKNOWN, an_exit_in_a_group),
]


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


# Cancellation and timeouts


def stopped(how: str, *, reading: bool) -> Failure:
    """How a send is sorted that is stopped while it connects, or while it waits for the answer."""
    seconds = 0.5 if reading else 0.1

    async def tool(port: int) -> Failure:
        try:
            if how == "timeout":
                async with asyncio.timeout(seconds):
                    await post_plainly(port)
            elif how == "wait_for":
                await asyncio.wait_for(post_plainly(port), seconds)
            else:
                await post_plainly(port)
        except (TimeoutError, asyncio.CancelledError) as error:
            return classify_exception(error)
        raise AssertionError("nothing stopped it")

    async def run() -> Failure:
        with faulty(stall) as server, deaf_port() as port:
            task = asyncio.create_task(tool(server.port if reading else port))
            if how == "cancel":
                await asyncio.to_thread(server.read.wait, 5 if reading else 0.05)
                task.cancel()
            return await task

    return awaited(run())


async def post_plainly(port: int) -> object:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(REQUEST)
        return await reader.read()
    finally:
        writer.transport.abort()


every_way = pytest.mark.parametrize("how", ["timeout", "wait_for", "cancel"])


@every_way
def test_a_task_that_was_stopped_while_connecting_sent_nothing(how):
    assert stopped(how, reading=False).outcome is NOT_SENT


@every_way
def test_a_task_that_was_stopped_while_it_waited_for_the_answer_may_have_sent(how):
    assert stopped(how, reading=True).outcome is UNKNOWN
