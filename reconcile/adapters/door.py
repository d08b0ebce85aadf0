"""The one way out: to a checked address, within limits; to a provider, reads only.

Addresses come from people who fill in a form, and answers from whoever listens there. So a name is
resolved once, every address is checked against an explicit list, and the connection goes to the
address that was checked: a second resolution could name another machine. A redirect is an answer
like any other and is never followed. A provider is sent nothing that somebody wrote, because asking
again with a key would be a write: `get` has no body, `query` sends a parsed document that holds a
query alone, `sign_in` a body that never changes. `deliver` is for addresses that wait for our own
messages.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, override
from urllib.parse import urlsplit

import httpcore2
from django.db import connection
from graphql import DocumentNode, FragmentDefinitionNode, OperationDefinitionNode, OperationType
from graphql import print_ast as graphql_text

CONNECT_SECONDS_MAX: Final = 5.0
ANSWER_SECONDS_MAX: Final = 20.0
"""Longest a whole question may take, from the first packet to the last byte of the answer."""
ANSWER_BYTES_MAX: Final = 2 * 1024 * 1024
"""Longest body of one answer; more is no answer, because a cut list proves nothing."""

_HEADER_TEXT = re.compile(r"[\x20-\x7e]*")

# What the Internet Assigned Numbers Authority lists as special, and so as nobody's public server
# (https://www.iana.org/assignments/iana-ipv4-special-registry). `ipaddress.is_global` is not
# enough: it lets multicast and the IPv6 forms of loopback through.
_NOT_PUBLIC_V4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
        *("192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# Public IPv6 is handed out from 2000::/3 alone; loopback, mapped and translated IPv4 (NAT64), local
# and multicast addresses all lie outside it. Inside it, these are special.
_PUBLIC_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)


class NotAllowed(Exception):
    """The address may not be asked. The message says why and what to change."""


class NoAnswer(Exception):
    """No whole answer came back. It says nothing about what the provider did or did not do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One whole answer. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`seconds` for the whole question, `bytes` of body."""

    seconds: float = ANSWER_SECONDS_MAX
    bytes: int = ANSWER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where questions may go: to `origin` alone (``https://host:port``).

    `private` says that the operator of this installation allowed this origin by name, so it may lie
    """

    origin: str
    private: bool = False
    limits: Limits = field(default_factory=Limits)


