"""Hiding in what ledgers kept elsewhere send, before an item's bytes are kept.

An item is applied from its kept bytes, maybe much later, and its identities must be those of the
exact values. So they are worked out at the door, and their digests are kept beside the bytes.
Names by which items find each other, and whatever else an item is applied by, is never hidden.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from effects.core import events as said
from effects.core.canonical import NO_RULES, ArgumentRules, Refused
from effects.core.identity import Identities
from effects.core.messages import Message
from effects.core.redaction import Found, Mode, Redacted, Redaction, Rule, Where, redact
from effects.core.redaction_paths import Path, Step
from effects.core.redaction_secrets import may_hold_a_secret
from effects.models import Tool
from effects.redaction import rules
from ledger import redacting
from ledger.claiming import rules_of
from ledger.functions import call
from ledger.ingest_claims import identified
from ledger.ingest_parts import Context, reference
from ledger.ingest_reading import DOORS, Door, Item, read_item
from ledger.models_sealed import SealedText
from ledger.otlp_apply import claim_of, untold_of
from ledger.otlp_facts import ARGUMENTS, CALL_ID, CONVERSATION, OUTCOME, RESULT, ToolSpan
from ledger.otlp_span import TOOL_NAME

ENVELOPE: Final = ("id", "source", "type", "time", "specversion", "datacontenttype")
BODIES: Final = frozenset({"arguments", "result", "error", "text", "calls", "route"})
"""Members of a message in which something may be hidden; everything else it is applied by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item as it may be kept: with `exact` beside its bytes where something was hidden in them,
    and what is sealed of it."""

    item: Item
    exact: dict[str, Any] | None = None
    sealed: tuple[tuple[SealedText.Name, Redacted], ...] = ()


def hidden(workspace_id: int, door: Door, items: Sequence[Item]) -> list[Kept]:
    """Every item of one request as it may be kept, in their order. What one item hides of a claim
    is hidden in the others that speak of the same claim."""
    values: dict[str, tuple[str, ...]] = {}
    kept: dict[int, Kept] = {}
    made_first = sorted(enumerate(items), key=lambda pair: _claim_made(pair[1]) is None)
    for index, item in made_first:
        of = _claim_named(item)
        known = values.get(of, ()) if of else ()
        known += _known_of(workspace_id, item, of)
        kept[index] = one = _hidden(workspace_id, door, item, known)
        if of:
            found = tuple(v.value for _, text in one.sealed for v in text.found if v.value)
            values[of] = (*values.get(of, ()), *found)
    return [kept[index] for index in range(len(items))]


def _hidden(workspace_id: int, door: Door, item: Item, known: tuple[str, ...]) -> Kept:
    in_force = rules.in_force(workspace_id)
    raw = _unwrapped(item.raw)
    text = raw.decode("utf-8", "surrogateescape")
    if not in_force.rules and not known and not may_hold_a_secret(text):
        return Kept(item=item)
    tool = getattr(item.message, "tool", None)
    redaction = replace(
        in_force.redaction(Where.EVENTS, tool),
        known=known,
        keeps=tuple(_keeps(item.message)),
    )
    redaction = replace(redaction, rules=(*redaction.rules, *_rooted(in_force, item, tool)))
    redacted = redact(text, redaction)
    if not redacted.found:
        return Kept(item=item)
    stored = replace(item, raw=redacted.text.encode("utf-8", "surrogateescape"))
    if item.message is None:
        return Kept(item=stored)
    told = read_item(stored.raw, DOORS[door.name]).message
    if told is None:
        # A rule hid what the item cannot be read without. It is read, and kept without its data.
        told, stored = item.message, replace(item, raw=_without_bodies(raw, redaction))
        told = read_item(stored.raw, DOORS[door.name]).message or told
    return Kept(
        item=stored,
        exact=_exact(workspace_id, item, told),
        sealed=tuple(_sealed(item.message, told, in_force, tool, known)),
    )


def _without_bodies(raw: bytes, redaction: Redaction) -> bytes:
    """The bytes with every body hidden whole, and nothing else."""
    whole = tuple(
        Rule(path=(Step("data"), Step(name)), mode=Mode.DROP) for name in sorted(BODIES - {"calls"})
    )
    narrow = Redaction(rules=whole, keeps=redaction.keeps)
    return redact(raw.decode("utf-8", "surrogateescape"), narrow).text.encode(
        "utf-8", "surrogateescape"
    )


# What is never hidden, and where a rule about arguments looks in an item


def _keeps(message: Message | None) -> Iterator[tuple[str | int, ...]]:
    yield from ((name,) for name in ENVELOPE)
    if isinstance(message, ToolSpan):
        yield from (("data", name) for name in ("name", "parent", "start", "end", "status"))
        named = (TOOL_NAME, *CALL_ID, *CONVERSATION, OUTCOME)
        yield from (("data", "attributes", name) for name in named)
    elif message is not None:
        yield from (("data", name) for name in type(message).model_fields if name not in BODIES)
    if isinstance(message, said.StreamRecorded):
        for number in range(len(message.calls)):
            names = (name for name in said.CallPart.model_fields if name != "arguments")
            yield from (("data", "calls", number, name) for name in names)


def _rooted(in_force: rules.InForce, item: Item, tool: str | None) -> Iterator[Rule]:
    if not in_force.rules or item.message is None:
        return
    of_arguments = in_force.redaction(Where.ARGUMENTS, tool).rules
    of_results = in_force.redaction(Where.RESULTS, tool).rules
    for places, some in (
        (_places_of_arguments(item.message), of_arguments),
        (_places_of_results(item.message), of_results),
    ):
        for place in places:
            yield from (replace(rule, path=(*place, *rule.path)) for rule in some)


def _places_of_arguments(message: Message) -> list[Path]:
    if isinstance(message, ToolSpan):
        return [_path("data", "attributes", name) for name in ARGUMENTS]
    return [
        _path("data", "arguments"),
        (*_path("data", "calls"), Step(None), Step("arguments")),
    ]


def _places_of_results(message: Message) -> list[Path]:
    if isinstance(message, ToolSpan):
        return [_path("data", "attributes", name) for name in RESULT]
    return [_path("data", "result")]


def _path(*names: str) -> Path:
    return tuple(Step(name) for name in names)


def _unwrapped(raw: bytes) -> bytes:
    """An item whose data came in base64, with the data as JSON: nothing can be hidden in base64."""
    if b'"data_base64"' not in raw:
        return raw
    try:
        envelope = json.loads(raw)
        inner = base64.b64decode(str(envelope.pop("data_base64")), validate=True)
        json.loads(inner)
    except (ValueError, binascii.Error, KeyError, AttributeError, RecursionError):
        return raw
    envelope.pop("data", None)
    return json.dumps(envelope)[:-1].encode() + b',"data":' + inner.strip() + b"}"


# What is known of the claim that an item speaks of


def _claim_made(item: Item) -> str | None:
    return item.message.claim if isinstance(item.message, said.ClaimMade) else None


def _claim_named(item: Item) -> str | None:
    name = getattr(item.message, "claim", None)
    return name if isinstance(name, str) else None


def _known_of(workspace_id: int, item: Item, claim: str | None) -> tuple[str, ...]:
    """What is hidden of a claim that was made here before this request."""
    if claim is None or not rules.in_force(workspace_id).seals:
        return ()
    if not isinstance(item.message, said.AttemptEnded | said.ClaimNoted):
        return ()
    ref = reference(workspace_id, item.source, "claim", claim)
    rows = call("SELECT claim_id FROM ledger_foreignname WHERE ref = %s", (ref,))
    found = rows[0][0] if rows else None
    return redacting.known_values(workspace_id, found) if found else ()


# The digests of the exact values


def _exact(workspace_id: int, item: Item, told: Message) -> dict[str, Any]:
    """Digests by which the item is applied in place of those of what is kept of it."""
    message = item.message
    exact: dict[str, Any] = {}
    if isinstance(message, said.StreamRecorded):
        exact["calls"] = [_size_and_digest(part.arguments) for part in message.calls]
    elif isinstance(message, said.CallAnnounced):
        exact["calls"] = [_size_and_digest(message.arguments)]
    elif isinstance(message, said.ClaimMade | ToolSpan) and (
        getattr(told, "arguments", None) != message.arguments
    ):
        exact |= _identities(workspace_id, item, message)
    return exact


def _identities(
    workspace_id: int, item: Item, message: said.ClaimMade | ToolSpan
) -> dict[str, Any]:
    context = Context(workspace_id=workspace_id, item_id=0, item=item)
    untold = None
    exact: dict[str, Any] = {}
    made = message
    if isinstance(made, ToolSpan):
        made = claim_of(context, made)
        untold = untold_of(made)
        exact["claim"] = made.claim
    tool = Tool.objects.filter(workspace_id=workspace_id, name=made.tool).first()
    declared: ArgumentRules = rules_of(tool) if tool else NO_RULES
    try:
        ids, _, flags = identified(context, made, declared, untold)
    except Refused:
        return exact  # Applying it says why, in the same words.
    return exact | {"ids": _written(ids), "flags": [str(flag) for flag in flags]}


def _written(ids: Identities) -> dict[str, Any]:
    values = ((one.name, getattr(ids, one.name)) for one in fields(ids))
    return {name: v.hex() if isinstance(v, bytes) else v for name, v in values}


def _size_and_digest(arguments: str | None) -> list[Any]:
    sent = (arguments or "").encode("utf-8", "surrogatepass")
    return [len(sent), hashlib.sha256(sent).hexdigest()]


# What is sealed: the arguments and the result, as the claim will have them


def _sealed(
    exact: Message,
    told: Message,
    in_force: rules.InForce,
    tool: str | None,
    known: tuple[str, ...],
) -> Iterator[tuple[SealedText.Name, Redacted]]:
    for name, member, where in (
        (SealedText.Name.ARGUMENTS, "arguments", Where.ARGUMENTS),
        (SealedText.Name.RESULT, "result", Where.RESULTS),
    ):
        before, after = getattr(exact, member, None), getattr(told, member, None)
        if isinstance(before, str) and isinstance(after, str) and before != after:
            redaction = replace(in_force.redaction(where, tool), known=known)
            found = redact(before, redaction)
            if found.text != after:
                found = _whole(before, after, redaction)
            yield name, found


def _whole(before: str, after: str, redaction: Redaction) -> Redacted:
    """Where more was hidden than the rules of such texts say, the text is hidden as one value; with
    a rule that drops, nothing of it is kept."""
    drops = any(rule.mode is Mode.DROP for rule in redaction.rules)
    value, mode = ("", Mode.DROP) if drops else (before, Mode.HIDE)
    return Redacted(after, (Found("$", 0, len(after), value, value, mode),))
