"""urllib3, requests on top of it, and the HTTP clients of the standard library."""

from __future__ import annotations

import http.client
import threading
import urllib.request
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from tests.effects.failing import NOT_SENT, UNKNOWN, Case, every_case, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    closing_the_port,
    faulty,
    in_turn,
    read_nothing,
    stall,
)
from tests.effects.senders import TIMEOUT_SECONDS, by_http_client, by_urllib

LARGE = b"x" * 16 * 1024 * 1024
UNPACKABLE = answers(200, b"no gzip", content_encoding="gzip")
AROUND = answers(307, location="/again")


def post(behaviour: Behaviour, **how: Any) -> requests.Response:
    with faulty(behaviour) as server, requests.Session() as session:
        response = session.post(server.url, timeout=TIMEOUT_SECONDS, **how)
        response.raise_for_status()
        return response


def repeated(url: str, *, statuses: tuple[int, ...] = ()) -> object:
    retry = urllib3.Retry(1, allowed_methods=None, status_forcelist=statuses, backoff_factor=0.01)
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=retry))
        response = session.post(url, timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        return response


def repeated_by_status() -> object:
    with faulty(answers(500)) as server:
        return repeated(server.url, statuses=(500,))


def through_a_proxy(url: str) -> object:
    """To somewhere that only the proxy could reach."""
    with requests.Session() as session:
        return session.post("https://pay.invalid/", proxies={"https": url}, timeout=1)


def through_a_refusing_proxy() -> object:
    with faulty(answers(403)) as proxy:
        return through_a_proxy(proxy.url)


def pooled(behaviour: Behaviour, **how: Any) -> object:
    with faulty(behaviour) as server, urllib3.PoolManager(retries=False) as pool:
        return pool.request("POST", server.url, timeout=TIMEOUT_SECONDS, **how).data


def without_a_free_connection() -> object:
    with (
        faulty(stall) as server,
        urllib3.HTTPConnectionPool("127.0.0.1", server.port, maxsize=1, block=True) as pool,
    ):

        def occupy() -> None:
            with pytest.raises(urllib3.exceptions.HTTPError):
                pool.request("POST", "/", timeout=5, retries=False)

        occupied = threading.Thread(target=occupy)
        occupied.start()
        server.read.wait(5)
        try:
            return pool.request("POST", "/", pool_timeout=0.05, retries=False)
        finally:
            server.over.set()
            occupied.join()
            assert len(server.requests) == 1


def closed_pool() -> object:
    pool = urllib3.HTTPConnectionPool("127.0.0.1", closed_port())
    pool.close()
    return pool.request("POST", "/", retries=False)


def too_many_errors() -> object:
    with faulty(answers(500)) as server, urllib3.PoolManager() as pool:
        retry = urllib3.Retry(0, allowed_methods=None, status_forcelist=[500])
        return pool.request("POST", server.url, retries=retry)


def plain(path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", closed_port())
    connection.request("POST", path)


CASES = [
    Case("requests.MissingSchema", NOT_SENT, lambda: requests.post("127.0.0.1/v1", timeout=1)),
    Case("requests.InvalidSchema", NOT_SENT, lambda: requests.post("ftp://127.0.0.1", timeout=1)),
    Case("requests.InvalidURL", NOT_SENT, lambda: requests.post("http://*a.invalid", timeout=1)),
    Case(
        "requests.InvalidHeader",
        NOT_SENT,
        lambda: requests.post("http://127.0.0.1/", headers={"x": "a\nb"}, timeout=1),
    ),
    Case(
        "requests.ProxyError urllib3.ProxyError",
        NOT_SENT,
        lambda: through_a_proxy(f"http://127.0.0.1:{closed_port()}"),
    ),
    Case("requests.ProxyError builtins.OSError", NOT_SENT, through_a_refusing_proxy),
    Case("requests.ContentDecodingError urllib3.DecodeError", UNKNOWN, lambda: post(UNPACKABLE)),
    Case("requests.JSONDecodeError", UNKNOWN, lambda: post(answers(200, b"<html>")).json()),
    Case("requests.TooManyRedirects", UNKNOWN, lambda: post(AROUND)),
    Case("requests.RetryError urllib3.ResponseError", UNKNOWN, repeated_by_status),
    Case("requests.HTTPError", UNKNOWN, lambda: post(answers(409))),
    Case("requests.ConnectionError", UNKNOWN, lambda: post(read_nothing, data=LARGE)),
    Case("urllib3.EmptyPoolError _queue.Empty", NOT_SENT, without_a_free_connection),
    Case("urllib3.ClosedPoolError", NOT_SENT, closed_pool),
    Case("urllib3.LocationParseError", NOT_SENT, lambda: urllib3.request("POST", "http://[::1")),
    Case("urllib3.MaxRetryError urllib3.ResponseError", UNKNOWN, too_many_errors),
    Case("urllib3.ProtocolError", UNKNOWN, lambda: pooled(read_nothing, body=LARGE)),
    Case("http.InvalidURL", NOT_SENT, lambda: plain("/two words")),
    Case("urllib.HTTPError", UNKNOWN, lambda: asked_by_urllib(answers(409))),
]


def asked_by_urllib(behaviour: Behaviour) -> object:
    with faulty(behaviour) as server:
        return by_urllib(server.url)


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


# What urllib3 repeats by itself


def test_tries_that_only_failed_to_connect_take_nothing_away():
    def send() -> object:
        with urllib3.PoolManager() as pool:  # Three repeats, its default.
            return pool.request("POST", f"http://127.0.0.1:{closed_port()}", timeout=1)

    failure = failure_of(send)
    assert (failure.outcome, failure.sends_seen) == (NOT_SENT, 4)


def test_a_try_that_was_sent_takes_the_proof_of_the_last_one_away():
    with faulty(in_turn(closing_the_port(close_after_reading))) as server:
        failure = failure_of(lambda: repeated(server.url))
        assert len(server.requests) == 1
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
    assert "Connection refused" in failure.error
    assert "earlier request" in failure.why


def test_an_answer_after_a_repeat_proves_nothing():
    with faulty(in_turn(answers(500), answers(404))) as server:
        failure = failure_of(lambda: repeated(server.url, statuses=(500,)))
        assert len(server.requests) == 2
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, 404, 2)


def test_a_redirect_to_an_address_that_cannot_be_read_was_a_request_all_the_same():
    def send() -> object:
        with (
            faulty(answers(307, location="http://a:port/")) as server,
            urllib3.PoolManager() as pool,
        ):
            return pool.request("POST", server.url)

    failure = failure_of(send)
    assert failure.error.startswith("urllib3.LocationParseError")
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)


def test_a_connection_of_the_standard_library_is_asked_once():
    with faulty(close_after_reading) as server:
        assert failure_of(lambda: by_http_client(server.url)).outcome is UNKNOWN
        assert len(server.requests) == 1


def test_a_tunnel_that_is_refused_to_the_standard_library_sent_nothing():
    def send() -> None:
        with faulty(answers(403)) as proxy:
            connection = http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=1)
            connection.set_tunnel("pay.invalid")
            connection.request("POST", "/")

    assert failure_of(send).outcome is NOT_SENT


def test_an_address_that_urllib_cannot_write_is_not_sent():
    assert failure_of(lambda: urllib.request.urlopen("http://a.invalid/b c")).outcome is NOT_SENT
