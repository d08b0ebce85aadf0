"""What is told to a model about its call, in the form in which each API takes a tool's result.

The forms are those that the integrations of the client send; here a person copies one by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

NOTHING_DONE: Final = frozenset({"not_executed"})
"""Only what provably did nothing is marked as an error: a model that reads "error" tries again."""


def result_blocks(call_id: str, told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The result in every API's form, by the API's name; `told` is the object for the model."""
    text = json.dumps(told, ensure_ascii=False)
    anthropic: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    if told.get("status") in NOTHING_DONE:
        anthropic["is_error"] = True
    return {
        "Anthropic Messages": anthropic,
        "OpenAI Responses": {"type": "function_call_output", "call_id": call_id, "output": text},
        "OpenAI Chat Completions": {"role": "tool", "tool_call_id": call_id, "content": text},
    }
