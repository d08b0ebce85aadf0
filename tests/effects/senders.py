"""One changing request, sent by each library that a tool may use, as that library's user writes it.

Each sender takes the server's address and raises what its library raises, also for an error status.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import httpx2
import requests
import stripe
import urllib3

from tests.support.awaiting import awaited

TIMEOUT_SECONDS = 0.3
PATH = "/v1/payment_intents"
BODY = {"amount": 1200, "currency": "eur", "metadata": {"counterfoil": "cf_test"}}

Sender = Callable[[str], object]


def by_httpx(url: str) -> object:
    with httpx.Client(timeout=TIMEOUT_SECONDS) as client:
        return client.post(url + PATH, json=BODY).raise_for_status()


def by_httpx2(url: str) -> object:
    with httpx2.Client(timeout=TIMEOUT_SECONDS) as client:
        return client.post(url + PATH, json=BODY).raise_for_status()


def by_httpx2_async(url: str) -> object:
    async def post() -> object:
        async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
            return (await client.post(url + PATH, json=BODY)).raise_for_status()

    return awaited(post())


def by_requests(url: str) -> object:
    with requests.Session() as session:
        response = session.post(url + PATH, json=BODY, timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        return response


def by_urllib3(url: str) -> object:
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request("POST", url + PATH, body=json.dumps(BODY), timeout=TIMEOUT_SECONDS).data


def by_urllib(url: str) -> object:
    try:
        with urllib.request.urlopen(
            url + PATH, data=json.dumps(BODY).encode(), timeout=TIMEOUT_SECONDS
        ) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def by_http_client(url: str) -> object:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with closing(kind(parts.netloc, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request("POST", PATH, body=json.dumps(BODY))
        with connection.getresponse() as response:
            return response.read()


def by_socket(url: str) -> object:
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or 80)
    with socket.create_connection(address, timeout=TIMEOUT_SECONDS) as plain:
        secure = ssl.create_default_context() if parts.scheme == "https" else None
        connection = secure.wrap_socket(plain, server_hostname=parts.hostname) if secure else plain
        connection.sendall(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        answer = connection.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"}"):
            raise ConnectionError("The answer is not whole.")
        return answer


def by_asyncio(url: str) -> object:
    async def post() -> object:
        parts = urlsplit(url)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 80, ssl=parts.scheme == "https" or None
            )
            try:
                writer.write(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
                return await reader.readuntil(b"}")
            finally:
                writer.transport.abort()

    return awaited(post())


def stripe_sender(http_client: Callable[[], stripe.HTTPClient], *, retries: int = 0) -> Sender:
    def post(url: str) -> object:
        with closing(http_client()) as transport:
            client = stripe.StripeClient(
                "sk_test_not_real",
                base_addresses={"api": url},
                http_client=transport,
                max_network_retries=retries or None,
            )
            return client.v1.payment_intents.create(
                {"amount": 1200, "currency": "eur", "metadata": {"counterfoil": "cf_test"}},
                {"idempotency_key": "k-1"},
            )

    return post


by_stripe = stripe_sender(lambda: stripe.RequestsClient(timeout=TIMEOUT_SECONDS))
_over_httpx = stripe_sender(
    lambda: stripe.HTTPXClient(timeout=TIMEOUT_SECONDS, allow_sync_methods=True)
)


def by_stripe_over_httpx(url: str) -> object:
    with warnings.catch_warnings():
        # The SDK itself uses an old spelling of httpx.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _over_httpx(url)


by_stripe_with_retries = stripe_sender(
    lambda: stripe.RequestsClient(timeout=TIMEOUT_SECONDS), retries=1
)

SENDERS: dict[str, Sender] = {
    "httpx": by_httpx,
    "httpx2": by_httpx2,
    "httpx2 async": by_httpx2_async,
    "requests": by_requests,
    "urllib3": by_urllib3,
    "urllib": by_urllib,
    "http.client": by_http_client,
    "socket": by_socket,
    "asyncio": by_asyncio,
    "stripe": by_stripe,
    "stripe over httpx": by_stripe_over_httpx,
}
"""Those that send one request and never repeat it."""

ANSWERED: dict[str, Sender] = {
    name: SENDERS[name]
    for name in ("httpx", "httpx2", "httpx2 async", "requests", "urllib", "stripe")
}
"""Those that raise an error status as an exception."""
