"""Tools with a record in the OpenAI Agents SDK.

    tools = AsyncToolbox(ledger, create_refund)
    agent = Agent(name="Till", model=model, tools=function_tools(tools))
    turns = Turns("c-1")
    result = await Runner.run(agent, "Refund order 7.", hooks=turns)

The SDK's own words for a tool that failed tell the model to try again; here it reads what the
ledger says. `Turns` tells each call which one of the conversation it is. Give the SDK's client an
`effects.client.integrations.guard.AsyncGuard`: over Chat Completions of any server but OpenAI's,
the SDK takes a stream that broke off for a whole one. Needs the extra `openai-agents`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from typing import Any, Final
from weakref import WeakKeyDictionary

from typing_extensions import override

from effects.client.asking import ToolCall
from effects.client.call import Call
from effects.client.decorate import Prepared
from effects.client.effect_result import Effect
from effects.client.integrations.openai import model_turns
from effects.client.integrations.toolbox import AsyncToolbox, Toolbox, could_not_read
from effects.client.turn import TurnPlaces
from effects.core.failures import NotSent
from effects.core.for_model import unavailable
from effects.core.problems import NoIdentity

try:
    from agents import FunctionTool, ModelResponse, RunHooks
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.tool import set_function_tool_failure_error_function
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ImportError(
        "The OpenAI Agents SDK is not installed. Install the extra: "
        "pip install 'counterfoil[openai-agents]'."
    ) from error

__all__ = ["AsyncToolbox", "Toolbox", "Turns", "function_tools"]


class Turns(RunHooks[Any]):
    """Which call of a conversation each tool call of one run is. Give every run its own, as hooks.

    `conversation` is your own stable name. The first response of the run answers the turn whose
    index is the number of responses in its input, a session's history included; each further
    response is one more. A history that is kept by the server or was shortened does not show that
    number: give it as `first_turn`. An agent that runs as a tool of another has turns of its own,
    in a conversation of its own.

    `effects` holds what each call came to, by its id. The SDK's `on_tool_end` says only that the
    tool returned: it is called for unknown outcomes too.

    A run that waits for an approval is resumed with the same object, or in another process with
    `Turns.restored(turns.saved())`.
    """

    def __init__(self, conversation: str, *, first_turn: int | None = None) -> None:
        self.conversation = conversation
        self.effects: dict[str, Effect] = {}
        self._first = first_turn
        self._answered = 0
        self._places: dict[str, ToolCall] = {}

    def saved(self) -> str:
        """Everything that a resumed run has to know, as JSON text."""
        places = {call_id: dataclasses.asdict(at) for call_id, at in self._places.items()}
        return json.dumps(
            {
                "conversation": self.conversation,
                "first_turn": self._first,
                "answered": self._answered,
                "places": places,
            }
        )

    @classmethod
    def restored(cls, saved: str) -> Turns:
        said = json.loads(saved)
        turns = cls(said["conversation"], first_turn=said["first_turn"])
        turns._answered = said["answered"]
        turns._places = {call_id: ToolCall(**at) for call_id, at in said["places"].items()}
        return turns

    def place_of(self, call_id: str) -> ToolCall:
        """Which call of the conversation it is. Raises `NoIdentity` for one of another run."""
        at = self._places.get(call_id)
        if at is None:
            raise NoIdentity(
                f"The call {call_id} is not known to this run's Turns, so a repeat could not be "
                "recognised. Resume a run with the Turns that it began with."
            )
        return at

    @override
    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        if self._first is None:
            self._first = model_turns(input_items)

    @override
    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        index = (self._first or 0) + self._answered
        self._answered += 1
        said = response.response_id
        # Over Chat Completions the SDK calls every response by one name of its own.
        own = None if said == FAKE_RESPONSES_ID else said
        at = ToolCall(conversation=self.conversation, turn_index=index, response_id=own)
        places = TurnPlaces(at)
        for item in response.output:
            if item.type == "function_call":
                place = places.place(item.name, item.arguments, item.call_id)
                self._places[item.call_id] = place

    @override
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        if isinstance(context, ToolContext):
            _RUNNING[context] = Running(turns=self)


@dataclasses.dataclass(slots=True, weakref_slot=True)
class Running:
    """A tool call that the SDK has begun, and the attempt, once the ledger granted one."""

    turns: Turns
    prepared: Prepared | None = None
    call: Call | None = None
    stopped: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def may_run(self, call: Call) -> bool:
        """Whether the grant did not come too late: the SDK may have stopped waiting."""
        with self.lock:
            if not self.stopped:
                self.call = call
            return not self.stopped

    def stop(self) -> Call | None:
        """Nothing is run from here on; returns the attempt that runs already."""
        with self.lock:
            self.stopped = True
            return self.call


_RUNNING: Final[WeakKeyDictionary[ToolContext[Any], Running]] = WeakKeyDictionary()


def function_tools(
    tools: Toolbox | AsyncToolbox, *, timeout_seconds: float | None = None
) -> list[FunctionTool]:
    """The tools for an agent, the status tool among them.

    `timeout_seconds` is how long the SDK waits for one call. An async tool is then cancelled, and
    its outcome is unknown; a plain one goes on in its thread, and the model reads that it is still
    being carried out. Further settings, such as `needs_approval`, may be set on what is returned.
    """
    return [_function_tool(tools, one.name, timeout_seconds) for one in tools.definitions]


def _function_tool(
    tools: Toolbox | AsyncToolbox, name: str, timeout_seconds: float | None
) -> FunctionTool:
    shown = next(one for one in tools.definitions if one.name == name)

    async def invoke(context: ToolContext[Any], text: str) -> str:
        running = _RUNNING.get(context)
        if running is None:
            raise NoIdentity(
                f"{name} was called in a run without Turns, so a repeat could not be recognised. "
                "Give the run its hooks: Runner.run(..., hooks=Turns(conversation))."
            )
        at = running.turns.place_of(context.tool_call_id)
        # An empty text is not `{}`: the SDK makes it of a call whose arguments were cut off, too.
        prepared = tools.prepared(name, text, at)
        effect = await _carried_out(tools, running, prepared)
        running.turns.effects[context.tool_call_id] = effect
        return effect.text

    async def told_instead(context: Any, error: Exception) -> str:
        """What the model reads of a call whose end the SDK did not wait for."""
        running = _RUNNING.get(context)
        effect = await _stopped(tools, name, running, error)
        if running is not None:
            running.turns.effects[context.tool_call_id] = effect
        return effect.text

    tool = FunctionTool(
        name=name,
        description=shown.description,
        params_json_schema=shown.schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        timeout_seconds=timeout_seconds,
        timeout_error_function=told_instead,
    )
    # The SDK has words of its own for a tool that it cancelled, and they say "try again".
    return set_function_tool_failure_error_function(tool, told_instead)


async def _carried_out(
    tools: Toolbox | AsyncToolbox, running: Running, prepared: Prepared | Effect
) -> Effect:
    if isinstance(prepared, Effect):
        return prepared
    running.prepared = prepared
    if isinstance(tools, Toolbox):
        return await asyncio.to_thread(_in_thread, tools, running, prepared)
    begun = None if prepared.asked is None else await tools.ledger.begin(prepared.asked)
    if isinstance(begun, Call):
        running.call = begun
    return await tools.run_one(prepared, begun)


def _in_thread(tools: Toolbox, running: Running, prepared: Prepared) -> Effect:
    begun = None if prepared.asked is None else tools.ledger.begin(prepared.asked)
    if isinstance(begun, Call) and not running.may_run(begun):
        return begun.fail(NotSent("The run stopped waiting before the tool ran. Nothing was sent."))
    return tools.run_one(prepared, begun)


async def _stopped(
    tools: Toolbox | AsyncToolbox, name: str, running: Running | None, error: Exception
) -> Effect:
    call = None if running is None else running.stop()
    if call is None:
        return _nothing_ran(name, running, error)
    if call.ended:
        return call.effect
    if isinstance(tools, Toolbox):
        return await asyncio.to_thread(tools.ledger.status, call.claim_id)
    return await tools.ledger.status(call.claim_id)


def _nothing_ran(name: str, running: Running | None, error: Exception) -> Effect:
    if running is not None and running.prepared is not None and running.prepared.asked is None:
        return could_not_read(name, error)
    told = unavailable(name)
    return Effect(status=told["status"], for_model=told, error=error, nothing_sent=True)
