"""Every library meets every fault: real exceptions, raised by a loopback server that misbehaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

from effects.core.failures import classify_exception
from effects.core.vocabulary import Outcome
from tests.effects.failing import (
    NOT_SENT,
    REFUSED,
    UNKNOWN,
    error_of,
    failure_of,
    rows_met,
)
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    cut_the_body,
    deaf_port,
    faulty,
    plain_text_to_a_tls_client,
    reset_after_reading,
    reset_at_once,
    reset_before_reading,
    reset_in_the_body,
    stall,
    talk_nonsense,
)
from tests.effects.sdk_senders import SDK_SENDERS
from tests.effects.senders import ANSWERED, SENDERS

EVERY = {**SENDERS, **SDK_SENDERS}
EVERY_ANSWERED = {**ANSWERED, **SDK_SENDERS}

every_library = pytest.mark.parametrize("send", EVERY.values(), ids=EVERY.keys())
every_answered = pytest.mark.parametrize("send", EVERY_ANSWERED.values(), ids=EVERY_ANSWERED.keys())


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. `where` gives an address that does it; `rows` are the rows that
    a library must meet there."""

    where: Callable[[], AbstractContextManager[str]]
    outcome: Outcome
    rows: dict[str, str] = field(default_factory=dict)


@contextmanager
def nobody() -> Iterator[str]:
    yield f"http://127.0.0.1:{closed_port()}"


@contextmanager
def nowhere() -> Iterator[str]:
    yield "http://nowhere.invalid"


@contextmanager
def deaf() -> Iterator[str]:
    with deaf_port() as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def uncertified() -> Iterator[str]:
    with faulty(answers(200), tls=True) as server:
        yield server.url
        assert server.requests == [], "nothing was sent"


def over_tls(behaviour: Behaviour) -> Callable[[], AbstractContextManager[str]]:
    """A server without a certificate that is asked as if it had one."""

    @contextmanager
    def where() -> Iterator[str]:
        with faulty(behaviour) as server:
            yield server.url.replace("http:", "https:")
            assert server.requests == [], "nothing was sent"

    return where


def plainly(behaviour: Behaviour) -> Callable[[], AbstractContextManager[str]]:
    @contextmanager
    def where() -> Iterator[str]:
        with faulty(behaviour) as server:
            yield server.url

    return where


HTTPX = "httpx.{0} httpcore.{0}"
HTTPX2 = "httpx2.{0} httpcore2.{0}"

