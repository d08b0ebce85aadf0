"""A decorated tool in LangChain's own ToolNode."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphInterrupt
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from effects.client import (
    AsyncCall,
    AsyncLedger,
    Call,
    Effect,
    Ledger,
    NoIdentity,
    NotSent,
    TokenRefused,
    ToolCall,
    effect,
)
from effects.client.integrations.langchain import EffectTool, as_langchain, message_of
from effects.client.integrations.langgraph import Seen, place_in_thread
from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, ClaimRequest, Problem, Unknown
from effects.core.vocabulary import AnswerCode, ClaimState
from tests.effects.client.scripted_ledger import CLAIM, GRANT, QUICK, ScriptedLedger
from tests.support.awaiting import awaited

THREAD: Any = {"configurable": {"thread_id": "t-1"}}
STRONG = "toolu_0123456789abcdef"


@pytest.fixture
def granting(scripted: ScriptedLedger) -> ScriptedLedger:
    """A ledger that grants everything and believes every report."""
    scripted.answers("claims", GRANT)
    for word, state in (
        ("complete", ClaimState.COMPLETED),
        ("fail", ClaimState.NOT_EXECUTED),
        ("unknown", ClaimState.UNKNOWN),
    ):
        result = '{"id": "re_1"}' if word == "complete" else None
        scripted.answers(
            word, ClaimAnswer(claim_id=CLAIM, state=state, tool="refund", result=result)
        )
    return scripted


def refund_of(ledger: Ledger, raises: BaseException | None = None) -> EffectTool:
    @effect(ledger, effect_class="keyed_write")
    def refund(call: Call, *, payment: str, amount: int = 1, note: str | None = None) -> Any:
        """Refund a payment."""
        if raises is not None:
            raise raises
        return {"id": "re_1"}

    return as_langchain(refund)


def said(*calls: tuple[str | None, dict[str, Any]], response: str | None = None) -> AIMessage:
    return AIMessage(
        content="",
        tool_calls=[{"name": "refund", "args": args, "id": call_id} for call_id, args in calls],
        response_metadata={} if response is None else {"id": response},
    )


def graph_of(*tools: Any, **more: Any) -> Any:
    """One ToolNode, as a graph runs it."""
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(list(tools), **more))
    graph.set_entry_point("tools")
    return graph.compile()


def answered(graph: Any, *messages: Any, config: Any = None) -> list[ToolMessage]:
    end = graph.invoke({"messages": list(messages)}, config or THREAD)
    return [message for message in end["messages"] if isinstance(message, ToolMessage)]


def told(message: ToolMessage) -> str:
    return str(json.loads(str(message.content))["status"])


# What the model is shown


def test_the_model_is_shown_the_functions_name_words_and_arguments_only(ledger: Ledger) -> None:
    shown = convert_to_openai_tool(refund_of(ledger))["function"]
    assert (shown["name"], shown["description"]) == ("refund", "Refund a payment.")
    assert list(shown["parameters"]["properties"]) == ["payment", "amount", "note"]
    assert shown["parameters"]["required"] == ["payment"]


def test_a_tool_without_words_is_refused(ledger: Ledger) -> None:
    @effect(ledger, effect_class="keyed_write")
    def refund(call: Call, *, payment: str) -> None: ...

    with pytest.raises(TypeError, match="no docstring and no description"):
        as_langchain(refund)
    assert as_langchain(refund, description="Refund.").description == "Refund."


def test_arguments_may_have_any_name(granting: ScriptedLedger, ledger: Ledger) -> None:
    names = {"runtime": "r", "config": "c", "given": "g", "call_id": "i"}
    got: list[Any] = []

    @effect(ledger, effect_class="keyed_write")
    def refund(call: Call, *, runtime: str, config: str, given: str, call_id: str) -> None:
        """Refund."""
        got.append((runtime, config, given, call_id))

    answered(graph_of(as_langchain(refund)), said((STRONG, names)))
    assert got == [("r", "c", "g", "i")]
    assert json.loads(granting.told(ClaimRequest)[0].arguments) == names


# Which call it is


def test_a_call_is_placed_by_the_messages_of_the_graphs_state(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    answered(
        graph_of(refund_of(ledger)),
        HumanMessage("Refund it."),
        said(("call_a", {"payment": "p"})),
        ToolMessage("done", tool_call_id="call_a"),
        AIMessage("It is refunded."),
        HumanMessage("And the others."),
        said((STRONG, {"payment": "q", "amount": 2}), response="msg_7"),
    )
    (asked,) = granting.told(ClaimRequest)
    assert (asked.conversation, asked.turn_index, asked.position) == ("t-1", 2, 0)
    assert (asked.response_id, asked.call_id, asked.caller_key) == ("msg_7", STRONG, None)
    assert json.loads(asked.arguments) == {"payment": "q", "amount": 2}


def test_equal_calls_of_one_response_are_as_many_operations(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    nine = said(*((f"call_{number}", {"payment": "p"}) for number in range(9)))
    assert len(answered(graph_of(refund_of(ledger)), nine)) == 9
    asked = granting.told(ClaimRequest)
    assert sorted(one.ordinal for one in asked) == list(range(9))
    assert {one.position: one.call_id for one in asked} == {n: f"call_{n}" for n in range(9)}


def test_outside_a_tool_node_a_call_is_known_by_its_thread_and_its_id(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    tool = refund_of(ledger)
    call = {"name": "refund", "args": {"payment": "p"}, "id": STRONG, "type": "tool_call"}
    for thread in ("t-1", "t-1", "t-2"):
        assert told(tool.invoke(call, {"configurable": {"thread_id": thread}})) == "completed"
    first, again, other = granting.told(ClaimRequest)
    assert first.caller_key == again.caller_key != other.caller_key
    assert (first.conversation, first.turn_index, first.call_id) == ("t-1", None, STRONG)


@pytest.mark.parametrize(
    ("config", "call_id"),
    [
        pytest.param({}, STRONG, id="no thread"),
        pytest.param({"configurable": {"thread_id": ""}}, STRONG, id="an empty thread"),
        pytest.param(THREAD, "call_0", id="an id that comes back in the next turn"),
        pytest.param(THREAD, None, id="no id"),
    ],
)
def test_a_call_that_could_not_be_recognised_is_the_authors_error(
    granting: ScriptedLedger, ledger: Ledger, config: Any, call_id: str | None
) -> None:
    call = {"name": "refund", "args": {"payment": "p"}, "id": call_id, "type": "tool_call"}
    with pytest.raises(NoIdentity):
        refund_of(ledger).invoke(call, config)
    assert granting.said == []


def test_a_history_that_is_trimmed_is_placed_by_the_steps_of_its_thread(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    def by_step(seen: Seen) -> ToolCall:
        step = seen.config["metadata"]["langgraph_step"]
        return replace(place_in_thread(seen), turn_index=step)

    own = as_langchain(refund_of(ledger)._tool, place=by_step)  # noqa: SLF001 - the same function
    graph = StateGraph(MessagesState)
    graph.add_node("wait", lambda state: {"messages": []})
    graph.add_node("tools", ToolNode([own]))
    graph.set_entry_point("wait")
    graph.add_edge("wait", "tools")
    answered(graph.compile(), said(("call_0", {"payment": "p"})))
    (asked,) = granting.told(ClaimRequest)
    assert (asked.turn_index, asked.call_id) == (2, "call_0")


def test_a_node_that_is_retried_says_which_try_it_is(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    tools, faults = ToolNode([refund_of(ledger)]), [ConnectionError()]

    def refund_then_fail(state: MessagesState, config: RunnableConfig) -> Any:
        done = tools.invoke(state, config)
        if faults:
            raise faults.pop()
        return done

    graph = StateGraph(MessagesState)
    again = RetryPolicy(initial_interval=0.01, jitter=False)
    graph.add_node("tools", refund_then_fail, retry_policy=again)
    graph.set_entry_point("tools")
    answered(graph.compile(), said((STRONG, {"payment": "p"})))
    first, second = granting.told(ClaimRequest)
    assert (first.retry_count, second.retry_count) == (0, 1)
    assert (first.turn_index, first.call_id) == (second.turn_index, second.call_id)


# What the model reads


@pytest.mark.parametrize("code", list(AnswerCode))
def test_only_a_proof_that_nothing_was_done_is_shown_as_an_error(code: AnswerCode) -> None:
    words = for_model(ClaimAnswer(code=code, claim_id=CLAIM, tool="refund"))
    message = message_of(Effect(status=words["status"], for_model=words), STRONG, "refund")
    assert message.status == "success"


@pytest.mark.parametrize("state", list(ClaimState))
def test_a_settled_claim_is_an_error_only_if_it_did_not_happen(state: ClaimState) -> None:
    words = for_model(ClaimAnswer(state=state, claim_id=CLAIM, tool="refund"))
    message = message_of(Effect(status=words["status"], for_model=words), STRONG, "refund")
    assert (message.status == "error") is (state is ClaimState.NOT_EXECUTED)


@pytest.mark.parametrize(
    ("raises", "status", "shown"),
    [
        pytest.param(None, "completed", "success", id="it happened"),
        pytest.param(TimeoutError(), "unknown", "success", id="nobody knows"),
        pytest.param(ConnectionResetError(), "unknown", "success", id="the connection was reset"),
        pytest.param(ToolException("no"), "unknown", "success", id="LangChain's own exception"),
        pytest.param(NotSent("too late"), "not_executed", "error", id="nothing was sent"),
    ],
)
def test_what_the_function_meets_is_told_and_never_raised(
    granting: ScriptedLedger,
    ledger: Ledger,
    raises: BaseException | None,
    status: str,
    shown: str,
) -> None:
    graph = graph_of(refund_of(ledger, raises))
    (message,) = answered(graph, said((STRONG, {"payment": "p"})))
    assert (told(message), message.status, message.tool_call_id) == (status, shown, STRONG)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="too few"),
        pytest.param({"payment": "p", "amount": "12"}, id="text for a number"),
        pytest.param({"payment": "p", "amount": 1.5}, id="half a cent"),
        pytest.param({"payment": "p", "cents": 3}, id="one too many"),
        pytest.param({"payment": "p", "note": float("nan")}, id="not a number"),
        pytest.param({"payment": "\ud800"}, id="half a character"),
    ],
)
def test_arguments_that_the_model_has_to_correct_are_refused_before_anything_is_claimed(
    granting: ScriptedLedger, ledger: Ledger, arguments: dict[str, Any]
) -> None:
    (message,) = answered(graph_of(refund_of(ledger)), said((STRONG, arguments)))
    assert (told(message), message.status, granting.said) == ("refused", "error", [])


def test_arguments_that_the_ledger_refuses_are_told_to_the_model(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    limit = Problem(title="", status=413, detail="Too large.", code="limit_exceeded")
    granting.answers("claims", limit)
    (message,) = answered(graph_of(refund_of(ledger)), said((STRONG, {"payment": "p"})))
    assert (told(message), message.status, granting.words) == ("refused", "error", ["claims"])


def test_a_ledger_that_is_away_is_told_and_one_that_refuses_the_agent_is_raised(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    with Ledger("http://127.0.0.1:9", "a-token", patience=QUICK) as away:
        (message,) = answered(graph_of(refund_of(away)), said((STRONG, {"payment": "p"})))
    assert (told(message), message.status) == ("ledger_unavailable", "error")
    granting.answers("claims", Problem(title="", status=401, detail="", code="token_refused"))
    with pytest.raises(TokenRefused):
        answered(graph_of(refund_of(ledger)), said((STRONG, {"payment": "p"})))


def test_a_function_that_pauses_the_graph_is_reported_as_unknown_and_pauses_it(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    tool = refund_of(ledger, GraphInterrupt())
    call = {"name": "refund", "args": {"payment": "p"}, "id": STRONG, "type": "tool_call"}
    with pytest.raises(GraphInterrupt):
        tool.invoke(call, THREAD)
    assert granting.words == ["claims", "unknown"]


def test_a_call_that_is_turned_away_beforehand_is_not_claimed(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    def not_today(pending: Any) -> None:
        raise NotSent(f"Not {pending.tool} today.")

    tool = as_langchain(refund_of(ledger)._tool, before=not_today)  # noqa: SLF001 - see above
    (message,) = answered(graph_of(tool), said((STRONG, {"payment": "p"})))
    assert (told(message), message.status, granting.said) == ("refused", "error", [])


def test_a_tool_that_reads_needs_no_thread(granting: ScriptedLedger, ledger: Ledger) -> None:
    @effect(ledger, effect_class="read")
    def find_order(*, number: int) -> dict[str, int]:
        """Find an order."""
        return {"number": number}

    words = json.loads(as_langchain(find_order).invoke({"number": 7}))
    assert (words["status"], words["result"]) == ("completed", {"number": 7})
    assert granting.said == []


# In an event loop


def test_async_tools_are_awaited_and_plain_ones_run_beside_the_loop(
    granting: ScriptedLedger, ledger: Ledger
) -> None:
    async def story() -> list[str]:
        async with AsyncLedger(granting.url, "a-token", patience=QUICK) as awaited_ledger:

            @effect(awaited_ledger, effect_class="unkeyed_write")
            async def send(call: AsyncCall, *, to: str) -> dict[str, str]:
                """Send a mail."""
                await asyncio.sleep(0)
                return {"id": "re_1"}

            tool = as_langchain(send)
            with pytest.raises(TypeError, match="ainvoke"):
                tool.invoke({"to": "ada"}, THREAD)
            calls = said((STRONG, {"payment": "p"}))
            calls.tool_calls.append({"name": "send", "args": {"to": "ada"}, "id": "call_b"})
            graph = graph_of(refund_of(ledger), tool)
            end = await graph.ainvoke({"messages": [calls]}, THREAD)
            return [told(one) for one in end["messages"] if isinstance(one, ToolMessage)]

    assert awaited(story()) == ["completed", "completed"]
    assert Counter(one.tool for one in granting.told(ClaimRequest)) == {"refund": 1, "send": 1}


def test_an_async_tool_that_is_cancelled_is_reported_as_unknown(
    granting: ScriptedLedger,
) -> None:
    async def story() -> None:
        async with AsyncLedger(granting.url, "a-token", patience=QUICK) as awaited_ledger:
            running = asyncio.Event()

            @effect(awaited_ledger, effect_class="unkeyed_write")
            async def send(call: AsyncCall) -> None:
                """Send a mail."""
                running.set()
                await asyncio.sleep(60)

            call = {"name": "send", "args": {}, "id": STRONG, "type": "tool_call"}
            task = asyncio.create_task(as_langchain(send).ainvoke(call, THREAD))
            await running.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    awaited(story())
    assert granting.words == ["claims", "unknown"]
    assert len(granting.told(Unknown)) == 1


# The extra


@pytest.mark.parametrize("name", ["langgraph", "langchain"])
def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = f"effects.client.integrations.{name}"
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    with pytest.raises(ImportError, match=r"counterfoil\[langgraph\]"):
        importlib.import_module(module)
