"""The HTTP server on loopback: threads, so that a stalled request never holds up another.

It is the standard library's server because the sandbox must be able to do what a well-behaved
server refuses to do: close a connection instead of answering, or stop in the middle of a body.
"""

import contextlib
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self, override
from urllib.parse import urlsplit

from reconcile.sandbox.provider.counters import CountersFile
from reconcile.sandbox.provider.messages import Answer, Request
from reconcile.sandbox.provider.pipeline import Line, commit_due, serve
from reconcile.sandbox.provider.sending import Sender
from reconcile.sandbox.provider.world import World

BODY_BYTES_MAX: Final = 256 * 1024
TICK_SECONDS: Final = 0.2
IDLE_SECONDS_MAX: Final = 120


class Provider:
    """A running sandbox provider. Use it as a context manager, or ``start`` and ``stop`` it."""

    def __init__(
        self, folder: Path, *, host: str = "127.0.0.1", port: int = 0, fsync: bool = False
    ) -> None:
        self.world = World(folder, fsync=fsync)
        self._server = _Server(self.world, host, port)
        self._sender = Sender(self.world)
        self._counters = CountersFile(self.world, folder)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._tick, daemon=True),
        ]

    @property
    def url(self) -> str:
        """The base address, for example ``http://127.0.0.1:41234``."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> Self:
        """Start to answer."""
        for thread in self._threads:
            thread.start()
        self._sender.start()
        return self

    def stop(self) -> None:
        """Close every connection and the files."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
        self._sender.stop()
        self._counters.write()
        self.world.store.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _tick(self) -> None:
        # Late commits come on their own, not only when somebody asks.
        while not self._stopping.wait(TICK_SECONDS):
            commit_due(self.world)
            self._counters.write_if_due()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, world: World, host: str, port: int) -> None:
        self.world = world
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__((host, port), _Handler)

    @override
    def server_bind(self) -> None:
        # HTTPServer asks the resolver for the machine's name here, which can stall for seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "sandbox", int(self.server_address[1])

    def entered(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.add(connection)

    def left(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.discard(connection)

    @override
    def server_close(self) -> None:
        super().server_close()
        with self._connections_lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        # Callers that are killed in the middle of a request are what this server is for.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS_MAX

    @override
    def setup(self) -> None:
        super().setup()
        self.server.entered(self.connection)

    @override
    def finish(self) -> None:
        self.server.left(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            message = f"The body must have a Content-Length of at most {BODY_BYTES_MAX} bytes."
            self._send(Answer(status=413, body={"error": {"message": message}}), Line.WHOLE)
            self.close_connection = True
            return
        address = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=address.path,
            query=address.query,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(length)),
        )
        if len(request.body) < int(length):
            # The caller died while it was sending; half a request is no request.
            self.close_connection = True
            return
        delivery = serve(self.server.world, request)
        if delivery.answer is None or delivery.line is Line.DROPPED:
            self.close_connection = True
            return
        self._send(delivery.answer, delivery.line)

    def _send(self, answer: Answer, line: Line) -> None:
        body = answer.encoded()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if line is Line.CUT:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    @override
    def date_time_string(self, timestamp: float | None = None) -> str:
        # The Date of an answer is the provider's clock, by which callers judge its `created`.
        return super().date_time_string(timestamp or self.server.world.clock.now())

    @override
    def log_message(self, format: str, *args: object) -> None:  # the base's name
        """Say nothing: what was asked is at ``/_sandbox/requests``."""
