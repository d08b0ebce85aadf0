"""MCP's real server and client over loopback HTTP, with a line between them that can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

from effects.client import AsyncLedger, Call, Ledger, NotSent, ToolCall, effect
from effects.client.integrations.mcp import CLAIM_META, KEY_META, place_of
from effects.client.integrations.mcp_client import call_tool, remote_tool
from effects.client.integrations.mcp_server import add_tool
from effects.core.messages import ClaimRequest, Problem
from effects.core.vocabulary import ClaimState, TokenScope
from effects.models import Workspace
from ledger import auth, queries
from tests.effects.client.scripted_ledger import GRANT, QUICK, ScriptedLedger
from tests.support.awaiting import awaited
from tests.support.cut import Line, line_to

AT = ToolCall(conversation="c-9", turn_index=1, call_id="call_0123456789abcdef")


@dataclass
class Shop:
    """An MCP server of one tool, which counts its orders, behind a line."""

    ledger: Ledger
    server: MCPServer[Any]
    line: Line
    orders: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def connect(self, **more: Any) -> Client:
        return Client(f"{self.line.url}/mcp", **more)

    def place(self, sku: str) -> dict[str, int]:
        self.orders.append(sku)
        self.meanwhile()
        return {"order": len(self.orders)}

    def sell(self, **more: Any) -> None:
        """Puts the tool on the server, claimed before it runs."""

        @effect(self.ledger, effect_class="keyed_write")
        def place_order(call: Call, *, sku: str, count: int = 1) -> dict[str, int]:
            """Order something."""
            return self.place(sku)

        add_tool(self.server, place_order, **more)

    def order(self, at: ToolCall = AT, **more: Any) -> Coroutine[Any, Any, CallToolResult]:
        return call_tool(partial(self.connect, **more), "place_order", {"sku": "Z"}, at)


@contextlib.contextmanager
def serving(server: MCPServer[Any]) -> Iterator[int]:
    """The server's port, for the time of the block."""
    app = server.streamable_http_app()
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=partial(running.run, [listener]), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join(10)


@pytest.fixture
def workspace(live_api: str) -> Workspace:
    return Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


@pytest.fixture
def token(workspace: Workspace) -> str:
    return auth.issue(workspace, "a server", (TokenScope.CLAIM,), user=None)[1]


@contextlib.contextmanager
def a_shop(ledger: Ledger) -> Iterator[Shop]:
    server: MCPServer[Any] = MCPServer("shop", log_level="CRITICAL")
    with serving(server) as port, line_to(port) as line:
        yield Shop(ledger, server, line)


@pytest.fixture
def shop(live_api: str, token: str) -> Iterator[Shop]:
    """A shop with the real ledger."""
    with Ledger(live_api, token, patience=QUICK) as ledger, a_shop(ledger) as shop:
        yield shop


@pytest.fixture
def scripted_shop(scripted: ScriptedLedger, ledger: Ledger) -> Iterator[Shop]:
    """A shop whose ledger would grant anything, if it were asked."""
    scripted.answers("claims", GRANT)
    with a_shop(ledger) as shop:
        yield shop


def told(result: CallToolResult) -> str:
    return str(result.structured_content["status"])


live = pytest.mark.django_db(transaction=True)


# Re-issued calls


@pytest.mark.case("D09")
@live
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_a_call_whose_answer_was_lost_is_re_issued_and_gets_the_first_result(
    shop: Shop, workspace: Workspace, mode: str
) -> None:
    shop.sell()
    shop.meanwhile = shop.line.drop_next_answer
    result = awaited(shop.order(mode=mode))
    assert shop.line.answers_dropped == 1
    assert shop.orders == ["Z"]
    assert (told(result), result.is_error) == ("completed", False)
    assert result.structured_content["result"] == {"order": 1}
    claim = queries.claim(workspace.pk, (result.meta or {})[CLAIM_META]["claim"])
    assert (claim.state, claim.fence) == (ClaimState.COMPLETED, 1)


@live
def test_a_call_that_lost_its_client_runs_to_its_end_and_the_re_issued_one_waits_for_it(
    shop: Shop, live_api: str, token: str
) -> None:
    """The protocol calls a lost connection a cancellation, but half an effect helps nobody."""

    async def story() -> CallToolResult:
        # The server has a loop of its own, so its ledger is made there, at the first call.
        made: list[AsyncLedger] = []

        def ledger() -> AsyncLedger:
            if not made:
                made.append(AsyncLedger(live_api, token, patience=QUICK))
            return made[0]

        @effect(ledger, effect_class="unkeyed_write")
        async def place_order(call: Any, *, sku: str) -> dict[str, int]:
            """Order something."""
            shop.line.cut()
            shop.line.mend()
            await anyio.sleep(0.3)
            return shop.place(sku)

        add_tool(shop.server, place_order)
        try:
            return await shop.order()
        finally:
            made[0].plain.close()

    assert awaited(story()).structured_content["result"] == {"order": 1}
    assert shop.orders == ["Z"]


