"""What is new about a call that somebody put off: the same for the page and for the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from effects.core.vocabulary import EventKind, SightingWord

if TYPE_CHECKING:
    from ledger.models import Event

# A look-up that got no answer has learnt nothing; what the clock does was known beforehand.
NO_NEWS_SIGHTINGS: Final = (
    SightingWord.LOOKUP_FAILED,
    SightingWord.MISCONFIGURED,
    SightingWord.RATE_LIMITED,
)
NO_NEWS_KINDS: Final = (EventKind.LAPSED, EventKind.SENT, EventKind.DECISION_WITHDRAWN)


def is_news(event: Event) -> bool:
    """Whether the event brings a call back that was put off before it."""
    if event.kind == EventKind.SIGHTING:
        return event.word not in NO_NEWS_SIGHTINGS
    return event.kind not in NO_NEWS_KINDS
