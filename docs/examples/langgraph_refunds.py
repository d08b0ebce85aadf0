"""An agent of LangGraph that asks a person and refunds once, whatever is run again.

    COUNTERFOIL_URL=http://127.0.0.1:8001 COUNTERFOIL_TOKEN=cf_... PROVIDER_URL=... \
    CHECKPOINTS=postgresql://... ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... \
    python langgraph_refunds.py customer-7 "Refund order 7."

The model's node is retried when its stream was cut: nothing of it has run then. The tools' node may
be retried, resumed, or run by another process: the ledger knows each call again.
"""

import json
import os
import sys
from typing import Any

import anthropic
import httpx2
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy

from effects.client import Call, Ledger, effect
from effects.client.integrations.langchain import EffectTool, as_langchain
from effects.client.integrations.langgraph import ask_a_person
from effects.core.streams import Ending, Protocol, StreamReader
from effects.core.vocabulary import Terminal


def refund_tool(ledger: Ledger) -> EffectTool:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    def create_refund(call: Call, *, payment: str, amount: int) -> Any:
        """Refund `amount` cents of a payment."""
        response = httpx2.post(
            os.environ["PROVIDER_URL"],
            json={"payment": payment, "amount": amount, "metadata": call.marker_metadata},
            headers={"Idempotency-Key": call.key},
            timeout=10,
        )
        return response.raise_for_status().json()

    return as_langchain(create_refund, before=ask_a_person)


def response_to(said: list[Any], offered: list[Any]) -> AIMessage:
    """One response of the model, with those of its calls that were received whole."""
    reader, text = StreamReader(Protocol.ANTHROPIC, from_events=True), ""
    stream = anthropic.Anthropic().messages.create(
        model=os.environ["ANTHROPIC_MODEL"],
        max_tokens=1024,
        tools=offered,
        messages=said,
        stream=True,
    )
    for event in stream:
        reader.feed_event(event)
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            text += event.delta.text
    record = reader.close(Ending.CLEAN)
    if record.terminal is not Terminal.SUCCESS:
        raise ConnectionError(f"The response ended as {record.terminal}. Nothing of it has run.")
    calls = [
        {"name": call.name or "", "args": json.loads(call.arguments or "{}"), "id": call.call_id}
        for call in record.calls
        if call.dispatchable
    ]
    return AIMessage(text, tool_calls=calls, response_metadata={"id": record.response_id})


def as_sent(message: AnyMessage) -> dict[str, Any]:
    """A message of the graph in the words of the Messages API."""
    if isinstance(message, ToolMessage):
        result = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": message.content,
            "is_error": message.status == "error",
        }
        return {"role": "user", "content": [result]}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": message.content}
    uses = [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        for call in message.tool_calls
    ]
    words = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": "assistant", "content": [*words, *uses]}


def agent(tool: EffectTool, saver: PostgresSaver) -> Any:
    shown = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.arguments_schema,
    }

    def ask(state: MessagesState) -> dict[str, Any]:
        said = [as_sent(message) for message in state["messages"]]
        return {"messages": [response_to(said, [shown])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask, retry_policy=RetryPolicy(initial_interval=0.1))
    graph.add_node("tools", ToolNode([tool]), retry_policy=RetryPolicy())
    graph.set_entry_point("model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def main(thread: str, asked: str) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    with (
        Ledger(os.environ["COUNTERFOIL_URL"], os.environ["COUNTERFOIL_TOKEN"]) as ledger,
        PostgresSaver.from_conn_string(os.environ["CHECKPOINTS"]) as saver,
    ):
        saver.setup()
        graph = agent(refund_tool(ledger), saver)
        end = graph.invoke({"messages": [("user", asked)]}, config)
        while paused := end.get("__interrupt__"):
            question = paused[0].value
            yes = input(f"{question['tool']} {question['arguments']}? ") == "yes"
            said = {"digest": question["digest"], "approved": yes}
            end = graph.invoke(Command(resume=said), config)
    print(end["messages"][-1].content)


if __name__ == "__main__":
    main(*sys.argv[1:])
