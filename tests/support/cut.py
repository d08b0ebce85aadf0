"""A TCP line that a test can cut: what stands between a process and who it asks."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Line:
    """Forwards connections of one loopback port to another, until it is cut."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._open: set[socket.socket] = set()
        self._cut = threading.Event()
        self._lock = threading.Lock()
        self._on_answer: Callable[[], None] | None = None
        self.answers_dropped = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Drop every connection, and each one that is tried from now on."""
        self._cut.set()
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def mend(self) -> None:
        self._cut.clear()

    def drop_next_answer(self, then: Callable[[], None] = lambda: None) -> None:
        """Cut the connection on which the next answer comes, before anything of it is passed on.

        By then who was asked has done the work. `then` is called between the answer and the cut.
        """
        with self._lock:
            self._on_answer = then

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._cut.is_set():
                    near.close()
                    continue
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()  # Nobody listens there now; that is no reason to stop listening.
                    continue
                self._open |= {near, far}
                for pair in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:  # noqa: FBT001 - a thread's argument
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer and self._drops():
                    break
                sink.sendall(data)
        for end in (source, sink):
            self._open.discard(end)
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _drops(self) -> bool:
        with self._lock:
            then, self._on_answer = self._on_answer, None
        if then is None:
            return False
        then()
        self.answers_dropped += 1
        return True


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    """A line to `port` of this machine for the time of the block."""
    line = Line(port)
    try:
        yield line
    finally:
        line.close()
