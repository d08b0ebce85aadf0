"""One call, read for its page: the situation that decides, and everything that people look at.

Reading is bounded whatever the call's history (reconcile/calls/extract.py); the page says what was
left out and where the rest is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects import registry
from effects.core.fold import fold
from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer, DecisionShown
from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    Outcome,
    SightingWord,
    Verdict,
)
from effects.money import Money
from ledger import queries as record
from ledger.others import OtherRequest, other_requests
from reconcile import cards
from reconcile.calls.beside import Beside, look_beside
from reconcile.calls.extract import Extract, extract
from reconcile.situation import AttemptSeen, Evidence, Sibling, Situation, Strength

if TYPE_CHECKING:
    from effects.models import Tool
    from ledger.models import Attempt, Claim, Decision, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A claim at one instant with what belongs to it; see `Extract` for how much of it is read."""

    claim: Claim
    now: datetime
    situation: Situation
    extract: Extract
    beside: Beside
    others: tuple[OtherRequest, ...]
    told: ClaimAnswer
    summary: str
    money: Money | None
    customer: str

    @property
    def tool(self) -> Tool:
        return self.claim.tool

    @property
    def events(self) -> tuple[Event, ...]:
        """The newest events, in their order."""
        return self.extract.events

    @property
    def events_left_out(self) -> int:
        """How many older events were not read. Numbers of events have no gaps."""
        return self.claim.version - len(self.events)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return self.extract.attempts

    @property
    def sightings(self) -> tuple[Event, ...]:
        """What providers answered, newest first."""
        return self.extract.sightings

    @property
    def notes(self) -> tuple[Event, ...]:
        """The newest notes, oldest first."""
        return self.extract.notes

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The newest decisions, oldest first."""
        return self.extract.decisions

    @property
    def fates(self) -> dict[int, record.Fate]:
        return self.extract.fates

    @property
    def held(self) -> Decision | None:
        """The decision that is in its minute, if one is."""
        if not self.situation.decision_pending:
            return None
        held_id = self.claim.pending_decision_id
        return next((held for held in self.decisions if held.pk == held_id), None)

    @property
    def last_decision(self) -> Decision | None:
        """The newest verdict, in force or not; a withdrawal is none."""
        verdicts = [made for made in self.decisions if made.withdraws is None]
        return verdicts[-1] if verdicts else None

    @property
    def cancelled(self) -> Decision | None:
        """The newest verdict, where a new fact cancelled it in its minute: its author is told."""
        last = self.last_decision
        if last is None or self.fates.get(last.pk) is not record.Fate.CANCELLED:
            return None
        return last


def call(workspace_id: int, claim_id: UUID) -> Call:
    """The call as it is now. Raises `ClaimNotFound` for an unknown or a foreign id."""
    # The clock first: what is written after it can only make the picture newer, and a stale
    # picture is refused by its version.
    now = record.clock()
    claim = record.claim(workspace_id, claim_id, with_connection=True)
    beside = look_beside(claim, now)
    read = extract(claim, decided=beside.decisions)
    card = cards.card_now(claim)
    others = tuple(other_requests(claim)) if beside.others else ()
    situation = _situation(claim, read, beside, now)
    return Call(
        claim=claim,
        now=now,
        situation=replace(
            situation,
            money=card.money,
            amount_unreadable=bool(claim.tool.amount_field) and card.money is None,
            held_open=sum(other.may_be_allowed for other in others),
        ),
        extract=read,
        beside=beside,
        others=others,
        told=record.status(claim, now=now),
        summary=card.summary,
        money=card.money,
        customer=card.customer,
    )


def for_held_request(call: Call, held_id: int | None) -> Situation:
    """The situation as it is for one request that the call holds back: its own amount counts.

    A request that is answered, or is another call's, is held back no more.
    """
    held = next((one for one in call.others if one.held_id == held_id and held_id), None)
    if held is None or not held.may_be_allowed:
        return replace(call.situation, held_open=0)
    money = registry.amount(call.tool, held.arguments)
    unreadable = bool(call.tool.amount_field) and money is None
    return replace(call.situation, held_open=1, money=money, amount_unreadable=unreadable)


def screen_hash(situation: Situation) -> bytes:
    """A digest of what a decision's author had before them: the state and every answer with its
    weight. It can be worked out again from the record up to the version that it names."""
    shown = {
        "claim": str(situation.claim_id),
        "version": situation.version,
        "state": situation.state,
        "evidence": [
            [item.number, item.word, item.strength, item.counts, list(item.objects), item.rejected]
            for item in situation.evidence
        ],
    }
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


STATE_AFTER: Final = {
    Verdict.HAPPENED: ClaimState.COMPLETED,
    Verdict.NOT_HAPPENED: ClaimState.NOT_EXECUTED,
    Verdict.RELEASE_SAME: ClaimState.RELEASED,
    Verdict.RELEASE_NEW: ClaimState.RELEASED,
    Verdict.LOST: ClaimState.UNKNOWN,
    Verdict.CLOSE: ClaimState.CLOSED,
    Verdict.SETTLE: ClaimState.COMPLETED,
    Verdict.REOPEN: ClaimState.UNKNOWN,
}
"""What a claim becomes by a verdict if no new fact arrives in between."""


def will_be_told(call: Call, verdict: Verdict, provider_object: str | None) -> dict[str, Any]:
    """The object that the agent's model gets once the verdict is in force."""
    decided = DecisionShown(
        decision_id=0,
        verdict=verdict,
        reason="",
        decided_at=call.now,
        effective_at=call.now,
        pending=False,
    )
    answer = call.told.model_copy(
        update={
            "state": STATE_AFTER[verdict],
            "reason": None,
            "decision_pending": False,
            "retry_after_seconds": None,
            "provider_object": provider_object or call.told.provider_object
            if STATE_AFTER[verdict] is ClaimState.COMPLETED
            else None,
            "decision": decided,
        }
    )
    return for_model(answer)


