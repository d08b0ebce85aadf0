"""What the record says. Read-only: nothing here locks a row, and nothing here changes one.

Every question names its workspace. Another workspace's claim is not found, exactly as if it did not
exist: an answer that told the two apart would tell a stranger which claims there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet, Subquery

from effects.core.clock import ClaimClock, Pending, advance
from effects.core.fold import LoggedEvent
from effects.core.messages import ClaimAnswer, DecisionShown
from effects.core.references import not_found, read_reference
from effects.core.status import Shown, status_answer
from effects.core.status import safe_retry_until as retry_is_safe_until
from effects.core.vocabulary import ClaimState, EffectClass, EventKind, Flag, Reason, Verdict
from ledger.models import Attempt, Claim, Decision, Event, Payload

EVENTS_PER_PAGE_MAX: Final = 1000
"""Most events, attempts or sightings of one claim in one answer; ask again from the last one."""


def clock() -> datetime:
    """The instant by which leases, windows and held decisions are judged: the database's.

    No process reads its own clock for that, because two processes that disagree about the time
    would disagree about who may send.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT ledger_clock()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now


def _claims(workspace_id: int) -> QuerySet[Claim]:
    return Claim.objects.filter(workspace_id=workspace_id).select_related("tool")


# One claim and what belongs to it


def claim(workspace_id: int, claim_id: UUID, *, with_connection: bool = False) -> Claim:
    """The claim with its tool, and the tool's connection if that is wanted too.

    Raises `ClaimNotFound` for an unknown or a foreign id.
    """
    claims = _claims(workspace_id)
    if with_connection:
        claims = claims.select_related("tool__connection")
    found = claims.filter(pk=claim_id).first()
    if found is None:
        raise not_found(str(claim_id))
    return found


def claim_by_key(workspace_id: int, reference: str) -> Claim:
    """The claim that an agent means by any name it may hold for one.

    That is its id, the key that was forwarded to the provider (with or without its generation),
    the marker put into the request, or the key that the caller brought. Ours are tried first: a
    caller who chooses a key in the shape of ours must not shadow another claim of the workspace.

    Raises `ClaimNotFound`.
    """
    meant = read_reference(reference)
    claims = _claims(workspace_id)
    found = None
    if meant.claim_id is not None:
        found = claims.filter(pk=meant.claim_id).first()
    elif meant.key is not None:
        found = claims.filter(key=meant.key).first()
    if found is None and meant.caller_key is not None:
        found = claims.filter(caller=meant.caller(workspace_id)).first()
    if found is None:
        raise not_found(reference)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """As much of a claim as tells whether it changed: its version, and whether the clock has."""

    version: int
    clock_has_work: bool


def moment(claim: Claim, *, now: datetime) -> Moment:
    return Moment(version=claim.version, clock_has_work=_clock_has_work(claim, now=now))


def moments(claim_ids: list[UUID]) -> dict[UUID, Moment]:
    """The moments of claims that somebody waits for, and found in their own workspace before.

    One statement by primary key, whatever the number of claims; it holds nothing afterwards.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MOMENTS, [claim_ids])
        return {
            claim_id: Moment(version=version, clock_has_work=bool(has_work))
            for claim_id, version, has_work in cursor.fetchall()
        }


_MOMENTS: Final = """
SELECT c.id, c.version,
       coalesce(c.state = 'in_flight' AND c.lease_until <= clock.now, false)
       OR coalesce(c.grant_until <= clock.now, false)
       OR coalesce(c.pending_at <= clock.now, false)
  FROM ledger_claim c, (SELECT ledger_clock() AS now) clock
 WHERE c.id = ANY(%s)
"""


def events(claim: Claim, *, after_seq: int = 0) -> list[Event]:
    """The claim's events in their order, at most `EVENTS_PER_PAGE_MAX` after number `after_seq`."""
    found = Event.objects.filter(claim_id=claim.pk, seq__gt=after_seq)
    return list(found.order_by("seq")[:EVENTS_PER_PAGE_MAX])


def attempts(claim: Claim, *, after_fence: int = 0) -> list[Attempt]:
    """The claim's attempts, oldest first, at most `EVENTS_PER_PAGE_MAX` after `after_fence`."""
    found = Attempt.objects.filter(claim_id=claim.pk, fence__gt=after_fence)
    return list(found.order_by("fence")[:EVENTS_PER_PAGE_MAX])


