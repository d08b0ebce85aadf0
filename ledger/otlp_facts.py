"""What the span of a tool's execution says, in the words of the record, and no more than that.

A span is the word of whoever watched the tool's code, not of a provider. That the code returned is
what an agent's own report of a completion rests on, too, so it counts as one. Everything that hints
at an error leaves the outcome unknown: an error after the request was sent and one before it look
alike in a span. Only an attribute of ours, set by whoever knows, can say that nothing was done.

The names of attributes are written out: the conventions for generative AI are still being developed
and their constants come and go with the releases of OpenTelemetry's packages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from effects.core.events import Error
from effects.core.identity import CALL_ID_BYTES_MAX, CONVERSATION_BYTES_MAX, TOOL_BYTES_MAX
from effects.core.messages import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX, Message, Name
from effects.core.vocabulary import Outcome
from ledger.ingest_json import Digits, Members, Unreadable, members, text_of
from ledger.otlp_span import EXECUTE_TOOL, TOOL_NAME, attribute, first_text, moment

# The name in the conventions first, then those of emitters that are older or have their own.
CALL_ID: Final = ("gen_ai.tool.call.id",)
CONVERSATION: Final = ("gen_ai.conversation.id", "gcp.vertex.agent.session_id")
ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "tool_arguments",
)
RESULT: Final = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "tool_response")
ERROR_TYPE: Final = "error.type"
OUTCOME: Final = "counterfoil.outcome"

_NO_ERROR: Final = frozenset({"0", "1"})  # a status that is unset, or ok
_EXCEPTIONS: Final = frozenset({"exception", "gen_ai.execute_tool.exception"})
# What the OpenAI Agents SDK hands to the model in place of an exception; the call then "succeeds".
_ERROR_AS_RESULT: Final = "An error occurred while running the tool."


_NAMES: Final = {
    "tool": ("TOOL_BYTES_MAX", TOOL_BYTES_MAX),
    "conversation": ("CONVERSATION_BYTES_MAX", CONVERSATION_BYTES_MAX),
    "call_id": ("CALL_ID_BYTES_MAX", CALL_ID_BYTES_MAX),
}


class ToolSpan(Message):
    """One execution of a tool as it was seen from outside."""

    tool: Name
    conversation: Name | None = None
    call_id: Name | None = None
    arguments: str | None = None
    result: str | None = None
    started_at: datetime | None = None
    outcome: Outcome
    error: Error | None = None
    worker: Name | None = None


def facts_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a `ToolSpan`, from the data of an item. Raises `Unreadable`."""
    said = _attributes(data)
    errors = tuple(_errors(data, said))
    found = {
        "tool": first_text(said, (TOOL_NAME,)) or _tool_in(_text(data.get("name"))),
        "conversation": first_text(said, CONVERSATION),
        "call_id": first_text(said, CALL_ID),
        "arguments": _first_json(said, ARGUMENTS),
        "result": _result(_first_value(said, RESULT)),
        "started_at": _started_at(data.get("start")),
        "outcome": str(_outcome(attribute(said, OUTCOME), errors)),
        "error": _in_words(errors),
        "worker": _text(data.get("worker"))[:NAME_CHARACTERS_MAX],
    }
    for member, (limit, bytes_max) in _NAMES.items():
        if len(str(found[member]).encode("utf-8", "surrogatepass")) > bytes_max:
            says = f"{member} is longer than the limit {limit}, {bytes_max} bytes."
            raise Unreadable("limit_exceeded", says, member)
    return {member: value for member, value in found.items() if value not in (None, "")}


def _attributes(data: Mapping[str, Any]) -> Members:
    found = data.get("attributes")
    if not isinstance(found, Members):
        raise Unreadable("data_invalid", "data.attributes is no object.", "data.attributes")
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tool_in(name: str) -> str:
    """The tool's name in the name of a span, for a span that names it nowhere else."""
    return name.removeprefix(EXECUTE_TOOL).strip() if name.startswith(EXECUTE_TOOL) else ""


def _started_at(start: Any) -> str | None:
    return moment(int(start)) if isinstance(start, Digits) else None


# Arguments and results: an object, or a text that is JSON or is not


def _first_value(said: Members, names: tuple[str, ...]) -> Any:
    values = (attribute(said, name) for name in names)
    return next((value for value in values if value is not None), None)


def _first_json(said: Members, names: tuple[str, ...]) -> str | None:
    value = _first_value(said, names)
    return value if value is None or _is_text(value) else text_of(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Digits)


def _result(value: Any) -> str | None:
    if not _is_text(value):
        return None if value is None else text_of(value)
    assert isinstance(value, str), "it was asked just now"
    return value if _json(value) is not _NO_JSON else json.dumps(value, ensure_ascii=False)


_NO_JSON: Final = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


# Outcome


def _outcome(stated: Any, errors: tuple[str, ...]) -> Outcome:
    if stated is not None:
        return Outcome(stated) if stated in list(Outcome) else Outcome.UNKNOWN
    return Outcome.UNKNOWN if errors else Outcome.COMPLETED


def _errors(data: Mapping[str, Any], said: Members) -> Iterator[str]:
    """What a span says of an error, the most telling first."""
    if attribute(said, ERROR_TYPE) is not None:
        yield first_text(said, (ERROR_TYPE,)) or ERROR_TYPE
    if data.get("status") not in _NO_ERROR:
        yield _text(data.get("message")) or "the span's status is an error"
    for event in data.get("events") or ():
        told = members(event, "data.events")
        if told.get("name") in _EXCEPTIONS:
            yield _exception(told.get("attributes"))
    if attribute(said, "tool.attempt_failed") is True:
        yield "the attempt is marked as failed"
    if _is_error(_first_value(said, RESULT)):
        yield "the result is an error that was handed to the model"


def _exception(said: Any) -> str:
    found = said if isinstance(said, Members) else Members()
    parts = (first_text(found, (f"exception.{part}",)) for part in ("type", "message"))
    return ": ".join(filter(None, parts)) or "an exception was recorded"


def _in_words(errors: tuple[str, ...]) -> str:
    """Each thing once: a status and an exception often say the same, one of them in more words."""
    once = dict.fromkeys(errors)
    words = [e for e in once if not any(e in other for other in once if other != e)]
    return "; ".join(words)[:ERROR_CHARACTERS_MAX]


def _is_error(result: Any) -> bool:
    """Whether a result is an error that was handed to the model instead of being raised: as MCP
    (`isError`), LangChain (a message with the status "error") and the OpenAI Agents SDK do it."""
    if _is_text(result):
        if result.startswith(_ERROR_AS_RESULT):
            return True
        result = _json(result)
    pairs = result.items() if isinstance(result, dict) else result
    if not isinstance(result, dict | Members):
        return False
    return any(pair in (("isError", True), ("status", "error")) for pair in pairs)
