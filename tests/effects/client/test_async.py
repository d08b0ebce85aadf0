"""The client, awaited: the same answers, and reports that survive a cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from effects.client import (
    AsyncCall,
    AsyncLedger,
    Ledger,
    NotGranted,
    ToolCall,
    TurnCall,
    effect,
)
from effects.core.vocabulary import ClaimState, EffectClass, Outcome
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import queries
from ledger.models import Claim
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.client.ways import Way
from tests.effects.faulty_server import closed_port
from tests.support.awaiting import awaited

AT = ToolCall(conversation="c", turn_index=0, call_id="toolu_01WkP9QmXyZ01234")


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    RegisteredTool.objects.create(
        workspace=made, name="pay", effect_class=EffectClass.KEYED_WRITE, window_seconds=86_400
    )
    return made


@pytest.fixture
def run(way: Way, shop: Workspace) -> Callable[..., Any]:
    arguments = way.to(shop)

    def run(work: Callable[[AsyncLedger], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with AsyncLedger(*arguments, patience=QUICK) as ledger:
                return await work(ledger)

        return awaited(main())

    return run


def a_tool(
    ledger: AsyncLedger, *, work: Callable[[AsyncCall], Awaitable[Any]] | None = None
) -> Any:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    async def pay(call: AsyncCall, *, amount: int) -> dict[str, Any]:
        await call.sent(marker=True)
        call.check_send()
        if work is not None:
            await work(call)
        return {"id": f"pi_{amount}", "key": call.key}

    return pay


def the_claim() -> Claim:
    workspace = Workspace.objects.get()
    return queries.claim(workspace.pk, Claim.objects.get().pk)


def outcomes(claim: Claim) -> list[str]:
    return [event.word for event in queries.events(claim) if event.word]


def test_a_call_is_claimed_run_reported_and_repeated_as_the_plain_one_is(run: Any) -> None:
    async def work(ledger: AsyncLedger) -> Any:
        pay = a_tool(ledger)
        first = await pay(AT, amount=1)
        again = await pay.run(AT, '{"amount": 1.0}')
        known = await ledger.status(first.claim_id)
        waited = await ledger.wait(first.claim_id, 5)
        return first, again, known, waited, await ledger.flush()

    first, again, known, waited, flushed = run(work)
    assert [told.status for told in (first, again, known, waited)] == ["completed"] * 4
    assert first.result == again.result
    assert first.value == {"id": "pi_1", "key": first.answer.key or first.value["key"]}
    assert flushed.waiting == 0
    assert outcomes(the_claim()) == [Outcome.COMPLETED]


def test_what_the_function_raises_is_sorted_and_returned(run: Any) -> None:
    async def fails(_: AsyncCall) -> None:
        raise ConnectionResetError

    async def work(ledger: AsyncLedger) -> Any:
        return await a_tool(ledger, work=fails)(AT, amount=1)

    told = run(work)
    assert told.status == "unknown"
    assert isinstance(told.error, ConnectionResetError)
    assert outcomes(the_claim()) == [Outcome.UNKNOWN]


@pytest.mark.parametrize("how", ["cancelled", "timed out", "twice"])
def test_a_task_that_is_cancelled_while_it_sends_reports_unknown(run: Any, how: str) -> None:
    async def work(ledger: AsyncLedger) -> None:
        sending = asyncio.Event()

        async def send(_: AsyncCall) -> None:
            sending.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(a_tool(ledger, work=send)(AT, amount=1))
        if how == "timed out":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0.5)
            return
        await sending.wait()
        task.cancel()
        if how == "twice":
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work)
    assert outcomes(the_claim()) == [Outcome.UNKNOWN]
    assert the_claim().state is ClaimState.UNKNOWN


def test_a_task_that_is_cancelled_before_its_answer_came_gives_the_grant_back(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, slow = threading.Event(), Ledger.begin

    def begin(self: Ledger, wanted: Any) -> Any:
        begun = slow(self, wanted)
        asked.set()
        time.sleep(0.3)
        return begun

    monkeypatch.setattr(Ledger, "begin", begin)

    async def work(ledger: AsyncLedger) -> None:
        task = asyncio.ensure_future(a_tool(ledger)(AT, amount=1))
        assert await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work)
    assert the_claim().state is ClaimState.NOT_EXECUTED
    assert outcomes(the_claim()) == [Outcome.NOT_SENT]


def test_the_calls_of_a_response_run_beside_each_other(run: Any) -> None:
    together = asyncio.Barrier(3)

    async def meet(_: AsyncCall) -> None:
        async with asyncio.timeout(10):
            await together.wait()

    async def work(ledger: AsyncLedger) -> Any:
        pay = a_tool(ledger, work=meet)

        @effect(ledger, effect_class="read")
        async def look(*, at: str) -> str:
            return at

        calls = [TurnCall(tool=pay, arguments={"amount": n}) for n in (1, 2, 3)]
        turn = ledger.turn("c", 0)
        return await turn.run_all([*calls, TurnCall(tool=look, arguments={"at": "x"})])

    told = run(work)
    assert [one.status for one in told] == ["completed"] * 4
    assert [one.value["id"] for one in told[:3]] == ["pi_1", "pi_2", "pi_3"]


def test_the_block_is_awaited_too(run: Any) -> None:
    async def work(ledger: AsyncLedger) -> Any:
        async with ledger.attempt(
            "pay", {"amount": 1}, AT, effect_class=EffectClass.KEYED_WRITE
        ) as call:
            call.check_send()
            await call.complete({"id": "pi_1"}, provider_object="pi_1")
        with pytest.raises(NotGranted, match="completed"):
            async with ledger.attempt("pay", '{"amount":1}', AT):
                raise AssertionError("never runs")
        with pytest.raises(RuntimeError, match="boom"):
            async with ledger.attempt(
                "pay", '{"amount":2}', ToolCall(conversation="c", turn_index=1)
            ):
                raise RuntimeError("boom")
        return call.effect

    assert run(work).status == "completed"


@pytest.mark.parametrize(
    ("answered", "expected", "sends", "refreshes"),
    [
        pytest.param([401, 200], ("completed", True), 2, 1, id="refused once"),
        pytest.param([401, 401], ("not_executed", False), 2, 1, id="refused twice"),
        pytest.param([500], ("unknown", False), 1, 0, id="another answer is no refusal"),
    ],
)
def test_credentials_are_refreshed_once_and_only_after_a_refusal(
    run: Any,
    answered: list[int],
    expected: tuple[str, bool],
    sends: int,
    refreshes: int,
) -> None:
    request = httpx.Request("POST", "https://payments.example")
    sent: list[int] = []
    refreshed: list[int] = []

    async def work(ledger: AsyncLedger) -> Any:
        @effect(ledger, effect_class="keyed_write", tool="pay", object_from="id")
        async def pay(call: AsyncCall, *, amount: int) -> dict[str, Any]:
            async def send() -> dict[str, Any]:
                status = answered[len(sent)]
                sent.append(status)
                httpx.Response(status, request=request).raise_for_status()
                return {"id": f"pi_{amount}"}

            async def refresh() -> None:
                refreshed.append(1)

            return await call.with_one_refresh(send, refresh)

        return await pay(AT, amount=1)

    told = run(work)
    assert (told.status, told.happened) == expected
    assert (len(sent), len(refreshed)) == (sends, refreshes)


def test_while_the_ledger_is_away_nothing_is_sent() -> None:
    async def main() -> Any:
        address = f"http://127.0.0.1:{closed_port()}"
        async with AsyncLedger(address, "t", patience=QUICK) as ledger:
            return await a_tool(ledger)(AT, amount=1)

    told = awaited(main())
    assert (told.status, told.nothing_sent) == ("ledger_unavailable", True)


def test_a_function_and_its_ledger_are_both_awaited_or_neither() -> None:
    with pytest.raises(TypeError, match="an async function"):

        @effect(Ledger("http://127.0.0.1:1", "t"), effect_class="read")
        async def late() -> None: ...

    with pytest.raises(TypeError, match="a plain one"):
        effect(AsyncLedger("http://127.0.0.1:1", "t"), effect_class="read")(lambda: None)  # type: ignore[arg-type, return-value]
