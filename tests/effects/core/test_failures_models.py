"""The SDKs of openai and anthropic: they repeat by themselves, and their streams end in their own
ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from effects.core.failures import sends_in_result
from tests.effects.failing import NOT_SENT, REFUSED, UNKNOWN, Case, every_case, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    closing_the_port,
    cut_the_chunks,
    faulty,
    in_turn,
    stall,
)
from tests.effects.sdk_senders import (
    anthropic_sender,
    anthropic_stream,
    openai_sender,
    openai_stream,
)
from tests.effects.senders import Sender

MAKERS: dict[str, Callable[..., Sender]] = {"openai": openai_sender, "anthropic": anthropic_sender}
both = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
AT_ONCE = "1"
"""As the header `retry-after-ms` it makes the SDKs repeat without their usual pause."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    for package in ("openai", "anthropic"):
        monkeypatch.setattr(f"{package}._base_client.INITIAL_RETRY_DELAY", 0.01)


def met(send: Sender, behaviour: Behaviour) -> Callable[[], object]:
    def run() -> object:
        with faulty(behaviour) as server:
            return send(server.url)

    return run


def events(*lines: str) -> Behaviour:
    body = "".join(f"{line}\n\n" for line in lines).encode()
    return answers(200, body, content_type="text/event-stream")


OVERLOADED = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}'
BROKE_OFF = 'data: {"error": {"message": "The server had an error", "code": "server_error"}}'

CASES = [
    Case("openai.APIStatusError", UNKNOWN, met(openai_sender(), answers(409))),
    Case("openai.APIError", UNKNOWN, met(openai_stream, events(BROKE_OFF))),
    Case(
        "openai.APIConnectionError httpx2.RemoteProtocolError",
        UNKNOWN,
        met(openai_stream, cut_the_chunks),
    ),
    Case("openai.APITimeoutError httpx2.ReadTimeout", UNKNOWN, met(openai_sender(), stall)),
    Case("anthropic.APIStatusError", UNKNOWN, met(anthropic_sender(), answers(409))),
    Case("httpx2.RemoteProtocolError", UNKNOWN, met(anthropic_stream, cut_the_chunks)),
]


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


# Streams


def test_a_broken_stream_of_anthropic_raises_no_exception_of_the_sdk():
    failure = failure_of(met(anthropic_stream, cut_the_chunks))
    assert failure.error.startswith("httpx2.RemoteProtocolError")
    assert failure.outcome is UNKNOWN


def test_an_error_inside_a_stream_has_the_status_that_the_stream_began_with():
    failure = failure_of(met(anthropic_stream, events(OVERLOADED)))
    assert (failure.outcome, failure.http_status) == (UNKNOWN, 200)
    assert failure.provider_code == "overloaded_error"


@pytest.mark.parametrize("stream", [openai_stream, anthropic_stream])
def test_a_stream_that_breaks_after_a_repeat_still_says_that_it_was_repeated(stream):
    with faulty(in_turn(answers(500, retry_after_ms=AT_ONCE), cut_the_chunks)) as server:
        failure = failure_of(lambda: stream(server.url, retries=1))
        assert len(server.requests) == 2
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)


def test_a_change_whose_outcome_the_provider_does_not_know_is_unknown():
    body = (
        b'{"type": "error", "error": {"type": "api_error", "message": "Some may have been saved.",'
        b' "details": {"error_code": "change_outcome_unknown"}}}'
    )
    failure = failure_of(met(anthropic_sender(), answers(503, body)))
    assert (failure.outcome, failure.provider_code) == (UNKNOWN, "change_outcome_unknown")


# What the SDKs repeat by themselves


@both
def test_a_first_request_that_was_refused_is_refused(make):
    failure = failure_of(met(make(), answers(429)))
    assert (failure.outcome, failure.sends_seen) == (REFUSED, 1)


@both
@pytest.mark.parametrize("status", [429, 409, 500])
def test_an_answer_after_repeats_is_unknown_and_they_are_counted(make, status):
    with faulty(answers(status, retry_after_ms=AT_ONCE)) as server:
        failure = failure_of(lambda: make(retries=2)(server.url))
        assert len(server.requests) == 3
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, status, 3)


@both
def test_a_400_after_a_broken_connection_says_nothing_of_the_first_request(make):
    with faulty(in_turn(close_after_reading, answers(400))) as server:
        failure = failure_of(lambda: make(retries=1)(server.url))
        assert len(server.requests) == 2
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, 400, 2)


@both
def test_the_last_refused_connection_proves_nothing_after_a_request_that_was_read(make):
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(lambda: make(retries=1)(server.url))
        assert len(server.requests) == 1
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
    assert "earlier request" in failure.why


@both
def test_a_refused_connection_that_was_not_repeated_is_not_sent(make):
    failure = failure_of(lambda: make()(f"http://127.0.0.1:{closed_port()}"))
    assert (failure.outcome, failure.sends_seen) == (NOT_SENT, 1)


@both
def test_a_user_who_writes_the_count_himself_does_not_hide_a_repeat(make):
    send = make(retries=1, headers={"x-stainless-retry-count": "0"})
    with faulty(in_turn(close_after_reading, answers(400))) as server:
        failure = failure_of(lambda: send(server.url))
        assert b"x-stainless-retry-count: 0" in server.requests[-1].lower()
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)


@both
def test_a_redirect_counts_too(make):
    second = answers(404)
    with faulty(second) as there, faulty(answers(307, location=there.url)) as here:
        failure = failure_of(lambda: make()(here.url))
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, 404, 2)


def asked_again(request: Any, call_next: Callable[[Any], Any]) -> Any:
    """A middleware as users write it: once more, whatever the first time met."""
    try:
        return call_next(request)
    except anthropic.APIConnectionError:
        return call_next(request)


def test_behind_a_middleware_an_earlier_request_cannot_be_excluded():
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(lambda: anthropic_sender(middleware=[asked_again])(server.url))
        assert len(server.requests) == 1
    assert failure.outcome is UNKNOWN


def test_a_result_says_how_often_it_was_asked_for():
    with (
        faulty(
            in_turn(answers(500, retry_after_ms=AT_ONCE), answers(200, b'{"id": "file_1"}'))
        ) as server,
        openai.OpenAI(api_key="sk-not-real", base_url=server.url) as client,
    ):
        raw = client.files.with_raw_response.delete("file_1")
    assert sends_in_result(raw) == 2


def test_an_answer_to_some_other_request_is_not_taken_for_this_ones():
    """anthropic wraps whatever its transport raises, also what asking for a token met."""

    def asks_for_a_token(request: httpx2.Request) -> httpx2.Response:
        with faulty(answers(404)) as server:
            return httpx2.post(server.url).raise_for_status()

    transport = httpx2.Client(transport=httpx2.MockTransport(asks_for_a_token))
    failure = failure_of(lambda: anthropic_sender(http_client=transport)("http://a.invalid"))
    assert failure.error.startswith("anthropic.APIConnectionError")
    assert (failure.outcome, failure.http_status) == (UNKNOWN, None)
