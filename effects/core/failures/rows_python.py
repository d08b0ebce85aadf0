"""The rows of Python itself: sockets, TLS, cancellation and timeouts."""

from __future__ import annotations

from typing import Final

from effects.core.failures.row import Client, by_cause, by_stage, unsent

__all__ = ["CONNECTING", "PYTHON_ITSELF"]

CONNECTING: Final = frozenset(
    {
        ("aiohttp", "_wrap_create_connection"),
        ("aiohttp", "connect"),
        ("anyio", "connect_tcp"),
        ("anyio", "connect_unix"),
        ("asyncio", "create_connection"),
        ("asyncio", "create_unix_connection"),
        ("grpc", "_block"),
        ("grpc", "channel_ready"),
        ("http", "_tunnel"),
        ("httpcore", "connect_tcp"),
        ("httpcore", "connect_unix_socket"),
        ("httpcore", "start_tls"),
        ("httpcore", "wait_for_connection"),
        ("httpcore2", "connect_tcp"),
        ("httpcore2", "connect_unix_socket"),
        ("httpcore2", "start_tls"),
        ("httpcore2", "wait_for_connection"),
        ("socket", "create_connection"),
        ("ssl", "do_handshake"),
        ("urllib3", "_get_conn"),
        ("urllib3", "_tunnel"),
        ("urllib3", "create_connection"),
    }
)
"""Functions (top package, name) that are over before the first byte of a request is sent."""

_SOCKETS: Final = (
    unsent("socket.gaierror", "the name did not resolve"),
    unsent("builtins.ConnectionRefusedError", "nobody listens at the address"),
    by_stage("builtins.OSError", "an error of the operating system, such as no route"),
    by_stage("builtins.ConnectionResetError", "the other side reset the connection"),
    by_stage("builtins.ConnectionAbortedError", "the connection was given up on this side"),
    by_stage("builtins.BrokenPipeError", "the other side had closed before this was written"),
    by_stage("builtins.FileNotFoundError", "nobody listens at the socket's path"),
    by_stage("ssl.SSLError", "TLS failed, at the handshake or later"),
    by_stage("ssl.SSLCertVerificationError", "the server's certificate was refused"),
    by_stage("ssl.SSLEOFError", "the other side closed in the middle of TLS"),
)

_WAITING: Final = (
    by_stage("builtins.TimeoutError", "something did not happen in time"),
    by_stage("asyncio.CancelledError", "the task was cancelled"),
    by_cause("builtins.ExceptionGroup", "several exceptions; every one of them must prove it"),
    by_cause("builtins.BaseExceptionGroup", "the same, with one that ends the program"),
)

_SOCKETS_NOTES: Final = """
- The traceback shows the stage: the exception passed through one of the functions that only connect
  (listed at the end).
- A server that refuses the client's certificate under TLS 1.3 says so after the handshake: unknown.
"""

_WAITING_NOTES: Final = """
- A timeout of asyncio is judged by the place at which the task was cancelled.
- A cancelled task may have sent its request. Only one that was still connecting, or waiting for a
  free connection, has not.
"""

PYTHON_ITSELF: Final = (
    Client("socket and ssl", _SOCKETS, _SOCKETS_NOTES),
    Client("asyncio: cancellation and timeouts", _WAITING, _WAITING_NOTES),
)
