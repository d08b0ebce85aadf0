"""A decorated tool as a LangChain tool, for `ToolNode`, `create_agent` and nodes of your own.

    from effects.client.integrations.langchain import as_langchain

    tools = ToolNode([as_langchain(create_refund)])

The model reads what the ledger says, and nothing is raised that a retry policy would repeat. Needs
the extra `langgraph`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, PrivateAttr, create_model
from typing_extensions import override

from effects.client.asking import ToolCall
from effects.client.decorate import AsyncTool, Tool
from effects.client.effect_result import Effect
from effects.client.integrations.langgraph import Pending, Seen, place_in_thread
from effects.client.integrations.refusals import did_nothing, refused, run, run_async
from effects.client.integrations.schema import arguments_model, description_of, what_is_wrong
from effects.client.results import arguments_text
from effects.core.failures import NotSent
from effects.core.problems import ArgumentsRefused
from effects.core.vocabulary import EffectClass

try:
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.errors import GraphBubbleUp
    from langgraph.prebuilt import ToolRuntime
except ImportError as error:
    raise ImportError(
        "LangChain is not installed. Install the extra: pip install 'counterfoil[langgraph]'."
    ) from error

__all__ = ["OURS", "EffectTool", "as_langchain", "message_of"]

OURS: Final = "counterfoil_tool"
"""The member of a tool's metadata by which callbacks know that the ledger has its calls already."""

RUNTIME: Final = "counterfoil_runtime"
"""The argument of `InGraph`."""

NOT_APPROVED: Final = "Nothing happened. Do not make this call again unless the user asks for it."


def as_langchain(
    tool: Tool | AsyncTool,
    *,
    description: str | None = None,
    place: Callable[[Seen], ToolCall] = place_in_thread,
    before: Callable[[Pending], object] | None = None,
    messages_key: str = "messages",
) -> EffectTool:
    """A tool of LangChain that asks the ledger before it runs `tool`.

    Name, description and schema come from the tool's name, docstring and annotations. `place` says
    which call of the model it is; the default's rule is told at `place_in_thread`. Give one of your
    own for a history that is trimmed (its messages are no longer counted rightly) and for agents
    that share a thread but not their messages. `before` is called before the claim, on every run of
    the node, and may interrupt the graph; it raises `NotSent` to turn the call away.
    `messages_key` is that of the `ToolNode`.

    Raises TypeError for a tool without a docstring and a description.
    """
    return EffectTool(
        tool,
        description=description_of(tool, description),
        place=place,
        before=before,
        messages_key=messages_key,
    )


class InGraph(BaseModel):
    """The argument in which a `ToolNode` puts the graph's state. The model never sees it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    counterfoil_runtime: ToolRuntime[Any, Any]


class EffectTool(BaseTool):
    """See `as_langchain`."""

    _tool: Any = PrivateAttr()  # a Tool or an AsyncTool
    _arguments: type[BaseModel] = PrivateAttr()
    _place: Callable[[Seen], ToolCall] = PrivateAttr()
    _before: Callable[[Pending], object] | None = PrivateAttr()
    _messages_key: str = PrivateAttr()

    def __init__(
        self,
        tool: Tool | AsyncTool,
        *,
        description: str,
        place: Callable[[Seen], ToolCall],
        before: Callable[[Pending], object] | None,
        messages_key: str,
    ) -> None:
        arguments = arguments_model(tool)
        super().__init__(
            name=tool.name,
            description=description,
            args_schema=create_model(tool.name, __base__=(InGraph, arguments)),
            metadata={OURS: tool.name},
        )
        self._tool = tool
        self._arguments = arguments
        self._place = place
        self._before = before
        self._messages_key = messages_key

    @property
    def arguments_schema(self) -> dict[str, Any]:
        """The JSON schema of what the model writes, for a model that LangChain does not call."""
        return self._arguments.model_json_schema()

    @override
    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The model's arguments as it wrote them. LangChain would convert them by the schema, and a
        converted amount is compared as another one."""
        if isinstance(tool_input, str):
            tool_input = {next(iter(self._arguments.model_fields), "input"): tool_input}
        given = dict(tool_input)
        runtime = given.pop(RUNTIME, None)
        return (), {"given": given, "runtime": runtime, "call_id": tool_call_id}

    @override
    def _run(
        self, given: dict[str, Any], runtime: Any, call_id: str | None, config: RunnableConfig
    ) -> Any:
        if isinstance(self._tool, AsyncTool):
            raise TypeError(f"{self.name} is an async tool: run the graph with ainvoke or astream.")
        text = self._checked(given)
        if isinstance(text, Effect):
            return self._said(text, call_id)
        return self._said(run(self._tool, self._at(runtime, call_id, config), text), call_id)

    @override
    async def _arun(
        self, given: dict[str, Any], runtime: Any, call_id: str | None, config: RunnableConfig
    ) -> Any:
        if isinstance(self._tool, Tool):
            return await super()._arun(given=given, runtime=runtime, call_id=call_id, config=config)
        text = self._checked(given)
        if isinstance(text, Effect):
            return self._said(text, call_id)
        at = self._at(runtime, call_id, config)
        return self._said(await run_async(self._tool, at, text), call_id)

    def _checked(self, given: dict[str, Any]) -> str | Effect:
        """The arguments as JSON text, or the effect of a call that is turned away."""
        try:
            text = arguments_text(given)
        except ArgumentsRefused as problem:
            return refused(problem.detail)
        wrong = what_is_wrong(self._arguments, text)
        if wrong is not None:
            return refused(f"The arguments of {self.name} are wrong. {wrong}")
        try:
            if self._before is not None:
                self._before(Pending(tool=self.name, arguments=text))
        except ArgumentsRefused as problem:
            return refused(problem.detail)
        except NotSent as error:
            return refused(str(error), NOT_APPROVED)
        return text

    def _at(self, runtime: Any, call_id: str | None, config: RunnableConfig) -> ToolCall:
        if self._tool.effect_class is EffectClass.READ:
            return ToolCall()  # Nothing is claimed.
        info = getattr(runtime, "execution_info", None)
        return self._place(
            Seen(
                tool=self.name,
                call_id=call_id,
                config=config,
                messages=_messages(getattr(runtime, "state", None), self._messages_key),
                node_attempt=1 if info is None else info.node_attempt,
            )
        )

    def _said(self, effect: Effect, call_id: str | None) -> Any:
        if isinstance(effect.error, GraphBubbleUp):
            # The tool's function paused or left the graph; the attempt was reported as unknown.
            raise effect.error
        return effect.text if call_id is None else message_of(effect, call_id, self.name)


def message_of(effect: Effect, call_id: str, name: str) -> ToolMessage:
    """What the model reads of an effect. It is an error only if it is proven that nothing was done:
    an unknown outcome is told as unknown."""
    return ToolMessage(
        content=effect.text,
        tool_call_id=call_id,
        name=name,
        status="error" if did_nothing(effect) else "success",
    )


def _messages(state: Any, key: str) -> Sequence[Any] | None:
    """The messages of a graph's state: a list, a mapping, or an object with attributes."""
    if isinstance(state, Mapping):
        state = state.get(key)
    elif not isinstance(state, list | tuple):
        state = getattr(state, key, None)
    return state if isinstance(state, list | tuple) else None
