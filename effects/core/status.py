"""What a claim's agent may be told of it, made from what the record says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, DecisionShown
from effects.core.vocabulary import ClaimState, EffectClass, Flag, KeyWindow, Reason, Verdict

__all__ = ["Shown", "is_news", "key_window", "read_shown", "status_answer"]

UNSETTLED: Final = frozenset({ClaimState.IN_FLIGHT, ClaimState.UNKNOWN})
"""States in which an agent can only wait. A released claim is not among them: it waits for the
agent, who may claim it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A claim at the instant `now` of the ledger's clock, `state` and `reason` as true then.

    `result` is the stored text or None where it was emptied; `result_stored` whether there ever was
    one to store. `decision` is the one that is held, else the one that took effect last.
    """

    claim_id: UUID
    tool: str
    effect_class: EffectClass
    state: ClaimState
    reason: Reason | None
    fence: int
    generation: int
    lease_until: datetime
    window_until: datetime | None
    margin: timedelta
    flags: tuple[Flag, ...]
    provider_object: str | None
    result: str | None
    result_stored: bool | None
    decision: DecisionShown | None
    now: datetime
    link: str | None


def status_answer(shown: Shown) -> ClaimAnswer:
    """The claim as its agent may see it.

    The answer carries no code, no key and no marker: a status question never permits a send.
    """
    in_flight = shown.state is ClaimState.IN_FLIGHT
    result = shown.result if shown.state is ClaimState.COMPLETED else None
    said = ClaimAnswer(
        claim_id=shown.claim_id,
        state=shown.state,
        effect_class=shown.effect_class,
        tool=shown.tool,
        reason=_reason(shown),
        fence=shown.fence,
        generation=shown.generation,
        lease_until=shown.lease_until if in_flight else None,
        safe_retry_until=(until := safe_retry_until(shown.window_until, shown.margin)),
        key_window=key_window(shown.effect_class, until),
        retry_after_seconds=_retry_after_seconds(shown),
        flags=shown.flags,
        provider_object=shown.provider_object,
        result=result,
        # A result that was emptied is not stored any more, and must not be read as "it was null".
        result_stored=shown.result_stored and result is not None,
        decision=shown.decision,
        decision_pending=shown.decision is not None and shown.decision.pending,
        link=shown.link,
    )
    return said.model_copy(update={"for_model": for_model(said)})


def read_shown(row: Sequence[Any]) -> Shown:
    """One row of `ledger_shown`, whoever asked for it."""
    claim_id, tool, effect_class, state, reason, fence, generation, lease_until = row[:8]
    window_until, margin, flags, provider_object, result, result_stored = row[8:14]
    decision_id, verdict, decision_reason, decided_at, effective_at, held, now, desk_url = row[14:]
    decision = None
    if decision_id is not None:
        decision = DecisionShown(
            decision_id=decision_id,
            verdict=Verdict(verdict),
            reason=decision_reason,
            decided_at=decided_at,
            effective_at=effective_at,
            pending=held and effective_at > now,
        )
    return Shown(
        claim_id=claim_id,
        tool=tool,
        effect_class=EffectClass(effect_class),
        state=ClaimState(state),
        reason=Reason(reason) if reason else None,
        fence=fence,
        generation=generation,
        lease_until=lease_until,
        window_until=window_until,
        margin=margin,
        flags=tuple(Flag(flag) for flag in flags),
        provider_object=provider_object,
        result=result,
        result_stored=result_stored,
        decision=decision,
        now=now,
        link=f"{desk_url}/calls/{claim_id}",
    )


def safe_retry_until(window_until: datetime | None, margin: timedelta) -> datetime | None:
    """Until when a retry under the same key is safe: the window less the tool's margin.

    None: the provider publishes no window, or the tool has no key.
    """
    return None if window_until is None else window_until - margin


def key_window(effect_class: EffectClass, safe_until: datetime | None) -> KeyWindow:
    """What there is to rely on for a repeat under the claim's key."""
    if safe_until is not None:
        return KeyWindow.UNTIL
    return KeyWindow.UNKNOWN if effect_class is EffectClass.KEYED_WRITE else KeyWindow.NO_KEY


def is_news(told: ClaimAnswer, first: ClaimAnswer) -> bool:
    """Whether somebody who waits since `first` wants to hear `told`: the claim is settled or
    released, or another decision took effect."""
    if told.state not in UNSETTLED:
        return True
    in_force = None if told.decision is None or told.decision.pending else told.decision
    return in_force is not None and in_force != first.decision


def _reason(shown: Shown) -> Reason | None:
    """Why it is where it is. A window that closed over an open question changes what is safe, and
    is neither an outcome nor anybody's answer."""
    until = safe_retry_until(shown.window_until, shown.margin)
    waits = shown.state is ClaimState.UNKNOWN and not (shown.decision and shown.decision.pending)
    if waits and until is not None and until <= shown.now:
        return Reason.EXPIRED_UNANSWERED
    return shown.reason


def _retry_after_seconds(shown: Shown) -> int | None:
    """When asking again may bring something new, in whole seconds and at least one."""
    if shown.decision is not None and shown.decision.pending:
        until = shown.decision.effective_at
    elif shown.state is ClaimState.IN_FLIGHT:
        until = shown.lease_until
    else:
        return None
    return max(1, math.ceil((until - shown.now).total_seconds()))
