"""Anthropic's Messages stream.

A call ends with the `content_block_stop` of its index, the message with `message_stop`; a stop
reason alone is not an end. (Event and field names: the event types of the `anthropic` package.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from effects.core.streams.assembly import Assembly, OpenCall, text_or_none
from effects.core.vocabulary import Terminal

LIMITS: Final = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""Stop reasons that end a message before the model was done; its calls are not run."""


class AnthropicReader:
    """Reads the events of one message into an assembly."""

    def __init__(self, assembly: Assembly) -> None:
        self._seen = assembly
        self._stopped: set[int] = set()
        self._other: set[int] = set()
        self._stop_reason: str | None = None

    def read(self, name: str, said: dict[str, Any], exact: Callable[..., str]) -> None:
        """One event. `exact` gives the text of a value inside it with every digit."""
        match text_or_none(said.get("type")) or name:
            case "message_start":
                message = _object(said.get("message"))
                self._seen.response_id = text_or_none(message.get("id"))
                self._seen.model = text_or_none(message.get("model"))
                self._seen.usage |= _object(message.get("usage"))
            case "content_block_start":
                self._start(_index(said), _object(said.get("content_block")), exact)
            case "content_block_delta":
                self._delta(_index(said), _object(said.get("delta")))
            case "content_block_stop":
                self._stop(_index(said))
            case "message_delta":
                delta = _object(said.get("delta"))
                self._stop_reason = text_or_none(delta.get("stop_reason")) or self._stop_reason
                self._seen.usage |= _object(said.get("usage"))
            case "message_stop":
                self._end()
            case "error":
                self._seen.fail(said.get("error"), request_id=said.get("request_id"))
            case _:
                pass  # `ping`, and whatever is invented later.

    def close(self) -> None:
        """The stream is over; what the protocol did not say is left unsaid."""

    def _start(self, index: int, block: dict[str, Any], exact: Callable[..., str]) -> None:
        if index in self._stopped or index in self._other or index in self._seen.by_key:
            self._seen.violate(f"started_twice:{index}")
        if block.get("type") != "tool_use":
            self._other.add(index)
            return
        self._other.discard(index)
        self._stopped.discard(index)
        name, call_id = text_or_none(block.get("name")), text_or_none(block.get("id"))
        call = self._seen.begin(index, call_id, name)
        if call is not None and block.get("input"):
            # Some gateways send the whole input with the start, and no delta after it.
            call.add(exact("content_block", "input"))

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        piece = delta.get("partial_json")
        call = self._call(index)
        if index in self._stopped:
            self._seen.violate(f"delta_after_stop:{index}")
        elif call is None and index not in self._other:
            self._seen.violate(f"delta_without_start:{index}")
        elif call is not None and not isinstance(piece, str):
            self._seen.violate(f"wrong_delta:{index}")
        elif call is not None and isinstance(piece, str):
            call.add(piece)
            return
        if isinstance(piece, str) and index not in self._other:
            self._seen.orphan(piece)

    def _stop(self, index: int) -> None:
        call = self._call(index)
        if call is None and index not in self._other:
            self._seen.violate(f"stop_without_start:{index}")
            return
        self._stopped.add(index)
        if call is not None:
            self._seen.end(call)

    def _end(self) -> None:
        if self._stop_reason is None:
            self._seen.violate("message_stop_without_stop_reason")
        limited = self._stop_reason in LIMITS
        self._seen.finish(Terminal.INCOMPLETE if limited else Terminal.SUCCESS, self._stop_reason)

    def _call(self, index: int) -> OpenCall | None:
        return None if index in self._other else self._seen.by_key.get(index)


def _index(said: dict[str, Any]) -> int:
    index = said.get("index")
    return index if isinstance(index, int) else -1


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
