"""Callbacks for tools that are not decorated, by LangChain's own tools."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, ToolException
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from effects.client import Call, Ledger, effect
from effects.client.integrations.langchain import as_langchain
from effects.client.integrations.langchain_callbacks import STOPPED, LedgerCallbacks
from effects.core.messages import Message
from tests.effects.client.scripted_ledger import GRANT, ScriptedLedger
from tests.support.awaiting import awaited

THREAD: Any = {"configurable": {"thread_id": "t-1"}}
STRONG = "toolu_0123456789abcdef"


class Heard:
    """Takes the events instead of sending them."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []

    def tell(self, event_id: str, kind: str, data: Message) -> None:
        self.told.append((kind, data))

    def send(self) -> None: ...

    def flush(self) -> int:
        return 0

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def callbacks(heard: Heard) -> Iterator[LedgerCallbacks]:
    handler = LedgerCallbacks(heard, {"search": "read"})  # type: ignore[arg-type]  # what it needs
    handler.raise_error = True
    yield handler
    handler.close()
    started, ended = (
        Counter(heard.kinds)["attempt.started"],
        sum("attempt." in k for k in heard.kinds),
    )
    assert ended == 2 * started, "every run that began ended exactly once"


class Sum(BaseModel):
    amount: int


def charge_of(name: str = "charge", **more: Any) -> StructuredTool:
    def charge(amount: int, fault: str = "") -> str:
        """Charge a card."""
        if fault == "handled":
            raise ToolException("The card was declined.")
        if fault == "its answer cannot be read":
            Sum.model_validate_json('{"amount": "x"}')
        if fault:
            raise ConnectionResetError(fault)
        return f"charged {amount}"

    return StructuredTool.from_function(charge, name=name, **more)


def run(tool: StructuredTool, handler: LedgerCallbacks, **arguments: Any) -> None:
    call = {"name": tool.name, "args": arguments, "id": STRONG, "type": "tool_call"}
    config: Any = {**THREAD, "metadata": {"thread_id": "t-1"}, "callbacks": [handler]}
    tool.invoke(call, config)


@pytest.mark.parametrize(
    ("arguments", "more", "ends"),
    [
        pytest.param({"amount": 1}, {}, "attempt.completed", id="it returned"),
        pytest.param({"amount": 1, "fault": "reset"}, {}, "attempt.unknown", id="it raised"),
        pytest.param(
            {"amount": 1, "fault": "handled"},
            {"handle_tool_error": True},
            "attempt.unknown",
            id="its error became a message",
        ),
        pytest.param({"amount": "x"}, {}, "attempt.failed", id="its arguments never reached it"),
        pytest.param(
            {"amount": "x"},
            {"handle_validation_error": True},
            "attempt.unknown",
            id="nobody can see that they never reached it",
        ),
        pytest.param(
            {"amount": 1, "fault": "its answer cannot be read"},
            {},
            "attempt.unknown",
            id="a validation error after it had sent",
        ),
    ],
)
def test_a_run_that_began_ends_as_what_is_known_of_it(
    heard: Heard,
    callbacks: LedgerCallbacks,
    arguments: dict[str, Any],
    more: dict[str, Any],
    ends: str,
) -> None:
    with contextlib.suppress(ValueError, ConnectionResetError):
        run(charge_of(**more), callbacks, **arguments)
    assert heard.kinds == ["claim.made", "attempt.started", ends]
    made: Any = heard.told[0][1]
    assert (made.tool, made.conversation, made.call_id) == ("charge", "t-1", STRONG)
    assert (made.effect_class, json.loads(made.arguments)) == ("unkeyed_write", arguments)


def test_a_run_that_was_cancelled_is_ended_as_unknown(
    heard: Heard, callbacks: LedgerCallbacks
) -> None:
    async def story() -> None:
        running = asyncio.Event()

        async def wait() -> None:
            """Wait."""
            running.set()
            await asyncio.sleep(60)

        tool = StructuredTool.from_function(coroutine=wait, name="wait")
        task = asyncio.create_task(tool.ainvoke({}, {"callbacks": [callbacks]}))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    awaited(story())
    assert heard.kinds == ["claim.made", "attempt.started", "attempt.unknown"]


def test_what_still_runs_when_the_agent_stops_is_ended_as_unknown_and_never_again(
    heard: Heard, callbacks: LedgerCallbacks
) -> None:
    run_id = uuid4()
    callbacks.on_tool_start({"name": "charge"}, "a text", run_id=run_id)
    callbacks.close()
    callbacks.on_tool_end("late", run_id=run_id)
    callbacks.on_tool_error(ValueError("later"), run_id=run_id)
    assert heard.kinds == ["claim.made", "attempt.started", "attempt.unknown"]
    made: Any = heard.told[0][1]
    last: Any = heard.told[-1][1]
    assert (made.arguments, last.error) == (None, STOPPED)


def test_tools_that_read_and_tools_that_are_claimed_are_left_out(
    scripted: ScriptedLedger, ledger: Ledger, heard: Heard, callbacks: LedgerCallbacks
) -> None:
    @effect(ledger, effect_class="keyed_write")
    def refund(call: Call) -> None:
        """Refund a payment."""

    scripted.answers("claims", GRANT)
    scripted.answers("complete", GRANT)
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([as_langchain(refund), charge_of("search"), charge_of()]))
    graph.set_entry_point("tools")
    calls = [{"name": "refund", "args": {}, "id": STRONG}]
    calls += [{"name": name, "args": {"amount": 1}, "id": name} for name in ("search", "charge")]
    config: Any = {**THREAD, "callbacks": [callbacks]}
    graph.compile().invoke({"messages": [AIMessage(content="", tool_calls=calls)]}, config)
    assert scripted.words == ["claims", "complete"]
    made: list[Any] = [data for kind, data in heard.told if kind == "claim.made"]
    assert [(one.tool, one.conversation) for one in made] == [("charge", "t-1")]
