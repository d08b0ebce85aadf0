"""Bytes of model responses, as the three protocols write them."""

from __future__ import annotations

import json
from typing import Any

CALL_ID = "call_0123456789abcdef"
OTHER_ID = "call_fedcba9876543210"


def sse(*events: dict[str, Any] | str, named: bool = True, end: str = "\n") -> bytes:
    """Events as a server frames them; a text stands as it is, as the data of an event."""
    lines: list[str] = []
    for event in events:
        if isinstance(event, dict) and named and "type" in event:
            lines.append(f"event: {event['type']}")
        lines += [f"data: {event if isinstance(event, str) else json.dumps(event)}", ""]
    return "".join(line + end for line in lines).encode()


# Anthropic


def message_start() -> dict[str, Any]:
    message = {"id": "msg_1", "model": "m", "usage": {"input_tokens": 11, "output_tokens": 1}}
    return {"type": "message_start", "message": message}


def tool_block(
    index: int, call_id: str = "toolu_0123456789abcdef", name: str = "pay", **block: Any
):
    said = {"type": "tool_use", "id": call_id, "name": name, "input": {}} | block
    return {"type": "content_block_start", "index": index, "content_block": said}


def piece(index: int, text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def block_stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_end(reason: str = "tool_use") -> tuple[dict[str, Any], ...]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return (
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}},
        {"type": "message_stop"},
    )


def a_payment(*pieces: str) -> tuple[dict[str, Any], ...]:
    """A message with one call that ended, up to before the message's own end."""
    return (message_start(), tool_block(0), *(piece(0, text) for text in pieces), block_stop(0))


# OpenAI Chat Completions


def chunk(*pieces: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"tool_calls": list(pieces)} if pieces else {}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "model": "m", "choices": [choice]} | more


def part(index: int | None, call_id: str | None, name: str | None, text: Any) -> dict[str, Any]:
    said = {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}
    return {key: value for key, value in said.items() if value is not None}


CHAT_END = (chunk(reason="tool_calls"), "[DONE]")


# OpenAI Responses


def item(step: str, number: int, index: int = 0, **said: Any) -> dict[str, Any]:
    usual = {"type": "function_call", "id": f"fc_{index}", "name": "pay"}
    usual |= {"call_id": f"call_0123456789abcdef{index}", "arguments": ""}
    return {
        "type": f"response.output_item.{step}",
        "sequence_number": number,
        "output_index": index,
        "item": usual | said,
    }


def arguments(step: str, number: int, text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": f"response.function_call_arguments.{step}",
        "sequence_number": number,
        "item_id": f"fc_{index}",
        "output_index": index,
        ("delta" if step == "delta" else "arguments"): text,
    }


def response(step: str, number: int, **said: Any) -> dict[str, Any]:
    return {
        "type": f"response.{step}",
        "sequence_number": number,
        "response": {"id": "resp_1", "model": "m", "status": step} | said,
    }
