"""An agent in a process of its own: a graph with the real PostgreSQL checkpointer, and a tool that
asks a provider over HTTP. Run as a module; it reads a `Job` as a line of JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import httpx
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from effects.client import Call, Ledger, effect
from effects.client.integrations.langchain import as_langchain

CALL = {"name": "refund", "args": {"payment": "pi_1"}, "id": "toolu_0123456789abcdef"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`first` is a message that begins the thread; without one the thread is resumed."""

    database: str
    api: str
    token: str
    provider: str
    thread: str
    first: str | None = None


def model(state: MessagesState) -> dict[str, Any]:
    """Asks for one refund, and then says what it was told of it."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(str(json.loads(str(last.content))["status"]))]}
    return {"messages": [AIMessage("", tool_calls=[CALL])]}


def work(job: Job) -> str:
    """Runs the thread to its end and returns the model's last words."""
    with (
        Ledger(job.api, job.token) as ledger,
        PostgresSaver.from_conn_string(job.database) as saver,
    ):

        @effect(ledger, effect_class="keyed_write")
        def refund(call: Call, *, payment: str) -> Any:
            """Refund a payment."""
            sent = {"payment": payment, **call.marker_metadata}
            answer = httpx.post(job.provider, json=sent, headers={"Idempotency-Key": call.key})
            return answer.raise_for_status().json()

        graph = StateGraph(MessagesState)
        graph.add_node("model", model)
        graph.add_node("tools", ToolNode([as_langchain(refund)]))
        graph.set_entry_point("model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        begin: Any = None if job.first is None else {"messages": [HumanMessage(job.first)]}
        config: Any = {"configurable": {"thread_id": job.thread}}
        end = graph.compile(checkpointer=saver).invoke(begin, config)
        return str(end["messages"][-1].content)


if __name__ == "__main__":
    sys.stdout.write(work(Job(**json.loads(sys.stdin.readline()))))
