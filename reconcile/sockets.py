"""Sockets of the desk. They only say "look again"; the page then asks the ordinary view."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final, cast, override
from urllib.parse import urlsplit
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import URLPattern, path

from effects.access import current_membership
from effects.core.problems import ClaimNotFound
from ledger import queries as record
from reconcile import live
from reconcile.live import Watcher, desk

SEND_SECONDS_MAX: Final = 10
"""A browser that takes no hint for so long has gone, or sleeps: it comes back by itself."""
ALIVE_SECONDS: Final = 25
"""How often an open socket says that it is open: a line that died in silence is noticed by it."""


class LiveSocket(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Sends `look` when the page should ask again, and `alive` in between. Takes no messages."""

    _watcher: Watcher | None = None
    _sending: asyncio.Task[None] | None = None

    @override
    async def connect(self) -> None:
        if not _same_origin(self.scope):
            await self.close()  # Before it is accepted: a foreign page learns nothing.
            return
        # A code reaches the page only over an accepted socket.
        await self.accept()
        claim_id = self.scope["url_route"]["kwargs"].get("claim_id")
        entry = await desk.ask(lambda: _entry(self.scope, claim_id))
        refusal = entry if isinstance(entry, int) else desk.refusal(entry.user_id)
        if refusal is not None or isinstance(entry, int):
            await self.close(code=refusal)
            return
        self._watcher = entry
        desk.join(entry)
        self._sending = asyncio.create_task(self._send(entry))

    @override
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.close(code=live.TAKES_NO_MESSAGES)

    @override
    async def disconnect(self, code: int) -> None:
        if self._watcher is not None:
            desk.leave(self._watcher)
        if self._sending is not None and self._sending is not asyncio.current_task():
            self._sending.cancel()

    async def _send(self, watcher: Watcher) -> None:
        try:
            while watcher.close_code is None:
                word = "alive"
                with suppress(TimeoutError):
                    await asyncio.wait_for(watcher.flag.wait(), ALIVE_SECONDS)
                    word = "look"
                watcher.flag.clear()
                if watcher.close_code is None:
                    await asyncio.wait_for(self.send(text_data=word), SEND_SECONDS_MAX)
            await asyncio.wait_for(self.close(code=watcher.close_code), SEND_SECONDS_MAX)
        except (TimeoutError, OSError, RuntimeError):
            pass  # It has gone or no longer reads; who comes back looks once by itself.
        finally:
            desk.leave(watcher)


def _same_origin(scope: dict[str, Any]) -> bool:
    """Whether the page that asks is one of ours, port included: cookies do not know ports."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    host = headers.get(b"host", b"").decode("latin-1")
    return urlsplit(origin).netloc == host or origin in settings.CSRF_TRUSTED_ORIGINS


def _entry(scope: dict[str, Any], claim_id: UUID | None) -> Watcher | int:
    """What the socket may listen for, asked like a page would be; or the code that refuses it."""
    user = scope["user"]
    if not user.is_authenticated or not user.is_active:
        return live.SIGNED_OUT
    # `current_membership` reads the person and the session of a request, and nothing else of it.
    request = cast(HttpRequest, SimpleNamespace(user=user, session=scope["session"]))
    membership = current_membership(request)
    if membership is None:
        return live.NOT_A_MEMBER
    if claim_id is not None:
        try:
            record.claim(membership.workspace_id, claim_id)
        except ClaimNotFound:
            return live.NO_SUCH_CALL
    person = cast(User, user)
    return Watcher(
        user_id=person.pk,
        session_key=scope["session"].session_key or "",
        session_hash=person.get_session_auth_hash(),
        workspace_id=membership.workspace_id,
        claim_id=claim_id,
    )


urlpatterns: list[URLPattern] = [
    path("live/queue", LiveSocket.as_asgi()),
    path("live/calls/<uuid:claim_id>", LiveSocket.as_asgi()),
]
