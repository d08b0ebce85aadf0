"""What is said about a tool, what a change of it does, and the one way to save it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from effects.contracts import CONTRACTS, Promise, Source, contract_of, remarks, window_words
from effects.core.vocabulary import EffectClass
from effects.models import Tool, ToolChange
from effects.times import write_duration

CLASS_WORDS: Final = {
    EffectClass.READ: "read",
    EffectClass.KEYED_WRITE: "keyed write",
    EffectClass.UNKEYED_WRITE: "unkeyed write",
}
CONTRACT_WORDS: Final = {name: terms.title for name, terms in CONTRACTS.items()}

_DURATIONS: Final = frozenset(
    {
        *("margin_seconds", "lease_seconds", "attempt_seconds_max"),
        "server_working_seconds_max",
    }
)
FIELD_WORDS: Final = {
    "effect_class": "Class",
    "note": "Note",
    "owner": "Owner",
    "contract": "Contract",
    "key_name": "Key is sent as",
    "window_seconds": "Safe-retry window",
    "margin_seconds": "Margin",
    "lease_seconds": "Lease",
    "attempt_seconds_max": "Longest attempt",
    "attempts_max": "Attempts",
    "release_lapse_minutes": "Release lapses after (minutes)",
    "server_working_seconds_max": "Provider may still work for",
    "horizon_days": "Asked for (days)",
    "hold_in_turn": "Hold equal calls of one turn",
    "agent_may_repeat": "Agent may repeat",
    "sends_offline": "Sent while the ledger is away",
    "connection": "Connection",
    "lookup_kind": "Look-up",
    "lookup": "Look-up settings",
    "lookups_max": "Look-ups",
    "argument_rules": "Argument rules",
    "summary": "Summary",
    "amount_field": "Amount field",
    "amount_is_minor": "Amount in minor units",
    "currency_field": "Currency field",
    "customer_field": "Customer field",
    "runbook": "Runbook",
    "registered": "Registered",
}


# What a tool's settings make one expect


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """One remark about a tool. `bad`: something will go wrong, rather than be merely unknown.
    `source`: where it stands what the provider promises. `todo`: what to do about it. `claims` name
    calls that it rests on, where it rests on calls."""

    words: str
    bad: bool = False
    source: Source | None = None
    todo: str = ""
    claims: tuple[str, ...] = ()


def lint(tool: Tool) -> tuple[Lint, ...]:
    """Everything that can be told from a tool's own settings, the worst first."""
    found = (
        *_lint_registered(tool),
        *_lint_contract(tool),
        *_lint_lookup(tool),
        *_lint_words(tool),
    )
    return tuple(sorted(found, key=lambda remark: not remark.bad))


def can_double_fire(tool: Tool) -> bool:
    """Whether a repeat of its call is a second effect that no key prevents."""
    return tool.effect_class == EffectClass.UNKEYED_WRITE


def _lint_registered(tool: Tool) -> tuple[Lint, ...]:
    if tool.registered:
        return ()
    words = "seen in a claim, registered by nobody: counts as an unkeyed write"
    todo = "Register it with the class that it has; until then nobody can be asked about it."
    return (Lint(words=words, bad=True, todo=todo),)


def _lint_contract(tool: Tool) -> tuple[Lint, ...]:
    if not tool.registered or tool.effect_class == EffectClass.READ:
        return ()
    terms = contract_of(tool.contract)
    if terms is None:
        words = f"the contract {tool.contract} is not known here: nothing is taken from it"
        return (Lint(words=words, bad=True, todo="Choose one of the contracts that are."),)
    todo = "Read what the provider says, then change the figure, or the contract."
    said = tuple(
        Lint(words=remark.words, bad=remark.bad, source=remark.source, todo=todo)
        for remark in remarks(promise_of(tool), terms)
    )
    kind = tool.connection.kind if tool.connection else ""
    if kind in _PROVIDERS_OWN_KINDS and terms.name != "generic" and kind not in terms.adapters:
        words = f"the contract is {terms.provider}'s, the connection {tool.connection} is not"
        todo = "Choose the connection of the provider that the tool calls, or its contract."
        return (*said, Lint(words=words, bad=True, todo=todo))
    return said


def promise_of(tool: Tool) -> Promise:
    """What a tool's row says about its provider."""
    return Promise(
        effect_class=EffectClass(tool.effect_class),
        window_seconds=tool.window_seconds,
        server_working_seconds_max=tool.server_working_seconds_max,
        key_name=tool.key_name,
    )


_PROVIDERS_OWN_KINDS: Final = frozenset(
    kind for terms in CONTRACTS.values() for kind in terms.adapters
) - frozenset({"http", "graphql", "sql"})
"""Kinds of connection that speak one provider's dialect; the others can ask anybody."""


def _lint_lookup(tool: Tool) -> tuple[Lint, ...]:
    if tool.effect_class == EffectClass.READ:
        return ()
    if not tool.lookup_kind:
        if tool.effect_class == EffectClass.UNKEYED_WRITE:
            words = "unkeyed write, no look-up: every timeout will need a person"
            return (Lint(words=words, bad=True, todo=_ADD_LOOKUP),)
        words = "no look-up: after a timeout only a retry with the key can tell"
        return (Lint(words=words, todo=_ADD_LOOKUP),)
    if tool.connection is None:
        words = "look-up without a connection: nobody can be asked"
        return (Lint(words=words, bad=True, todo="Choose the account that is to be asked."),)
    if tool.lookup_kind.split(".")[0] != tool.connection.kind:
        words = f"look-up and connection {tool.connection.name} do not fit: nobody can be asked"
        todo = "Choose a look-up of that connection's kind, or another connection."
        return (Lint(words=words, bad=True, todo=todo),)
    return ()


