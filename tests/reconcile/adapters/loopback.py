"""A server on loopback that answers exactly what a test says, however wrong that is."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Talk = Callable[[socket.socket], None]

REQUEST_BYTES_MAX = 64 * 1024


@dataclass(slots=True)
class Loopback:
    """`requests` holds every request, as it came."""

    url: str
    requests: list[str] = field(default_factory=list)


@contextmanager
def loopback(talk: Talk) -> Iterator[Loopback]:
    """Serve `talk` to every caller until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    server = Loopback(f"http://127.0.0.1:{listener.getsockname()[1]}")
    stopped = threading.Event()
    thread = threading.Thread(target=_serve, args=(listener, talk, server, stopped))
    thread.start()
    try:
        yield server
    finally:
        stopped.set()
        thread.join()
        listener.close()


def _serve(listener: socket.socket, talk: Talk, server: Loopback, stopped: threading.Event) -> None:
    while not stopped.is_set():
        try:
            caller, _ = listener.accept()
        except TimeoutError:
            continue
        with caller:
            caller.settimeout(5)
            server.requests.append(_request(caller).decode("latin-1"))
            try:
                talk(caller)
            except OSError:
                # The caller had enough and hung up: that is what many of these tests are about.
                continue


def _request(caller: socket.socket) -> bytes:
    """One request with its body, which may come after its head."""
    came = caller.recv(REQUEST_BYTES_MAX)
    named = re.search(rb"(?i)\r\ncontent-length: (\d+)\r\n", came)
    body = int(named[1]) if named else 0
    while body and len(came.partition(b"\r\n\r\n")[2]) < body:
        more = caller.recv(REQUEST_BYTES_MAX)
        if not more:
            break
        came += more
    return came


def whole(body: bytes | str, *, status: str = "200 OK", headers: str = "") -> Talk:
    """One well-formed answer."""
    sent = body.encode() if isinstance(body, str) else body

    def talk(caller: socket.socket) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(sent)}\r\n{headers}\r\n"
        caller.sendall(head.encode() + sent)

    return talk


def dripping(text: bytes, *, pause_seconds: float) -> Talk:
    """One byte at a time."""

    def talk(caller: socket.socket) -> None:
        for index in range(len(text)):
            caller.sendall(text[index : index + 1])
            time.sleep(pause_seconds)

    return talk


def raw(text: bytes) -> Talk:
    """These bytes and then the end."""
    return lambda caller: caller.sendall(text)
