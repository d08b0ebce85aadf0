"""Links to a trace viewer that the workspace has elsewhere, from one template of its address.

The product keeps no traces: it knows the ids that spans brought, and where the workspace's people
look at them. Values are percent-encoded, so whatever an agent calls its conversation stays one part
of the address; and no field may stand in the host.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlsplit

from effects.models import Workspace

FIELDS: Final = {
    "trace_id": "the id of the trace, 32 hexadecimal digits",
    "conversation": "the conversation, as the agent names it",
    "turn": "the number of the turn",
    "call_id": "the model's id of the call",
}
EXAMPLES: Final = {
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "conversation": "order 8841",
    "turn": "7",
    "call_id": "toolu_01A09q90qw90lq91",
}
TEMPLATE_CHARACTERS_MAX: Final = 500
_FIELD: Final = re.compile(r"\{([^{}]*)\}")


def fault_of(template: str) -> str:
    """What is wrong with a template, as a sentence; empty if nothing is."""
    if re.search(r"[\s\x00-\x1f\x7f\\]", template):
        return "An address has no spaces, line ends or backslashes in it."
    unknown = [name for name in _FIELD.findall(template) if name not in FIELDS]
    if unknown:
        return f"There is no field {{{unknown[0]}}}. The fields are {_listed()}."
    if set("{}") & set(_FIELD.sub("", template)):
        return "A brace stands alone. A field is written as {trace_id}."
    return _fault_of_address(template)


def _fault_of_address(template: str) -> str:
    try:
        parts = urlsplit(_FIELD.sub("", template))
        host, scheme = parts.hostname, parts.scheme
        _ = parts.port
    except ValueError:
        return "This is no address. It looks like https://traces.example.com/trace/{trace_id}."
    if scheme not in {"http", "https"} or not host:
        return "The address begins with https:// or http:// and names a host."
    if parts.username is not None or parts.password is not None:
        return "An address with a user name or password in it would be shown to everybody."
    if not _FIELD.search(template):
        return f"The address names no field, so every link would be the same: use {_listed()}."
    before_path = template.partition("://")[2].split("/")[0].split("?")[0].split("#")[0]
    if _FIELD.search(before_path):
        return "A field stands in the host: an agent's words would choose where people are sent."
    return ""


def _listed() -> str:
    return ", ".join(f"{{{name}}}" for name in FIELDS)


def trace_link(
    workspace: Workspace,
    *,
    trace_id: str = "",
    conversation: str = "",
    turn: int | None = None,
    call_id: str = "",
) -> str:
    """The address in the workspace's trace viewer; empty where the workspace named none, or where
    its template asks for something that is not known here."""
    known = {
        "trace_id": trace_id,
        "conversation": conversation,
        "turn": "" if turn is None else str(turn),
        "call_id": call_id,
    }
    return filled(workspace.trace_url, known)


def filled(template: str, known: dict[str, str]) -> str:
    """The template with these values; empty if it is faulty, or one that it names is not known."""
    if not template or fault_of(template):
        return ""
    if not all(known.get(name) for name in _FIELD.findall(template)):
        return ""
    return _FIELD.sub(lambda field: _encoded(known[field[1]]), template)


def _encoded(value: str) -> str:
    # Dots alone would be resolved as steps in the path.
    quoted = quote(value, safe="", errors="replace")
    return quoted.replace(".", "%2E") if set(value) == {"."} else quoted
