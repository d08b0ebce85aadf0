"""One browser's end of the live pages' socket, at the desk's own door, without a browser."""

from __future__ import annotations

from typing import Any, Final

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from effects.asgi import application

HOST: Final = "localhost:8000"
HINT_SECONDS_MAX: Final = 5
QUIET_SECONDS: Final = 0.5
"""Ten looks of a watcher that looks as often as it does in these tests."""


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def scope_of(cookie: str, address: str, origin: str) -> dict[str, Any]:
    headers = [(b"host", HOST.encode()), (b"cookie", cookie.encode())]
    if origin:
        headers.append((b"origin", origin.encode()))
    return {"type": "websocket", "path": address, "headers": headers, "query_string": b""}


class Socket(ApplicationCommunicator):
    """One browser's end of a socket."""

    async def connect(self) -> bool:
        await self.send_input({"type": "websocket.connect"})
        return bool((await self.receive_output(HINT_SECONDS_MAX))["type"] == "websocket.accept")

    async def hint(self) -> str:
        message = await self.receive_output(HINT_SECONDS_MAX)
        assert message["type"] == "websocket.send", message
        return str(message["text"])

    async def is_quiet(self) -> bool:
        return bool(await self.receive_nothing(timeout=QUIET_SECONDS))

    async def close_code(self) -> int:
        """The code with which the desk ends the socket, whatever hints come before."""
        while True:
            message = await self.receive_output(HINT_SECONDS_MAX)
            if message["type"] == "websocket.close":
                return int(message["code"])

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def go(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(HINT_SECONDS_MAX)


def knock(cookie: str = "", address: str = "/live/queue", origin: str = f"http://{HOST}") -> Socket:
    return Socket(application, scope_of(cookie, address, origin))


async def opened(cookie: str, address: str = "/live/queue") -> Socket:
    """A socket whose page has looked once, as every page does that has just been connected."""
    socket = knock(cookie, address)
    assert await socket.connect()
    assert await socket.hint() == "look"
    return socket


async def refusal(socket: Socket) -> int:
    assert await socket.connect()  # A code reaches a page only over an accepted socket.
    return await socket.close_code()
