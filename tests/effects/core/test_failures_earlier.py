"""An earlier request of the same attempt destroys every proof of the last one."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import httpx2
import pytest
import requests
import tenacity
import urllib3

from effects.core.failures import Failure, sends_in_result
from tests.effects.failing import NOT_SENT, UNKNOWN, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    closing_the_port,
    faulty,
)
from tests.effects.senders import SENDERS, by_httpx


def then_closed(behaviour: Callable[[str], Behaviour], send: Callable[[str], object]) -> Failure:
    """A first request is answered by `behaviour` with the address of a closed port, and a library
    that goes there meets a refused connection."""
    with faulty(behaviour(f"http://127.0.0.1:{closed_port()}/")) as server:
        failure = failure_of(lambda: send(server.url))
        assert server.requests, "the first request arrived"
    return failure


def following(url: str) -> Behaviour:
    return answers(307, location=url)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda u: httpx.post(u, follow_redirects=True), id="httpx"),
        pytest.param(lambda u: httpx2.post(u, follow_redirects=True), id="httpx2"),
        pytest.param(lambda u: requests.post(u, timeout=1), id="requests"),
        pytest.param(lambda u: urllib3.request("POST", u, timeout=1), id="urllib3"),
    ],
)
def test_a_refused_connection_behind_a_redirect_proves_nothing(send):
    assert then_closed(following, send).outcome is UNKNOWN


def test_urllib_after_a_redirect_proves_nothing():
    def to_a_get(url: str) -> Behaviour:
        return answers(302, location=url)  # urllib repeats a POST as a GET, for 302 only.

    assert then_closed(to_a_get, SENDERS["urllib"]).outcome is UNKNOWN


@pytest.mark.parametrize("library", [httpx, httpx2, requests], ids=lambda lib: lib.__name__)
def test_an_error_status_behind_a_redirect_proves_nothing(library):
    redirects = {} if library is requests else {"follow_redirects": True}
    with (
        faulty(answers(404)) as second,
        faulty(answers(303, location=second.url)) as first,
    ):
        failure = failure_of(
            lambda: library.post(first.url, timeout=2, **redirects).raise_for_status()
        )
    assert (failure.outcome, failure.http_status) == (UNKNOWN, 404)


# Packages that only repeat


def trying(tries: int) -> Callable[[Callable[[], object]], Callable[[], object]]:
    return tenacity.retry(stop=tenacity.stop_after_attempt(tries), reraise=True)


def test_a_second_try_of_tenacity_proves_nothing():
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(trying(2)(lambda: by_httpx(server.url)))
        assert len(server.requests) == 1
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
    assert "Connection refused" in failure.error


def test_the_only_try_of_tenacity_is_the_only_request():
    failure = failure_of(trying(1)(lambda: by_httpx(f"http://127.0.0.1:{closed_port()}")))
    assert (failure.outcome, failure.sends_seen) == (NOT_SENT, 1)


def test_a_repeater_that_does_not_count_cannot_be_excluded():
    frame: dict[str, object] = {"__name__": "backoff._sync", "send": None}
    exec("def retry(): return send()", frame)
    frame["send"] = lambda: by_httpx(f"http://127.0.0.1:{closed_port()}")
    retry: Callable[[], object] = frame["retry"]  # type: ignore[assignment]  # made just now
    failure = failure_of(retry)
    assert failure.outcome is UNKNOWN
    assert "repeats" in failure.why


# Results


@pytest.mark.parametrize("library", [httpx, httpx2, requests], ids=lambda lib: lib.__name__)
def test_a_response_says_how_many_requests_stand_behind_it(library):
    redirects = {} if library is requests else {"follow_redirects": True}
    with faulty(answers(200)) as second, faulty(answers(307, location=second.url)) as first:
        assert sends_in_result(library.post(first.url, timeout=2, **redirects)) == 2
        assert sends_in_result(library.post(second.url, timeout=2)) == 1


class Hostile:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        {"ResponseMetadata": None},
        {"ResponseMetadata": {"RetryAttempts": "1"}},
        {"ResponseMetadata": {"RetryAttempts": True}},
        {"ResponseMetadata": {"RetryAttempts": -1}},
        {"ResponseMetadata": {"RetryAttempts": 10**12}},
        "text",
        pytest.param(Hostile(), id="hostile"),
    ],
)
def test_any_other_result_says_nothing(result):
    assert sends_in_result(result) is None
