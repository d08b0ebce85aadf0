"""A contract in words: the lines that the desk's pages and docs/contracts.md show alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from effects.contracts.load import refusal_table
from effects.contracts.shape import (
    PERMANENT_SECONDS,
    Answer,
    Key,
    KeyPlace,
    Limit,
    Lookup,
    MatchedBy,
    Part,
    Published,
    Replay,
    ReplayKind,
    RouteDelay,
    ScopeWord,
    Source,
    StoredKind,
    Terms,
    Window,
)
from effects.times import write_duration

__all__ = ["Line", "lines_of", "promise_words", "window_words"]

NOT_PUBLISHED: Final = "not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One statement of a contract: its label, the value in words, a sentence, and its source."""

    label: str
    words: str
    note: str
    source: Source

    @property
    def verified(self) -> bool:
        return self.source.verified


def window_words(seconds: int | None) -> str:
    """A window as it is set for a tool."""
    if seconds is None:
        return NOT_PUBLISHED
    return "for good" if seconds >= PERMANENT_SECONDS else write_duration(seconds)


def promise_words(terms: Terms) -> str:
    """What a contract promises about its window: "at least 24 h", "2 h", "not published"."""
    return _window(terms.window)


def lines_of(terms: Terms) -> tuple[Line, ...]:
    """The whole contract, in the order in which one asks for it."""
    return (
        _line("Key", _key(terms.key), terms.key),
        _line("Window", _window(terms.window), terms.window),
        _line("One key is the same within", _scope(terms), terms.scope),
        _line("Kept under a key", _STORED[terms.stored.kind], terms.stored),
        _line("Same key, other body", _answer(terms.mismatch), terms.mismatch),
        _line("Same key, first one still runs", _answer(terms.in_flight), terms.in_flight),
        _line("A 409 means", _CONFLICT[terms.conflict.means], terms.conflict),
        _line("Same request again", _replay(terms.replay), terms.replay),
        *(_line("Look-up", _lookup(lookup), lookup) for lookup in terms.lookups),
        *(_line("Limit", _limit(limit), limit) for limit in terms.limits),
        *_statuses(terms),
        _line("Proves a refusal", _refusals(terms), terms.refusals),
        _line("May still work for", _working(terms), terms.working),
        *([_line("Version", terms.version.how, terms.version)] if terms.version else []),
    )


def _line(label: str, words: str, part: Part) -> Line:
    return Line(label=label, words=words, note=part.note, source=part.source)


def _key(key: Key) -> str:
    if key.where is KeyPlace.NONE:
        return "none"
    longest = f", at most {key.characters_max} characters" if key.characters_max else ""
    asked = ", required" if key.required else ""
    return f"{_PLACES[key.where]} {key.name}{longest}{asked}"


def _window(window: Window) -> str:
    match window.state:
        case Published.PERMANENT:
            return "for good"
        case Published.NO_KEY:
            return "no key"
        case Published.NOT_PUBLISHED:
            return NOT_PUBLISHED
        case Published.PUBLISHED:
            assert window.seconds is not None, "the shape says so"
            least = "at least " if window.minimum else ""
            return f"{least}{write_duration(window.seconds)} from first receipt"


def _scope(terms: Terms) -> str:
    return ", ".join(_SCOPES[word] for word in terms.scope.within)


def _answer(answer: Answer) -> str:
    if not answer.statuses and not answer.codes:
        return "see the note" if answer.note else NOT_PUBLISHED
    statuses = " or ".join(str(status) for status in answer.statuses) or "any status"
    return f"{statuses} {', '.join(answer.codes)}".strip()


def _replay(replay: Replay) -> str:
    marker = f", told by {replay.marker[0]}: {replay.marker[1]}" if replay.marker else ""
    return f"{_REPLAYS[replay.kind]}{marker}"


def _lookup(lookup: Lookup) -> str:
    by = ", ".join(_MATCHES[way] for way in lookup.finds_by)
    kept = f", {lookup.kept_days} days back" if lookup.kept_days else ""
    absence = "nothing there can be proof" if lookup.absence_proves else "nothing there is no proof"
    return f"{lookup.route}: by {by}; {_DELAYS[lookup.delay]}{kept}; {absence}"


def _limit(limit: Limit) -> str:
    return f"{limit.requests:,} in {write_duration(limit.seconds)}: {limit.what}"


def _statuses(terms: Terms) -> Iterator[Line]:
    for each in terms.statuses:
        final = f"; final: {', '.join(each.final)}" if each.final else "; none is final"
        yield _line(f"{each.noun}, status", f"{', '.join(each.words)}{final}", each)


def _refusals(terms: Terms) -> str:
    table = refusal_table(terms.name)
    listed = ", ".join(
        f"{status} with its code" if status in table.coded else str(status)
        for status, _ in table.rows()
    )
    return f"on a first send: {listed}"


def _working(terms: Terms) -> str:
    seconds = terms.working.seconds
    return NOT_PUBLISHED if seconds is None else write_duration(seconds)


_PLACES: Final = {
    KeyPlace.HEADER: "header",
    KeyPlace.BODY: "member of the body",
    KeyPlace.URL: "in the address,",
    KeyPlace.DIRECTIVE: "directive",
}
_SCOPES: Final = {
    ScopeWord.ACCOUNT: "account",
    ScopeWord.COMPANY: "company account",
    ScopeWord.REGION: "region",
    ScopeWord.MODE: "mode (live, test)",
    ScopeWord.ENDPOINT: "endpoint",
    ScopeWord.VERB: "method",
    ScopeWord.API: "API",
    ScopeWord.OBJECT: "kind of object",
    ScopeWord.SERVICE: "service",
    ScopeWord.NOT_PUBLISHED: NOT_PUBLISHED,
}
_STORED: Final = {
    StoredKind.ALL: "every answer of an execution, errors of the server included",
    StoredKind.SUCCESS: "successes only",
    StoredKind.NOT_REFUSALS: "everything but 4xx",
    StoredKind.STATE: "the object as it is now",
    StoredKind.INTENT: "what was meant, not what was answered",
    StoredKind.OBJECT: "the object that was made",
    StoredKind.NOTHING: "nothing",
    StoredKind.NOT_PUBLISHED: NOT_PUBLISHED,
}
_CONFLICT: Final = {
    "in_flight": "the first request is still running",
    "exists": "it exists already",
    "mismatch": "the key was used for something else",
    "either": "one of several things, told apart by the code",
    "not_published": NOT_PUBLISHED,
}
_REPLAYS: Final = {
    ReplayKind.SNAPSHOT: "the first answer, as it was",
    ReplayKind.STATE: "the object as it is now",
    ReplayKind.RUNS_FAILED: "what failed runs again, the rest is answered as it is now",
    ReplayKind.EXISTING_ID: "the object that was made the first time",
    ReplayKind.LINK: "rejected, with a link to the first one",
    ReplayKind.OVERWRITES: "done again, to the same end",
    ReplayKind.NONE: "a second effect",
    ReplayKind.NOT_PUBLISHED: NOT_PUBLISHED,
}
_DELAYS: Final = {
    RouteDelay.NONE: "shown at once",
    RouteDelay.EVENTUAL: "shown late",
    RouteDelay.UNKNOWN: "how soon is not published",
}
_MATCHES: Final = {
    MatchedBy.KEY: "key",
    MatchedBy.MARKER: "our marker",
    MatchedBy.REFERENCE: "reference",
    MatchedBy.ID: "its own id",
    MatchedBy.WINDOW: "time window",
}
