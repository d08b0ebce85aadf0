"""The socket of the live pages, through the desk's own door and against the real database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, override
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, connections
from django.test import Client

from effects.asgi import application
from effects.core.vocabulary import Role, SightingWord
from effects.models import DeskSession, Membership, Tool, Workspace
from reconcile import live, sockets
from tests.support.clock import ShiftedClock
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see

HOST = "localhost:8000"
HINT_SECONDS_MAX = 5
QUIET_SECONDS = 0.5
"""Ten looks of a watcher that looks as often as it does here."""

type Scenario = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _quick(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher at twenty times its pace: the tests ask what it does, not when."""
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(live, "PERMISSION_SECONDS", 0.1)
    monkeypatch.setattr(live, "CLOCK_SECONDS", 0.2)


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.SUPPORT, "ana")


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


def play(scenario: Scenario) -> None:
    """Runs the scenario until the last watcher has gone home, as a desk process does."""

    async def whole() -> None:
        try:
            await scenario()
        finally:
            for watcher in live.desk.listening:
                live.desk.leave(watcher)
            await until(lambda: live.desk.resting)
            await live.desk.ask(close)
            # What the scenario itself used, and what the door's middleware did.
            connections.close_all()
            await sync_to_async(connections.close_all)()

    asyncio.run(whole())


def close() -> None:
    """Closes the connection of the thread that calls it, which is why it is no bound method."""
    connection.close()


async def until(true: Callable[[], bool]) -> None:
    for _ in range(HINT_SECONDS_MAX * 100):
        if true():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("What was waited for did not come.")


# Who may listen


@pytest.mark.parametrize(
    "origin",
    [
        pytest.param("https://elsewhere.example", id="another site"),
        pytest.param("http://localhost:9000", id="another port of this computer"),
        pytest.param("null", id="a page without an origin"),
        pytest.param("", id="no browser"),
    ],
)
def test_a_page_that_is_not_ours_is_never_accepted(ana: User, origin: str) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        assert not await knock(cookie, origin=origin).connect()

    play(scenario)


def test_who_may_not_see_the_page_is_told_why_by_the_code(ana: User, charge: Tool) -> None:
    member = cookie_of(ana)
    inactive = a_person(charge.workspace, Role.SUPPORT, "gone")
    was_active = cookie_of(inactive)
    User.objects.filter(pk=inactive.pk).update(is_active=False)
    stranger = cookie_of(User.objects.create_user(username="nobody"))
    theirs = a_lost_call(a_keyed_tool(a_workspace("second")))

    async def scenario() -> None:
        told = {
            "nobody signed in": await refusal(knock()),
            "deactivated": await refusal(knock(was_active)),
            "in no workspace": await refusal(knock(stranger)),
            "another workspace's call": await refusal(knock(member, f"/live/calls/{theirs}")),
            "a call that never was": await refusal(knock(member, f"/live/calls/{uuid4()}")),
        }
        assert told == {
            "nobody signed in": 4401,
            "deactivated": 4401,
            "in no workspace": 4403,
            "another workspace's call": 4404,
            "a call that never was": 4404,
        }

    play(scenario)


def _loses_membership(user: User) -> None:
    Membership.objects.filter(user=user).delete()


def _is_signed_out(user: User) -> None:
    DeskSession.objects.filter(user_id=user.pk).delete()


