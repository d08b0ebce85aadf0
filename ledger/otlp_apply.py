"""The span of a tool's execution, applied: an attempt that was observed from outside.

It goes the way of every ledger kept elsewhere (`ledger.ingest_claims`), as a claim, its attempt and
the attempt's end in one transaction. Two spans are attempts of one call only where both carry the
same strong tool-call id in the same conversation; anything else that looks alike stays apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, override

from effects.core import events as said
from effects.core.identity import call_id_is_strong
from effects.core.identity import digest as identity
from effects.core.messages import Message
from effects.core.vocabulary import EffectClass, ItemState, Outcome
from ledger.functions import call
from ledger.ingest_claims import attempt_ended, attempt_started, claim_made
from ledger.ingest_json import digest
from ledger.ingest_parts import Applied, Context, Outcomes, reference
from ledger.otlp_facts import ToolSpan

SOURCE: Final = "otel"
"""The claims of all traces have their names in one place: a retry may run in a trace of its own."""

NO_CONVERSATION: Final = "The span names no conversation, so its trace stands for one."
TOLD_BY_OTHERS: Final = (
    "This call was claimed, or told of by its own ledger. A span cannot say which attempt it saw, "
    "so it adds none."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanContext(Context):
    """What is recorded because of a span says so. An attempt is one span, whatever its claim."""

    @override
    def ref(self, kind: str, *names: str) -> bytes:
        of = names if kind == "claim" else (self.item.source, self.item.event_id)
        return reference(self.workspace_id, SOURCE, kind, *of)

    @override
    def data(self, message: Message, *names: str) -> dict[str, Any]:
        # Not `super()`: a dataclass with slots is another class than the one that is being written.
        return {**Context.data(self, message, *names), "span": self.item.event_id}

    def at(self, moment: datetime | None) -> SpanContext:
        """The same for a moment of its own."""
        return replace(self, item=replace(self.item, said_at=moment))


def tool_span(context: Context, seen: ToolSpan) -> Outcomes:
    watched = SpanContext(
        workspace_id=context.workspace_id,
        item_id=context.item_id,
        item=context.item,
        exact=context.exact,
    )
    claim = claim_of(watched, seen)
    if context.exact is not None and "claim" in context.exact:
        claim = claim.model_copy(update={"claim": context.exact["claim"]})
    told = _told_by_others(watched, seen)
    if told is not None:
        return told
    # A span says nothing about when a claim was made, so the claim has no time but ours.
    made = claim_made(watched.at(None), claim, untold=untold_of(claim))
    if not isinstance(made, Applied) or made.claim_id is None:
        return made
    started = said.AttemptStarted(
        claim=claim.claim, attempt=watched.item.event_id, worker=seen.worker
    )
    began = attempt_started(watched.at(seen.started_at or watched.item.said_at), started)
    if not isinstance(began, Applied) or began.state is not ItemState.APPLIED:
        return began
    ended = attempt_ended(watched, _end(claim.claim, watched.item.event_id, seen))
    if isinstance(ended, Applied) and seen.conversation is None:
        says = " ".join(filter(None, (NO_CONVERSATION, ended.says)))
        return replace(ended, reason="no_conversation", says=says)
    return ended


def claim_of(context: Context, seen: ToolSpan) -> said.ClaimMade:
    conversation = seen.conversation or context.item.source
    name = f"{context.item.source}/{context.item.event_id}"
    if seen.call_id is not None and call_id_is_strong(seen.call_id, seen.tool):
        arguments = json.dumps(seen.arguments)
        name = digest("span.v1", conversation, seen.tool, seen.call_id, arguments).hex()
    return said.ClaimMade(
        claim=name,
        tool=seen.tool,
        # A span knows no class; the registered one is in force, and a tool that nobody registered
        # is the most dangerous kind.
        effect_class=EffectClass.READ,
        arguments=seen.arguments,
        conversation=conversation,
        call_id=seen.call_id,
    )


def untold_of(claim: said.ClaimMade) -> str:
    """What stands for arguments that nobody told: they are not `{}`, and no other call's either."""
    return json.dumps({"arguments_not_told": claim.claim})


def _told_by_others(context: SpanContext, seen: ToolSpan) -> Applied | None:
    """Where the call has a claim that no span has made. That one came first: a claim is made before
    the tool runs, and a span is sent after it."""
    if seen.conversation is None or not call_id_is_strong(seen.call_id, seen.tool):
        return None
    found = call(
        "SELECT c.id FROM ledger_claim c JOIN ledger_event e ON e.claim_id = c.id AND e.seq = 1"
        " WHERE c.call = %s AND e.data->'span' IS NULL",
        (identity("call", context.workspace_id, seen.conversation, seen.call_id),),
    )
    if not found:
        return None
    return Applied(
        state=ItemState.RECORDED, reason="told_by_others", says=TOLD_BY_OTHERS, claim_id=found[0][0]
    )


def _end(claim: str, attempt: str, seen: ToolSpan) -> said.AttemptEnded:
    match seen.outcome:
        case Outcome.COMPLETED:
            return said.AttemptCompleted(
                claim=claim, attempt=attempt, worker=seen.worker, result=seen.result
            )
        case Outcome.UNKNOWN:
            return said.AttemptUnknown(
                claim=claim, attempt=attempt, worker=seen.worker, error=seen.error
            )
        case proof:
            return said.AttemptFailed(
                claim=claim, attempt=attempt, worker=seen.worker, error=seen.error, proof=proof
            )