FAULTS = {
    "refused": Fault(
        nobody,
        NOT_SENT,
        {
            "httpx": HTTPX.format("ConnectError"),
            "httpx2": HTTPX2.format("ConnectError"),
            "httpx2 async": HTTPX2.format("ConnectError"),
            "requests": "requests.ConnectionError urllib3.MaxRetryError urllib3.NewConnectionError",
            "urllib3": "urllib3.NewConnectionError",
            "urllib": "urllib.URLError",
            "socket": "builtins.ConnectionRefusedError",
            "stripe": "stripe.APIConnectionError requests.ConnectionError",
            "aiohttp": "aiohttp.ClientConnectorError",
            "openai": "openai.APIConnectionError",
            "anthropic": "anthropic.APIConnectionError",
            "botocore": "botocore.EndpointConnectionError",
        },
    ),
    "no such name": Fault(
        nowhere,
        NOT_SENT,
        {
            "urllib3": "urllib3.NameResolutionError",
            "socket": "socket.gaierror",
            "asyncio": "socket.gaierror",
            "aiohttp": "aiohttp.ClientConnectorDNSError",
            "botocore": "botocore.EndpointConnectionError",
        },
    ),
    "not ready in time": Fault(
        deaf,
        NOT_SENT,
        {
            "httpx": HTTPX.format("ConnectTimeout"),
            "httpx2": HTTPX2.format("ConnectTimeout"),
            "requests": "requests.ConnectTimeout",
            "urllib3": "urllib3.ConnectTimeoutError",
            "socket": "builtins.TimeoutError",
            "asyncio": "builtins.TimeoutError asyncio.CancelledError",
            "aiohttp": "aiohttp.ConnectionTimeoutError",
            "openai": "openai.APITimeoutError",
            "anthropic": "anthropic.APITimeoutError",
            "botocore": "botocore.ConnectTimeoutError",
        },
    ),
    "a certificate that we refuse": Fault(
        uncertified,
        NOT_SENT,
        {
            "requests": "requests.SSLError urllib3.SSLError",
            "socket": "ssl.SSLCertVerificationError",
            "aiohttp": "aiohttp.ClientConnectorCertificateError",
            "botocore": "botocore.SSLError",
        },
    ),
    "no TLS there": Fault(
        over_tls(plain_text_to_a_tls_client),
        NOT_SENT,
        {"socket": "ssl.SSLError", "aiohttp": "aiohttp.ClientConnectorSSLError"},
    ),
    "reset before it was read": Fault(plainly(reset_before_reading), UNKNOWN),
    "reset after it was read": Fault(
        plainly(reset_after_reading),
        UNKNOWN,
        {
            "socket": "builtins.ConnectionResetError",
            "urllib3": "urllib3.ProtocolError",
            "aiohttp": "aiohttp.ClientOSError",
            "botocore": "botocore.ConnectionClosedError",
            "httpx": "httpx.ReadError",
            "httpx2": "httpx2.ReadError",
        },
    ),
    "closed after it was read": Fault(
        plainly(close_after_reading),
        UNKNOWN,
        {
            "httpx": "httpx.RemoteProtocolError",
            "httpx2": "httpx2.RemoteProtocolError",
            "http.client": "http.RemoteDisconnected",
            "aiohttp": "aiohttp.ServerDisconnectedError",
        },
    ),
    "no answer in time": Fault(
        plainly(stall),
        UNKNOWN,
        {
            "httpx": "httpx.ReadTimeout",
            "httpx2": "httpx2.ReadTimeout",
            "requests": "requests.ReadTimeout",
            "urllib3": "urllib3.ReadTimeoutError",
            "aiohttp": "aiohttp.SocketTimeoutError",
            "openai": "openai.APITimeoutError httpx2.ReadTimeout",
            "anthropic": "anthropic.APITimeoutError httpx2.ReadTimeout",
            "botocore": "botocore.ReadTimeoutError",
        },
    ),
    "a body that is cut": Fault(
        plainly(cut_the_body),
        UNKNOWN,
        {
            "requests": "requests.ChunkedEncodingError urllib3.IncompleteRead",
            "http.client": "http.IncompleteRead",
            "aiohttp": "aiohttp.ClientPayloadError",
        },
    ),
    "a reset in the body": Fault(plainly(reset_in_the_body), UNKNOWN),
    "no HTTP there": Fault(
        plainly(talk_nonsense),
        UNKNOWN,
        {"http.client": "http.BadStatusLine", "aiohttp": "aiohttp.ClientResponseError"},
    ),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_every_library_is_sorted_by_what_happened(fault: Fault, name: str):
    with fault.where() as url:
        error = error_of(lambda: EVERY[name](url))
    failure = classify_exception(error)
    assert failure.outcome is fault.outcome, failure.why
    assert set(fault.rows.get(name, "").split()) <= rows_met(error)
    assert failure.sends_seen in {None, 1}


def test_a_library_that_is_named_in_a_fault_is_one_that_meets_it():
    assert {name for fault in FAULTS.values() for name in fault.rows} <= set(EVERY)


@every_library
def test_a_reset_during_the_tls_handshake_is_at_least_never_called_refused(send):
    with faulty(reset_at_once) as server:
        failure = failure_of(lambda: send(server.url.replace("http:", "https:")))
    # No request was written, but not every library lets us see that.
    assert failure.outcome in {NOT_SENT, UNKNOWN}


# Answers


@every_answered
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
def test_a_refusal_of_the_first_request_is_refused(send, status):
    body = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
    with faulty(answers(status, body, request_id="req_1", retry_after="7")) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (REFUSED, status)
    assert (failure.request_id, failure.retry_after_seconds) == ("req_1", 7)
    assert failure.sends_seen == 1


@every_answered
@pytest.mark.parametrize("status", [408, 409, 423, 424, 425, 500, 502, 503, 504])
def test_an_answer_that_may_follow_an_effect_is_unknown(send, status):
    with faulty(answers(status)) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (UNKNOWN, status)


@every_answered
def test_a_broken_error_body_still_has_its_status(send):
    with faulty(answers(500, b"<html>")) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (UNKNOWN, 500)


OTHER_PARAMETERS = b'{"error": {"type": "idempotency_error", "message": "Keys can only ..."}}'
READ_BY_ALL_BUT = {"aiohttp", "botocore", "urllib"}
"""urllib and aiohttp raise before the body is read, so their 400 is only a 400; AWS writes its
errors in another shape."""


@pytest.mark.parametrize("name", [name for name in EVERY_ANSWERED if name not in READ_BY_ALL_BUT])
def test_a_key_that_was_used_for_something_else_proves_nothing(name):
    with faulty(answers(400, OTHER_PARAMETERS)) as server:
        failure = failure_of(lambda: EVERY_ANSWERED[name](server.url))
    assert (failure.outcome, failure.provider_code) == (UNKNOWN, "idempotency_error")