# The situation


def _situation(claim: Claim, read: Extract, beside: Beside, now: datetime) -> Situation:
    state, reason = record.shown_state(claim, now=now)
    tool = claim.tool
    pending = claim.pending_at is not None and claim.pending_at > now
    return Situation(
        now=now,
        claim_id=claim.pk,
        state=state,
        reason=reason,
        effect_class=EffectClass(claim.effect_class),
        version=claim.version,
        fence=claim.fence,
        generation=claim.generation,
        budget=claim.budget,
        fresh_key=claim.fresh_key,
        open_truth=claim.open_truth,
        decision_pending=pending,
        attempts=tuple(_attempt(attempt, read.decided_through) for attempt in read.attempts),
        lease_until=claim.lease_until,
        lease_seconds=tool.lease_seconds,
        window_until=claim.window_until,
        margin_seconds=tool.margin_seconds,
        attempt_seconds_max=tool.attempt_seconds_max,
        can_look_up=bool(tool.lookup_kind) and tool.connection_id is not None,
        provider=tool.connection.name if tool.connection else "the provider",
        object=claim.object,
        evidence=tuple(as_evidence(event, reopened=read.reopened) for event in read.sightings),
        siblings=_siblings(beside),
        effects=_effects(claim, state),
    )


def _effects(claim: Claim, state: ClaimState) -> tuple[str, ...]:
    """Every effect that the record knows, where there may be more than one."""
    if state is not ClaimState.CONFLICTED:
        return ()
    return tuple(sorted(fold(record.event_log(claim)).effects))


def _attempt(attempt: Attempt, decided_through: int) -> AttemptSeen:
    data = attempt.data or {}
    status = data.get("http_status")
    return AttemptSeen(
        fence=attempt.fence,
        granted_at=attempt.granted_at,
        outcome=Outcome(attempt.outcome) if attempt.outcome else None,
        ended_at=attempt.ended_at,
        http_status=status if isinstance(status, int) else None,
        decided=decided_through >= attempt.fence,
        watched="span" in data,
    )


def as_evidence(event: Event, *, reopened: int = 0) -> Evidence:
    data = event.data or {}
    strength = data.get("strength")
    return Evidence(
        number=event.seq,
        word=SightingWord(str(event.word)),
        fence=event.fence,
        at=event.at,
        strength=Strength(strength) if strength in list(Strength) else Strength.SAYS_NOTHING,
        counts=bool(event.counts),
        conditional=bool(event.conditional),
        objects=tuple(event.objects_seen or ()),
        route=str(data.get("route") or ""),
        why=str(data.get("why") or ""),
        rejected=event.seq < reopened,
        rule=str(data.get("rule") or ""),
        rests_on=rests_on(event),
    )


def rests_on(event: Event) -> tuple[int, ...]:
    """The numbers of the answers that a judgement used, its own among them."""
    said = (event.data or {}).get("evidence")
    numbers = said if isinstance(said, list) else []
    return tuple(number or event.seq for number in numbers if isinstance(number, int))


def _siblings(beside: Beside) -> tuple[Sibling, ...]:
    """The claim that stands in the way of running this one again."""
    if beside.sibling is None or beside.sibling_state is None:
        return ()
    return (Sibling(claim_id=beside.sibling, state=ClaimState(beside.sibling_state)),)
