"""MCP's real server and client over loopback HTTP, with a line between them that can be cut."""

from __future__ import annotations

import contextlib
import importlib
import re
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
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

from effects.client import AsyncLedger, Call, Ledger, NoIdentity, NotSent, ToolCall, effect
from effects.client.integrations import mcp as members
from effects.client.integrations.mcp import (
    CLAIM_META,
    PREFIX,
    annotations_of,
    hinted_class,
    meta_of,
    place_of,
)
from effects.client.integrations.mcp_client import call_tool, remote_tool
from effects.client.integrations.mcp_server import add_tool
from effects.core.vocabulary import ClaimState, EffectClass
from effects.models import Workspace
from ledger import auth, queries
from tests.effects.client.scripted_ledger import QUICK
from tests.support.awaiting import awaited
from tests.support.cut import Line, line_to

AT = ToolCall(conversation="c-9", turn_index=1, call_id="call_0123456789abcdef")


@dataclass
class Shop:
    """An MCP server of one tool, which counts its orders, behind a line."""

    ledger: Ledger
    workspace: Workspace
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

    def order(self, at: ToolCall = AT, **more: Any) -> Awaitable[CallToolResult]:
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
    return auth.issue(workspace, "a server", ("claim",), user=None)[1]


@pytest.fixture
def shop(live_api: str, workspace: Workspace, token: str) -> Iterator[Shop]:
    server: MCPServer[Any] = MCPServer("shop", log_level="CRITICAL")
    with (
        Ledger(live_api, token, patience=QUICK) as ledger,
        serving(server) as port,
        line_to(port) as line,
    ):
        yield Shop(ledger, workspace, server, line)


def told(result: CallToolResult) -> str:
    return str(result.structured_content["status"])


live = pytest.mark.django_db(transaction=True)


# Re-issued calls


@live
def test_a_call_whose_answer_was_lost_is_re_issued_and_gets_the_first_result(shop: Shop) -> None:
    shop.sell()
    shop.meanwhile = shop.line.drop_next_answer
    result = awaited(shop.order())
    assert shop.line.answers_dropped == 1
    assert shop.orders == ["Z"]
    assert (told(result), result.is_error) == ("completed", False)
    assert result.structured_content["result"] == {"order": 1}
    claim = queries.claim(shop.workspace.pk, (result.meta or {})[CLAIM_META]["claim"])
    assert (claim.state, claim.fence) == (ClaimState.COMPLETED, 1)


@live
def test_a_call_that_lost_its_client_runs_to_its_end_and_the_re_issued_one_waits_for_it(
    shop: Shop,
) -> None:
    """The protocol calls a lost connection a cancellation, but half an effect helps nobody."""
    shop.sell()

    def lose_the_client() -> None:
        shop.line.cut()
        shop.line.mend()
        time.sleep(0.6)

    shop.meanwhile = lose_the_client
    result = awaited(shop.order())
    assert shop.orders == ["Z"]
    assert result.structured_content["result"] == {"order": 1}


@live
def test_an_async_tool_is_carried_to_its_end_too(shop: Shop, live_api: str, token: str) -> None:
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


@live
def test_another_call_of_the_model_is_another_order(shop: Shop) -> None:
    shop.sell()
    for at in (AT, AT, replace(AT, turn_index=3, call_id="call_fedcba9876543210")):
        assert told(awaited(shop.order(at))) == "completed"
    assert shop.orders == ["Z", "Z"]


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


async def ordered_twice(shop: Shop, live_api: str, token: str) -> list[str]:
    async with AsyncLedger(live_api, token, patience=QUICK) as ledger:
        order = remote_tool(ledger, shop.connect, "place_order", effect_class="unkeyed_write")
        return [(await order(AT, sku="Z")).status for _ in range(2)]


@live
def test_a_call_claimed_by_its_client_is_one_order(shop: Shop, live_api: str, token: str) -> None:
    sell_unclaimed(shop)
    assert awaited(ordered_twice(shop, live_api, token)) == ["completed", "completed"]
    assert shop.orders == ["Z"]


@live
def test_a_lost_answer_leaves_the_claim_unknown_and_the_second_request_is_not_made(
    shop: Shop, live_api: str, token: str
) -> None:
    sell_unclaimed(shop)
    shop.meanwhile = shop.line.drop_next_answer
    assert awaited(ordered_twice(shop, live_api, token)) == ["unknown", "unknown"]
    assert shop.orders == ["Z"]


@live
def test_an_error_result_is_no_proof_that_nothing_was_done(
    shop: Shop, live_api: str, token: str
) -> None:
    sell_unclaimed(shop, fails=True)
    assert awaited(ordered_twice(shop, live_api, token)) == ["unknown", "unknown"]
    assert shop.orders == ["Z"]


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


@live
def test_a_write_without_an_identity_is_refused_and_a_read_needs_none(shop: Shop) -> None:
    shop.sell()

    @effect(shop.ledger, effect_class="read")
    def find_order(*, order: int) -> dict[str, int]:
        """Find an order."""
        return {"order": order}

    add_tool(shop.server, find_order)

    async def story() -> list[CallToolResult]:
        async with shop.connect() as client:
            return [
                await client.call_tool("place_order", {"sku": "Z"}),
                await client.call_tool("find_order", {"order": 7}),
            ]

    write, read = awaited(story())
    assert (told(write), write.is_error) == ("refused", True)
    assert members.KEY_META in write.structured_content["detail"]
    assert read.structured_content["result"] == {"order": 7}
    assert shop.orders == []


