"""What happened to a call, in its order: one line an event, and a drawing of the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Verdict
from effects.times import duration_words
from reconcile.actions import ActionName
from reconcile.situation import Situation, Strength

if TYPE_CHECKING:
    from ledger.models import Event

DRAWN_ATTEMPTS_MAX: Final = 4
DRAWN_SIGHTINGS_MAX: Final = 8
LEFT, RIGHT, STEP_MAX = 104.0, 800.0, 116.0
LABEL_STEP_MIN: Final = 44.0
"""With less room between two points their offsets would be written over each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the history. `words` may hold texts of agents: they are shown, never trusted."""

    number: int
    at: datetime
    icon: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Who is meant by a number in the record."""

    people: Mapping[int, str]
    authors: Mapping[int, str]  # decision id to its author
    verdicts: Mapping[int, Verdict]


def line_of(event: Event, names: Names) -> Line:
    """An event in words, with the icon that its kind has."""
    icon, words = _WORDS[EventKind(event.kind)](event, names)
    return Line(number=event.seq, at=event.at, icon=icon, words=words)


def _granted(event: Event, _names: Names) -> tuple[str, str]:
    data = event.data or {}
    if "span" in data:
        said = "Seen from outside" if event.fence == 1 else f"Attempt {event.fence} seen"
        return "lock", f"{said}, by a span of its tool; granted by nobody here"
    by = f" by worker {data['worker']}" if data.get("worker") else ""
    if data.get("ungranted"):
        said = "Claimed" if event.fence == 1 else f"Attempt {event.fence} started"
        return "lock", f"{said}{by}, by the word of its own ledger; granted by nobody here"
    if event.fence == 1:
        return "lock", f"Claimed{by}, before anything was sent"
    return "lock", f"Attempt {event.fence} granted{by}, key generation {event.generation}"


def _started(event: Event, _names: Names) -> tuple[str, str]:
    whose = "a span of its tool" if "span" in (event.data or {}) else "the word of its own ledger"
    return "lock", f"Attempt {event.fence} started, by {whose}"


def _sent(event: Event, _names: Names) -> tuple[str, str]:
    return "up", f"Attempt {event.fence}: sent, by the worker's own word"


_OUTCOMES: Final = {
    Outcome.COMPLETED: ("happened", "it happened"),
    Outcome.NOT_SENT: ("nothappened", "not sent"),
    Outcome.REFUSED: ("nothappened", "refused by the provider"),
    Outcome.REFUSED_STORED: ("nothappened", "refused, and the refusal is stored under the key"),
    Outcome.UNKNOWN: ("unknown", "outcome unknown"),
}


def _reported(event: Event, _names: Names) -> tuple[str, str]:
    icon, words = _OUTCOMES[Outcome(str(event.word))]
    data = event.data or {}
    if "span" in data and event.word == Outcome.COMPLETED:
        words = "the tool's code returned, as its span says"
    named = f" as {event.object}" if event.object else ""
    if event.replayed:
        named += ", the provider's saved answer"
    because = data.get("error") or (
        f"HTTP {data['http_status']}" if data.get("http_status") else ""
    )
    return icon, f"Attempt {event.fence}: {words}{named}" + (f" ({because})" if because else "")


def _lapsed(event: Event, _names: Names) -> tuple[str, str]:
    return "clock", f"Attempt {event.fence}: lease over without a report"


def _sighting(event: Event, _names: Names) -> tuple[str, str]:
    data = event.data or {}
    word = str(event.word).replace("_", " ")
    strength = str(data.get("strength", "")).replace("_", " ")
    return "ask", f"Evidence {event.seq}: {word}" + (f", {strength}" if strength else "")


def _decision(event: Event, names: Names, tail: str) -> tuple[str, str]:
    decision_id = event.decision_id or 0
    verdict = names.verdicts.get(decision_id)
    label = _LABELS.get(verdict, "a decision") if verdict else "a decision"
    author = names.authors.get(decision_id, "somebody")
    return "people", f"{author}: {label}, {tail}"


_LABELS: Final = {name.verdict: name.label.lower() for name in ActionName if name.verdict}


def _noted(event: Event, names: Names) -> tuple[str, str]:
    user_id = (event.data or {}).get("user_id")
    return "info", f"Note by {names.people.get(user_id or 0, 'somebody')}"


def _held_longer(event: Event, names: Names) -> tuple[str, str]:
    user_id = (event.data or {}).get("user_id")
    return "clock", f"{names.people.get(user_id or 0, 'Somebody')} held the decision longer"


def _withdrawn(event: Event, names: Names) -> tuple[str, str]:
    author = names.authors.get(event.decision_id or 0, "somebody")
    return "refresh", f"{author} took the decision back"


