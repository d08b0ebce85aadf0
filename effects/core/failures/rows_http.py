"""The rows of the HTTP clients: httpx, httpx2, requests, urllib3, aiohttp and the standard library.

Every row is met for real in tests/effects/core/test_failures_*.py, and docs/errors.md is made from
this file.
"""

from __future__ import annotations

from typing import Final

from effects.core.failures.row import Client, Row, answered, by_cause, by_stage, silent, unsent

__all__ = ["HTTP_CLIENTS"]


def _httpx(package: str, core: str) -> tuple[Row, ...]:
    """Rows of httpx or of its successor httpx2, and of the transport under each."""
    connecting = (
        ("ConnectError", "refused, not resolved, not reachable, or the TLS handshake failed"),
        ("ConnectTimeout", "the connection or its TLS handshake was not ready in time"),
        ("PoolTimeout", "no connection of the pool became free in time"),
        ("ProxyError", "the proxy refused to open a tunnel"),
        ("UnsupportedProtocol", "the address has a scheme that is not spoken"),
    )
    return (
        *(unsent(f"{package}.{name}", when) for name, when in connecting),
        *(unsent(f"{core}.{name}", when) for name, when in connecting),
        unsent(f"{package}.InvalidURL", "the address cannot be read"),
        silent(f"{package}.ReadTimeout", "the next part of the answer did not come in time"),
        silent(f"{package}.WriteTimeout", "the server did not take the rest of the body in time"),
        silent(f"{package}.ReadError", "the connection broke while the answer was awaited"),
        silent(f"{package}.RemoteProtocolError", "the answer was cut, missing or no HTTP"),
        silent(f"{package}.LocalProtocolError", "the request was malformed, perhaps half sent"),
        silent("h11.LocalProtocolError", "the body is not as long as its header said"),
        silent(f"{package}.DecodingError", "the body of the answer cannot be unpacked"),
        silent(f"{package}.TooManyRedirects", "an earlier request was answered with a redirect"),
        answered(f"{package}.HTTPStatusError", "`raise_for_status` on an error status"),
    )


_HTTPX_NOTES: Final = """
- A transport's own `retries=` repeats only connecting, so it takes nothing away.
- Redirects that are followed and an `auth` that asks twice send an earlier request: unknown.
"""

_REQUESTS: Final = (
    unsent("requests.ConnectTimeout", "the connection was not ready in time"),
    unsent("requests.MissingSchema", "the address has no scheme"),
    unsent("requests.InvalidSchema", "the address has a scheme that is not spoken"),
    unsent("requests.InvalidURL", "the address cannot be read"),
    unsent("requests.InvalidHeader", "a header cannot be written"),
    by_cause("requests.ConnectionError", "anything between refused and reset"),
    by_cause("requests.SSLError", "a TLS error, at the handshake or later"),
    by_cause("requests.ProxyError", "the proxy was not reached, or refused to open a tunnel"),
    silent("requests.ReadTimeout", "the answer did not come in time"),
    silent("requests.ChunkedEncodingError", "the body of the answer was cut"),
    silent("requests.ContentDecodingError", "the body of the answer cannot be unpacked"),
    silent("requests.JSONDecodeError", "the answer came and is no JSON"),
    silent("requests.TooManyRedirects", "an earlier request was answered with a redirect"),
    silent("requests.RetryError", "an adapter repeated the request and gave up"),
    answered("requests.HTTPError", "`raise_for_status` on an error status"),
)

_URLLIB3: Final = (
    unsent("urllib3.NewConnectionError", "the connection was refused or not reachable"),
    unsent("urllib3.NameResolutionError", "the name did not resolve"),
    unsent("urllib3.ConnectTimeoutError", "the connection was not ready in time"),
    unsent("urllib3.EmptyPoolError", "no connection of a blocking pool became free in time"),
    by_stage("_queue.Empty", "the same, as the queue of the pool says it"),
    unsent("urllib3.ClosedPoolError", "the pool had been closed"),
    unsent("urllib3.LocationParseError", "the address cannot be read"),
    by_cause("urllib3.MaxRetryError", "the last try failed, for the reason that it carries"),
    by_cause("urllib3.SSLError", "a TLS error, at the handshake or later"),
    by_cause("urllib3.ProxyError", "the proxy was not reached, or refused to open a tunnel"),
    by_cause("urllib3.ProtocolError", "the connection was broken"),
    silent("urllib3.ReadTimeoutError", "the answer did not come in time"),
    silent("urllib3.IncompleteRead", "the body of the answer was cut"),
    silent("urllib3.DecodeError", "the body of the answer cannot be unpacked"),
    silent("urllib3.ResponseError", "too many answers were errors or redirects"),
)

