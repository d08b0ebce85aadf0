"""A case's claim event as the request that the ledger is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid5

import pydantic

from effects.core.exact_json import unstorable_at
from effects.core.identity import RECIPES, CallFacts
from effects.core.messages import ClaimRequest, Complete, Fail, Settle, Unknown
from effects.core.problems import LedgerProblem
from effects.core.vocabulary import EffectClass, Outcome
from effects.models import Tool, Workspace
from ledger.reading import check_claim
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields
from tests.cases.streams import canonical
from tests.cases.words import CLASSES
from tests.support.clock import START

NAMES: Final = UUID("5f0b6c3e-8f0a-4c57-9f6e-1f0a9d1f7a55")
WINDOW_SECONDS: Final = 86_400
"""How long a provider honours a key where a case does not say it."""
RECIPE_VERSION: Final = 1
"""All recipes in force end in this version; a look-up tries every one."""
TOOL_POLICY: Final = frozenset(
    {
        *("lease_seconds", "attempt_seconds_max", "window_seconds", "margin_seconds"),
        *("attempts_max", "hold_in_turn", "agent_may_repeat", "argument_rules"),
    }
)


class Rejected(Exception):
    """A claim that is no request, and why; the ledger is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A claim event as the ledger was asked."""

    workspace_id: int
    request: ClaimRequest

    @property
    def facts(self) -> CallFacts:
        """What the identities of the call are made of, without a tool's own rules."""
        members = ("conversation", "turn_index", "position", "ordinal", "response_id", "call_id")
        said = {name: getattr(self.request, name) for name in (*members, "caller_key")}
        request = self.request
        return CallFacts(
            workspace=self.workspace_id, tool=request.tool, arguments=request.arguments, **said
        )


def request_of(event: Fields, name: str, ordinal: int) -> Asked:
    """Reads a claim event and enters its workspace. Raises `Rejected`, and `Fault`."""
    workspace = workspace_of(event)
    kind = event.take("tool_class", str, "unkeyed_write")
    if kind not in CLASSES:
        raise Fault(event.at("tool_class"), f"{kind!a} is none of {', '.join(CLASSES)}")
    if event.take("key_version", int, 1) != RECIPE_VERSION:
        raise Fault(event.at("key_version"), f"no recipe here has this version: {RECIPES}")
    effect_class = _registered(CLASSES[kind], event.take("annotations", dict, {}))
    said = {ours: event.take(theirs, object, None) for theirs, ours in _MEMBERS.items()} | {
        "effect_class": str(effect_class),
        "arguments": to_text(event.take("args", object, None)),
        "ordinal": ordinal,
        # One event is one request: sent again it brings the same nonce.
        "nonce": uuid5(NAMES, f"{workspace.pk}/{name!a}").hex,
    }
    sent = to_text({member: value for member, value in said.items() if value is not None})
    try:
        request = check_claim(ClaimRequest.model_validate_json(sent))
    except (pydantic.ValidationError, LedgerProblem) as error:
        raise Rejected(f"input_invalid: {' '.join(str(error).split())}") from None
    return Asked(workspace_id=workspace.pk, request=request)


_MEMBERS: Final = {
    "tool": "tool",
    "conversation_id": "conversation",
    "turn_index": "turn_index",
    "ordinal": "position",
    "response_id": "response_id",
    "tool_call_id": "call_id",
    "key": "caller_key",
    "worker": "worker",
    "delivery_count": "delivery_count",
    "retry_count": "retry_count",
    "agent": "agent",
    "checkpoint": "checkpoint",
    "user_message_between": "user_spoke",
}
"""The files' names of a claim's members beside ours."""


def approval_digest(tool: str, arguments: str) -> str:
    """What a person's approval of a call is bound to, as the integration that asks them has it."""
    from effects.client.integrations.langgraph import Pending  # noqa: PLC0415 - slow to import

    return Pending(tool=tool, arguments=arguments).digest


def workspace_of(event: Fields) -> Workspace:
    """The workspace that stands for the event's tenant."""
    tenant = event.take("tenant", str, "t1")
    workspace, _ = Workspace.objects.get_or_create(
        slug=f"case-{uuid5(NAMES, ascii(tenant)).hex[:12]}",
        defaults={"name": ascii(tenant)[:100], "created_at": START},
    )
    return workspace


def register(asked: Asked, policy: Mapping[str, Any], window_seconds: int | None) -> None:
    """Enters the claim's tool as its owner would, with the case's policy."""
    if unstorable_at(asked.request.tool) is not None:
        return  # Nobody could have entered it; what the claim is told is the ledger's to say.
    keyed = asked.request.effect_class is EffectClass.KEYED_WRITE
    contract = {
        "effect_class": asked.request.effect_class,
        "window_seconds": (window_seconds or WINDOW_SECONDS) if keyed else None,
    }
    Tool.objects.get_or_create(
        workspace_id=asked.workspace_id,
        name=asked.request.tool,
        defaults=contract | dict(policy),
    )


def _registered(declared: EffectClass, hints: Mapping[str, Any]) -> EffectClass:
    """The class under which an owner who vouches for a server's hints would register the tool. A
    hint that is missing says nothing."""
    said = Fields("annotations", hints)
    reads = said.take("readOnlyHint", bool, False)
    idempotent = said.take("idempotentHint", bool, False)
    said.pass_over("destructiveHint", "openWorldHint", "title")
    said.finish()
    if reads:
        return EffectClass.READ
    return EffectClass.KEYED_WRITE if idempotent else declared


def made_elsewhere(name: str, request: ClaimRequest) -> dict[str, Any]:
    members = (
        *("tool", "effect_class", "arguments", "conversation", "turn_index", "position"),
        *("ordinal", "response_id", "call_id", "caller_key"),
    )
    return {"claim": name, **request.model_dump(mode="json", include=set(members))}


def settle_of(outcome: Outcome, **said: Any) -> Settle:
    """One attempt's report as the ledger reads it."""
    result = said.pop("result", None)
    match outcome:
        case Outcome.COMPLETED:
            return Complete(result=result, result_stored=result is not None, **said)
        case Outcome.NOT_SENT:
            return Fail(proof=Outcome.NOT_SENT, **said)
        case _:
            return Unknown(**said)


def ordinals_of(events: list[Any]) -> dict[str, int]:
    """For each claim the number of earlier calls of the same tool with equal arguments in its turn.

    The files number a call among all calls of its turn; whoever reports a call again under another
    number is told apart by nothing, so the numbers stand as they are.
    """
    places: dict[tuple[Any, ...], set[int]] = {}
    keyed: list[tuple[str, tuple[Any, ...], int]] = []
    for event in events:
        if event.get("type") != "claim" or not isinstance(event.get("ordinal", 0), int):
            continue
        turn = (event.get("tenant"), event.get("conversation_id"), event.get("turn_index"))
        arguments = canonical(to_text(event.get("args")))
        key = (*map(to_text, turn), to_text(event.get("tool")), arguments)
        places.setdefault(key, set()).add(event.get("ordinal", 0))
        keyed.append((str(event.get("event_id")), key, event.get("ordinal", 0)))
    return {name: sorted(places[key]).index(place) for name, key, place in keyed}
