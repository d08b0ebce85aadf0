"""Tools out of a file: looked at as a plan first, then saved all at once or not at all.

Each tool is checked by the form that people use, so a file can say nothing that a person could not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from effects import audit
from effects.core.vocabulary import EffectClass
from effects.models import Connection, Tool, ToolChange, Workspace
from effects.tool_form import ToolForm
from effects.tools import (
    CLASS_WORDS,
    Difference,
    ToolMoved,
    differences,
    is_weaker,
    save_tool,
    snapshot,
)
from reconcile.lookups import LOOKUPS, fault_of
from reconcile.registry.toml_file import Entry

REASON_CHARACTERS_MAX: Final = 500
_KINDS: Final = {"": "none", **{kind: lookup.label for kind, lookup in LOOKUPS.items()}}


class Kind(StrEnum):
    """What an import would do with one tool."""

    REFUSED = "refused"
    CHANGED = "changed"
    ADDED = "added"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One tool of a plan. `differences` of a changed one, or what an added one is; `reasons` of a
    refused one, with the line where each stands, 0 where it stands nowhere."""

    kind: Kind
    name: str
    line: int = 0
    differences: tuple[Difference, ...] = ()
    reasons: tuple[tuple[int, str], ...] = ()
    weaker: bool = False
    tool: Tool | None = None
    read_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that an import would do. `digest` stands for it: what is saved is what was shown."""

    items: tuple[Item, ...]
    digest: str

    def of(self, kind: Kind) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.kind is kind)

    @property
    def saves(self) -> int:
        return len(self.of(Kind.ADDED)) + len(self.of(Kind.CHANGED))

    @property
    def can_be_saved(self) -> bool:
        """A file of which a part is refused is put right first: nobody wants half a registry."""
        return self.saves > 0 and not self.of(Kind.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One tool as somebody wants it: fields by their name, and where they stand."""

    name: str
    values: Mapping[str, Any]
    line: int = 0
    lines: Mapping[str, int]
    faults: tuple[tuple[int, str], ...] = ()


def wanted_of(entry: Entry) -> Wanted:
    return Wanted(
        name=entry.name,
        values=entry.values,
        line=entry.line,
        lines=entry.lines,
        faults=entry.faults,
    )


def plan(workspace: Workspace, wanted: Iterable[Wanted]) -> Plan:
    """What saving these tools would do; nothing is saved."""
    asked = list(wanted)
    names = [one.name for one in asked]
    found = Tool.objects.filter(workspace=workspace, name__in=names).select_related("connection")
    kept = {tool.name: tool for tool in found}
    connections = {one.name: one for one in Connection.objects.filter(workspace=workspace)}
    items = tuple(_item(workspace, one, kept.get(one.name), connections) for one in asked)
    return Plan(items=items, digest=_digest(items))


def _item(
    workspace: Workspace, wanted: Wanted, kept: Tool | None, connections: Mapping[str, Connection]
) -> Item:
    if wanted.faults:
        return Item(kind=Kind.REFUSED, name=wanted.name, line=wanted.line, reasons=wanted.faults)
    before = snapshot(kept) if kept else None
    tool = kept or Tool(workspace=workspace, name=wanted.name)
    fault = _take(tool, wanted, connections)
    if fault is not None:
        return Item(kind=Kind.REFUSED, name=wanted.name, line=wanted.line, reasons=(fault,))
    if before is not None and before["registered"] and snapshot(tool) == before:
        return Item(kind=Kind.UNCHANGED, name=wanted.name, line=wanted.line)
    reasons = _checked(workspace, tool, wanted)
    if reasons:
        return Item(kind=Kind.REFUSED, name=wanted.name, line=wanted.line, reasons=reasons)
    return _saved_as(tool, wanted, before)


def _saved_as(tool: Tool, wanted: Wanted, before: dict[str, Any] | None) -> Item:
    after = snapshot(tool) | {"registered": True}
    nothing = snapshot(Tool(name=tool.name)) | {"registered": True}
    return Item(
        kind=Kind.CHANGED if before else Kind.ADDED,
        name=wanted.name,
        line=wanted.line,
        differences=tuple(differences(before or nothing, after)),
        weaker=bool(before) and is_weaker(before or {}, after),
        tool=tool,
        read_version=tool.version if before else None,
    )


def _take(
    tool: Tool, wanted: Wanted, connections: Mapping[str, Connection]
) -> tuple[int, str] | None:
    """Sets the wanted fields on the tool; what stands in the way, or None."""
    for field, value in wanted.values.items():
        if field == "connection":
            if value is not None and value not in connections:
                there = ", ".join(sorted(connections)) or "none"
                said = f"There is no connection named {value} here. There are: {there}."
                return (wanted.lines.get(field, wanted.line), said)
            tool.connection = connections.get(value) if value else None
        elif field == "effect_class" and value not in list(EffectClass):
            said = f"effect_class is one of {', '.join(CLASS_WORDS)}, and not {str(value)[:40]!r}."
            return (wanted.lines.get(field, wanted.line), said)
        else:
            setattr(tool, field, value)
    return None


def _checked(workspace: Workspace, tool: Tool, wanted: Wanted) -> tuple[tuple[int, str], ...]:
    """Has the form check the tool and fill in the contract's figures; why it refuses."""
    shown = _form(workspace, tool, None)
    typed = {name: shown[name].value() for name in shown.fields}
    data = {
        name: str(value)
        for name, value in typed.items()
        if value is not None and value is not False
    }
    form = _form(workspace, tool, {**data, "reason": "import", "name": tool.name})
    if form.is_valid():
        return ()
    return tuple(
        (wanted.lines.get(field, wanted.line), f"{field}: {' '.join(map(str, errors))}")
        for field, errors in form.errors.items()
    )


def _form(workspace: Workspace, tool: Tool, data: Mapping[str, str] | None) -> ToolForm:
    return ToolForm(
        data, instance=tool, workspace=workspace, lookup_kinds=_KINDS, check_lookup=fault_of
    )


def _digest(items: Sequence[Item]) -> str:
    shown = [
        [
            item.kind,
            item.name,
            item.read_version,
            snapshot(item.tool) if item.tool is not None else None,
        ]
        for item in items
    ]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode()).hexdigest()


class PlanMoved(Exception):
    """What an import would do is not what was shown any more."""


def save(
    made: Plan, *, workspace: Workspace, user: User, source: str, now: datetime
) -> list[ToolChange]:
    """Saves all of a plan, each tool with the reason that names `source`. Raises `PlanMoved` where
    somebody saved one of the tools since; then nothing is saved."""
    reason = f"import of {source}"[:REASON_CHARACTERS_MAX]
    saved: list[ToolChange] = []
    try:
        with transaction.atomic():
            for item in (*made.of(Kind.ADDED), *made.of(Kind.CHANGED)):
                assert item.tool is not None
                saved.append(
                    save_tool(
                        item.tool,
                        read_version=item.read_version,
                        user=user,
                        reason=reason,
                        now=now,
                    )
                )
            audit.keep(
                workspace.pk,
                "tools.imported",
                user_id=user.pk,
                target=source,
                address="/tools/",
                after={"tools": len(saved)},
                reason=reason,
            )
    except ToolMoved:
        raise PlanMoved from None
    return saved
