"""One turn of a conversation as one table: what was streamed, called, tried, seen and decided.

Works alike for claims that agents made here and for those that a ledger kept elsewhere told of.
Read-only; arguments, results and raw bodies stay out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from effects.core.identity import INDEX_MAX, digest
from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
    Terminal,
)
from effects.models import Tool
from ledger import queries
from ledger.models import Call, Claim, Event, Stream
from ledger.turn_recovery import Known, TurnRecovery, known_of, recovery_of
from ledger.turn_words import by_span, words_of

CLAIMS_MAX: Final = 256
STREAMS_MAX: Final = 50
LINES_MAX: Final = 2000
TURNS_PER_PAGE: Final = 200


class Dispatched(StrEnum):
    """Whether a request left for the provider, as far as the record can say."""

    YES = "yes"
    NO = "no"
    CANNOT_TELL = "cannot_tell"

    @property
    def label(self) -> str:
        return {"yes": "Yes", "no": "No", "cannot_tell": "Cannot tell"}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """One thing that happened. `at` is the moment by whoever observed it, `recorded_at` ours where
    the two differ. `words` may hold texts of agents: they are shown, never trusted."""

    at: datetime
    recorded_at: datetime | None = None
    lane: str  # stream | call | attempt | evidence | decision
    words: str
    of: str = ""
    claim_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCall:
    """One call of the turn, with its claim where one was made, and what the record says of it."""

    position: int
    tool: str
    call_id: str | None
    claim_id: UUID | None
    state: ClaimState | None
    mirrored: bool
    attempts: int
    dispatched: Dispatched
    why: str


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
    """`index` None: the calls that name the conversation and no turn of it, the newest of them."""

    conversation: str
    index: int | None
    streams: tuple[TurnStream, ...]
    calls: tuple[TurnCall, ...]
    lines: tuple[TurnLine, ...]

    @property
    def empty(self) -> bool:
        return not self.streams and not self.calls


def turn(workspace_id: int, conversation: str, index: int | None, *, now: datetime) -> Turn:
    """Everything that is known of a turn; an unknown one is empty."""
    streams: list[Stream] = []
    if "\x00" in conversation or (index is not None and not 0 <= index <= INDEX_MAX):
        return Turn(conversation=conversation, index=index, streams=(), calls=(), lines=())
    if index is None:
        found = _turnless(workspace_id, conversation).order_by("-id")
    else:
        scope = digest("scope", workspace_id, conversation, index)
        found = Claim.objects.filter(workspace_id=workspace_id, scope=scope)
        found = found.order_by("position", "id")
        told = Stream.objects.filter(workspace_id=workspace_id, scope=scope)
        streams = list(told.order_by("id")[:STREAMS_MAX])
    claims = list(found.select_related("tool")[:CLAIMS_MAX])
    announced = list(Call.objects.filter(stream__in=streams).order_by("position", "stream_id"))
    events = _events_of(claims)
    calls = [_claimed(claim, events[claim.pk], now=now) for claim in claims]
    known = _known(workspace_id, claims, streams, announced, now=now)
    calls += [_unclaimed(call) for call in announced if not known.claimed_as[call.pk]]
    lines = [line for claim in claims for line in _claim_lines(claim, events[claim.pk])]
    lines += [line for stream in streams for line in _stream_lines(stream)]
    lines += [_announced(call) for call in announced]
    return Turn(
        conversation=conversation,
        index=index,
        streams=tuple(
            _stream(stream, announced, recovery_of(stream, announced, known, now=now))
            for stream in streams
        ),
        calls=tuple(sorted(calls, key=lambda call: (call.position, str(call.claim_id)))),
        lines=tuple(sorted(lines, key=lambda line: (line.at, line.of))[:LINES_MAX]),
    )


def turns_of(workspace_id: int, conversation: str, first: int) -> list[tuple[int, int]]:
    """The turns of a conversation from index `first` on, at most `TURNS_PER_PAGE` of them looked
    for: index and number of claims. Claims are found by their turn's digest, so none is scanned."""
    if "\x00" in conversation:
        return []
    scopes = {
        digest("scope", workspace_id, conversation, index): index
        for index in range(first, min(first + TURNS_PER_PAGE, INDEX_MAX))
    }
    counted: dict[int, int] = {}
    for model in (Claim, Stream):
        found = model.objects.filter(workspace_id=workspace_id, scope__in=list(scopes))
        for scope in found.values_list("scope", flat=True):
            assert scope is not None, "it is one of those asked for"
            index = scopes[bytes(scope or b"")]
            counted[index] = counted.get(index, 0) + (model is Claim)
    return sorted(counted.items())


def turnless(workspace_id: int, conversation: str) -> int:
    """How many calls name the conversation, and no turn of it."""
    return 0 if "\x00" in conversation else _turnless(workspace_id, conversation).count()


def _turnless(workspace_id: int, conversation: str) -> QuerySet[Claim]:
    return Claim.objects.filter(
        workspace_id=workspace_id, conversation=conversation, turn_index=None
    )


def _events_of(claims: Sequence[Claim]) -> dict[UUID, list[Event]]:
    found: dict[UUID, list[Event]] = {claim.pk: [] for claim in claims}
    rows = Event.objects.filter(claim_id__in=list(found)).order_by("claim_id", "seq")
    for event in rows[: LINES_MAX * 2]:
        found[event.claim_id].append(event)
    return found


