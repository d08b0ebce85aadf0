"""One turn of a conversation as one table: what was streamed, called, tried, seen and decided.

Works alike for claims that agents made here and for those that a ledger kept elsewhere told of.
Read-only; arguments, results and raw bodies stay out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from effects.core.vocabulary import Terminal
from ledger.turn_parts.calls import Dispatched, TurnCall, calls_of, dispatched
from ledger.turn_parts.lines import NO_END, TERMINAL_WORDS, TurnLine, end_words, lines_of
from ledger.turn_parts.loading import CLAIMS_MAX, TurnFacts, load
from ledger.turn_recovery import Known, TurnRecovery, known_of, recovery_of

if TYPE_CHECKING:
    from ledger.models import Call, Stream

__all__ = [
    "CLAIMS_MAX",
    "LINES_MAX",
    "NO_END",
    "TERMINAL_WORDS",
    "Dispatched",
    "Turn",
    "TurnCall",
    "TurnLine",
    "TurnStream",
    "dispatched",
    "turn",
    "turn_of",
]

LINES_MAX: Final = 2000
"""Most lines of a turn in one answer; ask again from where it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStream:
    """One response. `end` is its terminal in words. `complete_calls` and `cut_calls` count what it
    announced; nobody can know what was still to come. `recovery` says where it ended and what is
    safe now."""

    name: str
    source: str
    response_id: str | None
    model: str | None
    terminal: Terminal | None
    end: str
    error: str | None
    cursor: int
    last_sequence: int | None
    complete_calls: int
    cut_calls: int
    recovery: TurnRecovery


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """`index` None: the calls that name the conversation and no turn of it, the newest of them.

    `lines` begin with number `lines_from` (from 0) of `lines_total`; `events_left_out` are events
    of calls that have too many to be read here, and `more` says that calls or responses are."""

    conversation: str
    index: int | None
    streams: tuple[TurnStream, ...]
    calls: tuple[TurnCall, ...]
    lines: tuple[TurnLine, ...]
    lines_from: int = 0
    lines_total: int = 0
    events_left_out: int = 0
    more: bool = False

    @property
    def empty(self) -> bool:
        return not self.streams and not self.calls


def turn(
    workspace_id: int, conversation: str, index: int | None, *, now: datetime, lines_from: int = 0
) -> Turn:
    """Everything that is known of a turn; an unknown one is empty."""
    facts = load(workspace_id, conversation, index, now=now)
    return turn_of(facts, lines_of(facts), lines_from=lines_from, lines_max=LINES_MAX)


def turn_of(
    facts: TurnFacts, lines: Sequence[TurnLine], *, lines_from: int, lines_max: int
) -> Turn:
    """The turn that these facts are, with at most `lines_max` of its `lines`."""
    shown = [(claim, facts.states[claim.pk]) for claim in facts.claims]
    known = known_of(shown, facts.streams, facts.announced, facts.reads)
    return Turn(
        conversation=facts.conversation,
        index=facts.index,
        streams=tuple(_stream(stream, facts, known) for stream in facts.streams),
        calls=calls_of(facts),
        lines=tuple(lines[lines_from : lines_from + lines_max]),
        lines_from=lines_from,
        lines_total=len(lines),
        events_left_out=facts.events_left_out,
        more=facts.more,
    )


def _stream(stream: Stream, facts: TurnFacts, known: Known) -> TurnStream:
    announced: Iterable[Call] = facts.announced
    own = [call.complete for call in announced if call.stream_id == stream.pk]
    return TurnStream(
        name=stream.name,
        source=stream.source,
        response_id=stream.response_id,
        model=stream.model,
        terminal=Terminal(stream.terminal) if stream.terminal else None,
        end=end_words(stream.terminal),
        error=stream.error,
        cursor=stream.cursor,
        last_sequence=stream.last_sequence,
        complete_calls=sum(own),
        cut_calls=len(own) - sum(own),
        recovery=recovery_of(stream, announced, known, now=facts.now),
    )
