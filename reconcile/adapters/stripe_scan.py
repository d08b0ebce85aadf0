"""One reading of a list for many claims. Reads only.

An account may read only so much (https://docs.stripe.com/rate-limits), and a list is the same list
whoever asks for it. So it is read once for all claims of one account: from now back to the first
grant of the oldest. Where that is too much, each claim whose own time was not reached is looked for
in a slice around that time, claims that lie close together in one. What no slice reached whole is
answered as read in part, which never counts as an absence.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import stripe

from effects.core.identity import read_marker
from reconcile.adapters.base import Look, Probe, Scan, Stranger
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.stripe_client import ReadOnly, WrongAccount, client_at, version_for
from reconcile.adapters.stripe_findings import Findings, fault_of, in_vain, misplaced, query_of
from reconcile.adapters.stripe_kinds import DELETED, EVENTS, LIST, SEARCH, Kind
from reconcile.adapters.stripe_objects import marker_of, read_config, stranger_of
from reconcile.adapters.stripe_reading import (
    SECONDS_MAX,
    SKEW,
    Reading,
    Window,
    objects_by_key,
    objects_by_search,
    objects_deleted,
)

STRANGERS_MAX: Final = 200
"""Most objects of nobody's that one scan names."""
SLICES_MAX: Final = 5
"""Most slices of older time that one scan reads."""
SLICE_PAGES_MAX: Final = 10
SEARCHED_MAX: Final = 10
"""Most claims that one scan searches for, each by itself."""
RETRIEVED_MAX: Final = 10
"""Most objects that one scan reads one by one, because events named them and no page held them."""
SLICE_JOINED: Final = timedelta(hours=1)
"""Claims whose times lie no further apart than this are read for in one slice,"""
SLICE_LONGEST: Final = timedelta(hours=6)
"""unless the slice would become longer than this."""
SLICE_UNSETTLED: Final = timedelta(hours=1)
"""How long after its first grant a claim is looked for, where its last send is not known."""


def scan_for(kind: Kind, probes: Sequence[Probe]) -> Scan:
    """One reading for probes of one place and one configuration. Never raises for anything that
    Stripe does."""
    together: dict[str, list[Probe]] = defaultdict(list)
    for probe in probes:
        # A claim keeps the version in which it was first asked about.
        together[probe.api_version].append(probe)
    scans = [_Scan(kind, some).scan() for some in together.values()]
    looks = {claim_id: look for scan in scans for claim_id, look in scan.looks.items()}
    owned = {name for look in looks.values() for name in (*look.objects, *look.others)}
    strangers = {o.id: o for scan in scans for o in scan.strangers if o.id not in owned}
    return Scan(
        looks=looks,
        reads=sum(scan.reads for scan in scans),
        strangers=tuple(strangers.values()),
        strangers_left_off=max((scan.strangers_left_off for scan in scans), default=0),
    )


@dataclass(slots=True)
class _Of:
    """One claim in the scan, with the reading that reached its interval or got nearest."""

    findings: Findings
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """Claims whose own time is read together."""

    since: datetime
    until: datetime
    claims: list[_Of]