@live
def test_arguments_are_judged_as_the_model_wrote_them(shop: Shop) -> None:
    """MCP's server would turn "2" into 2, which is another order."""
    shop.sell()
    wrong = awaited(call_tool(shop.connect, "place_order", {"sku": "Z", "count": "2"}, AT))
    assert (told(wrong), wrong.is_error, shop.orders) == ("refused", True, [])


@live
def test_a_person_who_says_no_is_told_and_nothing_is_claimed(shop: Shop) -> None:
    async def decline(ctx: Context[Any, Any], arguments: dict[str, Any]) -> None:
        raise NotSent("Nobody wants this.")

    shop.sell(before=decline)
    result = awaited(shop.order())
    assert (told(result), result.is_error, shop.orders) == ("refused", True, [])


@live
def test_a_ledger_that_does_not_know_the_server_runs_nothing(shop: Shop, live_api: str) -> None:
    with Ledger(live_api, "cf_00000000_nothing", patience=QUICK) as stranger:
        replace(shop, ledger=stranger).sell()
        result = awaited(shop.order())
    assert (told(result), result.is_error, shop.orders) == ("refused", True, [])


@live
def test_callers_are_told_apart_by_whoever_knows_them(shop: Shop) -> None:
    callers = iter(["ada", "ada", "bob"])

    def identify(ctx: Context[Any, Any]) -> ToolCall:
        at = place_of(ctx.request_context.meta)  # type: ignore[arg-type]  # an open mapping
        return replace(at, conversation=f"{next(callers)}/{at.conversation}")

    shop.sell(identify=identify)
    for _ in range(3):
        awaited(shop.order())
    assert shop.orders == ["Z", "Z"]


def test_a_tool_that_asks_for_input_after_its_claim_is_not_added() -> None:
    ledger = Ledger("http://127.0.0.1:9", "a-token")

    @effect(ledger, effect_class="keyed_write")
    def place_order(call: Call, *, sku: str) -> dict[str, int] | InputRequiredResult:
        """Order something."""
        raise AssertionError

    with pytest.raises(TypeError, match="asks for input after its claim"):
        add_tool(MCPServer("shop", log_level="CRITICAL"), place_order)


# Identity and hints

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=40)
CALLS = st.builds(
    ToolCall,
    conversation=NAMES,
    turn_index=st.integers(0, 2**31 - 1),
    position=st.integers(0, 100),
    ordinal=st.integers(0, 100),
    response_id=st.none() | NAMES,
    call_id=st.none() | NAMES,
    caller_key=st.none() | NAMES,
)


@given(CALLS)
@settings(deadline=None)
def test_an_identity_comes_out_of_meta_as_it_went_in(at: ToolCall) -> None:
    assert place_of({**meta_of(at), "progressToken": 3}) == at


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(None, id="no meta"),
        pytest.param({}, id="an empty one"),
        pytest.param({members.CALL_META: {}}, id="a call of nothing"),
        pytest.param({members.CALL_META: {"conversation": "c"}}, id="no turn"),
        pytest.param({members.CALL_META: {"turn_index": 1}}, id="no conversation"),
        pytest.param({members.CALL_META: "c-1"}, id="text for an object"),
        pytest.param({members.KEY_META: 7}, id="a number for a key"),
        pytest.param(
            {members.CALL_META: {"conversation": "c", "turn_index": "1"}}, id="text for a number"
        ),
        pytest.param(
            {members.CALL_META: {"conversation": "c", "turn_index": -1}}, id="a turn before all"
        ),
        pytest.param(
            {members.CALL_META: {"conversation": "c" * 256, "turn_index": 1}}, id="too long"
        ),
        pytest.param(
            {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, id="others' members"
        ),
    ],
)
def test_what_is_no_identity_is_refused(meta: dict[str, Any] | None) -> None:
    with pytest.raises(NoIdentity):
        place_of(meta)


def test_the_members_of_meta_are_named_as_the_protocol_allows() -> None:
    named = {value for name, value in vars(members).items() if name.endswith("_META")}
    assert len(named) == 5
    for name in named:
        assert name.startswith(PREFIX)
        assert re.fullmatch(r"(?:[a-z](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+/[a-zA-Z0-9-]+", name)
    assert PREFIX.split(".")[1].rstrip("/") not in {"mcp", "modelcontextprotocol"}


@pytest.mark.parametrize(
    ("kind", "hints"),
    [
        (EffectClass.READ, (True, False, True)),
        (EffectClass.KEYED_WRITE, (False, True, False)),
        (EffectClass.UNKEYED_WRITE, (False, True, False)),
    ],
)
def test_a_write_is_shown_as_the_worst_and_never_as_idempotent(
    kind: EffectClass, hints: tuple[bool, bool, bool]
) -> None:
    shown = annotations_of(kind)
    assert (shown.read_only_hint, shown.destructive_hint, shown.idempotent_hint) == hints


@pytest.mark.parametrize(
    ("hints", "kind"),
    [
        (None, EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(idempotent_hint=True), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(destructive_hint=False), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(read_only_hint=False), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(read_only_hint=True), EffectClass.READ),
    ],
)
def test_an_absent_hint_means_the_worst(hints: ToolAnnotations | None, kind: EffectClass) -> None:
    assert hinted_class(hints) is kind


@pytest.mark.parametrize("side", ["mcp", "mcp_server", "mcp_client"])
def test_without_mcp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    name = f"effects.client.integrations.{side}"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(ImportError, match=r"counterfoil\[mcp\]"):
        importlib.import_module(name)