def _known(
    workspace_id: int,
    claims: Sequence[Claim],
    streams: Sequence[Stream],
    announced: Sequence[Call],
    *,
    now: datetime,
) -> Known:
    shown = [(claim, queries.shown_state(claim, now=now)[0]) for claim in claims]
    names = {call.tool for call in announced if call.tool}
    reads = Tool.objects.filter(
        workspace_id=workspace_id, name__in=names, effect_class=EffectClass.READ
    )
    names_of_reads = frozenset(reads.values_list("name", flat=True) if names else ())
    return known_of(shown, streams, announced, names_of_reads)


# Calls


def _claimed(claim: Claim, events: Sequence[Event], *, now: datetime) -> TurnCall:
    state, _ = queries.shown_state(claim, now=now)
    answer, why = dispatched(state, events)
    return TurnCall(
        position=claim.position,
        tool=claim.tool.name,
        call_id=claim.call_id,
        claim_id=claim.pk,
        state=state,
        mirrored="mirrored" in claim.flags,
        attempts=claim.fence,
        dispatched=answer,
        why=why,
    )


_ANSWERED: Final = frozenset({Outcome.COMPLETED, Outcome.REFUSED, Outcome.REFUSED_STORED})
_SEEN: Final = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})


def dispatched(  # noqa: C901, PLR0911 - first match wins; one line a rule
    state: ClaimState, events: Iterable[Event]
) -> tuple[Dispatched, str]:
    """Whether any attempt's request left, and what says so. A missing hint is never a no."""
    granted: set[int] = set()
    not_sent: set[int] = set()
    for event in events:
        if event.kind == EventKind.SENT:
            return Dispatched.YES, f"attempt {event.fence} said that it was sent"
        if event.kind == EventKind.REPORTED and event.word == Outcome.COMPLETED and by_span(event):
            return Dispatched.CANNOT_TELL, "the tool's code returned, and no provider was asked"
        if event.kind == EventKind.REPORTED and event.word in _ANSWERED:
            return Dispatched.YES, f"the provider answered attempt {event.fence}"
        if event.kind == EventKind.SIGHTING and event.counts and event.word in _SEEN:
            return Dispatched.YES, "the provider has it"
        if event.kind == EventKind.GRANTED:
            granted.add(event.fence)
        if event.kind == EventKind.REPORTED and event.word == Outcome.NOT_SENT:
            not_sent.add(event.fence)
    if granted and granted <= not_sent:
        return Dispatched.NO, "every attempt reported that nothing was sent"
    if state is ClaimState.COMPLETED:
        return Dispatched.YES, "it was decided that it happened"
    return Dispatched.CANNOT_TELL, "no attempt said so, and silence proves nothing"


def _unclaimed(call: Call) -> TurnCall:
    why = "no claim was made here; a tool that runs without one leaves no trace"
    answer = Dispatched.CANNOT_TELL
    if not call.complete:
        answer = Dispatched.NO
        why = "not run: the response ended inside its arguments, and no claim was made"
    return TurnCall(
        position=call.position,
        tool=call.tool or "",
        call_id=call.call_id,
        claim_id=None,
        state=None,
        mirrored=True,
        attempts=0,
        dispatched=answer,
        why=why,
    )


# Lines


TERMINAL_WORDS: Final = {
    Terminal.SUCCESS: "the response finished",
    Terminal.INCOMPLETE: "the response was ended by a limit",
    Terminal.ERROR_EVENT: "the provider sent an error",
    Terminal.CANCELLED: "the reader stopped reading",
    Terminal.CUT: "the connection ended without a last event",
}
NO_END: Final = "nobody saw an end"


def _stream(stream: Stream, announced: Iterable[Call], recovery: TurnRecovery) -> TurnStream:
    own = [call.complete for call in announced if call.stream_id == stream.pk]
    return TurnStream(
        name=stream.name,
        source=stream.source,
        response_id=stream.response_id,
        model=stream.model,
        terminal=Terminal(stream.terminal) if stream.terminal else None,
        end=TERMINAL_WORDS[Terminal(stream.terminal)] if stream.terminal else NO_END,
        error=stream.error,
        cursor=stream.cursor,
        last_sequence=stream.last_sequence,
        complete_calls=sum(own),
        cut_calls=len(own) - sum(own),
        recovery=recovery,
    )


def _stream_lines(stream: Stream) -> Iterable[TurnLine]:
    opened_at = stream.opened_at or stream.received_at
    model = f" by {stream.model}" if stream.model else ""
    yield TurnLine(at=opened_at, lane="stream", words=f"response began{model}", of=stream.name)
    if stream.terminal:
        words = TERMINAL_WORDS[Terminal(stream.terminal)]
        error = f": {stream.error}" if stream.error else ""
        at = stream.closed_at or stream.received_at
        yield TurnLine(at=at, lane="stream", words=f"{words}{error}", of=stream.name)


def _announced(call: Call) -> TurnLine:
    ended = "" if call.complete else ", cut inside its arguments"
    return TurnLine(
        at=call.said_at or call.at,
        lane="call",
        words=f"call announced{ended}",
        of=f"{call.tool or 'unnamed'} {call.position}",
    )


def _claim_lines(claim: Claim, events: Iterable[Event]) -> Iterable[TurnLine]:
    for event in events:
        said_at = _said_at(event.data)
        lane, words = words_of(event)
        yield TurnLine(
            at=said_at or event.at,
            recorded_at=event.at if said_at else None,
            lane=lane,
            words=words,
            of=f"{claim.tool.name} {claim.position}",
            claim_id=claim.pk,
        )


def _said_at(data: dict[str, Any] | None) -> datetime | None:
    said = (data or {}).get("said_at")
    return datetime.fromisoformat(said) if isinstance(said, str) else None
