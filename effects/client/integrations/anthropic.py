"""Tools with a record in a loop of the Anthropic SDK.

    from effects.client.integrations.anthropic import Toolbox, messages

    tools = Toolbox(ledger, create_refund)
    result = messages.run_loop(
        anthropic.Anthropic(), tools, conversation="c-1",
        messages=[{"role": "user", "content": "Refund order 7."}],
        model=MODEL, max_tokens=2048,
    )

For a loop of your own: `messages.tool_definitions`, `messages.turn_index`, a `StreamReader` that is
fed with the stream's events, `Toolbox.run_calls`, `messages.tool_results`. Needs the extra
`anthropic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from typing_extensions import override

from effects.client.effect_result import Effect
from effects.client.integrations.loop import Api, Hearing, LoopResult, Stop
from effects.client.integrations.refusals import did_nothing
from effects.client.integrations.toolbox import AsyncToolbox, Definition, Ran, Toolbox, dispatched
from effects.core.streams import Protocol, StreamRecord

try:
    import anthropic
except ImportError as error:
    raise ImportError(
        "Anthropic's SDK is not installed. Install the extra: pip install 'counterfoil[anthropic]'."
    ) from error

__all__ = ["AsyncToolbox", "LoopResult", "Ran", "Stop", "Toolbox", "dispatched", "messages"]

MADE_FROM_OTHERS: Final = frozenset({"text", "input_json", "citation", "thinking", "signature"})
"""Events that the SDK makes of others, for convenience. They say nothing of their own."""


class Messages(Hearing):
    """One message of the Messages API."""

    protocol = Protocol.ANTHROPIC
    refusals = (*Hearing.refusals, anthropic.APIError)
    # It ran tools of its own for long, and wants to be sent its message back.
    goes_on_after = frozenset({"pause_turn"})

    @classmethod
    @override
    def definitions(cls, definitions: Sequence[Definition]) -> list[Any]:
        return [
            {"name": one.name, "description": one.description, "input_schema": one.schema}
            for one in definitions
        ]

    @staticmethod
    @override
    def turn_index(messages: Sequence[Any]) -> int:
        return sum(message["role"] == "assistant" for message in messages)

    @override
    def open(self, client: Any) -> Any:
        return client.messages.stream(messages=self.messages, **self.request)

    @override
    def hear(self, event: Any) -> None:
        if getattr(event, "type", None) not in MADE_FROM_OTHERS:
            super().hear(event)

    @override
    def committed(self, record: StreamRecord) -> list[Any]:
        content = [
            block.model_dump(
                mode="json",
                by_alias=True,
                exclude_unset=True,
                exclude=getattr(block, "__api_exclude__", None),
            )
            for block in self._stream.current_message_snapshot.content
        ]
        return [{"role": "assistant", "content": content}]

    @staticmethod
    @override
    def results(ran: Sequence[Ran]) -> list[Any]:
        content = [_result(one.call.call_id, one.effect) for one in ran if one.effect is not None]
        return [{"role": "user", "content": content}] if content else []

    @override
    def error_event(self, error: Exception) -> object:
        """The SDK raises the error event of a stream as a status error of the status 200."""
        body = error.body if isinstance(error, anthropic.APIStatusError) else None
        return body if isinstance(body, dict) and self._stream is not None else None


def _result(call_id: str | None, effect: Effect) -> dict[str, Any]:
    told = {"type": "tool_result", "tool_use_id": call_id, "content": effect.text}
    return told | {"is_error": True} if did_nothing(effect) else told


messages: Final = Api(Messages)
"""The loop over `client.messages`, and its parts."""