class _Scan:
    def __init__(self, kind: Kind, probes: Sequence[Probe]) -> None:
        self.kind = kind
        self.probes = probes
        self.door = ReadOnly(probes[0].place.way)
        self.deadline = time.monotonic() + SECONDS_MAX
        route = LIST.of(kind.noun)
        self.claims = {
            probe.claim_id: _Of(Findings(probe=probe, kind=kind, route=route)) for probe in probes
        }
        self.strangers: dict[str, Stranger] = {}
        self.any_unmarked = any(probe.unmarked for probe in probes)
        self.unmarked: dict[str, dict[str, Any]] = {}
        self.left_off: set[str] = set()
        self.deleted_read = not kind.deleted_by
        self.error: Exception | None = None
        self.confirmed = False

    def scan(self) -> Scan:
        fault = fault_of(self.probes[0])
        if fault is not None:
            return self._all(fault)
        try:
            self._read_all()
        except WrongAccount as error:
            return self._all(str(error))
        except (NoAnswer, NotAllowed, stripe.StripeError) as error:
            self.error = error
        looks = {claim_id: self._look(one) for claim_id, one in self.claims.items()}
        return self._answer(looks)

    def _answer(self, looks: Mapping[UUID, Look]) -> Scan:
        # The scan is counted once, so nothing is counted with the looks.
        return Scan(
            looks={claim_id: replace(look, reads=0) for claim_id, look in looks.items()},
            reads=self.door.reads,
            strangers=tuple(self.strangers.values()),
            strangers_left_off=len(self.left_off),
        )

    def _all(self, why: str) -> Scan:
        route = LIST.of(self.kind.noun)
        return self._answer(
            {probe.claim_id: misplaced(probe, route, self.door, why) for probe in self.probes}
        )

    # Reading

    def _read_all(self) -> None:
        place, config = self.probes[0].place, read_config(self.probes[0].config)
        self.door.version = version_for(self.probes[0], config.api_version)
        client, self.confirmed = client_at(place, self.door)
        window = Window(
            since=min(probe.since for probe in self.probes) - SKEW,
            asked_at=max(probe.asked_at for probe in self.probes),
            deadline=self.deadline,
        )
        self._read(client, window, list(self.claims.values()))
        for one in _slices(self._left()):
            sliced = replace(window, since=one.since, until=one.until)
            self._read(client, sliced, one.claims, pages_max=SLICE_PAGES_MAX)
        self._search(client)
        self._read_deleted(client)
        self._read_events(client)

    def _left(self) -> list[_Of]:
        """The claims of which nothing was found and not everything was read."""
        return [
            one for one in self.claims.values() if not (one.findings.matches or one.findings.whole)
        ]

    def _search(self, client: stripe.StripeClient) -> None:
        """A few of the claims that no list reached, each by its own marker."""
        for one in self._left()[:SEARCHED_MAX]:
            findings = one.findings
            for item, life in objects_by_search(client, self.kind, findings.probe.generations):
                findings.route = SEARCH.of(self.kind.noun)
                findings.take(item, life)

    def _read_deleted(self, client: stripe.StripeClient) -> None:
        missing = {i: one for i, one in self.claims.items() if not one.findings.matches}
        if not missing:
            return
        since = min(one.findings.probe.since for one in missing.values()) - SKEW
        for item in objects_deleted(client, self.kind, since=since, deadline=self.deadline):
            marked = read_marker(marker_of(item))
            if marked is not None and marked[0] in missing:
                findings = missing[marked[0]].findings
                findings.route = DELETED.of(self.kind.noun)
                findings.take(item, findings.probe.markers.get(marker_of(item)))
        self.deleted_read = True

    def _read_events(self, client: stripe.StripeClient) -> None:
        """Give an object without our marker to the claim with whose key it was made."""
        every = (one.findings for one in self.claims.values())
        missing = [f for f in every if f.probe.unmarked and not f.matches]
        if not self.unmarked and all(findings.whole for findings in missing):
            missing = []  # Everything that is there carries a marker.
        if not missing:
            return
        keys = {key: (f, life) for f in missing for key, life in f.probe.keys.items()}
        since = min(findings.probe.since for findings in missing) - SKEW
        made = objects_by_key(client, self.kind, keys, since=since, deadline=self.deadline)
        beyond = [object_id for object_id in made if object_id not in self.unmarked]
        for object_id in beyond[:RETRIEVED_MAX]:
            item = self.kind.service(client).retrieve(object_id).to_dict()
            self.unmarked[object_id] = item
        for object_id, (findings, life) in made.items():
            if object_id in self.unmarked:
                findings.route = EVENTS.of(self.kind.noun)
                findings.take(self.unmarked[object_id], life)
                self.strangers.pop(object_id, None)

    def _read(
        self,
        client: stripe.StripeClient,
        window: Window,
        claims: list[_Of],
        pages_max: int | None = None,
    ) -> None:
        filters = self.kind.listed_with
        reading = Reading(self.door, window, filters=filters, pages_max=pages_max)
        for one in claims:
            one.reading = reading
        where = read_config(self.probes[0].config).marker_in
        try:
            for item in reading.items(self.kind.service(client)):
                self._sort(item, marker_of(item, where))
        finally:
            # What was read before an error is known all the same.
            for one in claims:
                one.findings.of(reading)

    def _sort(self, item: dict[str, Any], text: str) -> None:
        marked = read_marker(text)
        owner = self.claims.get(marked[0]) if marked is not None else None
        if owner is not None:
            owner.findings.take(item, owner.findings.probe.markers.get(text))
            return
        if marked is None and self.any_unmarked:
            self.unmarked[str(item["id"])] = item
        if str(item["id"]) in self.strangers:
            return
        if len(self.strangers) >= STRANGERS_MAX:
            self.left_off.add(str(item["id"]))
            return
        stranger = stranger_of(self.kind, item, marker=text if marked is not None else "")
        self.strangers[stranger.id] = stranger

    def _look(self, one: _Of) -> Look:
        probe = one.findings.probe
        query = f"one reading for {len(self.probes)} calls: {query_of(probe, one.reading)}"
        seen_none = one.findings.whole and self.deleted_read
        if self.error is not None and not (one.findings.matches or seen_none):
            route = one.findings.route
            return in_vain(probe, route, self.door, error=self.error, query=query)
        return one.findings.look(self.door, right_place=self.confirmed, query=query)


def _slices(claims: list[_Of]) -> list[_Slice]:
    """The times around these claims, those with most claims first."""
    slices: list[_Slice] = []
    for one in sorted(claims, key=lambda one: one.findings.probe.since):
        probe = one.findings.probe
        settled = probe.settled_from or probe.since + SLICE_UNSETTLED
        since, until = probe.since - SKEW, min(settled, probe.asked_at) + SKEW
        last = slices[-1] if slices else None
        if (
            last is not None
            and since <= last.until + SLICE_JOINED
            and until - last.since <= SLICE_LONGEST
        ):
            until = max(until, last.until)
            slices[-1] = _Slice(since=last.since, until=until, claims=[*last.claims, one])
        else:
            slices.append(_Slice(since=since, until=until, claims=[one]))
    return sorted(slices, key=lambda one: -len(one.claims))[:SLICES_MAX]
