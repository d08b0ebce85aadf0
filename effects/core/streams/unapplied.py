"""The events of a numbered stream that were not applied yet.

For a consumer that keeps a table of its own. It stores the number of an event in the same
transaction as what the event did, and starts again with that number: what comes twice is dropped
here, and what is missing is refused instead of skipped. The highest number that was *seen* is no
cursor: a crash between seeing and applying would lose everything in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

Event = TypeVar("Event")

NUMBER: Final = "sequence_number"


class StreamGap(Exception):
    """A numbered event is missing, or one has no number. Nothing after it was handed out: resume
    after `applied`, the last event that was."""

    def __init__(self, says: str, *, applied: int | None) -> None:
        super().__init__(f"{says} Resume after {'the beginning' if applied is None else applied}.")
        self.applied = applied


def unapplied(events: Iterable[Event], cursor: int | None) -> Iterator[tuple[int, Event]]:
    """Each event above `cursor` once, with its number, in order; None is before the first one.

    `events` are an SDK's objects or plain dictionaries, of one connection or of several after each
    other. The first event of a stream that was never applied may have any number. Raises
    `StreamGap`.
    """
    for event in events:
        number = _number(event)
        if number is None:
            raise StreamGap("An event has no number.", applied=cursor)
        if cursor is not None and number <= cursor:
            continue
        if cursor is not None and number > cursor + 1:
            missing = f"{cursor + 1} to {number - 1}" if number > cursor + 2 else str(cursor + 1)
            raise StreamGap(f"Event {missing} never came.", applied=cursor)
        yield number, event
        cursor = number


def _number(event: Any) -> int | None:
    found = event.get(NUMBER) if isinstance(event, dict) else getattr(event, NUMBER, None)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
