"""The claim: the record that is made before a tool runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from effects.core.canonical import NO_RULES, ArgumentRules, Refused
from effects.core.claim_rows import (
    ORIGIN_FACTS,
    TOOLS_REMEMBERED_MAX,
    answer_all,
    call_facts,
    read_answer,
    read_rules,
)
from effects.core.identity import Identities, forwarded_key, identities
from effects.core.messages import ClaimAnswer, ClaimRequest, OfflineTerms
from effects.core.problems import TokenRefused
from effects.core.redaction import Redacted
from effects.core.vocabulary import AnswerCode, EffectClass
from effects.models import Tool
from ledger import auth, redacting, restore_fence
from ledger.functions import call
from ledger.models_sealed import SealedText

CLAIM: LiteralString = """
SELECT * FROM ledger_claim_v1(
  %s, %s, %s, %s::effects_effect_class, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
  %s, %s, %s, %s, %s, %s)
"""
CLAIM_IF_OPEN: LiteralString = """
SELECT a.* FROM ledger_apitoken t CROSS JOIN LATERAL ledger_claim_v1(
  t.workspace_id, %s, %s, %s::effects_effect_class, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
  %s, %s, %s, %s, %s, %s, %s, %s) a
WHERE t.hash = %s AND t.revoked_at IS NULL
"""
"""The same if the token is open: a claim depends on its row, so without one there is none."""
CLAIM_BATCH: LiteralString = "SELECT * FROM ledger_claim_batch_v1(%s, %s)"
BATCH_NAMES: Final = (
    *("tool", "tool_version", "class", "key", "scope", "turn", "local", "call", "caller", "repeat"),
    *("business", "arguments_digest", "arguments", "conversation", "turn_index", "position"),
    *("ordinal", "response_id", "call_id", "weak", "nonce", "repeat_of", "data"),
)
"""The claim function's parameters after the workspace, as a batch names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolRules:
    """What must be known of a tool before its arguments can be compared."""

    tool_id: int
    version: int
    rules: ArgumentRules
    offline: OfflineTerms | None


def claim(workspace_id: int, request: ClaimRequest, *, token: bytes | None = None) -> ClaimAnswer:
    """Asks for the right to run one tool call; the answer says whether it may be sent.

    A tool that nobody registered is entered as `unkeyed_write`. An answer whose `effect_class` is
    `read` carries no code: a read needs no claim. Raises `canonical.Refused` for arguments or
    identities that cannot be compared; nothing is recorded then. Raises `LedgerBehind` where the
    database was set back to an earlier time. `token` is the hash of one of the workspace's tokens
    about which nobody has asked yet; raises `TokenRefused` where it is not open.
    """
    restore_fence.guard()
    kept = redacting.arguments(workspace_id, request.tool, request.arguments)
    while True:
        tool, ids = _identified(workspace_id, request, token)
        values = _parameters(workspace_id, request, tool, ids, kept.text)
        answer = (
            redacting.in_one(partial(_ask_and_seal, workspace_id, request, values, token, kept))
            if kept.found
            else _ask(request, values, token)
        )
        if answer is not None:
            return _with_terms(answer, tool)
        forget_tools()


def _ask(request: ClaimRequest, values: tuple[Any, ...], token: bytes | None) -> ClaimAnswer | None:
    rows = call(CLAIM, values) if token is None else call(CLAIM_IF_OPEN, (*values[1:], token))
    if not rows:
        raise TokenRefused
    (told,) = rows
    return read_answer(told, request)


def _ask_and_seal(
    workspace_id: int,
    request: ClaimRequest,
    values: tuple[Any, ...],
    token: bytes | None,
    kept: Redacted,
) -> ClaimAnswer | None:
    answer = _ask(request, values, token)
    if answer is not None:
        _seal(workspace_id, answer, kept)
    return answer


def _seal(workspace_id: int, answer: ClaimAnswer, kept: Redacted) -> None:
    """Keeps what was hidden of a claim that was made just now; of any other its maker has it."""
    if answer.code is AnswerCode.GRANTED and answer.fence == 1:
        name = SealedText.Name.ARGUMENTS
        redacting.seal(workspace_id, name, kept, claim_id=answer.claim_id)