def _is_deactivated(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _changes_password(user: User) -> None:
    user.set_password("another long password")
    user.save()


@pytest.mark.parametrize(
    ("event", "code"),
    [
        pytest.param(_loses_membership, 4403, id="the membership is taken away"),
        pytest.param(_is_signed_out, 4401, id="the session is ended elsewhere"),
        pytest.param(_is_deactivated, 4401, id="the person is deactivated"),
        pytest.param(_changes_password, 4401, id="the password is changed"),
    ],
)
def test_an_open_socket_ends_with_the_right_to_see(
    ana: User, event: Callable[[User], None], code: int
) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        socket = await opened(cookie)
        event(ana)
        assert await socket.close_code() == code

    play(scenario)


# What is told


def test_a_hint_is_one_word_and_only_for_what_the_page_shows(
    ana: User, shop: Workspace, charge: Tool
) -> None:
    cookie = cookie_of(ana)
    elsewhere = a_keyed_tool(a_workspace("second"))
    first, second = a_lost_call(charge), a_lost_call(charge)

    async def scenario() -> None:
        queue, call = await opened(cookie), await opened(cookie, f"/live/calls/{first}")
        a_lost_call(elsewhere)
        assert await queue.is_quiet()
        see(charge, second, SightingWord.ABSENT, data={"strength": "weak"})
        assert await queue.hint() == "look"
        assert await call.is_quiet()
        see(charge, first, SightingWord.ABSENT, data={"strength": "weak"})
        assert await call.hint() == "look"
        assert await queue.hint() == "look"
        assert await queue.is_quiet()

    play(scenario)


def test_a_page_that_connects_late_looks_once(ana: User, charge: Tool) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        first = await opened(cookie)
        await opened(cookie)  # which asserts it
        assert await first.is_quiet()

    play(scenario)


def test_the_clock_alone_changes_a_page(ana: User, charge: Tool) -> None:
    cookie = cookie_of(ana)
    a_lost_call(charge)
    clock = ShiftedClock()

    async def scenario() -> None:
        socket = await opened(cookie)
        assert await socket.is_quiet()
        clock.advance(timedelta(hours=25).total_seconds())  # The window is 24 hours.
        assert await socket.hint() == "look"

    try:
        play(scenario)
    finally:
        clock.restore()


# What cannot hold up or bring down the others


def frozen(cookie: str) -> asyncio.Future[None]:
    """A browser that accepts a socket and then takes nothing any more."""
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    incoming.put_nowait({"type": "websocket.connect"})

    async def send(message: dict[str, Any]) -> None:
        if message["type"] != "websocket.accept":
            await asyncio.Event().wait()

    scope = scope_of(cookie, "/live/queue", f"http://{HOST}")
    opened: asyncio.Future[None] = asyncio.ensure_future(application(scope, incoming.get, send))
    return opened


def test_a_browser_that_no_longer_reads_holds_up_nobody_and_is_let_go(
    ana: User, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "SEND_SECONDS_MAX", 1)
    cookie, ben = cookie_of(ana), cookie_of(a_person(charge.workspace, Role.SUPPORT, "ben"))

    def listening() -> set[int]:
        return {one.user_id for one in live.desk.listening}

    async def scenario() -> None:
        stuck = frozen(cookie)
        await until(lambda: ana.pk in listening())
        awake = await opened(ben)
        for _ in range(3):
            a_lost_call(charge)
            assert await awake.hint() == "look"
        await until(lambda: ana.pk not in listening())
        assert len(listening()) == 1
        stuck.cancel()

    play(scenario)


def test_a_socket_takes_no_messages(ana: User) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        socket = await opened(cookie)
        await socket.say("x" * 100_000)
        assert await socket.close_code() == 4400

    play(scenario)


def test_a_person_has_so_many_sockets_and_a_place_is_free_again_when_one_goes(ana: User) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        held = [await opened(cookie) for _ in range(live.SOCKETS_PER_PERSON_MAX)]
        assert await refusal(knock(cookie)) == 4429
        await held[0].go()
        await opened(cookie)

    play(scenario)


def test_a_process_has_so_many_sockets(
    ana: User, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SOCKETS_PER_PROCESS_MAX", 1)
    cookie, ben = cookie_of(ana), cookie_of(a_person(charge.workspace, Role.SUPPORT, "ben"))

    async def scenario() -> None:
        await opened(cookie)
        assert await refusal(knock(ben)) == 4429

    play(scenario)


def test_a_lost_database_connection_costs_one_look(ana: User, charge: Tool) -> None:
    cookie = cookie_of(ana)

    def backend() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    def end(pid: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    async def scenario() -> None:
        socket = await opened(cookie)
        end(await live.desk.ask(backend))
        a_lost_call(charge)
        assert await socket.hint() == "look"
        # Nobody listens now, and the connection that the next one asks by is cut as well.
        await socket.go()
        await until(lambda: live.desk.resting)
        end(await live.desk.ask(backend))
        with pytest.raises(DatabaseError):
            await live.desk.ask(backend)
        await opened(cookie)

    play(scenario)


def test_the_watcher_gives_its_connection_back_when_the_last_page_goes(ana: User) -> None:
    cookie = cookie_of(ana)

    async def scenario() -> None:
        socket = await opened(cookie)
        await socket.go()
        await until(lambda: live.desk.resting)
        assert await live.desk.ask(lambda: connection.connection is None)

    play(scenario)


def test_who_comes_while_the_watcher_is_going_is_watched_too(ana: User, charge: Tool) -> None:
    def listens(claim_id: UUID | None = None) -> live.Watcher:
        key = DeskSession.objects.filter(user_id=ana.pk).values_list("session_key", flat=True)[0]
        return live.Watcher(
            user_id=ana.pk,
            session_key=key,
            session_hash=ana.get_session_auth_hash(),
            workspace_id=charge.workspace_id,
            claim_id=claim_id,
        )

    cookie_of(ana)
    first, second = listens(), listens()

    class Desk(live.Desk):
        """Its first page goes during a look, and the next one comes while it puts things away."""

        @override
        async def ask[T](self, question: Callable[[], T]) -> T:
            if not self.listening and not second.flag.is_set():
                self.join(second)
            answer = await super().ask(question)
            self.leave(first)
            return answer

    async def scenario() -> None:
        desk = Desk()
        desk.join(first)
        async with asyncio.timeout(HINT_SECONDS_MAX):
            await second.flag.wait()
        second.flag.clear()
        a_lost_call(charge)
        async with asyncio.timeout(HINT_SECONDS_MAX):
            await second.flag.wait()
        desk.leave(second)
        await until(lambda: desk.resting)
        await desk.ask(close)

    play(scenario)
