"""A mail server on loopback that speaks as much of SMTP (RFC 5321) as a sender needs."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any, override


@dataclass(slots=True)
class Mailbox:
    """`answer` is what the end of a message is answered with; 250 takes it."""

    port: int = 0
    answer: bytes = b"250 taken"
    taken: list[Message] = field(default_factory=list)


class Handler(socketserver.StreamRequestHandler):
    ours: Mailbox

    @override
    def handle(self) -> None:
        self._say(b"220 here")
        while words := self.rfile.readline():
            verb = words[:4].upper()
            if verb == b"DATA":
                self._say(b"354 go on")
                self._take()
            elif verb == b"QUIT":
                self._say(b"221 bye")
                return
            else:
                self._say(b"250 ok")

    def _take(self) -> None:
        lines: list[bytes] = []
        while (one := self.rfile.readline()) != b".\r\n":
            lines.append(one.removeprefix(b".") if one.startswith(b"..") else one)
        if self.ours.answer.startswith(b"250"):
            self.ours.taken.append(message_from_bytes(b"".join(lines), policy=default))
        self._say(self.ours.answer)

    def _say(self, answer: bytes) -> None:
        self.wfile.write(answer + b"\r\n")


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    ours = Mailbox()
    server = socketserver.ThreadingTCPServer(
        ("127.0.0.1", 0), type("Own", (Handler,), {"ours": ours})
    )
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    ours.port = server.server_address[1]
    try:
        yield ours
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def use(settings: Any, mailbox: Mailbox) -> None:
    """Has this process send its mail there."""
    options = {"host": "127.0.0.1", "port": mailbox.port}
    backend = "django.core.mail.backends.smtp.EmailBackend"
    settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": options}}
    settings.DEFAULT_FROM_EMAIL = "counterfoil@example.com"
    settings.COUNTERFOIL_MAIL = True
