"""Where a call stands in a LangGraph thread, effects of plain nodes, and a person's approval.

Needs the extra `langgraph`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from effects.client.asking import ToolCall
from effects.client.results import arguments_text
from effects.client.turn import TurnPlaces
from effects.core.canonical import canonical_text, parse_arguments
from effects.core.exact_json import Refused
from effects.core.failures import NotSent
from effects.core.identity import ARGUMENTS_DIGEST_BYTES, call_id_is_strong, digest
from effects.core.problems import ArgumentsRefused, NoIdentity

try:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import get_runtime
    from langgraph.types import interrupt
except ImportError as error:
    raise ImportError(
        "LangGraph is not installed. Install the extra: pip install 'counterfoil[langgraph]'."
    ) from error

__all__ = ["Pending", "Seen", "ask_a_person", "node_call", "place_in_thread"]

DIGEST_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What LangChain says about a tool call. `messages` are those of the graph's state, None where
    the tool was not run by a `ToolNode`; `call_id` is the model's id, None where there is none."""

    tool: str
    call_id: str | None
    config: RunnableConfig
    messages: Sequence[Any] | None = None
    node_attempt: int = 1


def place_in_thread(seen: Seen) -> ToolCall:
    """Which call of the model this is.

    The conversation is `thread_id`. The turn index is the number of AI messages in the state before
    the one that made the call; position and ordinal are counted in that message. All of it is in
    the checkpoint, so it is the same when a node is run again: by a retry, after an interrupt, by
    another process, or in a fork of the thread. A re-issued turn has the same index and a new id.

    Outside a `ToolNode` there are no messages, and the call is known by its thread and its id: run
    again it is the same, re-issued with another id it is held.

    Raises `NoIdentity` without a `thread_id`, and outside a `ToolNode` for a call whose id may come
    back in another turn: a repeat could not be recognised.
    """
    thread = (seen.config.get("configurable") or {}).get("thread_id")
    if thread is None or not str(thread):
        raise NoIdentity(
            f"{seen.tool} was called without a thread, so a repeat could not be recognised. "
            "Set configurable.thread_id, or give the tool a place of its own."
        )
    retries = seen.node_attempt - 1
    in_turn = _in_turn(seen, str(thread), retries)
    if in_turn is not None:
        return in_turn
    if not call_id_is_strong(seen.call_id, seen.tool):
        raise NoIdentity(
            f"The messages that hold the call {seen.call_id!r} of {seen.tool} cannot be seen here, "
            "and its id may come back in another turn. Run the tool in a ToolNode, or give it a "
            "place of its own."
        )
    return ToolCall(
        conversation=str(thread),
        call_id=seen.call_id,
        caller_key=f"langchain-{_digest(thread, seen.call_id)}",
        retry_count=retries,
    )


def _in_turn(seen: Seen, thread: str, retries: int) -> ToolCall | None:
    spoken = [message for message in seen.messages or () if isinstance(message, AIMessage)]
    for index, message in reversed(list(enumerate(spoken))):
        if any(call["id"] == seen.call_id for call in message.tool_calls):
            said = message.response_metadata.get("id")
            shared = ToolCall(
                conversation=thread,
                turn_index=index,
                # Only the provider's own: a message's id may be made up by LangChain.
                response_id=said if isinstance(said, str) and said else None,
                retry_count=retries,
            )
            return _placed(shared, message, seen.call_id)
    return None


def _placed(shared: ToolCall, message: AIMessage, call_id: str | None) -> ToolCall:
    places = TurnPlaces(shared)
    for call in message.tool_calls:
        at = places.place(call["name"], _text(call["args"]), call["id"])
        if call["id"] == call_id:
            return at
    raise AssertionError("the message was chosen because it holds the call")


def _text(arguments: Mapping[str, Any]) -> str:
    try:
        return arguments_text(arguments)
    except ArgumentsRefused:
        return repr(arguments)  # That call will be refused; this one only has to be counted.


def node_call(label: str = "") -> ToolCall:
    """Which operation a plain node is about, for an effect that no model asked for.

    A node that is run again, by a retry, after an interrupt or by another process, has the same
    task, and so the same operation; the node's next turn in a loop is another task. A node with
    several effects gives each a `label` of its own. Call it inside a node. Raises `NoIdentity` for
    a graph without a checkpointer, whose tasks are new in each run.
    """
    info = get_runtime().execution_info
    if info is None or info.thread_id is None:
        raise NoIdentity(
            "A node outside a thread is another one in each run, so a repeat could not be "
            "recognised. Compile the graph with a checkpointer and set configurable.thread_id."
        )
    return ToolCall(
        conversation=info.thread_id,
        caller_key=f"langgraph-{_digest(info.thread_id, info.task_id, label)}",
        retry_count=info.node_attempt - 1,
    )


def _digest(*parts: str | None) -> str:
    written = json.dumps(parts, ensure_ascii=True).encode()
    return hashlib.sha256(written).hexdigest()[:DIGEST_CHARACTERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call that is about to be claimed: the tool, the model's arguments as JSON text."""

    tool: str
    arguments: str

    @property
    def digest(self) -> str:
        """What an approval is bound to: the tool and the canonical form of its arguments. Raises
        `ArgumentsRefused` for arguments that cannot be compared."""
        try:
            text = canonical_text(parse_arguments(self.arguments))
        except Refused as refused:
            raise ArgumentsRefused(str(refused), refusal=refused.code, at=refused.at) from refused
        return digest("arguments", self.tool, text, size=ARGUMENTS_DIGEST_BYTES).hex()


def ask_a_person(pending: Pending) -> None:
    """Pauses the graph until a person has decided on exactly this call. Use it as `before` of a
    tool: it asks before the claim, so a run that begins again has done nothing yet.

    The graph is interrupted with `tool`, `arguments` and `digest`. Resume it with the same `digest`
    and `approved` true or false, and a `reason` if there is one. LangGraph gives resume values out
    by position; an answer with another digest was meant for other arguments, so it is asked again,
    with `answered` showing what was decided on. Where a response makes several calls, run the graph
    with `max_concurrency` 1, so that each meets its own answer. Raises `NotSent` if the person said
    no.
    """
    asked = {"tool": pending.tool, "arguments": pending.arguments, "digest": pending.digest}
    said = interrupt(asked)
    while not isinstance(said, Mapping) or said.get("digest") != pending.digest:
        said = interrupt({**asked, "answered": said})
    if said.get("approved") is not True:
        raise NotSent(f"A person did not approve {pending.tool}: {said.get('reason') or 'no'}.")
