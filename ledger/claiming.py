"""The claim: the record that is made before a tool runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from effects.core.canonical import ArgumentRules, Refused
from effects.core.identity import CallFacts, Identities, forwarded_key, identities, marker
from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass, Flag, Reason
from effects.models import Tool
from ledger import restore_fence
from ledger.functions import call

TOOLS_REMEMBERED_MAX: Final = 4096
PERMITS_A_SEND: Final = frozenset({AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN})

CLAIM: LiteralString = """
SELECT * FROM ledger_claim_v1(
  %s, %s, %s, %s::effects_effect_class, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
  %s, %s, %s, %s, %s, %s)
"""
CLAIM_BATCH: LiteralString = "SELECT * FROM ledger_claim_batch_v1(%s, %s)"
BATCH_NAMES: Final = (
    *("tool", "tool_version", "class", "key", "scope", "turn", "local", "call", "caller", "repeat"),
    *("business", "arguments_digest", "arguments", "conversation", "turn_index", "position"),
    *("ordinal", "response_id", "call_id", "weak", "nonce", "repeat_of", "data"),
)
"""The claim function's parameters after the workspace, as a batch names them."""
COLUMNS: Final = (
    "code",
    "claim_id",
    "blocker",
    "state",
    "effect_class",
    "reason",
    "fence",
    "generation",
    "key",
    "send_within",
    "lease_until",
    "safe_retry_until",
    "retry_after",
    "decision_pending",
    "flags",
    "object",
    "result",
    "result_stored",
    "rules_changed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolRules:
    """What must be known of a tool before its arguments can be compared."""

    tool_id: int
    version: int
    rules: ArgumentRules


def claim(workspace_id: int, request: ClaimRequest) -> ClaimAnswer:
    """Asks for the right to run one tool call; the answer says whether it may be sent.

    A tool that nobody registered is entered as `unkeyed_write`. An answer whose `effect_class` is
    `read` carries no code: a read needs no claim. Raises `canonical.Refused` for arguments or
    identities that cannot be compared; nothing is recorded then. Raises `LedgerBehind` where the
    database was set back to an earlier time.
    """
    restore_fence.guard()
    while True:
        tool = _remembered_rules(workspace_id, request.tool)
        ids = identities(call_facts(workspace_id, request, tool.rules))
        (told,) = call(CLAIM, _parameters(workspace_id, request, tool, ids))
        row = dict(zip(COLUMNS, told, strict=True))
        if not row["rules_changed"]:
            return _answer(row, request)
        _remembered_rules.cache_clear()


def claim_batch(workspace_id: int, requests: Sequence[ClaimRequest]) -> list[ClaimAnswer | Refused]:
    """Asks for several calls in one statement and one commit; answers in the order asked.

    Each is answered as if asked alone after those before it. One whose arguments or identities
    cannot be compared is answered with its `canonical.Refused`, and nothing of it is recorded.
    """
    restore_fence.guard()
    answers: dict[int, ClaimAnswer | Refused] = {}
    while len(answers) < len(requests):
        asked: dict[int, dict[str, Any]] = {}
        for place, request in enumerate(requests):
            if place not in answers:
                try:
                    asked[place] = _asked(workspace_id, request)
                except Refused as refused:
                    answers[place] = refused
        told = call(CLAIM_BATCH, (workspace_id, Jsonb(list(asked.values())))) if asked else []
        for place, answer in zip(asked, told, strict=True):
            row = dict(zip(COLUMNS, answer, strict=True))
            if row["rules_changed"]:
                _remembered_rules.cache_clear()
            else:
                answers[place] = _answer(row, requests[place])
    return [answers[place] for place in range(len(requests))]


def _asked(workspace_id: int, request: ClaimRequest) -> dict[str, Any]:
    """One claim as a member of a batch: the claim function's parameters by name."""
    tool = _remembered_rules(workspace_id, request.tool)
    ids = identities(call_facts(workspace_id, request, tool.rules))
    values = _parameters(workspace_id, request, tool, ids)[1:]
    return {
        name: _in_json(value)
        for name, value in zip(BATCH_NAMES, values, strict=True)
        if value is not None
    }


def _in_json(value: Any) -> Any:
    """As PostgreSQL reads it from a JSON text: bytes in hex."""
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, Jsonb):
        return value.obj
    return str(value) if isinstance(value, UUID) else value


