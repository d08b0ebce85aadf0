"""What the ledger's claim function is told and answers, for whoever calls it.

The API calls it for the agents that speak HTTP; an agent that speaks to PostgreSQL calls it itself.
Both say the same and read the answer here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from effects.core.canonical import ArgumentRules, Refused
from effects.core.identity import CallFacts, marker
from effects.core.messages import CLAIMS_PER_BATCH_MAX, ClaimAnswer, ClaimRequest, Settle
from effects.core.problems import LimitExceeded
from effects.core.status import key_window
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass, Flag, Reason

__all__ = [
    "ORIGIN_FACTS",
    "PERMITS_A_SEND",
    "TOOLS_REMEMBERED_MAX",
    "answer_all",
    "call_facts",
    "check_batch",
    "read_answer",
    "read_rules",
    "reported_facts",
]

ORIGIN_FACTS: Final = (
    *("worker", "delivery_count", "retry_count"),
    *("agent", "checkpoint", "user_spoke"),
)
"""What a request for a claim says that is shown and never folded: see `messages.Origin`."""

TOOLS_REMEMBERED_MAX: Final = 4096
"""Tools whose argument rules one process remembers."""

PERMITS_A_SEND: Final = frozenset({AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN})

REPORTED_FACTS: Final = (
    "worker",
    "delivery_count",
    "retry_count",
    "response_id",
    "call_id",
    "http_status",
    "provider_code",
    "request_id",
    "error",
)
"""What a report says that is shown and never folded."""

Asked = TypeVar("Asked")


def read_rules(declared: dict[str, Any]) -> ArgumentRules:
    """A tool's argument rules as the registry keeps them; JSON lists become tuples."""
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in declared.items()
    }
    return ArgumentRules(**named)


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


def reported_facts(settle: Settle) -> dict[str, Any]:
    said = {name: getattr(settle, name) for name in REPORTED_FACTS}
    return {name: value for name, value in said.items() if value is not None}


def check_batch(size: int) -> None:
    """Raises `LimitExceeded` for more claims than one request may ask for."""
    if size > CLAIMS_PER_BATCH_MAX:
        raise LimitExceeded(
            f"The batch has {size} claims; the limit CLAIMS_PER_BATCH_MAX is "
            f"{CLAIMS_PER_BATCH_MAX}. Ask in several batches.",
            limit="CLAIMS_PER_BATCH_MAX",
            value=CLAIMS_PER_BATCH_MAX,
        )


def answer_all(
    requests: Sequence[ClaimRequest],
    *,
    prepare: Callable[[ClaimRequest], Asked],
    ask: Callable[[list[Asked]], Sequence[Sequence[Any]]],
    forget_rules: Callable[[], None],
) -> list[ClaimAnswer | Refused]:
    """Each request's answer, in their order, asked together by `ask`.

    `prepare` may raise `Refused`, which is then that request's answer. What a tool that was edited
    meanwhile concerns is prepared and asked again after `forget_rules`.
    """
    answers: dict[int, ClaimAnswer | Refused] = {}
    while len(answers) < len(requests):
        asked: dict[int, Asked] = {}
        for place, request in enumerate(requests):
            if place not in answers:
                try:
                    asked[place] = prepare(request)
                except Refused as refused:
                    answers[place] = refused
        rows = ask(list(asked.values())) if asked else []
        for place, row in zip(asked, rows, strict=True):
            answer = read_answer(row, requests[place])
            if answer is None:
                forget_rules()
            else:
                answers[place] = answer
    return [answers[place] for place in range(len(requests))]


def read_answer(row: Sequence[Any], request: ClaimRequest) -> ClaimAnswer | None:
    """The answer in one row of `ledger_answer`. None: the tool was edited since its rules were
    read, so nothing was decided; read them again."""
    code, claim_id, blocker, state, effect_class, reason, fence, generation, key = row[:9]
    send_within, lease_until, safe_retry_until, retry_after, decision_pending = row[9:14]
    flags, provider_object, result, result_stored, rules_changed = row[14:]
    if rules_changed:
        return None
    code = AnswerCode(code) if code else None
    sends = code in PERMITS_A_SEND
    return ClaimAnswer(
        code=code,
        claim_id=claim_id,
        blocker=blocker,
        state=ClaimState(state) if state else None,
        effect_class=EffectClass(effect_class),
        tool=request.tool,
        reason=Reason(reason) if reason else None,
        fence=fence or 0,
        generation=generation or 0,
        key=key if effect_class == EffectClass.KEYED_WRITE else None,
        marker=marker(claim_id, generation) if sends else None,
        send_within_seconds=_seconds(send_within) if sends else None,
        lease_until=lease_until,
        safe_retry_until=safe_retry_until,
        key_window=key_window(EffectClass(effect_class), safe_retry_until) if claim_id else None,
        retry_after_seconds=_whole_seconds(retry_after),
        decision_pending=decision_pending,
        flags=tuple(map(Flag, flags)),
        provider_object=provider_object,
        result=result,
        result_stored=result_stored,
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _whole_seconds(duration: timedelta | None) -> int | None:
    """Rounded up: an asker who comes back a moment early has asked for nothing."""
    return None if duration is None else max(1, -int(-duration.total_seconds() // 1))
