"""What is drawn of a turn: bars for responses and attempts, dots for evidence and people, and the
point of no return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    Reason,
    SightingWord,
    Terminal,
)
from ledger.turn_lanes import Lane, Line, Mark, Shape
from ledger.turn_parts.axis import offset_words
from ledger.turn_parts.lines import end_words, event_key, person_of, said_at_of
from ledger.turn_recovery import is_of
from ledger.turn_words import words_of

if TYPE_CHECKING:
    from ledger.models import Call, Claim, Event, Stream
    from ledger.turn_parts.loading import TurnFacts

NO_EFFECT: Final = frozenset({Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED})
"""Reports that prove that an attempt did nothing."""
_OPEN: Final = frozenset({ClaimState.IN_FLIGHT, ClaimState.UNKNOWN, ClaimState.RELEASED})
_WELL: Final = frozenset({Terminal.SUCCESS, Terminal.INCOMPLETE})
NAME_CHARACTERS_MAX: Final = 28

STATE_WORDS: Final = {
    ClaimState.IN_FLIGHT: ("in flight", "b-flight", "on-flight"),
    ClaimState.UNKNOWN: ("unknown", "b-unknown", "on-unknown"),
    ClaimState.COMPLETED: ("happened", "b-happened", "on-happened"),
    ClaimState.NOT_EXECUTED: ("did not happen", "b-plain", "on-plain"),
    ClaimState.RELEASED: ("released", "b-released", "on-released"),
    ClaimState.CONFLICTED: ("duplicate", "b-dup", "on-dup"),
    ClaimState.CLOSED: ("closed, unknown", "b-unknown", "on-unknown"),
}
CONTRADICTION: Final = ("contradiction", "b-unknown", "on-unknown")
_OUTCOME_STYLES: Final = {
    Outcome.COMPLETED: "b-happened",
    Outcome.NOT_SENT: "b-plain",
    Outcome.REFUSED: "b-plain",
    Outcome.REFUSED_STORED: "b-plain",
    Outcome.UNKNOWN: "b-unknown",
}


@dataclass(slots=True, kw_only=True)
class Tried:
    """One attempt as its events tell it; `sent_at` only where somebody said that it was sent."""

    fence: int
    granted_at: datetime
    sent_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    lapsed: bool = False
    key: str = ""

    @property
    def began_at(self) -> datetime:
        """From when on its request may have been on its way."""
        return self.sent_at or self.granted_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything to draw, most telling first, and from which instant its seconds count. `no_return`
    is the first moment at which an effect may have left, and by what."""

    start: datetime
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
    no_return: datetime | None = None
    by: str = ""


@dataclass(slots=True)
class _Paper:
    """What the marks of one turn share: where they begin, and by whose clock."""

    facts: TurnFacts
    start: datetime
    marks: list[Mark] = field(default_factory=list)

    def seconds(self, at: datetime) -> float:
        return (at - self.start).total_seconds()


def picture_of(facts: TurnFacts) -> Picture | None:
    """What to draw of a turn; None where nothing is known of it."""
    tried = {claim.pk: attempts_of(facts.events[claim.pk]) for claim in facts.claims}
    instants = [stream.opened_at or stream.received_at for stream in facts.streams]
    instants += [call.said_at or call.at for call in facts.announced]
    instants += [one.granted_at for own in tried.values() for one in own.values()]
    instants += [claim.granted_at for claim in facts.claims if not tried[claim.pk]]
    if not instants:
        return None
    paper = _Paper(facts, min(instants))
    paper.marks += [_stream_mark(paper, stream) for stream in facts.streams]
    for claim in facts.claims:
        paper.marks += _claim_marks(paper, claim, tried[claim.pk])
    paper.marks += [
        _announced_mark(paper, call)
        for call in facts.announced
        if not any(is_of(call, claim) for claim in facts.claims)
    ]
    for claim in facts.claims:
        paper.marks += _event_marks(paper, claim)
    at, by = no_return(facts, tried)
    return Picture(
        start=paper.start,
        marks=tuple(paper.marks),
        lines=tuple(_lines(paper, at)),
        no_return=at,
        by=by,
    )


# Attempts


def attempts_of(events: Iterable[Event]) -> dict[int, Tried]:
    """The attempts that these events tell of, by their fences."""
    found: dict[int, Tried] = {}
    for event in events:
        at = said_at_of(event.data) or event.at
        if event.kind == EventKind.GRANTED:
            found[event.fence] = Tried(fence=event.fence, granted_at=at, key=event_key(event))
        one = found.get(event.fence)
        if one is None:
            continue
        if event.kind == EventKind.STARTED:
            one.granted_at = at
        elif event.kind == EventKind.SENT:
            one.sent_at = at
        elif event.kind == EventKind.REPORTED:
            one.ended_at, one.outcome = at, Outcome(str(event.word))
            one.key = event_key(event)
        elif event.kind == EventKind.LAPSED and one.ended_at is None:
            one.ended_at, one.lapsed = at, True
    return found


def no_return(
    facts: TurnFacts, tried: Mapping[UUID, Mapping[int, Tried]]
) -> tuple[datetime | None, str]:
    """The first moment at which an effect of this turn may have left, and by what: the first
    attempt of a write that did not prove that it did nothing, or the announcement of a whole call
    that nobody claimed here."""
    found: list[tuple[datetime, str]] = []
    for claim in facts.claims:
        if claim.effect_class == EffectClass.READ:
            continue
        if facts.states[claim.pk] is ClaimState.NOT_EXECUTED:
            continue
        found += [
            (one.began_at, f"{claim.tool.name}, attempt {one.fence}")
            for one in tried[claim.pk].values()
            if one.outcome not in NO_EFFECT
        ]
    for call in facts.announced:
        claimed = any(is_of(call, claim) for claim in facts.claims)
        if call.complete and not claimed and call.tool not in facts.reads:
            found.append((call.said_at or call.at, f"{call.tool or 'unnamed'}, without a claim"))
    return min(found, key=lambda one: one[0]) if found else (None, "")