@live
def test_a_stream_that_broke_after_it_began_is_re_issued(shop: Shop) -> None:
    async def reports_first(ctx: Context[Any, Any], arguments: dict[str, Any]) -> None:
        if not shop.orders:
            await ctx.report_progress(1, 2)  # The answer is a stream from here on.

    shop.sell(before=reports_first)

    def cut_once() -> None:
        shop.line.cut()
        shop.line.mend()

    shop.meanwhile = cut_once
    call = call_tool(shop.connect, "place_order", {"sku": "Z"}, AT)
    assert told(awaited(call)) == "completed"
    assert shop.orders == ["Z"]


@live
def test_rounds_that_ask_for_input_are_one_call_also_when_the_last_answer_is_lost(
    shop: Shop,
) -> None:
    rounds: list[bool] = []

    async def ask_for_a_count(
        ctx: Context[Any, Any], arguments: dict[str, Any]
    ) -> InputRequiredResult | None:
        answered = bool(ctx.input_responses)
        rounds.append(answered)
        if answered:
            return None
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        asked = ElicitRequestFormParams(message="Sure?", requested_schema=schema)
        return InputRequiredResult(input_requests={"sure": ElicitRequest(params=asked)})

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"sure": True})

    shop.sell(before=ask_for_a_count)
    shop.meanwhile = shop.line.drop_next_answer
    result = awaited(shop.order(elicitation_callback=answer))
    assert rounds == [False, True, False, True]
    assert shop.orders == ["Z"]
    assert result.structured_content["result"] == {"order": 1}


# Servers that recognise nothing


def sell_unclaimed(shop: Shop, *, fails: bool = False) -> None:
    """The same shop without a ledger, which calls itself idempotent."""

    def place_order(sku: str) -> CallToolResult:
        """Order something."""
        order = shop.place(sku)
        return CallToolResult(
            content=[TextContent(type="text", text="It failed." if fails else "Ordered.")],
            structured_content=order,
            is_error=fails,
        )

    hints = ToolAnnotations(read_only_hint=False, idempotent_hint=True)
    shop.server.add_tool(place_order, annotations=hints)


@live
def test_a_server_that_recognises_nothing_is_asked_once_whatever_it_calls_itself(
    shop: Shop,
) -> None:
    sell_unclaimed(shop)
    shop.meanwhile = shop.line.drop_next_answer
    result = awaited(shop.order())
    assert shop.orders == ["Z"]
    assert (told(result), result.is_error) == ("unknown", False)
    assert result.structured_content["next_step"].startswith("Do not call this tool again")


def test_an_answer_that_came_counts_also_if_its_connection_then_breaks(
    scripted_shop: Shop,
) -> None:
    sell_unclaimed(scripted_shop)

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        async with scripted_shop.connect() as client:
            yield client
        raise ConnectionResetError

    result = awaited(call_tool(connect, "place_order", {"sku": "Z"}, AT))
    assert result.structured_content == {"order": 1}
    assert scripted_shop.orders == ["Z"]


def test_a_server_that_cannot_be_reached_was_not_called(scripted_shop: Shop) -> None:
    scripted_shop.sell()
    scripted_shop.line.cut()
    result = awaited(scripted_shop.order())
    assert (told(result), result.is_error, scripted_shop.orders) == ("not_executed", True, [])


async def ordered_twice(shop: Shop, live_api: str, token: str) -> list[str]:
    async with AsyncLedger(live_api, token, patience=QUICK) as ledger:
        order = remote_tool(ledger, shop.connect, "place_order", effect_class="unkeyed_write")
        return [(await order(AT, sku="Z")).status for _ in range(2)]


@live
def test_a_call_claimed_by_its_client_is_one_order(shop: Shop, live_api: str, token: str) -> None:
    sell_unclaimed(shop)
    assert awaited(ordered_twice(shop, live_api, token)) == ["completed", "completed"]
    assert shop.orders == ["Z"]


