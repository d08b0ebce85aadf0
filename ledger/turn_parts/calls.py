"""The calls of a turn: was each dispatched, and what goes back to the model for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Terminal
from ledger.otlp_span import SOURCE_PREFIX
from ledger.turn_recovery import is_of
from ledger.turn_words import by_span

if TYPE_CHECKING:
    from ledger.models import Call, Claim, Event
    from ledger.turn_parts.loading import TurnFacts

TRACES_SHOWN_MAX: Final = 3


class Dispatched(StrEnum):
    """Whether a request left for the provider, as far as the record can say."""

    YES = "yes"
    NO = "no"
    CANNOT_TELL = "cannot_tell"

    @property
    def label(self) -> str:
        return {"yes": "Yes", "no": "No", "cannot_tell": "Cannot tell"}[self]


class GoesBack(StrEnum):
    """What is written back to the model for a call whose response did not end well."""

    RESULT = "result"  # what is known of its claim, settled or not
    UNKNOWN = "unknown"  # no claim here: that nobody knows
    AGAIN = "again"  # it only reads: it is simply made again
    NOTHING = "nothing"  # cut inside its arguments: its block is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCall:
    """One call of the turn, with its claim where one was made, and what the record says of it.

    `orphan`: it was announced whole, and no result of it went back to the model, as far as this
    record can say; then `goes_back` says what does. `announced` is its announcement's number.
    """

    position: int
    tool: str
    call_id: str | None
    claim_id: UUID | None
    state: ClaimState | None
    reason: str | None = None
    mirrored: bool
    attempts: int
    dispatched: Dispatched
    why: str
    orphan: bool = False
    goes_back: GoesBack | None = None
    announced: int | None = None
    traces: tuple[str, ...] = ()


def calls_of(facts: TurnFacts) -> tuple[TurnCall, ...]:
    """Every call of the turn: those with claims, and those that were only announced."""
    found = [_claimed(facts, claim) for claim in facts.claims]
    found += [
        _unclaimed(facts, call)
        for call in facts.announced
        if not any(is_of(call, claim) for claim in facts.claims)
    ]
    return tuple(sorted(found, key=lambda call: (call.position, str(call.claim_id))))


def _claimed(facts: TurnFacts, claim: Claim) -> TurnCall:
    state, events = facts.states[claim.pk], facts.events[claim.pk]
    answer, why = dispatched(state, events, whole=claim.pk in facts.whole)
    announced = [call for call in facts.announced if is_of(call, claim)]
    left = [call for call in announced if is_orphan(facts, call)]
    return TurnCall(
        position=claim.position,
        tool=claim.tool.name,
        call_id=claim.call_id,
        claim_id=claim.pk,
        state=state,
        reason=claim.reason if state == claim.state else None,
        mirrored="mirrored" in claim.flags,
        attempts=claim.fence,
        dispatched=answer,
        why=why,
        orphan=bool(left),
        goes_back=GoesBack.RESULT if left else None,
        announced=next((call.pk for call in [*left, *announced]), None),
        traces=traces_of(events),
    )


def _unclaimed(facts: TurnFacts, call: Call) -> TurnCall:
    why = "no claim was made here; a tool that runs without one leaves no trace"
    answer, back = Dispatched.CANNOT_TELL, GoesBack.UNKNOWN
    if call.tool in facts.reads:
        why, back = "it only reads, and needs no claim", GoesBack.AGAIN
    if not call.complete:
        answer, back = Dispatched.NO, GoesBack.NOTHING
        why = "not run: the response ended inside its arguments, and no claim was made"
    open_end = not _ended_well(facts)
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
        orphan=is_orphan(facts, call),
        goes_back=back if open_end else None,
        announced=call.pk,
    )


def is_orphan(facts: TurnFacts, call: Call) -> bool:
    """Whether the call was announced whole in a response that did not end well, in a turn of which
    no other response did: nothing was written back for it then."""
    return call.complete and not _ended_well(facts)


def _ended_well(facts: TurnFacts) -> bool:
    return any(stream.terminal == Terminal.SUCCESS for stream in facts.streams)


def traces_of(events: Iterable[Event]) -> tuple[str, ...]:
    """The ids of the traces whose spans told of a call, the first few."""
    sources = ((event.data or {}).get("elsewhere") for event in events)
    told = [s for s in sources if isinstance(s, str) and s.startswith(SOURCE_PREFIX)]
    return tuple(dict.fromkeys(s.removeprefix(SOURCE_PREFIX) for s in told))[:TRACES_SHOWN_MAX]


# Dispatched


_ANSWERED: Final = frozenset({Outcome.COMPLETED, Outcome.REFUSED, Outcome.REFUSED_STORED})
_SEEN: Final = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})


def dispatched(
    state: ClaimState, events: Sequence[Event], *, whole: bool = True
) -> tuple[Dispatched, str]:
    """Whether any attempt's request left, and what says so. A missing hint is never a no; and of
    events that are not all here (`whole`), neither is a no."""
    for event in events:
        said = _says_yes(event)
        if said is not None:
            return said
    granted = {event.fence for event in events if event.kind == EventKind.GRANTED}
    not_sent = {
        event.fence
        for event in events
        if event.kind == EventKind.REPORTED and event.word == Outcome.NOT_SENT
    }
    if whole and granted and granted <= not_sent:
        return Dispatched.NO, "every attempt reported that nothing was sent"
    if state is ClaimState.COMPLETED:
        return Dispatched.YES, "it was decided that it happened"
    if not whole:
        return Dispatched.CANNOT_TELL, "it has more events than are read here; see its own page"
    return Dispatched.CANNOT_TELL, "no attempt said so, and silence proves nothing"


def _says_yes(event: Event) -> tuple[Dispatched, str] | None:
    """What one event says of it, if it says anything; the first that does, answers."""
    if event.kind == EventKind.SENT:
        return Dispatched.YES, f"attempt {event.fence} said that it was sent"
    if event.kind == EventKind.REPORTED and event.word == Outcome.COMPLETED and by_span(event):
        return Dispatched.CANNOT_TELL, "the tool's code returned, and no provider was asked"
    if event.kind == EventKind.REPORTED and event.word in _ANSWERED:
        return Dispatched.YES, f"the provider answered attempt {event.fence}"
    if event.kind == EventKind.SIGHTING and event.counts and event.word in _SEEN:
        return Dispatched.YES, "the provider has it"
    return None