def claim_batch(workspace_id: int, requests: Sequence[ClaimRequest]) -> list[ClaimAnswer | Refused]:
    """Asks for several calls in one statement and one commit; answers in the order asked.

    Each is answered as if asked alone after those before it. One whose arguments or identities
    cannot be compared is answered with its `canonical.Refused`, and nothing of it is recorded.
    """
    restore_fence.guard()
    kept = [redacting.arguments(workspace_id, one.tool, one.arguments) for one in requests]
    texts = {id(request): one.text for request, one in zip(requests, kept, strict=True)}
    hidden = any(one.found for one in kept)

    def answered() -> list[ClaimAnswer | Refused]:
        return answer_all(
            requests,
            prepare=lambda request: _asked(workspace_id, request, texts[id(request)]),
            ask=lambda asked: call(CLAIM_BATCH, (workspace_id, Jsonb(asked))),
            forget_rules=forget_tools,
        )

    def answered_and_sealed() -> list[ClaimAnswer | Refused]:
        answers = answered()
        for answer, one in zip(answers, kept, strict=True):
            if isinstance(answer, ClaimAnswer) and one.found:
                _seal(workspace_id, answer, one)
        return answers

    answers = redacting.in_one(answered_and_sealed) if hidden else answered()
    return [
        _with_terms(answer, _remembered_rules(workspace_id, request.tool))
        if isinstance(answer, ClaimAnswer)
        else answer
        for request, answer in zip(requests, answers, strict=True)
    ]


def _with_terms(answer: ClaimAnswer, tool: _ToolRules) -> ClaimAnswer:
    """With what the agent needs to send this tool's calls while it cannot ask, if it may."""
    return answer if tool.offline is None else answer.model_copy(update={"offline": tool.offline})


def _asked(workspace_id: int, request: ClaimRequest, arguments: str) -> dict[str, Any]:
    """One claim as a member of a batch: the claim function's parameters by name."""
    tool, ids = _identified(workspace_id, request)
    values = _parameters(workspace_id, request, tool, ids, arguments)[1:]
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


def _identified(
    workspace_id: int, request: ClaimRequest, token: bytes | None = None
) -> tuple[_ToolRules, Identities]:
    """The tool, entered if nobody registered it, and who the call is by the tool's rules."""
    try:
        tool = _remembered_rules(workspace_id, request.tool)
    except Tool.DoesNotExist:
        # Nothing is recorded of a claim that is refused, its tool neither.
        identities(call_facts(workspace_id, request, NO_RULES))
        if token is not None and not auth.is_open(token):
            raise TokenRefused from None
        Tool.objects.get_or_create(
            workspace_id=workspace_id,
            name=request.tool,
            defaults={"effect_class": EffectClass.UNKEYED_WRITE, "registered": False},
        )
        tool = _remembered_rules(workspace_id, request.tool)
    return tool, identities(call_facts(workspace_id, request, tool.rules))


@lru_cache(maxsize=TOOLS_REMEMBERED_MAX)
def _remembered_rules(workspace_id: int, name: str) -> _ToolRules:
    """Remembered per process; the claim function refuses a version that is no longer the tool's.
    Raises `Tool.DoesNotExist`, which is not remembered."""
    tool = Tool.objects.get(workspace_id=workspace_id, name=name)
    return _ToolRules(
        tool_id=tool.pk, version=tool.version, rules=rules_of(tool), offline=_offline_terms(tool)
    )


def _offline_terms(tool: Tool) -> OfflineTerms | None:
    if not tool.sends_offline:
        return None
    assert tool.window_seconds is not None, "the constraint tool_offline_has_window"
    return OfflineTerms(
        workspace=tool.workspace_id,
        window_seconds=tool.window_seconds,
        margin_seconds=tool.margin_seconds,
        lease_seconds=tool.lease_seconds,
        argument_rules=tool.argument_rules,
    )


def rules_of(tool: Tool) -> ArgumentRules:
    """The tool's argument rules."""
    return read_rules(tool.argument_rules)


def _parameters(
    workspace_id: int, request: ClaimRequest, tool: _ToolRules, ids: Identities, arguments: str
) -> tuple[Any, ...]:
    """`ids` are made of the exact arguments; `arguments` are those that may be stored."""
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
        arguments,
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
    members = (*ORIGIN_FACTS, "response_id", "call_id")
    said = {name: getattr(request, name) for name in members}
    said = {name: value for name, value in said.items() if value is not None}
    return Jsonb(said) if said else None


def forget_tools() -> None:
    """Forgets what this process remembers of tools; for those who remove a workspace whole."""
    _remembered_rules.cache_clear()