@pytest.mark.case("D09")
@live
def test_a_lost_answer_leaves_the_claim_unknown_and_the_second_request_is_not_made(
    shop: Shop, live_api: str, token: str
) -> None:
    sell_unclaimed(shop)
    shop.meanwhile = shop.line.drop_next_answer
    assert awaited(ordered_twice(shop, live_api, token)) == ["unknown", "unknown"]
    assert shop.orders == ["Z"]


@pytest.mark.case("D09")
@live
def test_an_error_result_is_no_proof_that_nothing_was_done(
    shop: Shop, live_api: str, token: str
) -> None:
    sell_unclaimed(shop, fails=True)
    assert awaited(ordered_twice(shop, live_api, token)) == ["unknown", "unknown"]
    assert shop.orders == ["Z"]


@pytest.mark.case("D09")
@live
def test_a_connection_that_was_refused_proves_that_nothing_was_sent(
    shop: Shop, live_api: str, token: str
) -> None:
    sell_unclaimed(shop)

    async def story() -> list[str]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        urls = [f"http://127.0.0.1:{port}/mcp", f"{shop.line.url}/mcp"]
        async with AsyncLedger(live_api, token, patience=QUICK) as ledger:
            order = remote_tool(
                ledger, lambda: Client(urls.pop(0)), "place_order", effect_class="unkeyed_write"
            )
            return [(await order(AT, sku="Z")).status for _ in range(2)]

    assert awaited(story()) == ["not_executed", "completed"]
    assert shop.orders == ["Z"]


# What the server turns away


def test_a_write_without_an_identity_is_refused_and_a_read_needs_none(scripted_shop: Shop) -> None:
    scripted_shop.sell()

    @effect(scripted_shop.ledger, effect_class="read")
    def find_order(*, order: int) -> dict[str, int]:
        """Find an order."""
        return {"order": order}

    add_tool(scripted_shop.server, find_order)

    async def story() -> list[CallToolResult]:
        async with scripted_shop.connect() as client:
            return [
                await client.call_tool("place_order", {"sku": "Z"}),
                await client.call_tool("find_order", {"order": 7}),
            ]

    write, read = awaited(story())
    assert (told(write), write.is_error) == ("refused", True)
    assert KEY_META in write.structured_content["detail"]
    assert read.structured_content["result"] == {"order": 7}
    assert scripted_shop.orders == []


def test_arguments_are_judged_as_the_model_wrote_them(scripted_shop: Shop) -> None:
    """MCP's server would turn "2" into 2, which is another order."""
    scripted_shop.sell()
    wrong = awaited(call_tool(scripted_shop.connect, "place_order", {"sku": "Z", "count": "2"}, AT))
    assert (told(wrong), wrong.is_error, scripted_shop.orders) == ("refused", True, [])


def test_a_person_who_says_no_is_told_and_nothing_is_claimed(scripted_shop: Shop) -> None:
    async def decline(ctx: Context[Any, Any], arguments: dict[str, Any]) -> None:
        raise NotSent("Nobody wants this.")

    scripted_shop.sell(before=decline)
    result = awaited(scripted_shop.order())
    assert (told(result), result.is_error, scripted_shop.orders) == ("refused", True, [])


def test_a_ledger_that_does_not_know_the_server_runs_nothing(
    scripted: ScriptedLedger, scripted_shop: Shop
) -> None:
    refusal = Problem(title="", status=401, detail="", code="token_refused")
    scripted.answers("claims", refusal)
    scripted_shop.sell()
    result = awaited(scripted_shop.order())
    assert (told(result), result.is_error, scripted_shop.orders) == ("refused", True, [])


def test_a_tool_that_asks_for_input_after_its_claim_is_not_added() -> None:
    ledger = Ledger("http://127.0.0.1:9", "a-token")

    @effect(ledger, effect_class="keyed_write")
    def place_order(call: Call, *, sku: str) -> dict[str, int] | InputRequiredResult:
        """Order something."""
        raise AssertionError

    with pytest.raises(TypeError, match="asks for input after its claim"):
        add_tool(MCPServer("shop", log_level="CRITICAL"), place_order)


def test_callers_are_told_apart_by_whoever_knows_them(
    scripted: ScriptedLedger, scripted_shop: Shop
) -> None:
    callers = iter(["ada", "ada", "bob"])

    def identify(ctx: Context[Any, Any]) -> ToolCall:
        at = place_of(ctx.request_context.meta)
        return replace(at, conversation=f"{next(callers)}/{at.conversation}")

    scripted_shop.sell(identify=identify)
    for _ in range(3):
        awaited(scripted_shop.order())
    said = [one.conversation for one in scripted.told(ClaimRequest)]
    assert said == ["ada/c-9", "ada/c-9", "bob/c-9"]
