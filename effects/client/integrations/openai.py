"""Tools with a record in a loop of the OpenAI SDK: the Responses API, and Chat Completions.

    from effects.client.integrations.openai import Toolbox, responses

    tools = Toolbox(ledger, create_refund)
    result = responses.run_loop(
        openai.OpenAI(), tools, conversation="c-1",
        messages=[{"role": "user", "content": "Refund order 7."}],
        model=MODEL,
    )

`chat` is the same for Chat Completions, also of servers that only resemble it. For a loop of your
own: `responses.tool_definitions`, `responses.turn_index`, a `StreamReader` that is fed with the
stream's events, `Toolbox.run_calls`, `responses.tool_results`. Needs the extra `openai`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from effects.client.integrations.loop import Api, Hearing, LoopResult, Stop
from effects.client.integrations.toolbox import AsyncToolbox, Definition, Ran, Toolbox, dispatched
from effects.core.streams import CallRecord, Protocol, StreamRecord

try:
    import openai
except ImportError as error:
    raise ImportError(
        "OpenAI's SDK is not installed. Install the extra: pip install 'counterfoil[openai]'."
    ) from error

__all__ = ["AsyncToolbox", "LoopResult", "Ran", "Stop", "Toolbox", "chat", "dispatched"]
__all__ += ["model_turns", "responses"]

FROM_THE_CALLER: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "computer_call_output"}
    | {"local_shell_call_output", "shell_call_output", "apply_patch_call_output"}
    | {"mcp_approval_response", "tool_search_output", "item_reference"}
)
"""Items of a Responses conversation that the model did not make, beside messages of other roles."""


def model_turns(items: Sequence[Any]) -> int:
    """How many responses stand in the items of a Responses conversation. One response may be
    several items: its message, its reasoning, its calls."""
    turns, within = 0, False
    for item in items:
        made = _made_by_the_model(item)
        turns += made and not within
        within = made
    return turns


def _made_by_the_model(item: Any) -> bool:
    said = item if isinstance(item, Mapping) else item.model_dump()
    if said.get("role") is not None:
        return bool(said["role"] == "assistant")
    return said.get("type") not in FROM_THE_CALLER


class Responses(Hearing):
    """One response of the Responses API."""

    protocol = Protocol.OPENAI_RESPONSES
    refusals = (*Hearing.refusals, openai.APIError)
    unsupported = Hearing.unsupported | {"input", "previous_response_id", "background"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._output: list[Any] = []

    @classmethod
    @override
    def definitions(cls, definitions: Sequence[Definition]) -> list[Any]:
        return [
            {
                "type": "function",
                "name": one.name,
                "description": one.description,
                "parameters": one.schema,
                "strict": False,
            }
            for one in definitions
        ]

    @staticmethod
    @override
    def turn_index(messages: Sequence[Any]) -> int:
        return model_turns(messages)

    @override
    def open(self, client: Any) -> Any:
        return client.responses.create(input=self.messages, stream=True, **self.request)

    @override
    def hear(self, event: Any) -> None:
        super().hear(event)
        if getattr(event, "type", None) == "response.completed":
            self._output = event.response.output

    @override
    def committed(self, record: StreamRecord) -> list[Any]:
        return [
            item.model_dump(mode="json", by_alias=True, exclude_unset=True) for item in self._output
        ]

    @staticmethod
    @override
    def results(ran: Sequence[Ran]) -> list[Any]:
        return [
            {
                "type": "custom_tool_call_output" if one.call.free_text else "function_call_output",
                "call_id": one.call.call_id,
                "output": one.effect.text,
            }
            for one in ran
            if one.effect is not None
        ]

    @override
    def error_event(self, error: Exception) -> object:
        body = _error_in_stream(self._stream, error)
        return None if body is None else {"type": "error", "error": body}


class Chat(Hearing):
    """One completion of the Chat Completions API."""

    protocol = Protocol.OPENAI_CHAT
    refusals = (*Hearing.refusals, openai.APIError)
    unsupported = Hearing.unsupported | {"n"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._text: list[str] = []
        self._refusal: list[str] = []

    @classmethod
    @override
    def definitions(cls, definitions: Sequence[Definition]) -> list[Any]:
        return [
            {
                "type": "function",
                "function": {
                    "name": one.name,
                    "description": one.description,
                    "parameters": one.schema,
                },
            }
            for one in definitions
        ]

    @staticmethod
    @override
    def turn_index(messages: Sequence[Any]) -> int:
        return sum(message["role"] == "assistant" for message in messages)

    @override
    def open(self, client: Any) -> Any:
        return client.chat.completions.create(messages=self.messages, stream=True, **self.request)

    @override
    def hear(self, event: Any) -> None:
        super().hear(event)
        for choice in getattr(event, "choices", None) or ():
            self._text.append(choice.delta.content or "")
            self._refusal.append(choice.delta.refusal or "")

    @override
    def committed(self, record: StreamRecord) -> list[Any]:
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        refusal = "".join(self._refusal)
        if refusal:
            said["refusal"] = refusal
        if record.calls:
            said["tool_calls"] = [_call(call) for call in record.calls]
        return [said]

    @staticmethod
    @override
    def results(ran: Sequence[Ran]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": _id(one.call), "content": one.effect.text}
            for one in ran
            if one.effect is not None
        ]

    @override
    def error_event(self, error: Exception) -> object:
        body = _error_in_stream(self._stream, error)
        return None if body is None else {"error": body}


def _call(call: CallRecord) -> dict[str, Any]:
    function = {"name": call.name or "", "arguments": call.arguments or call.raw}
    return {"id": _id(call), "type": "function", "function": function}


def _id(call: CallRecord) -> str:
    """Some servers give no id, and yet want one with the result. It goes no further: a claim never
    gets an id that we made up."""
    return call.call_id or f"call_{call.position}"


def _error_in_stream(stream: Any, error: Exception) -> object:
    """What the SDK raised of an error inside the stream."""
    return error.body if stream is not None and isinstance(error, openai.APIError) else None


responses: Final = Api(Responses)
"""The loop over `client.responses`, and its parts."""

chat: Final = Api(Chat)
"""The loop over `client.chat.completions`, and its parts."""
