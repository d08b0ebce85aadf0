"""A turn as a table: one line for each thing that happened, in the order of its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects.core.vocabulary import Terminal
from ledger.turn_words import words_of

if TYPE_CHECKING:
    from ledger.models import Call, Claim, Event, Stream
    from ledger.turn_parts.loading import TurnFacts

TERMINAL_WORDS: Final = {
    Terminal.SUCCESS: "the response finished",
    Terminal.INCOMPLETE: "the response was ended by a limit",
    Terminal.ERROR_EVENT: "the provider sent an error",
    Terminal.CANCELLED: "the reader stopped reading",
    Terminal.CUT: "the connection ended without a last event",
}
NO_END: Final = "nobody saw an end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """One thing that happened. `at` is the moment by whoever observed it, `recorded_at` ours where
    the two differ. `words` may hold texts of agents: they are shown, never trusted. `key` is the
    same wherever the line is spoken of."""

    at: datetime
    recorded_at: datetime | None = None
    lane: str  # stream | call | attempt | evidence | decision
    words: str
    of: str = ""
    claim_id: UUID | None = None
    key: str = ""


def lines_of(facts: TurnFacts) -> list[TurnLine]:
    """Every line of the turn, oldest first."""
    lines = [line for claim in facts.claims for line in _claim_lines(facts, claim)]
    lines += [line for stream in facts.streams for line in _stream_lines(stream)]
    lines += [_announced(call) for call in facts.announced]
    return sorted(lines, key=lambda line: (line.at, line.of))


def end_words(terminal: str | None) -> str:
    return TERMINAL_WORDS[Terminal(terminal)] if terminal else NO_END


def _stream_lines(stream: Stream) -> Iterable[TurnLine]:
    model = f" by {stream.model}" if stream.model else ""
    yield TurnLine(
        at=stream.opened_at or stream.received_at,
        lane="stream",
        words=f"response began{model}",
        of=stream.name,
        key=f"s{stream.pk}",
    )
    if stream.terminal:
        error = f": {stream.error}" if stream.error else ""
        yield TurnLine(
            at=stream.closed_at or stream.received_at,
            lane="stream",
            words=f"{end_words(stream.terminal)}{error}",
            of=stream.name,
            key=f"s{stream.pk}-end",
        )


def _announced(call: Call) -> TurnLine:
    ended = "" if call.complete else ", cut inside its arguments"
    return TurnLine(
        at=call.said_at or call.at,
        lane="call",
        words=f"call announced{ended}",
        of=f"{call.tool or 'unnamed'} {call.position}",
        key=f"a{call.pk}",
    )


def _claim_lines(facts: TurnFacts, claim: Claim) -> Iterable[TurnLine]:
    for event in facts.events[claim.pk]:
        said_at = said_at_of(event.data)
        lane, words = words_of(event)
        who = person_of(facts, event)
        yield TurnLine(
            at=said_at or event.at,
            recorded_at=event.at if said_at else None,
            lane=lane,
            words=f"{words}, by {who}" if who else words,
            of=f"{claim.tool.name} {claim.position}",
            claim_id=claim.pk,
            key=event_key(event),
        )


def event_key(event: Event) -> str:
    return f"e{event.claim_id.hex}-{event.seq}"


def person_of(facts: TurnFacts, event: Event) -> str:
    """Who decided or noted, as colleagues read it; nobody where it was no person."""
    decision = facts.decisions.get(event.decision_id or 0)
    user_id = decision.decided_by_id if decision else (event.data or {}).get("user_id")
    if decision is not None and decision.decided_by_id is None:
        return f"rule {decision.rule}"
    return facts.people.get(user_id or 0, "")


def said_at_of(data: dict[str, Any] | None) -> datetime | None:
    """When it happened by the sender's clock, if the sender said so."""
    said = (data or {}).get("said_at")
    return datetime.fromisoformat(said) if isinstance(said, str) else None