# Marks


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS_MAX else f"{name[: NAME_CHARACTERS_MAX - 1]}…"


def _stream_mark(paper: _Paper, stream: Stream) -> Mark:
    at = stream.opened_at or stream.received_at
    own = [call.said_at or call.at for call in paper.facts.announced if call.stream_id == stream.pk]
    end = stream.closed_at or max([at, *own])
    terminal = Terminal(stream.terminal) if stream.terminal else None
    words = end_words(stream.terminal)
    label = f"{_short(stream.name)}: {words}"
    return Mark(
        lane=Lane.STREAM,
        row=f"s{stream.pk}",
        at=paper.seconds(at),
        until=paper.seconds(max(at, end)),
        style="b-stream",
        ink="t-ink",
        label=label,
        says=f"{label}; response {stream.name}{f' by {stream.model}' if stream.model else ''}",
        href=f"#s{stream.pk}-end" if stream.terminal else f"#s{stream.pk}",
        torn=terminal not in _WELL,
    )


def _claim_marks(paper: _Paper, claim: Claim, tried: Mapping[int, Tried]) -> Iterator[Mark]:
    state = paper.facts.states[claim.pk]
    words, style, ink = STATE_WORDS[state]
    if state is ClaimState.CONFLICTED and claim.reason == Reason.TOLD_OTHERWISE:
        words, style, ink = CONTRADICTION
    newest = max(tried, default=0)
    for fence, one in tried.items():
        label, colour = f"attempt {fence}", _OUTCOME_STYLES.get(one.outcome or Outcome.UNKNOWN)
        if fence == newest:
            label, colour = f"{_short(claim.tool.name)}: {words}", colour if one.outcome else style
        until = one.ended_at or min(paper.facts.now, max(claim.lease_until, one.granted_at))
        sent = "sent" if one.sent_at else "nobody said that it was sent"
        yield Mark(
            lane=Lane.CALLS,
            row=str(claim.pk),
            at=paper.seconds(one.began_at),
            until=paper.seconds(max(until, one.began_at)),
            tick=paper.seconds(one.granted_at),
            style=colour or style,
            ink=ink if fence == newest else "t-2",
            label=label,
            says=f"{label}; {claim.tool.name} {claim.position}, attempt {fence}, {sent}",
            href=f"#{one.key}",
            torn=one.outcome in {None, Outcome.UNKNOWN},
            unsure=one.sent_at is None and one.outcome in {None, Outcome.UNKNOWN},
        )


def _announced_mark(paper: _Paper, call: Call) -> Mark:
    at = call.said_at or call.at
    name = _short(call.tool or "unnamed")
    words = "cannot tell" if call.complete else "not run"
    if call.tool in paper.facts.reads:
        words = "only reads"
    return Mark(
        lane=Lane.CALLS,
        row=f"a{call.pk}",
        at=paper.seconds(at),
        until=paper.seconds(at + timedelta(milliseconds=1)),
        style="d-next",
        ink="on-unknown" if words == "cannot tell" else "on-plain",
        label=f"{name}: {words}",
        says=f"{name}: {words}; announced without a claim, in place {call.position}",
        href=f"#a{call.pk}",
        unsure=True,
    )


def _event_marks(paper: _Paper, claim: Claim) -> Iterator[Mark]:
    for event in paper.facts.events[claim.pk]:
        lane, words = words_of(event)
        if lane not in {"evidence", "decision"}:
            continue
        who = person_of(paper.facts, event)
        seen = event.kind == EventKind.SIGHTING
        label = str(event.word).replace("_", " ") if seen else words
        of = f"{claim.tool.name} {claim.position}"
        yield Mark(
            lane=Lane.EVIDENCE if seen else Lane.PEOPLE,
            row="",
            at=paper.seconds(said_at_of(event.data) or event.at),
            label=label,
            says=f"{label}: {of}{f', by {who}' if who else ''}",
            href=f"#{event_key(event)}",
            shape=_shape(event) if seen else "person",
            inside=_initials(who) if not seen else "",
        )


def _initials(name: str) -> str:
    words = [word for word in name.replace("@", " ").replace(".", " ").split() if word]
    letters = words[0][0] + words[1][0] if len(words) > 1 else "".join(words)[:2]
    return letters.upper()


def _shape(event: Event) -> Shape:
    match SightingWord(str(event.word)):
        case SightingWord.FOUND | SightingWord.FOUND_MANY:
            return "disc"
        case SightingWord.FOUND_DIFFERENT | SightingWord.PENDING:
            return "diamond"
        case SightingWord.ABSENT:
            strong = (event.data or {}).get("strength") == "strong"
            return "ring-dot" if strong else "ring"
        case _:
            return "dashed"


def _lines(paper: _Paper, no_return_at: datetime | None) -> Iterator[Line]:
    facts = paper.facts
    if no_return_at is not None:
        at = paper.seconds(no_return_at)
        words = f"point of no return, +{offset_words(max(at, 0.0))}"
        yield Line(at=at, words=words, kind="ponr")
    still = [claim for claim in facts.claims if facts.states[claim.pk] in _OPEN]
    if not still:
        return
    ends = [claim.window_until for claim in still if claim.window_until is not None]
    if ends:
        gone = min(ends) <= facts.now
        words = "first key forgotten" if gone else "first key is forgotten"
        yield Line(at=paper.seconds(min(ends)), words=words, kind="winend")
    yield Line(at=paper.seconds(facts.now), words="now", kind="now")
