"""What the clock alone does to a claim: a lease ends, a decision takes effect, a permission lapses.

Every function that touches a claim lets the clock speak first, so that no outcome depends on
whether a sweep happened to run. The database does the same in `ledger_advance_v1`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from effects.core.fold import Folded, LoggedEvent, fold
from effects.core.vocabulary import ClaimState, EventKind, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A decision in its minute."""

    verdict: Verdict
    effective_at: datetime
    object: str | None = None
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimClock:
    """A claim as far as time concerns it. `decided_at`: when its last decision took effect."""

    events: tuple[LoggedEvent, ...]
    lease_until: datetime
    window_until: datetime | None
    margin: timedelta
    release_lapse: timedelta
    pending: Pending | None = None
    decided_at: datetime | None = None
    grant_until: datetime | None = None
    completed_at: datetime | None = None

    @property
    def newest(self) -> LoggedEvent:
        granted = [e for e in self.events if e.kind is EventKind.GRANTED]
        return max(granted, key=lambda e: e.fence)


def permission_ends(claim: ClaimClock, folded: Folded) -> datetime | None:
    """Until when a release or a conditional absence lets the same claim be granted again."""
    closes = claim.window_until - claim.margin if claim.window_until else None
    if folded.state is ClaimState.RELEASED:
        assert claim.decided_at is not None, "a release has a date"
        lapses = claim.decided_at + claim.release_lapse
        return lapses if folded.fresh_key or closes is None else min(lapses, closes)
    if folded.state is ClaimState.NOT_EXECUTED and folded.conditional:
        return closes
    return None


def advance(claim: ClaimClock, now: datetime) -> tuple[ClaimClock, Folded]:
    """The claim as the clock leaves it at `now`, and what it then amounts to."""
    folded = fold(claim.events)
    while (step := _next_step(claim, folded, now)) is not None:
        claim, folded = _apply(claim, folded, step)
    return claim, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    event: LoggedEvent
    at: datetime


def _next_step(claim: ClaimClock, folded: Folded, now: datetime) -> _Step | None:
    newest = claim.newest
    seq = max(e.seq for e in claim.events) + 1

    def event(kind: EventKind, word: str | None = None) -> LoggedEvent:
        return LoggedEvent(
            seq=seq, kind=kind, word=word, fence=newest.fence, generation=newest.generation
        )

    if folded.state is ClaimState.IN_FLIGHT and now >= claim.lease_until:
        return _Step(event=event(EventKind.LAPSED), at=claim.lease_until)
    if claim.pending and claim.pending.effective_at <= now:
        decided = replace(
            event(EventKind.DECIDED, claim.pending.verdict),
            object=claim.pending.object,
            objects=claim.pending.objects,
        )
        return _Step(event=decided, at=claim.pending.effective_at)
    if claim.grant_until and now >= claim.grant_until:
        released = folded.state is ClaimState.RELEASED
        kind = EventKind.RELEASE_LAPSED if released else EventKind.ABSENCE_LAPSED
        return _Step(event=event(kind), at=claim.grant_until)
    return None


def _apply(claim: ClaimClock, before: Folded, step: _Step) -> tuple[ClaimClock, Folded]:
    decided = step.event.kind is EventKind.DECIDED
    claim = replace(
        claim,
        events=(*claim.events, step.event),
        pending=None if decided else claim.pending,
        decided_at=step.at if decided else claim.decided_at,
    )
    folded = fold(claim.events)
    completed = folded.state is ClaimState.COMPLETED
    newly = completed and before.state is not ClaimState.COMPLETED
    completed_at = step.at if newly else claim.completed_at if completed else None
    return (
        replace(claim, grant_until=permission_ends(claim, folded), completed_at=completed_at),
        folded,
    )