_PORTS: Final = {"https": 443, "http": 80, "postgresql": 5432}


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, in one spelling. Raises `NotAllowed` if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NotAllowed(f"{url!r} is not a web address: {error}.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise NotAllowed(f"{url!r} is not a web address. Start it with https:// and a host.")
    if parts.username or parts.password:
        raise NotAllowed(
            "A web address with a password in it is not used. Name the secret instead."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or _PORTS[parts.scheme]}"


def is_public(address: str) -> bool:
    """Whether an IP address can be a public server's: explicit lists, everything else is not."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC_V4)
    return ip in _PUBLIC_V6 and not any(ip in network for network in _NOT_PUBLIC_V6)


def get(url: str, *, way: Way, headers: Mapping[str, str]) -> Answered:
    """Ask one question and read the whole answer.

    Raises `NotAllowed` for another origin than the way's, plain HTTP to a public host, or an
    address that is not public; `NoAnswer` for everything that kept a whole answer from coming.
    """
    return _exchange("GET", url, way=way, headers=headers)


def query(
    url: str,
    document: DocumentNode,
    variables: Mapping[str, Any],
    *,
    way: Way,
    headers: Mapping[str, str],
) -> Answered:
    """Ask a GraphQL server one question; `variables` hold what JSON can say.

    What is sent is printed from the parsed document, so that nothing but the operations that were
    looked at can be in it. Raises `NotAllowed` also for a document that holds anything but one
    query and its fragments; and as `get` does.
    """
    operations = [d for d in document.definitions if isinstance(d, OperationDefinitionNode)]
    others = [d for d in document.definitions if not isinstance(d, OperationDefinitionNode)]
    if [one.operation for one in operations] != [OperationType.QUERY] or not all(
        isinstance(other, FragmentDefinitionNode) for other in others
    ):
        raise NotAllowed("Only one query is ever asked, and its fragments. This document is more.")
    body = json.dumps({"query": graphql_text(document), "variables": dict(variables)})
    named = {"Content-Type": "application/json", **headers}
    return _exchange("POST", url, way=way, headers=named, body=body.encode())


def sign_in(url: str, *, way: Way, client_id: str, client_secret: str) -> Answered:
    """Ask for a token by OAuth 2.0 client credentials (RFC 6749 section 4.4).

    The body is always the same, so whatever listens at `url` cannot be told to do anything else.
    Raises as `get` does.
    """
    pair = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
    headers = {
        "Authorization": f"Basic {pair}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    body = b"grant_type=client_credentials"
    return _exchange("POST", url, way=way, headers=headers, body=body)


def deliver(url: str, body: bytes, *, way: Way, headers: Mapping[str, str]) -> Answered:
    """Hand one message of ours to an address that somebody registered for it, never to a provider.

    Raises as `get` does. An answer says what the receiver thinks of it; `NoAnswer` leaves open
    whether it arrived, so a message carries an id by which a second copy is recognised.
    """
    return _exchange("POST", url, way=way, headers=headers, body=body)


def _exchange(
    method: str, url: str, *, way: Way, headers: Mapping[str, str], body: bytes | None = None
) -> Answered:
    # An answer takes seconds. A transaction that waits for it would hold rows that agents need.
    assert not connection.in_atomic_block, "Somebody was asked inside a database transaction."
    if origin_of(url) != way.origin:
        raise NotAllowed(f"{url!r} is not at {way.origin}, the only address that may be asked.")
    if not url.startswith(("https://", "http://")):
        raise NotAllowed(f"{way.origin} is no web server. Its address starts with https://.")
    if url.startswith("http://") and not way.private:
        raise NotAllowed(f"{way.origin} would get the secret unencrypted. Use https://.")
    if not all(_HEADER_TEXT.fullmatch(value) for value in headers.values()):
        raise NotAllowed("The secret holds characters that a header cannot carry.")
    network = _CheckedNetwork(way, time.monotonic() + way.limits.seconds)
    try:
        with (
            httpcore2.ConnectionPool(
                ssl_context=_tls() if url.startswith("https://") else None,
                network_backend=network,
                max_connections=1,
            ) as pool,
            pool.stream(
                method, url, headers=_header_lines(url, headers, body), content=body
            ) as response,
        ):
            answer = _read(response.iter_stream(), bytes_max=way.limits.bytes)
            names = ((name.lower().decode("latin-1"), value) for name, value in response.headers)
            return Answered(
                status=response.status,
                headers={name: value.decode("latin-1") for name, value in names},
                body=answer,
            )
    except (httpcore2.TimeoutException, TimeoutError):
        limit = f"{way.limits.seconds:g} s"
        raise NoAnswer(f"No whole answer came from {way.origin} within {limit}.") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        said = str(error) or type(error).__name__
        raise NoAnswer(f"The connection to {way.origin} failed: {said}.") from None


def _header_lines(
    url: str, headers: Mapping[str, str], body: bytes | None
) -> list[tuple[bytes, bytes]]:
    # An answer that is compressed could be small on the wire and fill the memory.
    lines = {"Host": urlsplit(url).netloc, "Accept-Encoding": "identity", **headers}
    if body is not None:
        lines["Content-Length"] = str(len(body))
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in lines.items()]


def _read(chunks: Iterable[bytes], *, bytes_max: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > bytes_max:
            raise NoAnswer(f"The answer is longer than the limit of {bytes_max} bytes.")
    return bytes(body)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpcore2.default_ssl_context()


def checked_address(host: str, port: int, *, private: bool) -> str:
    """An address of this name that may be asked: all of the name's are public, or it is private by
    leave of the operator. Raises `NotAllowed`, and `NoAnswer` for a name that nobody knows."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"The name {host!r} could not be resolved: {error}.") from None
    addresses = [str(entry[4][0]) for entry in found]
    # One name with a public and a private address is how a check is walked around: all must pass.
    for address in addresses:
        if not private and not is_public(address):
            raise NotAllowed(
                f"{host!r} leads to {address}, which is not a public address. If it is meant, the "
                "operator of this installation allows its origin by name."
            )
    return addresses[0]


class _CheckedNetwork(httpcore2.NetworkBackend):
    """Connects to the address that was checked, and lets the whole question have one deadline."""

    def __init__(self, way: Way, deadline: float) -> None:
        self._way = way
        self._deadline = deadline
        self._plain = httpcore2.SyncBackend()

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        address = checked_address(host, port, private=self._way.private)
        seconds = min(CONNECT_SECONDS_MAX, _left(self._deadline))
        stream = self._plain.connect_tcp(address, port, seconds, local_address, socket_options)
        return _HurriedStream(stream, self._deadline)


class _HurriedStream(httpcore2.NetworkStream):
    """A stream whose every step is cut off at one deadline.

    A limit on each read alone would let a server that sends one byte a second hold a worker for
    ever.
    """

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline))

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline))

    @override
    def close(self) -> None:
        self._stream.close()

    @override
    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = _left(self._deadline)
        stream = self._stream.start_tls(ssl_context, server_hostname, seconds)
        return _HurriedStream(stream, self._deadline)

    @override
    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise httpcore2.ReadTimeout
    return seconds
