"""The drawing of a turn in one person's zone, with what it says in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from effects.pages.settings import ShownTimes
from ledger.turn_lanes import Drawing, draw
from ledger.turn_parts.axis import offset_words
from ledger.turn_parts.marks import picture_of

if TYPE_CHECKING:
    from ledger.turn_parts.loading import TurnFacts

MARKS_MAX: Final = 60
MARKS_EVER_MAX: Final = 600
"""Most marks that are drawn at all; the table below has everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A turn's drawing. `no_return` is the first moment at which an effect may have left, `by`
    what may have sent it."""

    drawing: Drawing
    start: datetime
    no_return: datetime | None
    by: str
    zone: str

    def offset(self, at: datetime) -> str:
        """How long after the turn's beginning, in words."""
        return offset_words((at - self.start).total_seconds())

    @property
    def no_return_offset(self) -> str:
        return "" if self.no_return is None else self.offset(self.no_return)


def drawn_of(facts: TurnFacts, times: ShownTimes, *, idle: bool, everything: bool) -> Drawn | None:
    """The drawing; None where nothing is known of the turn."""
    picture = picture_of(facts)
    if picture is None:
        return None
    clock = _Clock(start=picture.start, times=times)
    drawing = draw(
        picture.marks,
        picture.lines,
        idle=idle,
        marks_max=MARKS_EVER_MAX if everything else MARKS_MAX,
        clock=clock.at,
    )
    return Drawn(
        drawing=drawing,
        start=picture.start,
        no_return=picture.no_return,
        by=picture.by,
        zone=times.exact_zone,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clock:
    """Times of day in a zone, with the day where it is another than that of the beginning."""

    start: datetime
    times: ShownTimes

    def at(self, seconds: float) -> str:
        first, instant = self._local(0.0), self._local(seconds)
        if instant.date() == first.date():
            return f"{instant:%H:%M:%S}"
        return f"{instant:%-d %b %H:%M}"

    def _local(self, seconds: float) -> datetime:
        try:
            return self.times.local(self.start + timedelta(seconds=seconds))
        except OverflowError:  # A rounded second after the last one there is.
            return self.start
