"""As much of a claim's record as its page needs: the newest of everything, and how much there is.

The number of queries and of rows is bounded whatever the record's length. What a decision rests on
is always among what is read: the newest attempts, the newest answers, every reopening.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from effects.core.vocabulary import EventKind, Verdict
from ledger import excerpts
from ledger import queries as record

if TYPE_CHECKING:
    from ledger.models import Attempt, Claim, Decision, Event

EVENTS_READ_MAX: Final = 200
SIGHTINGS_READ_MAX: Final = 200
NOTES_READ_MAX: Final = 50
ATTEMPTS_READ_MAX: Final = 100
DECISIONS_READ_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """`events` are the newest ones in their order, `sightings` newest first, `notes` oldest first,
    `attempts` newest first, `decisions` oldest first with their `fates`.

    `reopened` is the number of the newest reopening, 0 for none; `decided_through` the newest
    attempt that a decision in force has ended; the counts are of the whole record.
    """

    events: tuple[Event, ...]
    sightings: tuple[Event, ...]
    notes: tuple[Event, ...]
    attempts: tuple[Attempt, ...]
    decisions: tuple[Decision, ...]
    fates: dict[int, record.Fate]
    reopened: int
    decided_through: int
    sighting_count: int
    note_count: int


def extract(claim: Claim, *, decided: bool = True) -> Extract:
    """What the page of the claim shows and decides by. `decided`: there are decisions about it."""
    decisions = excerpts.decisions(claim, limit=DECISIONS_READ_MAX) if decided else []
    if claim.version <= EVENTS_READ_MAX:
        return _of_short_record(claim, decisions)
    return _of_long_record(claim, decisions)


def _of_short_record(claim: Claim, decisions: list[Decision]) -> Extract:
    """Every event is read, so whatever is asked of them is answered from them."""
    events = [event for event in record.events(claim) if event.seq <= claim.version]
    sightings = [event for event in events if event.kind == EventKind.SIGHTING]
    notes = [event for event in events if event.kind == EventKind.NOTED]
    decided = [event for event in events if event.kind == EventKind.DECIDED]
    return Extract(
        events=tuple(events),
        sightings=tuple(sightings[::-1]),
        notes=tuple(notes[-NOTES_READ_MAX:]),
        attempts=_attempts(claim),
        decisions=tuple(decisions),
        fates=excerpts.fates(decisions, events),
        reopened=max((event.seq for event in decided if event.word == Verdict.REOPEN), default=0),
        decided_through=max((event.fence for event in decided), default=0),
        sighting_count=len(sightings),
        note_count=len(notes),
    )


def _of_long_record(claim: Claim, decisions: list[Decision]) -> Extract:
    about_decisions = excerpts.newest(claim, record.FATE_OF, limit=4 * DECISIONS_READ_MAX)
    sightings = excerpts.newest(claim, [EventKind.SIGHTING], limit=SIGHTINGS_READ_MAX)
    notes = excerpts.newest(claim, [EventKind.NOTED], limit=NOTES_READ_MAX)
    return Extract(
        events=tuple(excerpts.stretch(claim, before=claim.version + 1, limit=EVENTS_READ_MAX)),
        sightings=tuple(sightings),
        notes=tuple(notes[::-1]),
        attempts=_attempts(claim),
        decisions=tuple(decisions),
        fates=excerpts.fates(decisions, about_decisions),
        reopened=excerpts.reopened_at(claim),
        decided_through=excerpts.decided_through(claim),
        sighting_count=excerpts.how_many(claim, EventKind.SIGHTING),
        note_count=excerpts.how_many(claim, EventKind.NOTED),
    )


def _attempts(claim: Claim) -> tuple[Attempt, ...]:
    first = max(1, claim.fence - ATTEMPTS_READ_MAX + 1)
    return tuple(excerpts.attempts(claim, first=first, last=claim.fence)[::-1])