_AIOHTTP: Final = (
    unsent("aiohttp.ClientConnectorError", "the connection was refused or not reachable"),
    unsent("aiohttp.ClientConnectorDNSError", "the name did not resolve"),
    unsent("aiohttp.ClientConnectorSSLError", "the TLS handshake failed"),
    unsent("aiohttp.ClientConnectorCertificateError", "the server's certificate was refused"),
    unsent("aiohttp.ServerFingerprintMismatch", "the certificate is not the one that was pinned"),
    unsent("aiohttp.ClientProxyConnectionError", "the proxy was not reached"),
    unsent("aiohttp.ClientHttpProxyError", "the proxy refused to open a tunnel"),
    unsent("aiohttp.UnixClientConnectorError", "nobody listens at the socket's path"),
    unsent("aiohttp.ConnectionTimeoutError", "no connection was free or ready in time"),
    unsent("aiohttp.InvalidUrlClientError", "the address has no host"),
    unsent("aiohttp.NonHttpUrlClientError", "the address has a scheme that is not spoken"),
    silent("aiohttp.ClientOSError", "the connection broke after it was made"),
    silent("aiohttp.ServerDisconnectedError", "the server closed without an answer"),
    silent("aiohttp.SocketTimeoutError", "the next part of the answer did not come in time"),
    silent("aiohttp.ClientPayloadError", "the body of the answer was cut or cannot be unpacked"),
    silent("aiohttp.TooManyRedirects", "an earlier request was answered with a redirect"),
    silent("aiohttp.NonHttpUrlRedirectClientError", "an earlier request was sent elsewhere"),
    answered("aiohttp.ClientResponseError", "`raise_for_status` on an error status"),
)

_REQUESTS_NOTES: Final = """
- The exceptions of urllib3 inside are read too.
- A `Retry` that is mounted as an adapter is read from its history.
"""

_URLLIB3_NOTES: Final = """
- `PoolManager` repeats three times by default. Tries that only failed to connect take nothing
  away; any other earlier try makes the outcome unknown.
"""

_AIOHTTP_NOTES: Final = """
- PUT and DELETE are sent a second time by aiohttp itself when the server disconnects, so no answer
  to them is known to be the first one's. POST and PATCH are sent once.
- An answer that is no HTTP is raised as a `ClientResponseError` with status 400. Its cause tells it
  from a server's 400, and it is unknown.
- With a client middleware an earlier request cannot be excluded: unknown, where the exception comes
  out of the request. A later `response.raise_for_status()` does not know of the middleware; ask for
  `raise_for_status=True` with the request instead.
"""

_STANDARD_LIBRARY: Final = (
    unsent("http.InvalidURL", "the address or path cannot be written"),
    silent("http.RemoteDisconnected", "the server closed without an answer"),
    silent("http.BadStatusLine", "the answer is no HTTP"),
    silent("http.IncompleteRead", "the body of the answer was cut"),
    by_cause("urllib.URLError", "opening failed, for the reason that it carries"),
    answered("urllib.HTTPError", "an error status; its body is left unread"),
)

HTTP_CLIENTS: Final = (
    Client("httpx", _httpx("httpx", "httpcore"), _HTTPX_NOTES),
    Client("httpx2", _httpx("httpx2", "httpcore2"), _HTTPX_NOTES),
    Client("requests", _REQUESTS, _REQUESTS_NOTES),
    Client("urllib3", _URLLIB3, _URLLIB3_NOTES),
    Client("aiohttp", _AIOHTTP, _AIOHTTP_NOTES),
    Client("http.client and urllib", _STANDARD_LIBRARY),
)
