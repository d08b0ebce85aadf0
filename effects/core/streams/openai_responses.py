"""OpenAI's Responses stream.

A call ends with `response.output_item.done` and the status `completed`, which alone brings its id
and name; the event for done arguments also comes when a response was interrupted. Only
`response.completed` ends a response well. Events are numbered, so a gap is seen, and what a resumed
stream repeats is applied once. (Names: `types/responses` of the `openai` package.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from effects.core.streams.assembly import Assembly, OpenCall, text_or_none
from effects.core.streams.record import StreamFlag
from effects.core.vocabulary import Terminal

CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that are calls of the caller's own tools, and where their text stands."""
PIECES: Final = frozenset({"function_call_arguments", "custom_tool_call_input"})


class OpenAIResponsesReader:
    """Reads the events of one response into an assembly."""

    def __init__(self, assembly: Assembly) -> None:
        self._seen = assembly
        self._key_of_item: dict[str, Hashable] = {}

    def read(self, name: str, said: dict[str, Any], exact: Callable[..., str]) -> None:
        """One event. `exact` gives the text of a value inside it with every digit."""
        if not self._is_new(said.get("sequence_number")):
            return
        match (text_or_none(said.get("type")) or name).split("."):
            case ["response", "output_item", step]:
                self._item(step, said, exact)
            case ["response", piece, step] if piece in PIECES:
                self._text(step, said)
            case ["response", kind]:
                self._response(kind, _object(said.get("response")))
            case ["error"]:
                # Flat, its own type is the event's; what went wrong is its code.
                flat = {"type": said.get("code"), "message": said.get("message")}
                self._seen.fail(said.get("error") or flat, request_id=said.get("request_id"))
            case _:
                pass

    def close(self) -> None:
        """The stream is over; there is no marker beside the events."""

    def _is_new(self, number: object) -> bool:
        """Whether the event was not applied before. A hole before it makes open calls suspect."""
        if not isinstance(number, int):
            return True
        last = self._seen.cursor
        if last is not None and number <= last:
            self._seen.repeated_events += 1
            return False
        if last is not None and number > last + 1:
            self._seen.gaps.append((last + 1, number - 1))
            self._seen.suspect_open_calls(StreamFlag.SEQUENCE_GAP)
        self._seen.cursor = number
        return True

    def _response(self, kind: str, response: dict[str, Any]) -> None:
        self._seen.response_id = text_or_none(response.get("id")) or self._seen.response_id
        self._seen.model = text_or_none(response.get("model")) or self._seen.model
        self._seen.usage |= _object(response.get("usage"))
        match kind:
            case "completed":
                self._seen.finish(Terminal.SUCCESS)
            case "incomplete":
                details = _object(response.get("incomplete_details"))
                self._seen.finish(Terminal.INCOMPLETE, text_or_none(details.get("reason")))
            case "failed":
                self._seen.fail(response.get("error") or {"code": "response_failed"})
            case "cancelled":
                self._seen.finish(Terminal.CANCELLED)
            case _:
                pass

    def _item(self, step: str, said: dict[str, Any], exact: Callable[..., str]) -> None:
        item = _object(said.get("item"))
        kind = str(item.get("type"))
        if kind not in CALLS or step not in {"added", "done"}:
            return
        call = self._call(said) if step == "done" else None
        call = call or self._seen.begin(self._key(said), None, None)
        if call is None:
            return
        call.free_text = kind == "custom_tool_call"
        call.call_id = call.call_id or text_or_none(item.get("call_id"))
        call.name = call.name or text_or_none(item.get("name"))
        said_text = item.get(CALLS[kind])
        if said_text is not None:
            text = said_text if isinstance(said_text, str) else exact("item", CALLS[kind])
            call.add(text) if step == "added" else call.replace(text)
        if step == "done" and item.get("status") in {None, "completed"}:
            self._seen.end(call)

    def _text(self, step: str, said: dict[str, Any]) -> None:
        call, text = self._call(said), said.get("arguments", said.get("input"))
        if step == "delta":
            self._delta(said)
        elif step == "done" and call is not None and isinstance(text, str):
            call.replace(text)

    def _delta(self, said: dict[str, Any]) -> None:
        call, piece = self._call(said), said.get("delta")
        if call is None:
            self._seen.violate(f"delta_without_start:{said.get('output_index')}")
            self._seen.orphan(str(piece))
        elif call.ended:
            self._seen.violate(f"delta_after_stop:{said.get('output_index')}")
            self._seen.orphan(str(piece))
        elif isinstance(piece, str):
            call.add(piece)

    def _call(self, said: dict[str, Any]) -> OpenCall | None:
        return self._seen.by_key.get(self._key(said))

    def _key(self, said: dict[str, Any]) -> Hashable:
        """The output index names an item; a server that leaves it out names it by its id."""
        item_id = text_or_none(said.get("item_id")) or text_or_none(
            _object(said.get("item")).get("id")
        )
        index = said.get("output_index")
        if isinstance(index, int):
            if item_id is not None:
                self._key_of_item.setdefault(item_id, index)
            return index
        return self._key_of_item.get(item_id, item_id) if item_id is not None else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