_WORDS: Final[dict[EventKind, Any]] = {
    EventKind.GRANTED: _granted,
    EventKind.STARTED: _started,
    EventKind.SENT: _sent,
    EventKind.REPORTED: _reported,
    EventKind.LAPSED: _lapsed,
    EventKind.SIGHTING: _sighting,
    EventKind.DECISION_HELD: lambda event, names: _decision(event, names, "held for a minute"),
    EventKind.HOLD_EXTENDED: _held_longer,
    EventKind.DECIDED: lambda event, names: _decision(event, names, "in force"),
    EventKind.DECISION_WITHDRAWN: _withdrawn,
    EventKind.DECISION_CANCELLED: lambda event, names: _decision(
        event, names, "cancelled by a new fact"
    ),
    EventKind.RELEASE_LAPSED: lambda _event, _names: (
        "clock",
        "Nobody took the release up in time: unknown again",
    ),
    EventKind.ABSENCE_LAPSED: lambda _event, _names: (
        "clock",
        "The key is honoured no longer: unknown again",
    ),
    EventKind.NOTED: _noted,
}


# The drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One attempt. `style` is the class of its colour and shape."""

    x: float
    width: float
    style: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One answer. `shape`: "ring", "ring-dot", "diamond", "dashed" or "disc"."""

    x: float
    shape: str
    offset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Idle time is left out: points stand in their order, evenly, and say their offsets."""

    bars: tuple[Bar, ...]
    dots: tuple[Dot, ...]
    now_x: float
    window_x: float | None
    window_closed: bool
    starts_at: datetime
    window_at: datetime | None
    left_out: bool


def drawing(situation: Situation) -> Drawing:
    """The newest attempts and answers between the first grant and the window's end."""
    attempts = situation.attempts[:DRAWN_ATTEMPTS_MAX][::-1]
    sightings = situation.evidence[:DRAWN_SIGHTINGS_MAX][::-1]
    ends = {
        attempt.fence: attempt.ended_at or min(situation.now, situation.lease_until)
        for attempt in attempts
    }
    window = situation.window_until if situation.keyed else None
    instants: list[datetime] = [situation.now]
    instants += [attempt.granted_at for attempt in attempts] + list(ends.values())
    instants += [item.at for item in sightings] + ([window] if window else [])
    place = _places(instants)
    start = attempts[0].granted_at
    step = _step(len(place))
    return Drawing(
        bars=tuple(
            Bar(
                x=place[attempt.granted_at],
                width=max(place[ends[attempt.fence]] - place[attempt.granted_at], 10.0),
                style=_bar_style(attempt.outcome, situation),
                words=f"attempt {attempt.fence}",
            )
            for attempt in attempts
        ),
        dots=tuple(
            Dot(
                x=place[item.at],
                shape=_shape(item.word, item.strength),
                offset=_offset(item.at, start) if step >= LABEL_STEP_MIN else "",
            )
            for item in sightings
        ),
        now_x=place[situation.now],
        window_x=place[window] if window else None,
        window_closed=window is not None and window <= situation.now,
        starts_at=start,
        window_at=window,
        left_out=len(situation.attempts) > len(attempts)
        or len(situation.evidence) > len(sightings),
    )


def _bar_style(outcome: Outcome | None, situation: Situation) -> str:
    if outcome is not None:
        return _BAR_STYLES[outcome]
    return "b-flight" if situation.state is ClaimState.IN_FLIGHT else "b-unknown"


def _places(instants: Sequence[datetime]) -> dict[datetime, float]:
    ordered = sorted(set(instants))
    step = _step(len(ordered))
    return {instant: round(LEFT + step * number, 1) for number, instant in enumerate(ordered)}


def _step(points: int) -> float:
    return min(STEP_MAX, (RIGHT - LEFT) / max(points - 1, 1))


def _offset(instant: datetime, start: datetime) -> str:
    return f"+{duration_words((instant - start).total_seconds())}"


_BAR_STYLES: Final = {
    Outcome.COMPLETED: "b-happened",
    Outcome.NOT_SENT: "b-plain",
    Outcome.REFUSED: "b-plain",
    Outcome.REFUSED_STORED: "b-plain",
    Outcome.UNKNOWN: "b-unknown",
}


def _shape(word: SightingWord, strength: Strength) -> str:
    match word:
        case SightingWord.FOUND | SightingWord.FOUND_MANY:
            return "disc"
        case SightingWord.FOUND_DIFFERENT | SightingWord.PENDING:
            return "diamond"
        case SightingWord.ABSENT:
            return "ring-dot" if strength is Strength.STRONG else "ring"
        case _:
            return "dashed"
