"""Tools out of an MCP server's answer to `tools/list`.

What a server says of its own tools is a hint (MCP 2026-07-28, ToolAnnotations: clients must not
rely on annotations of servers that they do not trust). Hints are shown and decide nothing: a tool
begins as an unkeyed write, whatever is said of it, until a person says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from effects.core.vocabulary import EffectClass
from effects.registry import field_fault
from reconcile.registry.importing import Wanted
from reconcile.registry.preview import suggested

BYTES_MAX: Final = 1024 * 1024
TOOLS_MAX: Final = 500
NAME_CHARACTERS_MAX: Final = 255
NOTE_CHARACTERS_MAX: Final = 2_000
ARGUMENTS_MAX: Final = 200
"""Most members of one object of a schema that are looked at."""

HINTS: Final = {
    "readOnlyHint": (False, "changes nothing", "may change something"),
    "destructiveHint": (True, "may destroy something", "only adds"),
    "idempotentHint": (False, "same arguments again do nothing more", "same arguments again do it"),
    "openWorldHint": (True, "reaches other systems", "stays inside its own"),
}
"""By hint: what counts where nothing is said, and the words for true and for false."""


class CannotRead(Exception):
    """The text is no list of tools; the reason is a sentence for whoever pasted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One hint in words. `given`: the server said it; else it is what counts by the protocol."""

    name: str
    words: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tool that a server offers, with what it says of itself and what is made of it."""

    name: str
    title: str
    description: str
    hints: tuple[Hint, ...]
    arguments: tuple[str, ...]
    fields: Mapping[str, str]

    def wanted(self, effect_class: EffectClass, line: int = 0) -> Wanted:
        """The tool as a person has chosen it; without a choice it is an unkeyed write."""
        values = {
            "effect_class": str(effect_class),
            "note": self.description[:NOTE_CHARACTERS_MAX],
            **self.fields,
        }
        return Wanted(name=self.name, values=values, line=line, lines={})


def read(text: str) -> tuple[Offer, ...]:
    """The tools of a pasted answer: the whole message, its result, or the bare list."""
    if len(text.encode()) > BYTES_MAX:
        raise CannotRead(f"That is more than {BYTES_MAX:,} bytes (BYTES_MAX).")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotRead(f"This is no JSON: {error}.") from None
    listed = _list_in(said)
    if len(listed) > TOOLS_MAX:
        raise CannotRead(f"There are {len(listed)} tools, more than {TOOLS_MAX} (TOOLS_MAX).")
    offers = [_offer(one, number) for number, one in enumerate(listed, start=1)]
    names = [offer.name for offer in offers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CannotRead(f"{twice[:80]} is in the list twice.")
    return tuple(offers)


def next_cursor(text: str) -> str:
    """The cursor of the pages that follow, where the answer names one: it is not the whole list."""
    said = json.loads(text)
    result = said.get("result", said) if isinstance(said, dict) else {}
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    return cursor[:80] if isinstance(cursor, str) else ""


def _list_in(said: Any) -> list[Any]:
    for _ in range(2):
        if isinstance(said, dict):
            said = said.get("result", said.get("tools"))
    if isinstance(said, list):
        return said
    raise CannotRead('There is no list of tools in it: it should be {"tools": [...]}.')


def _offer(said: Any, number: int) -> Offer:
    name = said.get("name") if isinstance(said, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS_MAX or "\x00" in name:
        most = NAME_CHARACTERS_MAX
        raise CannotRead(f"Tool {number} has no name of at most {most} characters.")
    annotations = said.get("annotations")
    arguments = _arguments(said.get("inputSchema"))
    return Offer(
        name=name,
        title=_text(said.get("title")),
        description=_text(said.get("description")),
        hints=tuple(_hints(annotations if isinstance(annotations, dict) else {})),
        arguments=arguments,
        fields=suggested(arguments),
    )


def _hints(annotations: Mapping[str, Any]) -> list[Hint]:
    found = []
    for name, (otherwise, if_true, if_false) in HINTS.items():
        value = annotations.get(name)
        given = isinstance(value, bool)
        found.append(
            Hint(
                name=name,
                words=if_true if (value if given else otherwise) else if_false,
                given=given,
            )
        )
    return found


def _arguments(schema: Any, depth: int = 2) -> tuple[str, ...]:
    """The paths of the schema's members, and of the members of those that are objects."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not depth:
        return ()
    found: list[str] = []
    for name, inner in list(properties.items())[:ARGUMENTS_MAX]:
        found += [name, *(f"{name}.{path}" for path in _arguments(inner, depth - 1))]
    return tuple(path for path in found if field_fault(path) is None)


def _text(value: Any) -> str:
    return value.replace("\x00", "") if isinstance(value, str) else ""
