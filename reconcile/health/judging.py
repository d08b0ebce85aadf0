"""What a figure means: fine, to be watched or broken, and what to do. Pure: no clock, no database.

The limits are ours. Look-ups are handed out once a second and a sweep runs every five seconds, so
work that is a minute late waits for something; after ten minutes nobody is at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from effects.times import duration_words

LATE: Final = timedelta(minutes=1)
STUCK: Final = timedelta(minutes=10)


class Standing(StrEnum):
    """How a part stands, from the best to the worst."""

    FINE = "fine"
    WATCH = "watch"
    BROKEN = "broken"

    @property
    def label(self) -> str:
        return {"fine": "Fine", "watch": "Look at it", "broken": "Broken"}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One line of the page. `remedy` is empty where nothing is to be done; `address` leads to where
    it is done."""

    name: str
    standing: Standing
    says: str
    remedy: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Work that is due: how much of it, and since when the oldest is."""

    many: int
    oldest: datetime | None


def of_backlog(name: str, kept: Backlog, now: datetime, *, remedy: str, address: str = "") -> Part:
    """Work that should have been begun: fine while it is young."""
    if not kept.many or kept.oldest is None:
        return Part(name=name, standing=Standing.FINE, says="Nothing is due.")
    late = now - kept.oldest
    says = f"{kept.many:,} due, the oldest for {duration_words(late.total_seconds())}."
    standing = Standing.BROKEN if late >= STUCK else Standing.WATCH if late >= LATE else None
    if standing is None:
        return Part(name=name, standing=Standing.FINE, says=says)
    return Part(name=name, standing=standing, says=says, remedy=remedy, address=address)


def of_count(name: str, many: int, *, what: str, remedy: str, address: str) -> Part:
    """Something of which there should be none, that somebody can put right."""
    if not many:
        return Part(name=name, standing=Standing.FINE, says=f"No {what}.")
    says = f"{many:,} {what}."
    return Part(name=name, standing=Standing.WATCH, says=says, remedy=remedy, address=address)


def of_answer(name: str, answer: str, *, remedy: str) -> Part:
    """A part that was asked whether it can work: "ok", or why not."""
    if answer == "ok":
        return Part(name=name, standing=Standing.FINE, says="Answers.")
    says = f"{answer[:1].upper()}{answer[1:]}."
    return Part(name=name, standing=Standing.BROKEN, says=says, remedy=remedy)


def worst(parts: list[Part]) -> Standing:
    """How the whole stands: as its worst part does."""
    return max((part.standing for part in parts), key=list(Standing).index, default=Standing.FINE)
