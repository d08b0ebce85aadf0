"""A loopback server that fails on purpose, at the level of the socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

REQUEST_BYTES_MAX = 1024 * 1024
PATIENCE_SECONDS = 10.0
CERTIFICATE = Path(__file__).with_name("self_signed.pem")

Behaviour = Callable[["FaultyServer", socket.socket], None]


def read_request(connection: socket.socket) -> bytes:
    """Reads one whole request: the head, and the body that the head announces."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            return received
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    assert length <= REQUEST_BYTES_MAX
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


def reset(connection: socket.socket) -> None:
    """Closes with RST instead of FIN: whatever was on the way is lost."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class FaultyServer:
    """Accepts connections on a free loopback port and treats each as `behaviour` says.

    `requests` holds every whole request that was read, so that a test can ask what was sent; `read`
    is set from the first one on.
    """

    def __init__(self, behaviour: Behaviour, *, tls: bool = False) -> None:
        self.behaviour = behaviour
        self.requests: list[bytes] = []
        self.read = threading.Event()
        self.over = threading.Event()
        self.context: ssl.SSLContext | None = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(CERTIFICATE)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.scheme = "https" if tls else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_SECONDS)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            with contextlib.closing(connection):
                self.behaviour(self, connection)

    def note(self, request: bytes) -> None:
        """Remembers a request that was read whole."""
        self.requests.append(request)
        self.read.set()

    def close(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)


def reset_before_reading(_: FaultyServer, connection: socket.socket) -> None:
    """Resets when the first bytes have arrived, unread. (A reset without waiting may still hit the
    client's connect, and then nothing was sent.)"""
    connection.recv(1, socket.MSG_PEEK)
    reset(connection)


def reset_at_once(_: FaultyServer, connection: socket.socket) -> None:
    reset(connection)


def reset_after_reading(server: FaultyServer, connection: socket.socket) -> None:
    server.note(read_request(connection))
    reset(connection)


def close_after_reading(server: FaultyServer, connection: socket.socket) -> None:
    server.note(read_request(connection))


def close_at_once(_: FaultyServer, connection: socket.socket) -> None:
    """Closes in the middle of whatever the client begins with."""
    connection.recv(65536)


def read_nothing(server: FaultyServer, connection: socket.socket) -> None:
    """Never takes the request: the buffers between fill up and the client cannot write on."""
    server.over.wait(PATIENCE_SECONDS)


def stall(server: FaultyServer, connection: socket.socket) -> None:
    server.note(read_request(connection))
    server.over.wait(PATIENCE_SECONDS)


def cut_the_body(server: FaultyServer, connection: socket.socket) -> None:
    server.note(read_request(connection))
    connection.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
        b'{"id": "pi_1", '
    )


def reset_in_the_body(server: FaultyServer, connection: socket.socket) -> None:
    cut_the_body(server, connection)
    reset(connection)


def cut_the_chunks(server: FaultyServer, connection: socket.socket) -> None:
    """A chunked body, or a stream of events, that ends without its last chunk."""
    server.note(read_request(connection))
    event = b'event: message_start\ndata: {"type": "message_start"}\n\n'
    connection.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        + f"{len(event):x}\r\n".encode()
        + event
        + b"\r\n"
    )


def talk_nonsense(server: FaultyServer, connection: socket.socket) -> None:
    server.note(read_request(connection))
    connection.sendall(b"SMTP ready when you are\r\n")


def plain_text_to_a_tls_client(_: FaultyServer, connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")


def answers(status: int, body: bytes = b"{}", **headers: str) -> Behaviour:
    """A behaviour: read one request, answer it, close."""

    def answer(server: FaultyServer, connection: socket.socket) -> None:
        server.note(read_request(connection))
        lines = [f"HTTP/1.1 {status} Said So", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return answer


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first connection meets the first behaviour, and so on; the last one stays."""
    left = list(behaviours)

    def next_one(server: FaultyServer, connection: socket.socket) -> None:
        behaviour = left.pop(0) if len(left) > 1 else left[0]
        behaviour(server, connection)

    return next_one


def closing_the_port(behaviour: Behaviour) -> Behaviour:
    """The same, after which nobody listens at the port."""

    def last(server: FaultyServer, connection: socket.socket) -> None:
        # Closing alone would leave the socket listening as long as somebody waits in accept.
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        behaviour(server, connection)

    return last


@contextlib.contextmanager
def faulty(behaviour: Behaviour, *, tls: bool = False) -> Iterator[FaultyServer]:
    server = FaultyServer(behaviour, tls=tls)
    try:
        yield server
    finally:
        server.close()


def closed_port() -> int:
    """A port on which nobody listens: it was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def deaf_port() -> Iterator[int]:
    """A port that never completes a handshake: its queue is full and nobody accepts."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
