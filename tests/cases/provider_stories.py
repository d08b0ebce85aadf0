"""What a case about a provider says: its tool, the replies that are scripted, and the call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from effects.core.vocabulary import EffectClass
from tests.cases.fields import Fault, Fields
from tests.cases.stub import PREFIXES, Reply, items_of
from tests.cases.words import CLASSES
from tests.cases.world import Setting

MAPPED: Final = {
    "completed": "found",
    "failed": "absent",
    "pending": "pending",
    "mismatch": "found_different",
}
"""What a case's own mapping of a provider's words says, as a registry entry says it."""
LOG: Final = "requests"
"""The member of an answer that is a provider's log of requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One scripted reply as the file has it: `write` where the worker gets it, `after_seconds`
    from the first send on."""

    reply: Reply
    write: bool
    after_seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One case, or one variant of it, read."""

    setting: Setting
    said: tuple[Said, ...]
    key: str = ""
    first_arguments: Mapping[str, Any] | None = None
    own_key_in_metadata: str = ""
    pages: bool = False

    @property
    def looks(self) -> tuple[Reply, ...]:
        return tuple(one.reply for one in self.said if not one.write)

    @property
    def writes(self) -> tuple[Said, ...]:
        return tuple(one for one in self.said if one.write)


def story_of(given: Fields) -> Story:
    operation = Fields(given.at("operation"), given.take("operation", dict))
    replies = given.take("provider_replies", (list, str))
    said = tuple(
        _said(Fields(f"{given.where}.provider_replies[{n}]", one))
        for n, one in enumerate(replies if isinstance(replies, list) else [])
    )
    if not said:
        raise Fault(given.at("provider_replies"), "holds no reply")
    key = operation.take("key", str)
    setting = _setting(operation, said)
    first = given.take("first_args", dict, None)
    operation.finish()
    return Story(
        setting=setting,
        said=tuple(_marked(one, key) for one in said),
        key=key if first is not None else "",
        first_arguments=first,
    )


def _said(reply: Fields) -> Said:
    request = reply.take("request", str, "")
    after = reply.take("after_s", int, 0)
    status = reply.take("status", int)
    headers = reply.take("headers", dict, {})
    body = reply.take("body", object, None)
    reply.finish()
    return Said(
        reply=Reply(status=status, body=body, headers=headers),
        write=request.upper().startswith("POST"),
        after_seconds=after,
    )


def _marked(said: Said, key: str) -> Said:
    """The case's key in metadata stands for our marker, which the stub writes there."""
    body = said.reply.body
    text = json.dumps(body)
    items = items_of(body)
    if not items or f'"key": {json.dumps(key)}' not in text:
        return said
    kept = [
        {**item, "metadata": {n: v for n, v in item["metadata"].items() if n != "key"}}
        if isinstance(item.get("metadata"), dict)
        else item
        for item in items
    ]
    whole = {**body, "data": kept} if isinstance(body.get("data"), list) else kept[0]
    return replace(said, reply=replace(said.reply, body=whole))


def _setting(operation: Fields, said: Sequence[Said]) -> Setting:
    tool = operation.take("tool", str, "pay")
    kind = operation.take("tool_class", str, "keyed_write")
    if kind not in CLASSES:
        raise Fault(operation.at("tool_class"), f"{kind!a} is none of {', '.join(CLASSES)}")
    arguments = operation.take("args", dict, {})
    account = operation.take("account", str, "")
    adapter = operation.take("adapter", str, "")
    mapping = operation.take("mapping", dict, {})
    intent = operation.take("intent", str, "")
    named = operation.take("object", str, "")
    operation.pass_over("first_attempt_at")
    if adapter not in {"", "generic_http", "stripe"}:
        raise Fault(operation.at("adapter"), f"{adapter[:60]!a} is not interpreted")
    logged = any(isinstance(one.reply.body, dict) and LOG in one.reply.body for one in said)
    lists = _lists_of(tool, named, said)
    generic = adapter == "generic_http" or bool(mapping) or logged or lists is None
    items = [item for one in said for item in items_of(one.reply.body)]
    live = [item["livemode"] for item in items if "livemode" in item]
    return Setting(
        lookup_kind="http" if generic else f"stripe.{lists}",
        lookup=status_endpoint(mapping, said) if generic else _stripes(intent),
        effect_class=EffectClass(kind),
        tool=tool,
        arguments=arguments,
        account=account,
        mode="live" if live and live[0] is True else "test",
    )


def _lists_of(tool: str, named: str, said: Sequence[Said]) -> str | None:
    """Stripe's list that the case is about, or None where it is another provider's."""
    names = [named, *(item["id"] for one in said for item in items_of(one.reply.body))]
    for prefix, lists in PREFIXES.items():
        if any(str(name).startswith(prefix) for name in names):
            return lists
    if tool.startswith("stripe."):
        noun = tool.removeprefix("stripe.")
        return next((one for one in PREFIXES.values() if one.rstrip("s") == noun), None)
    writes_alone = all(one.write for one in said)
    return "payment_intents" if writes_alone else None


def _stripes(intent: str) -> dict[str, Any]:
    """Where it is said what the call is for, its tool says of an object that ended without doing it
    that it took nothing and never will."""
    return {"map": {"canceled": "absent", "failed": "absent"}} if intent else {}


def status_endpoint(mapping: Mapping[str, Any], said: Sequence[Said]) -> dict[str, Any]:
    """A status endpoint as its tool's owner would enter it."""
    odd = {word for word in mapping.values() if word not in MAPPED}
    if odd:
        raise Fault("input.operation.mapping", f"maps to {sorted(odd)}, which is no word of a map")
    lookup: dict[str, Any] = {
        "url": "/status?reference={marker}",
        "map": {name: MAPPED[word] for name, word in mapping.items()} or {"logged": "found"},
        "delay_class": "none",
        # A status endpoint that names no object speaks of the call itself.
        "id": "id || 'the call'",
    }
    logs = [one.reply.body for one in said if isinstance(one.reply.body, dict)]
    if any(LOG in body for body in logs):
        lookup |= {"items": LOG, "id": "object", "status": "'logged'"}
    elif any("data" in body for body in logs):
        lookup |= {"items": "data", "more": "has_more"}
    return lookup