_ADD_LOOKUP: Final = "Add a look-up: a list, a status address, or a table that can be read."


def _lint_words(tool: Tool) -> tuple[Lint, ...]:
    if tool.effect_class == EffectClass.READ or tool.summary:
        return ()
    todo = "Write one line with the fields that tell people what it was about."
    return (Lint(words="no summary: people read raw arguments", todo=todo),)


# What a change does to calls that are undecided now


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What a change does to `count` undecided calls; nothing is saved when it is shown."""

    count: int
    words: str


def consequences(
    before: Mapping[str, Any], after: Mapping[str, Any], undecided: Mapping[EffectClass, int]
) -> tuple[Consequence, ...]:
    """What saving would do, from two snapshots and the undecided calls by their own class.

    A call keeps the class, the key and the window that it was granted with. What is read afresh
    each time is the tool's margin, its look-up, and the class that a repeated request meets.
    """
    total = sum(undecided.values())
    keyed = undecided.get(EffectClass.KEYED_WRITE, 0)
    return (
        *_class_consequences(before, after, undecided, total=total),
        *_margin_consequences(before, after, keyed=keyed),
        *_lookup_consequences(before, after, total=total),
    )


def _class_consequences(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    undecided: Mapping[EffectClass, int],
    *,
    total: int,
) -> tuple[Consequence, ...]:
    if before["effect_class"] == after["effect_class"]:
        return ()
    new = EffectClass(after["effect_class"])
    found = [Consequence(count=total, words="undecided calls of this tool")]
    found += [
        Consequence(
            count=count,
            words=f"of them stay {CLASS_WORDS[own]}s: a call keeps the class, the key and the "
            "window that it was granted with",
        )
        for own, count in undecided.items()
        if own is not new and count
    ]
    if new is EffectClass.READ:
        words = (
            "of them are no longer guarded: an agent that repeats such a call and whose code says "
            "read as well runs it again without a claim"
        )
        found.append(Consequence(count=total, words=words))
    return tuple(found)


def _margin_consequences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, keyed: int
) -> tuple[Consequence, ...]:
    moved = after["margin_seconds"] - before["margin_seconds"]
    if not moved or not keyed:
        return ()
    way = "earlier" if moved > 0 else "later"
    words = f"undecided calls with a key: safe to retry until {write_duration(abs(moved))} {way}"
    return (Consequence(count=keyed, words=words),)


def _lookup_consequences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, total: int
) -> tuple[Consequence, ...]:
    had, has = bool(before["lookup_kind"]), bool(after["lookup_kind"])
    if had == has or not total:
        return ()
    gain = "can be asked about from now on"
    loss = "can no longer be asked about: a person decides from the evidence that is there"
    return (Consequence(count=total, words=f"undecided calls {gain if has else loss}"),)


def is_weaker(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the new class guards less than the old one."""
    old, new = EffectClass(before["effect_class"]), EffectClass(after["effect_class"])
    return new.severity < old.severity


# Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    field: str
    before: str
    after: str


def snapshot(tool: Tool) -> dict[str, Any]:
    """All settings of a tool as plain JSON; a connection by name, since ids tell people nothing."""
    values = {name: getattr(tool, name) for name in FIELD_WORDS if name != "connection"}
    values["effect_class"] = str(values["effect_class"])
    return {**values, "connection": tool.connection.name if tool.connection else None}


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Difference]:
    """What one version changed, in words, in the order of the form; nothing for the first one."""
    if before is None:
        return []
    return [
        Difference(
            field=words,
            before=_value_words(name, before.get(name)),
            after=_value_words(name, after.get(name)),
        )
        for name, words in FIELD_WORDS.items()
        if not _equal(before.get(name), after.get(name))
    ]


def _equal(before: Any, after: Any) -> bool:
    """Versions from before there was a field hold nothing about it, which is no change."""
    return before == after or (before in (None, "") and after in (None, ""))


def _value_words(name: str, value: Any) -> str:
    if name == "window_seconds":
        return window_words(value)
    if name in _DURATIONS:
        return "not published" if value is None else write_duration(int(value))
    if name == "runbook" and value:
        return f"{len(value)} characters"
    if name == "effect_class":
        return CLASS_WORDS[EffectClass(value)]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "", {}) else str(value)


class ToolMoved(Exception):
    """Somebody saved the tool after this version of it was read."""


def save_tool(
    tool: Tool, *, read_version: int | None, user: User, reason: str, now: datetime
) -> ToolChange:
    """Saves a tool as its next version, with the row that says what, who and why.

    `read_version` is the version that the person saw, None for a new tool. Every save counts the
    version up: agents' processes remember a tool's rules by it. Raises `ToolMoved`.
    """
    with transaction.atomic():
        before = None
        if read_version is not None:
            stored = Tool.objects.select_for_update(of=("self",)).select_related("connection")
            kept = stored.get(pk=tool.pk)
            if kept.version != read_version:
                raise ToolMoved
            before = snapshot(kept)
            tool.version = read_version + 1
        tool.registered = True
        tool.save()
        return ToolChange.objects.create(
            tool=tool,
            version=tool.version,
            changed_at=now,
            changed_by=user,
            reason=reason,
            before=before,
            after=snapshot(tool),
        )