def sightings(claim: Claim) -> list[Event]:
    """What providers answered about the claim, newest first, at most `EVENTS_PER_PAGE_MAX`."""
    found = Event.objects.filter(claim_id=claim.pk, kind=EventKind.SIGHTING)
    return list(found.order_by("-seq")[:EVENTS_PER_PAGE_MAX])


def event_log(claim: Claim) -> tuple[LoggedEvent, ...]:
    """All events of the claim as the fold reads them, in their order."""
    return tuple(
        as_logged(event) for event in Event.objects.filter(claim_id=claim.pk).order_by("seq")
    )


def as_logged(event: Event) -> LoggedEvent:
    """One stored event as the fold reads it: unsaid counts as no."""
    return LoggedEvent(
        seq=event.seq,
        kind=EventKind(event.kind),
        word=event.word,
        fence=event.fence,
        generation=event.generation,
        object=event.object,
        objects=tuple(event.objects_seen or ()),
        replayed=bool(event.replayed),
        counts=bool(event.counts),
        conditional=bool(event.conditional),
    )


def payload(claim: Claim, seq: int, name: str) -> Payload | None:
    """A large body of the claim, or None where there never was one.

    `seq` is the number of the event that brought it (0: the claim itself). A body that retention
    or erasure emptied is still found: with digest, size and the reason, and without its bytes.
    """
    return Payload.objects.filter(
        workspace_id=claim.workspace_id, claim_id=claim.pk, seq=seq, name=name
    ).first()


def arguments_text(claim: Claim) -> str | None:
    """The arguments as they were received, or None where they were emptied."""
    return claim.arguments if claim.arguments is not None else _body(claim, "arguments")


def result_text(claim: Claim) -> str | None:
    """The stored result as JSON text, or None where there is none, or none any more."""
    if claim.result is None and claim.result_stored is not True:
        return None  # What a reopening withdrew is still kept, and is nobody's result any more.
    return claim.result if claim.result is not None else _body(claim, "result")


# Decisions


class Fate(StrEnum):
    """What became of a decision."""

    HELD = "held"
    IN_FORCE = "in_force"
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"


FATE_OF: Final = {
    EventKind.DECISION_HELD: Fate.HELD,
    EventKind.HOLD_EXTENDED: Fate.HELD,
    EventKind.DECIDED: Fate.IN_FORCE,
    EventKind.DECISION_CANCELLED: Fate.CANCELLED,
}


def decisions(claim: Claim) -> list[Decision]:
    """Every decision about the claim, oldest first, withdrawals included, with who decided."""
    found = Decision.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk)
    return list(found.select_related("decided_by", "approved_by").order_by("chain_number"))


def fates(claim: Claim) -> dict[int, Fate]:
    """What became of each decision of the claim, by its id: the newest event about it tells.

    `in_force` means that it took effect, also where a later decision has taken its place. A
    withdrawal has no fate of its own: it gives one to the decision that it takes back. Allowing a
    held request has no event, because it takes effect at once and moves no claim.
    """
    told = Event.objects.filter(claim_id=claim.pk, kind__in=FATE_OF, decision_id__isnull=False)
    rows = told.order_by("seq").values_list("decision_id", "kind")
    found = {decision_id: FATE_OF[EventKind(kind)] for decision_id, kind in rows if decision_id}
    for decision in Decision.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk):
        if decision.withdraws is not None:
            found[decision.withdraws] = Fate.WITHDRAWN
        elif decision.verdict == Verdict.ALLOW:
            found[decision.pk] = Fate.IN_FORCE
    return found


# The answer to "what became of it?"


def answer(workspace_id: int, claim_id: UUID) -> ClaimAnswer:
    """What the claim's agent may be told now. Raises `ClaimNotFound`."""
    return status(claim(workspace_id, claim_id), now=clock())


def answer_by_key(workspace_id: int, key: str) -> ClaimAnswer:
    """The same, for any name of the claim that `claim_by_key` knows. Raises `ClaimNotFound`."""
    return status(claim_by_key(workspace_id, key), now=clock())


def status(claim: Claim, *, now: datetime) -> ClaimAnswer:
    """The claim at `now`, as its agent may see it."""
    state, reason = shown_state(claim, now=now)
    return status_answer(
        Shown(
            claim_id=claim.pk,
            tool=claim.tool.name,
            effect_class=EffectClass(claim.effect_class),
            state=state,
            reason=reason,
            fence=claim.fence,
            generation=claim.generation,
            lease_until=claim.lease_until,
            window_until=claim.window_until,
            margin=timedelta(seconds=claim.tool.margin_seconds),
            flags=tuple(Flag(flag) for flag in claim.flags),
            provider_object=claim.object,
            result=result_text(claim) if state is ClaimState.COMPLETED else None,
            result_stored=claim.result_stored,
            decision=_decision_shown(claim, now=now),
            now=now,
            link=link(claim.pk),
        )
    )


