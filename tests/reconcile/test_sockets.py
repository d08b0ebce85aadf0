"""The socket of the live pages, through the desk's own door and against the real database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, override
from uuid import UUID, uuid4

import pytest
import websockets
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, connections
from websockets.typing import Origin

from effects.asgi import application
from effects.core.vocabulary import Role, SightingWord
from effects.models import DeskSession, Membership, Tool, Workspace
from reconcile import live, sockets
from tests.support import stack
from tests.support.awaiting import awaited
from tests.support.clock import ShiftedClock
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see
from tests.support.sockets import (
    HINT_SECONDS_MAX,
    HOST,
    cookie_of,
    knock,
    opened,
    refusal,
    scope_of,
)

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

    awaited(whole())


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


@pytest.mark.case("U10")
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


@pytest.mark.case("X07")
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


@pytest.mark.case("X07")
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


@pytest.mark.case("X07")
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


@pytest.mark.case("X07")
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


def test_a_desk_with_open_pages_stops_at_once(
    ana: User, process_env: dict[str, str], tmp_path: Path
) -> None:
    cookie = cookie_of(ana)
    url, program = stack.door("desk", "asginl", "effects.asgi:application", env=process_env)
    address = url.replace("http://", "ws://") + "/live/queue"

    async def watch_and_stop(terminate: Callable[[], None]) -> None:
        headers, origin = {"Cookie": cookie}, Origin(url)
        async with websockets.connect(address, origin=origin, additional_headers=headers) as page:
            assert await asyncio.wait_for(page.recv(), HINT_SECONDS_MAX) == "look"
            terminate()
            # No code: the page takes it for a lost line, and tries again until the desk is back.
            with pytest.raises(websockets.ConnectionClosedError):
                await asyncio.wait_for(page.recv(), HINT_SECONDS_MAX)

    with stack.running(program, log=tmp_path / "desk.log") as process:
        awaited(watch_and_stop(process.terminate))
        told_at = time.monotonic()
        process.wait(HINT_SECONDS_MAX)
        assert time.monotonic() - told_at < 3
