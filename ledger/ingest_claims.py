"""Claims and attempts of ledgers kept elsewhere, applied.

Identities are computed exactly as for a claim that an agent makes here, so a mirrored operation and
a claimed one find each other.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from effects.core import events as said
from effects.core.canonical import ArgumentRules, Refused
from effects.core.claim_rows import ORIGIN_FACTS
from effects.core.identity import CallFacts, Identities, forwarded_key, identities
from effects.core.storable import storable_result
from effects.core.vocabulary import EffectClass, Flag, ItemState, Outcome
from effects.models import Tool
from ledger import redacting
from ledger.claiming import rules_of
from ledger.functions import call
from ledger.ingest_parts import Applied, Context, Outcomes, Parked, parked_unless_known

NO_ARGUMENTS: Final = "{}"
STARTED_FACTS: Final = ("attempt", *ORIGIN_FACTS, "key")


# Claims


def claim_made(context: Context, made: said.ClaimMade, *, untold: str | None = None) -> Outcomes:
    """`untold` stands for arguments that nobody told and that are not known to be none."""
    tool, _ = Tool.objects.get_or_create(
        workspace_id=context.workspace_id,
        name=made.tool,
        defaults={"effect_class": EffectClass.UNKEYED_WRITE, "registered": False},
    )
    ref = context.ref("claim", made.claim)
    try:
        ids, arguments, flags = _as_it_was(context, made) or identified(
            context, made, rules_of(tool), untold
        )
    except Refused as refusal:
        return Applied(state=ItemState.FAILED, reason=str(refusal.code), says=str(refusal))
    ((claim_id, word),) = call(
        "SELECT claim_id, word FROM ledger_mirror_claim_v1(%s, %s, %s, %s::effects_effect_class,"
        " %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            context.workspace_id,
            ref,
            tool.pk,
            str(made.effect_class),
            forwarded_key(ids, 1).rpartition("-")[0],
            ids.scope,
            ids.turn,
            ids.local,
            ids.call,
            ids.caller,
            ids.repeat,
            ids.business,
            ids.arguments,
            arguments,
            made.conversation,
            made.turn_index,
            made.position,
            made.ordinal,
            made.response_id,
            made.call_id,
            [str(flag) for flag in flags],
            made.key,
            context.item.said_at,
            Jsonb(context.data(made, *ORIGIN_FACTS, "response_id", "call_id", "key")),
        ),
    )
    if claim_id is not None and context.exact is not None:
        redacting.belongs_to(context.item_id, claim_id)
    if word == "read":
        says = "The tool is a read, which needs no claim."
        return Applied(state=ItemState.RECORDED, reason="read", says=says, refs=(ref,))
    attached = "The operation is claimed already; this names the same claim."
    return Applied(
        claim_id=claim_id,
        reason=word,
        says=attached if word == "attached" else None,
        refs=(ref,),
    )


def _as_it_was(
    context: Context, made: said.ClaimMade
) -> tuple[Identities, str | None, list[Flag]] | None:
    """What the door found out from the exact values, where the kept ones are redacted."""
    kept = (context.exact or {}).get("ids")
    if kept is None or context.exact is None:
        return None
    values: dict[str, Any] = {
        name: bytes.fromhex(v) if isinstance(v, str) else v for name, v in kept.items()
    }
    ids = Identities(**values)
    return ids, made.arguments, [Flag(word) for word in context.exact["flags"]]


def identified(
    context: Context, made: said.ClaimMade, rules: ArgumentRules, untold: str | None
) -> tuple[Identities, str | None, list[Flag]]:
    """The identities of a claim made elsewhere, its arguments as they can be kept, and its flags.

    It has run, so it is recorded even where a request like it would be refused: without a turn it
    is known by its own name only, and arguments that cannot be compared are compared as bytes.
    Where `untold` stands for the arguments, nothing that rests on them is compared.
    """
    flags = [Flag.MIRRORED]
    caller_key: str | None = made.caller_key
    if caller_key is None and (made.conversation is None or made.turn_index is None):
        caller_key = f"elsewhere:{context.ref('claim', made.claim).hex()}"
    facts = CallFacts(
        workspace=context.workspace_id,
        tool=made.tool,
        arguments=made.arguments if made.arguments is not None else untold or NO_ARGUMENTS,
        conversation=made.conversation,
        turn_index=made.turn_index,
        position=made.position,
        ordinal=made.ordinal,
        response_id=made.response_id,
        call_id=made.call_id,
        caller_key=caller_key,
        rules=rules,
    )
    try:
        ids = identities(facts)
    except Refused:
        sent = (made.arguments or "").encode("utf-8", "surrogatepass")
        stand_in = f'{{"unreadable_arguments_sha256":"{hashlib.sha256(sent).hexdigest()}"}}'
        ids = identities(replace(facts, arguments=stand_in, rules=ArgumentRules()))
        flags.append(Flag.ARGUMENTS_UNREADABLE)
    if made.arguments is None and untold is not None:
        ids = replace(ids, call=None, repeat=None, business=None)
    if ids.weak_call_id:
        flags.append(Flag.WEAK_TOOL_CALL_ID)
    return ids, made.arguments, flags


def attempt_started(context: Context, started: said.AttemptStarted) -> Outcomes:
    claim_ref = context.ref("claim", started.claim)
    parked = parked_unless_known(context, f"claim {started.claim}", claim_ref)
    if parked:
        return parked
    ref = context.ref("attempt", started.claim, started.attempt)
    ((claim_id, word),) = call(
        "SELECT claim_id, word FROM ledger_mirror_attempt_v1(%s, %s, %s, %s, %s, %s, %s)",
        (
            context.workspace_id,
            claim_ref,
            ref,
            started.key,
            started.fence,
            context.item.said_at,
            Jsonb(context.data(started, *STARTED_FACTS)),
        ),
    )
    if word == "limit":
        says = "The claim has 1000 attempts already, the limit MIRRORED_ATTEMPTS_MAX."
        return Applied(
            state=ItemState.RECORDED, reason="limit_exceeded", says=says, claim_id=claim_id
        )
    return _of_claim(claim_id, reason=word, refs=(ref,))


def _of_claim(claim_id: UUID | None, **more: Any) -> Applied:
    if claim_id is None:
        says = "It is about a read, which needs no claim."
        return Applied(state=ItemState.RECORDED, **(more | {"reason": "read", "says": says}))
    return Applied(claim_id=claim_id, **more)


def _parked_attempt(
    context: Context, message: said.AttemptSent | said.AttemptEnded
) -> tuple[bytes, Parked | None]:
    ref = context.ref("attempt", message.claim, message.attempt)
    words = f"attempt {message.attempt} of claim {message.claim}"
    return ref, parked_unless_known(context, words, ref)


def attempt_sent(context: Context, sent: said.AttemptSent) -> Outcomes:
    ref, parked = _parked_attempt(context, sent)
    if parked:
        return parked
    ((claim_id,),) = call(
        "SELECT ledger_mirror_sent_v1(%s, %s, %s)",
        (context.workspace_id, ref, Jsonb(context.data(sent, "attempt"))),
    )
    return _of_claim(claim_id)


def attempt_ended(context: Context, ended: said.AttemptEnded) -> Outcomes:
    ref, parked = _parked_attempt(context, ended)
    if parked:
        return parked
    outcome, result, stored, says = _reported(ended)
    facts = (
        "attempt",
        "worker",
        "delivery_count",
        "retry_count",
        "http_status",
        "provider_code",
        "request_id",
        "error",
    )
    ((claim_id,),) = call(
        "SELECT claim_id FROM ledger_mirror_report_v1("
        "%s, %s, %s::ledger_event_word, %s, %s, %s, %s, %s)",
        (
            context.workspace_id,
            ref,
            str(outcome),
            ended.provider_object,
            ended.replayed,
            result,
            stored,
            Jsonb(context.data(ended, *facts)),
        ),
    )
    if claim_id is not None and context.exact is not None:
        redacting.belongs_to(context.item_id, claim_id)
    return _of_claim(claim_id, says=says)


def _reported(ended: said.AttemptEnded) -> tuple[Outcome, str | None, bool | None, str | None]:
    """Outcome, result, whether it is stored, and what is wrong with a result that is not."""
    match ended:
        case said.AttemptCompleted(result=result):
            stored = result is not None and storable_result(result)
            says = None
            if result is not None and not stored:
                says = "The result is no JSON, too long or too deep, so only its bytes are kept."
            return Outcome.COMPLETED, result if stored else None, stored, says
        case said.AttemptFailed(proof=proof):
            return Outcome(proof), None, None, None
        case _:
            return Outcome.UNKNOWN, None, None, None


def sighted(context: Context, seen: said.ProviderSighted) -> Outcomes:
    ref = context.ref("claim", seen.claim)
    parked = parked_unless_known(context, f"claim {seen.claim}", ref)
    if parked:
        return parked
    shown = context.data(seen, "route", "asked_at", "request_id")
    shown |= {
        "trigger": "elsewhere",
        "strength": "weak",
        "why": f"Told by {context.item.source}; the provider was not asked by this ledger.",
    }
    shown.setdefault("route", "asked elsewhere")
    ((claim_id,),) = call(
        "SELECT ledger_mirror_sighting_v1(%s, %s, %s::ledger_event_word, %s, %s)",
        (context.workspace_id, ref, str(seen.word), list(seen.objects) or None, Jsonb(shown)),
    )
    return _of_claim(claim_id)


def noted(context: Context, noted: said.ClaimNoted) -> Outcomes:
    ref = context.ref("claim", noted.claim)
    parked = parked_unless_known(context, f"claim {noted.claim}", ref)
    if parked:
        return parked
    ((claim_id,),) = call(
        "SELECT ledger_mirror_note_v1(%s, %s, %s)",
        (context.workspace_id, ref, Jsonb(context.data(noted, "text", "by"))),
    )
    return _of_claim(claim_id)