def shown_state(
    claim: Claim,
    *,
    now: datetime,
    log: tuple[LoggedEvent, ...] | None = None,
    held: Decision | None = None,
) -> tuple[ClaimState, Reason | None]:
    """The state that is true at `now`, whether or not a sweep has come by since.

    A lease, a release or a conditional absence that ran out is over at once, and a held decision
    takes effect at its instant. This is the reader's view only: the record itself changes when a
    writer, or the sweep, next meets the row, and then it says the same.

    `log` are all the claim's events and `held` its pending decision, where they were read already:
    a page with many claims asks for none of them one by one.
    """
    state = ClaimState(claim.state)
    reason = Reason(claim.reason) if claim.reason else None
    if not _clock_has_work(claim, now=now):
        return state, reason
    _, folded = advance(_claim_clock(claim, log=log, held=held), now)
    if folded.state is state:
        return state, reason
    lapsed = {
        ClaimState.IN_FLIGHT: Reason.LEASE_OVER,
        ClaimState.RELEASED: Reason.RELEASE_LAPSED,
        ClaimState.NOT_EXECUTED: Reason.ABSENCE_LAPSED,
    }
    return folded.state, lapsed.get(state) if folded.state is ClaimState.UNKNOWN else None


def safe_retry_until(claim: Claim) -> datetime | None:
    """Until when a retry of the claim under the same key is safe, if that is known."""
    return retry_is_safe_until(claim.window_until, timedelta(seconds=claim.tool.margin_seconds))


def link(claim_id: UUID) -> str:
    """The call's page on the desk, for people."""
    return f"{settings.COUNTERFOIL_DESK_URL}/calls/{claim_id}"


# Inside


def _clock_has_work(claim: Claim, *, now: datetime) -> bool:
    leased = claim.state == ClaimState.IN_FLIGHT and claim.lease_until <= now
    return leased or any(
        at is not None and at <= now for at in (claim.grant_until, claim.pending_at)
    )


def _claim_clock(
    claim: Claim, *, log: tuple[LoggedEvent, ...] | None = None, held: Decision | None = None
) -> ClaimClock:
    """The claim as the clock's rules read it."""
    pending = None
    if claim.pending_decision_id is not None and claim.pending_at is not None:
        if held is None:
            decisions = Decision.objects.filter(workspace_id=claim.workspace_id)
            held = decisions.get(pk=claim.pending_decision_id)
        pending = Pending(
            verdict=Verdict(held.verdict),
            effective_at=claim.pending_at,
            object=held.object,
            objects=tuple(held.objects_named or ()),
        )
    return ClaimClock(
        events=event_log(claim) if log is None else log,
        lease_until=claim.lease_until,
        window_until=claim.window_until,
        margin=timedelta(seconds=claim.tool.margin_seconds),
        release_lapse=timedelta(minutes=claim.tool.release_lapse_minutes),
        pending=pending,
        decided_at=claim.decided_at,
        grant_until=claim.grant_until,
        completed_at=claim.completed_at,
    )


def _body(claim: Claim, name: str) -> str | None:
    # The first stored result stays the result; only after a reopening can there be another one.
    found = Payload.objects.filter(
        workspace_id=claim.workspace_id, claim_id=claim.pk, name=name, body__isnull=False
    )
    body = found.order_by("-seq").values_list("body", flat=True).first()
    return None if body is None else bytes(body).decode()


def _decision_shown(claim: Claim, *, now: datetime) -> DecisionShown | None:
    pending_id = claim.pending_decision_id
    if pending_id is None and claim.decided_at is None:
        return None  # The common case, and not worth a question.
    decided = Event.objects.filter(claim_id=claim.pk, kind=EventKind.DECIDED).order_by("-seq")
    last_id = decided.values("decision_id")[:1]
    found = Decision.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk)
    decision = found.filter(pk=Subquery(last_id) if pending_id is None else pending_id).first()
    if decision is None:
        return None
    held_until = claim.pending_at if pending_id is not None else None
    effective_at = held_until or decision.effective_at
    return DecisionShown(
        decision_id=decision.pk,
        verdict=Verdict(decision.verdict),
        reason=decision.reason,
        decided_at=decision.decided_at,
        effective_at=effective_at,
        pending=pending_id is not None and effective_at > now,
    )
