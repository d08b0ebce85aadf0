"""gRPC: a status is the server's word or the client's own, and mostly proves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest

from effects.core.answers import GRPC_REFUSALS
from effects.core.failures import Contract, ErrorRules, Failure, classify_exception
from tests.effects.failing import NOT_SENT, REFUSED, UNKNOWN, Case, error_of, failure_of
from tests.effects.faulty_server import closed_port, faulty, reset_before_reading, stall
from tests.support.awaiting import awaited

METHOD = "/pay.Payments/Refund"
TOO_LARGE = b"x" * 5_000_000
CONNECTING_FAILED = "failed to connect to all addresses; last error: connection refused"
ONCE = ErrorRules(contract=Contract.GRPC)


class Payments(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Ends every call with the status that the request names, or with what it asks for."""

    def __init__(self) -> None:
        self.effects = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if handler_call_details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(self._refund)

    def _refund(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"too large":
            self.effects += 1
            return TOO_LARGE
        context.abort(grpc.StatusCode[request.decode()], CONNECTING_FAILED)
        raise AssertionError("abort raises")


@contextmanager
def payments() -> Iterator[tuple[str, Payments]]:
    handler = Payments()
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}", handler
    finally:
        server.stop(0).wait()


def call(target: str, request: bytes = b"", *, timeout: float = 2, method: str = METHOD) -> object:
    with grpc.insecure_channel(target) as channel:
        return channel.unary_unary(method)(request, timeout=timeout)


def ended_with(status: str) -> object:
    with payments() as (target, _):
        return call(target, status.encode())


def not_ready() -> object:
    with grpc.insecure_channel(f"127.0.0.1:{closed_port()}") as channel:
        return grpc.channel_ready_future(channel).result(timeout=0.1)


def not_answered() -> object:
    with faulty(stall) as server, grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        return channel.unary_unary(METHOD).future(b"").result(timeout=0.1)


CASES = [
    Case("grpc.FutureTimeoutError", NOT_SENT, not_ready),
    Case("grpc.FutureTimeoutError", UNKNOWN, not_answered),
    Case("grpc.RpcError", UNKNOWN, lambda: ended_with("UNAVAILABLE"), rules=ONCE),
]


@pytest.mark.parametrize("case", CASES, ids=["not ready", "not answered", "a status"])
def test_each_is_sorted_by_what_happened(case):
    case.check()


# What nobody can say


@pytest.mark.parametrize(
    ("where", "status"),
    [
        pytest.param(lambda: call(f"127.0.0.1:{closed_port()}"), "UNAVAILABLE", id="refused"),
        pytest.param(lambda: call("nowhere.invalid:80"), "UNAVAILABLE", id="no such name"),
        pytest.param(lambda: on(reset_before_reading), "UNAVAILABLE", id="reset"),
        pytest.param(lambda: on(stall), "DEADLINE_EXCEEDED", id="no answer in time"),
    ],
)
def test_a_status_of_the_client_itself_is_unknown(where, status):
    failure = failure_of(where, contract=ONCE)
    assert (failure.outcome, failure.provider_code) == (UNKNOWN, status)


def on(behaviour: Any) -> object:
    with faulty(behaviour) as server:
        return call(f"127.0.0.1:{server.port}", timeout=0.3)


def test_a_server_can_say_that_connecting_failed_so_the_text_is_no_proof():
    own = failure_of(lambda: call(f"127.0.0.1:{closed_port()}"))
    passed_on = failure_of(lambda: ended_with("UNAVAILABLE"))
    for failure in (own, passed_on):
        assert "failed to connect to all addresses" in failure.error
        assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 1)


def test_an_answer_that_was_too_large_came_after_the_effect():
    with payments() as (target, handler):
        failure = failure_of(lambda: call(target, b"too large"), contract=ONCE)
        assert handler.effects == 1
    assert (failure.outcome, failure.provider_code) == (UNKNOWN, "RESOURCE_EXHAUSTED")


def test_a_method_that_is_not_there_is_not_told_from_an_answer_that_cannot_be_read():
    with payments() as (target, _):
        failure = failure_of(lambda: call(target, method="/pay.Payments/Other"), contract=ONCE)
    assert (failure.outcome, failure.provider_code) == (UNKNOWN, "UNIMPLEMENTED")


# What the contract says


@pytest.fixture(scope="module")
def statuses() -> dict[str, tuple[Failure, Failure]]:
    """Every status that a server can end a call with: as it is read without and with the
    contract."""
    with payments() as (target, _):
        names = [code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
        errors = {name: error_of(partial(call, target, name.encode())) for name in names}
    return {
        name: (classify_exception(error), classify_exception(error, contract=ONCE))
        for name, error in errors.items()
    }


def test_without_the_contract_every_status_is_unknown(statuses):
    assert {without.outcome for without, _ in statuses.values()} == {UNKNOWN}


def test_with_it_only_a_refusal_that_everybody_means_is_one(statuses):
    refused = {name for name, (_, read) in statuses.items() if read.outcome is REFUSED}
    assert refused == set(GRPC_REFUSALS)
    assert {read.outcome for _, read in statuses.values()} == {REFUSED, UNKNOWN}


async def call_async(target: str, request: bytes) -> object:
    async with grpc.aio.insecure_channel(target) as channel:
        return await channel.unary_unary(METHOD)(request, timeout=2)


def test_an_awaited_call_is_read_the_same():
    with payments() as (target, _):
        send = lambda: awaited(call_async(target, b"NOT_FOUND"))  # noqa: E731 - a send
        assert failure_of(send, contract=ONCE).outcome is REFUSED
        assert failure_of(send).outcome is UNKNOWN


class Again(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc has no types
    """An interceptor as users write it: once more, whatever the first time met."""

    def intercept_unary_unary(
        self, continuation: Callable[..., Any], client_call_details: Any, request: Any
    ) -> Any:
        continuation(client_call_details, request).exception()
        return continuation(client_call_details, request)


def test_behind_an_interceptor_an_earlier_call_cannot_be_excluded():
    def send() -> object:
        with payments() as (target, _), grpc.insecure_channel(target) as plain:
            channel = grpc.intercept_channel(plain, Again())
            return channel.unary_unary(METHOD)(b"NOT_FOUND", timeout=2)

    assert failure_of(send, contract=ONCE).outcome is UNKNOWN


def test_a_call_that_sends_many_messages_may_have_been_answered_after_some_of_them():
    def send() -> object:
        with payments() as (target, _), grpc.insecure_channel(target) as channel:
            return channel.stream_unary(METHOD)(iter([b"NOT_FOUND"]), timeout=2)

    assert failure_of(send, contract=ONCE).outcome is UNKNOWN


def test_a_channel_that_is_not_ready_has_sent_nothing_although_awaited():
    async def wait() -> None:
        async with (
            asyncio.timeout(0.1),
            grpc.aio.insecure_channel(f"127.0.0.1:{closed_port()}") as channel,
        ):
            await channel.channel_ready()

    assert failure_of(lambda: awaited(wait())).outcome is NOT_SENT
