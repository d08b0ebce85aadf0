"""Times in words. Nothing here reads a clock: `now` is always given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

MINUTE_SECONDS: Final = 60
HOUR_SECONDS: Final = 60 * MINUTE_SECONDS
DAY_SECONDS: Final = 24 * HOUR_SECONDS

SOON_SHARE: Final = 0.25
"""With less than this share of the window left, its bar turns amber and gets a clock."""
CHECKS_BEFORE_DEADLINE: Final = (timedelta(hours=2), timedelta(minutes=15))
"""The look-ups that are always made before a window closes; drawn as notches."""

WindowKind = Literal["open", "soon", "gone", "none", "unpub"]


def duration_words(seconds: float) -> str:
    """A length of time in at most two units, cut and never rounded up: "1 h 12 m", "34 m", "12 s".

    Cutting matters for deadlines: nobody may be shown more time than there is.
    """
    whole = max(0, int(seconds))
    if whole < MINUTE_SECONDS:
        return f"{whole} s"
    if whole < HOUR_SECONDS:
        return f"{whole // MINUTE_SECONDS} m"
    if whole < DAY_SECONDS:
        return _two(whole, HOUR_SECONDS, "h", MINUTE_SECONDS, "m", pad=2)
    if whole < 14 * DAY_SECONDS:
        return _two(whole, DAY_SECONDS, "d", HOUR_SECONDS, "h", pad=1)
    return f"{whole // DAY_SECONDS} d"


def _two(whole: int, big: int, big_word: str, small: int, small_word: str, *, pad: int) -> str:
    rest = whole % big // small
    head = f"{whole // big} {big_word}"
    return f"{head} {rest:0{pad}d} {small_word}" if rest else head


_PART = re.compile(
    r"\s*([0-9]{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)(?![a-z])\s*", re.IGNORECASE
)
_SECONDS_OF: Final = {"s": 1, "m": MINUTE_SECONDS, "h": HOUR_SECONDS, "d": DAY_SECONDS}


def read_duration(text: str) -> int | None:
    """Seconds from what a person writes: "24 h", "1 m 30 s", "30 days"; None if it is no duration.

    A number without a unit is none: 24 may be hours or seconds, and a deadline hangs on it.
    """
    seconds, end = 0, 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            return None
        seconds += int(part[1]) * _SECONDS_OF[part[2][0].lower()]
        end = part.end()
    return seconds if end else None


def write_duration(seconds: int) -> str:
    """The exact counterpart of `read_duration`, in as many units as it takes: "2 m 20 s".

    Days begin with the second one: providers, and so people, say 24 hours.
    """
    parts = []
    for unit in ("d", "h", "m", "s") if seconds >= 2 * DAY_SECONDS else ("h", "m", "s"):
        count, seconds = divmod(seconds, _SECONDS_OF[unit])
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def relative_words(instant: datetime, now: datetime) -> str:
    """How far `instant` is from `now`: "in 34 m", "12 s ago", or "now" within the same second."""
    seconds = (instant - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    words = duration_words(abs(seconds))
    return f"in {words}" if seconds > 0 else f"{words} ago"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A safe-retry window as it is drawn.

    `share` is the part that is left, from 0 to 1; `checks` are places of the notches, counted from
    the window's start, from 0 to 1. `until` is None where no deadline exists or is published.
    """

    kind: WindowKind
    until: datetime | None = None
    share: float = 0.0
    checks: tuple[float, ...] = ()


def window_of(*, keyed: bool, start: datetime, until: datetime | None, now: datetime) -> Window:
    """What is left of a window that opened at `start`; its last instant is already too late."""
    if not keyed:
        return Window(kind="none")
    if until is None:
        return Window(kind="unpub")
    if until <= now:
        return Window(kind="gone", until=until)
    length = max((until - start).total_seconds(), 1.0)
    share = min((until - now).total_seconds() / length, 1.0)
    places = (1 - before.total_seconds() / length for before in CHECKS_BEFORE_DEADLINE)
    return Window(
        kind="soon" if share < SOON_SHARE else "open",
        until=until,
        share=share,
        checks=tuple(place for place in places if place > 0),
    )
