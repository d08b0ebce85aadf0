"""What one event of a claim is called on a turn's page: its lane, and a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from effects.core.vocabulary import EventKind, Outcome, Verdict

if TYPE_CHECKING:
    from ledger.models import Event

_OUTCOME_WORDS: Final = {
    Outcome.COMPLETED: "it happened",
    Outcome.NOT_SENT: "not sent",
    Outcome.REFUSED: "refused by the provider",
    Outcome.REFUSED_STORED: "refused, and the refusal is stored under the key",
    Outcome.UNKNOWN: "outcome unknown",
}
_DECISION_WORDS: Final = {
    EventKind.DECISION_HELD: "a decision is held",
    EventKind.DECISION_WITHDRAWN: "the decision was taken back",
    EventKind.DECISION_CANCELLED: "the decision was cancelled by a new fact",
    EventKind.RELEASE_LAPSED: "nobody took the release up: unknown again",
    EventKind.ABSENCE_LAPSED: "the key is honoured no longer: unknown again",
}
_VERDICT_WORDS: Final = {
    Verdict.HAPPENED: "it happened",
    Verdict.NOT_HAPPENED: "it did not happen",
    Verdict.RELEASE_SAME: "released with the same key",
    Verdict.RELEASE_NEW: "released with a new key",
    Verdict.LOST: "the worker is lost",
    Verdict.CLOSE: "closed, unknown",
    Verdict.SETTLE: "the conflict is settled",
    Verdict.REOPEN: "reopened",
}


def by_span(event: Event) -> bool:
    """Whether a span told of it: the word of whoever watched the tool's code."""
    return "span" in (event.data or {})


def words_of(event: Event) -> tuple[str, str]:  # noqa: C901, PLR0911 - a table of kinds
    """The lane of an event, and what it says in words."""
    data = event.data or {}
    name = data.get("attempt") or event.fence
    match EventKind(event.kind):
        case EventKind.GRANTED if event.fence == 1 and by_span(event):
            return "attempt", "seen from outside, by its span"
        case EventKind.GRANTED if event.fence == 1:
            return "attempt", "claimed" + (" elsewhere" if data.get("ungranted") else "")
        case EventKind.GRANTED | EventKind.STARTED:
            verb = "started elsewhere" if data.get("ungranted") else "granted"
            return "attempt", f"attempt {name} {verb}"
        case EventKind.SENT:
            return "attempt", f"attempt {name} sent"
        case EventKind.REPORTED if event.word == Outcome.COMPLETED and by_span(event):
            return "attempt", f"attempt {name}: the tool's code returned"
        case EventKind.REPORTED:
            named = f" as {event.object}" if event.object else ""
            return "attempt", f"attempt {name}: {_OUTCOME_WORDS[Outcome(str(event.word))]}{named}"
        case EventKind.LAPSED:
            return "attempt", f"attempt {event.fence}: lease over without a report"
        case EventKind.SIGHTING:
            return "evidence", f"{str(event.word).replace('_', ' ')} ({data.get('route', '')})"
        case EventKind.NOTED:
            return "evidence", "a note"
        case EventKind.DECIDED:
            return "decision", f"decided: {_VERDICT_WORDS.get(Verdict(str(event.word)), '')}"
        case kind:
            return "decision", _DECISION_WORDS.get(kind, str(kind).replace("_", " "))
