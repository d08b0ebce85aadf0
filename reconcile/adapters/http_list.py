"""Asks for a list of the time in question and looks for many calls' references in it at once.

For a provider that has no question by key or reference, and for one where a list costs less: one
reading of the interval answers for every call that was open in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote

from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Reading,
    Told,
    all_alike,
    begun,
    checked_place,
    in_vain,
    misconfigured,
    one_of,
    read_pages,
    sort_out,
    unusable,
    window_of,
    written,
)
from reconcile.adapters.base import CLOCK_SKEW_SECONDS, Look, MatchedBy, Probe, Scan
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.http_config import HttpList, read_list_config
from reconcile.adapters.http_pages import HttpPages

LIST_ROUTE: Final = "List of the time in question"
CLOCK_DIFFERENCE_NOTICED: Final = timedelta(seconds=CLOCK_SKEW_SECONDS / 2)
"""The interval is wide enough for less than this; for more it is read anew, and begins earlier."""


def look_in_list(probe: Probe) -> Look:
    """`lookup_kind` "http.list". Never raises for anything that a provider does."""
    return one_of(look_in_list_for_many([probe]), probe)


def look_in_list_for_many(probes: Sequence[Probe]) -> Scan:
    """One reading for calls of one place and one entry; `probes` holds at least one."""
    first = probes[0]
    try:
        config = read_list_config(first.config)
    except ValueError as error:
        return all_alike(probes, misconfigured(first, unusable(error), LIST_ROUTE), reads=0)
    if not first.place.secret:
        return all_alike(probes, misconfigured(first, NOT_SET, LIST_ROUTE), reads=0)
    return _ListReading(probes, config).scan()


class _ListReading:
    def __init__(self, probes: Sequence[Probe], config: HttpList) -> None:
        self.probes = probes
        self.config = config
        self.told = Told()
        self.since, self.until = window_of(probes)
        base = begun(probes[0], LIST_ROUTE, rules=config)
        # A member that is ours alone is in an object only if the request carried it.
        by_marker = config.reference == "marker"
        self.base = replace(base, matched_by=MatchedBy.MARKER if by_marker else MatchedBy.REFERENCE)

    def scan(self) -> Scan:
        try:
            reading = self._read()
            behind = self._clock_behind()
            if behind > CLOCK_DIFFERENCE_NOTICED:
                # Their clock is behind ours: what we date after `since`, they may date before it.
                self.since -= behind
                reading = self._read()
        except (CannotSay, NoAnswer, NotAllowed) as error:
            look = in_vain(self.base, error, self.told)
            return all_alike(self.probes, look, reads=self.told.reads)
        counted = f"{len(reading.items)} objects on {reading.pages} pages"
        self.base = replace(
            self.base,
            query=f"{self.base.query}; {counted}",
            interval_from=self.since,
            interval_to=self.probes[0].asked_at,
        )
        return sort_out(self.probes, self.config, reading, self.base, self.told)

    def _read(self) -> Reading:
        path = self.config.url.format(
            since=self._written(self.since), until=self._written(self.until)
        )
        self.base = replace(self.base, query=f"GET {path}")
        pages = HttpPages(self.probes[0].place, self.config, path, self.told)
        reading = read_pages(pages.ask)
        self.base = checked_place(self.base, self.config.account, pages.account)
        return reading

    def _written(self, instant: datetime) -> str:
        return quote(written(instant, self.config.instants), safe="")

    def _clock_behind(self) -> timedelta:
        try:
            return self.probes[0].asked_at - parsedate_to_datetime(self.told.dated)
        except (TypeError, ValueError):
            return timedelta(0)