@lru_cache(maxsize=TOOLS_REMEMBERED_MAX)
def _remembered_rules(workspace_id: int, name: str) -> _ToolRules:
    """Remembered per process; the claim function refuses a version that is no longer the tool's."""
    tool, _ = Tool.objects.get_or_create(
        workspace_id=workspace_id,
        name=name,
        defaults={"effect_class": EffectClass.UNKEYED_WRITE, "registered": False},
    )
    return _ToolRules(tool_id=tool.pk, version=tool.version, rules=rules_of(tool))


def rules_of(tool: Tool) -> ArgumentRules:
    """The tool's argument rules; JSON lists become tuples."""
    declared: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in tool.argument_rules.items()
    }
    return ArgumentRules(**declared)


def call_facts(workspace_id: int, request: ClaimRequest, rules: ArgumentRules) -> CallFacts:
    """What a request says about its call, as the identities are made of it."""
    return CallFacts(
        workspace=workspace_id,
        tool=request.tool,
        arguments=request.arguments,
        conversation=request.conversation,
        turn_index=request.turn_index,
        position=request.position,
        ordinal=request.ordinal,
        response_id=request.response_id,
        call_id=request.call_id,
        caller_key=request.caller_key,
        rules=rules,
    )


def _parameters(
    workspace_id: int, request: ClaimRequest, tool: _ToolRules, ids: Identities
) -> tuple[Any, ...]:
    key, _, _ = forwarded_key(ids, 1).rpartition("-")
    return (
        workspace_id,
        tool.tool_id,
        tool.version,
        str(request.effect_class),
        key,
        ids.scope,
        ids.turn,
        ids.local,
        ids.call,
        ids.caller,
        ids.repeat,
        ids.business,
        ids.arguments,
        request.arguments,
        request.conversation,
        request.turn_index,
        request.position,
        request.ordinal,
        request.response_id,
        request.call_id,
        ids.weak_call_id,
        bytes.fromhex(request.nonce) if request.nonce else None,
        request.repeat_of,
        _delivery(request),
    )


def _delivery(request: ClaimRequest) -> Jsonb | None:
    said = {
        "worker": request.worker,
        "delivery_count": request.delivery_count,
        "retry_count": request.retry_count,
        "response_id": request.response_id,
        "call_id": request.call_id,
    }
    said = {name: value for name, value in said.items() if value is not None}
    return Jsonb(said) if said else None


def _answer(row: dict[str, Any], request: ClaimRequest) -> ClaimAnswer:
    code = AnswerCode(row["code"]) if row["code"] else None
    sends = code in PERMITS_A_SEND
    return ClaimAnswer(
        code=code,
        claim_id=row["claim_id"],
        blocker=row["blocker"],
        state=ClaimState(row["state"]) if row["state"] else None,
        effect_class=EffectClass(row["effect_class"]),
        tool=request.tool,
        reason=Reason(row["reason"]) if row["reason"] else None,
        fence=row["fence"] or 0,
        generation=row["generation"] or 0,
        key=row["key"] if row["effect_class"] == EffectClass.KEYED_WRITE else None,
        marker=marker(row["claim_id"], row["generation"]) if sends else None,
        send_within_seconds=_seconds(row["send_within"]) if sends else None,
        lease_until=row["lease_until"],
        safe_retry_until=row["safe_retry_until"],
        retry_after_seconds=_whole_seconds(row["retry_after"]),
        decision_pending=row["decision_pending"],
        flags=tuple(Flag(flag) for flag in row["flags"]),
        provider_object=row["object"],
        result=row["result"],
        result_stored=row["result_stored"],
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _whole_seconds(duration: timedelta | None) -> int | None:
    """Rounded up: an asker who comes back a moment early has asked for nothing."""
    return None if duration is None else max(1, -int(-duration.total_seconds() // 1))


def forget_tools() -> None:
    """Forgets what this process remembers of tools; for those who remove a workspace whole."""
    _remembered_rules.cache_clear()
