"""The way out: which addresses may be asked, and what is no answer."""

from __future__ import annotations

import time

import pytest

from reconcile.adapters.door import (
    Limits,
    NoAnswer,
    NotAllowed,
    Way,
    get,
    is_public,
    origin_of,
)
from tests.reconcile.adapters.loopback import Talk, dripping, loopback, raw, whole


def ask(url: str, *, private: bool = True, seconds: float = 2.0, size: int = 1000) -> bytes:
    way = Way(origin=origin_of(url), private=private, limits=Limits(seconds=seconds, bytes=size))
    return get(url, way=way, headers={}).body


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.8",
        "198.18.0.1",
        "224.0.0.251",
        "239.1.1.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::1",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd12::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "3fff::1",
        "not an address",
        "",
    ],
)
def test_an_address_that_is_no_public_server_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "[::ffff:7f00:1]"]
)
def test_no_spelling_of_loopback_is_asked_unless_it_is_allowed_by_name(host: str) -> None:
    with pytest.raises(NotAllowed, match="not a public address"):
        ask(f"https://{host}:1/", private=False)


def test_the_secret_does_not_travel_in_the_clear() -> None:
    with pytest.raises(NotAllowed, match="unencrypted"):
        ask("http://example.com/", private=False)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.com/", "https://"),
        ("https:///path", "https://"),
        ("example.com", "https://"),
        ("https://user:word@example.com/", "password"),
        ("https://example.com:99999/", "not a web address"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        origin_of(url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.example.com/v1?x=1", "https://api.example.com:443"),
        ("http://127.0.0.1:8002", "http://127.0.0.1:8002"),
        ("http://[::1]:8002/a", "http://[::1]:8002"),
    ],
)
def test_an_origin_has_one_spelling(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "http://127.0.0.2:8/",
        "https://127.0.0.1:8/",
        "http://127.0.0.1:8.evil.example/",
        "http://127.0.0.1:8@evil.example/",
    ],
)
def test_only_the_registered_origin_is_asked(url: str) -> None:
    way = Way(origin="http://127.0.0.1:8", private=True)

    with pytest.raises(NotAllowed):
        get(url, way=way, headers={})


def test_a_whole_answer_is_read() -> None:
    with loopback(whole("hello", headers="X-Request-ID: r1\r\n")) as server:
        way = Way(origin=origin_of(server.url), private=True)
        answer = get(f"{server.url}/a?b=c", way=way, headers={"Authorization": "Bearer s"})

    assert (answer.status, answer.body) == (200, b"hello")
    assert answer.headers["x-request-id"] == "r1"
    (request,) = server.requests
    assert request.startswith("GET /a?b=c HTTP/1.1\r\n")
    assert "Bearer s" in request


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with loopback(whole("elsewhere")) as elsewhere:
        moved = whole("", status="302 Found", headers=f"Location: {elsewhere.url}/\r\n")
        with loopback(moved) as server:
            way = Way(origin=origin_of(server.url), private=True)
            assert get(server.url, way=way, headers={}).status == 302

    assert elsewhere.requests == []


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        pytest.param(whole(b"x" * 1001), "longer than the limit", id="too long"),
        pytest.param(
            raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001), "longer", id="too long, length not said"
        ),
        pytest.param(raw(HEAD + b"half"), "failed", id="cut in the body"),
        pytest.param(raw(b"HTTP/1.1 200"), "failed", id="cut in the head"),
        pytest.param(raw(b""), "failed", id="closed at once"),
        pytest.param(raw(b"hello\r\n\r\n"), "failed", id="not HTTP"),
        pytest.param(
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            "failed",
            id="cut in a chunk",
        ),
        pytest.param(lambda _: time.sleep(1), "within 0.5 s", id="silent"),
        pytest.param(
            dripping(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50, pause_seconds=0.02),
            "within 0.5 s",
            id="dripping in the head",
        ),
        pytest.param(
            dripping(HEAD + b"x" * 1000, pause_seconds=0.01),
            "within 0.5 s",
            id="dripping in the body",
        ),
    ],
)
def test_what_is_not_whole_is_no_answer(talk: Talk, said: str) -> None:
    with loopback(talk) as server:
        began = time.monotonic()
        with pytest.raises(NoAnswer, match=said):
            ask(server.url, seconds=0.5)
        assert time.monotonic() - began < 1.5


def test_nobody_there_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="failed"):
        ask("http://127.0.0.1:1/")


def test_a_name_that_nobody_has_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="could not be resolved"):
        ask("https://nobody.invalid/")


def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(whole("proxy")) as proxy, loopback(whole("server")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)

        assert ask(server.url) == b"server"
