"""Asks Stripe what became of a call that makes an object of its. Reads only.

No list of Stripe's can be filtered by metadata, so the list of the time in question is read whole
and our marker is looked for in each object. Top-level lists of API v1 are immediately consistent
(https://docs.stripe.com/api-v2-overview); search is not (https://docs.stripe.com/search). So it is
used only where the list is too long to be read whole: what it finds is then read from the object
itself, and what it does not find proves nothing. Where a request may have left without our marker,
events are asked too: each names the idempotency key of the request that caused it, for 30 days
(https://docs.stripe.com/api/events/object). Not finding an event proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import stripe

from effects.core.identity import read_marker
from reconcile.adapters.base import Look, Lookup, Probe
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.stripe_client import (
    ReadOnly,
    WrongAccount,
    client_at,
    forget_accounts,
    version_for,
)
from reconcile.adapters.stripe_findings import (
    Findings,
    fault_of,
    in_vain,
    misplaced,
    query_of,
)
from reconcile.adapters.stripe_kinds import (
    BY_GROUP,
    DELETED,
    EVENTS,
    KIND_OF_LOOKUP,
    LIST,
    SEARCH,
    Kind,
)
from reconcile.adapters.stripe_objects import MarkerIn, marker_of, read_config
from reconcile.adapters.stripe_reading import (
    SECONDS_MAX,
    SKEW,
    Reading,
    Window,
    objects_by_key,
    objects_by_search,
    objects_deleted,
)
from reconcile.adapters.stripe_scan import scan_for
from reconcile.adapters.stripe_updates import (
    UPDATE_ROUTES,
    look_for_update,
    read_update_config,
)

__all__ = ["LOOKUPS", "forget_accounts"]

OBJECTS_BY_EVENT_MAX: Final = 5
"""Most objects that one key's events may lead to before the rest is left to a person."""


class _LookUp:
    """One look-up: a list from the first grant on, then the weaker routes where it may not show
    everything."""

    def __init__(self, probe: Probe, kind: Kind) -> None:
        self.probe = probe
        self.kind = kind
        self.door = ReadOnly(probe.place.way)
        self.deadline = time.monotonic() + SECONDS_MAX
        self.reading: Reading | None = None
        self.findings = Findings(probe=probe, kind=kind, route=LIST.of(kind.noun))

    def look(self) -> Look:
        fault = fault_of(self.probe)
        if fault is not None:
            return misplaced(self.probe, self.findings.route, self.door, fault)
        try:
            return self._look()
        except WrongAccount as error:
            return misplaced(self.probe, self.findings.route, self.door, str(error))
        except (NoAnswer, NotAllowed, stripe.StripeError) as error:
            query = query_of(self.probe, self.reading)
            return in_vain(self.probe, self.findings.route, self.door, error=error, query=query)

    def _look(self) -> Look:
        config, findings = read_config(self.probe.config), self.findings
        self.door.version = version_for(self.probe, config.api_version)
        client, confirmed = client_at(self.probe.place, self.door)
        if config.marker_in is MarkerIn.TRANSFER_GROUP and self.kind.has_group:
            self._read_groups(client)
        else:
            self._read_list(client, config.marker_in)
        if not findings.matches:
            weaker = self._read_deleted if findings.whole else self._search
            weaker(client)
        if not findings.matches and self.probe.unmarked:
            self._read_events(client)
        query = query_of(self.probe, self.reading)
        return findings.look(self.door, right_place=confirmed, query=query)

    # The list

    def _read_list(self, client: stripe.StripeClient, where: MarkerIn) -> None:
        self._read(client, self._window(), where)
        settled = self.probe.settled_from
        if self.findings.matches or self.findings.whole or settled is None:
            return
        if settled < self.probe.asked_at - SKEW:
            # Too much was made since. The call's own time may still be short enough.
            self._read(client, self._window(until=settled + SKEW), where)

    def _read_groups(self, client: stripe.StripeClient) -> None:
        """Each generation's own list. All of them have to be whole."""
        self.findings.route = BY_GROUP.of(self.kind.noun)
        whole = True
        for life in self.probe.generations:
            group = {"transfer_group": life.marker}
            self._read(client, self._window(), MarkerIn.TRANSFER_GROUP, group)
            whole = whole and self.findings.whole
        self.findings.whole = whole

    def _window(self, until: datetime | None = None) -> Window:
        return Window(
            since=self.probe.since - SKEW,
            until=until,
            asked_at=self.probe.asked_at,
            deadline=self.deadline,
        )

    def _read(
        self,
        client: stripe.StripeClient,
        window: Window,
        where: MarkerIn,
        group: Mapping[str, str] | None = None,
    ) -> None:
        filters = {**self.kind.listed_with, **(group or {})}
        self.reading = Reading(self.door, window, filters=filters)
        for item in self.reading.items(self.kind.service(client)):
            text = marker_of(item, where)
            if self._is_ours(text):
                self.findings.take(item, self.probe.markers.get(text))
        self.findings.of(self.reading)

    def _is_ours(self, text: str) -> bool:
        marked = read_marker(text)
        return marked is not None and marked[0] == self.probe.claim_id

    # The weaker routes

    def _search(self, client: stripe.StripeClient) -> None:
        for item, life in objects_by_search(client, self.kind, self.probe.generations):
            self.findings.route = SEARCH.of(self.kind.noun)
            self.findings.take(item, life)

    def _read_deleted(self, client: stripe.StripeClient) -> None:
        since = self.probe.since - SKEW
        for item in objects_deleted(client, self.kind, since=since, deadline=self.deadline):
            if self._is_ours(marker_of(item)):
                self.findings.route = DELETED.of(self.kind.noun)
                self.findings.take(item, self.probe.markers.get(marker_of(item)))

    def _read_events(self, client: stripe.StripeClient) -> None:
        """Look for objects that a request with one of our keys brought about."""
        lives = objects_by_key(
            client,
            self.kind,
            self.probe.keys,
            since=self.probe.since - SKEW,
            deadline=self.deadline,
        )
        if not lives:
            return
        self.findings.route = EVENTS.of(self.kind.noun)
        for object_id, life in list(lives.items())[:OBJECTS_BY_EVENT_MAX]:
            self.findings.take(self.kind.service(client).retrieve(object_id).to_dict(), life)


def look_for(kind: Kind) -> Callable[[Probe], Look]:
    """The look-up of one kind. It never raises for anything that Stripe does."""
    return lambda probe: _LookUp(probe, kind).look()


def _lookup(word: str, kind: Kind) -> Lookup:
    return Lookup(
        kind=word,
        label=f"Stripe: list {kind.noun}s, match our marker",
        connection_kind="stripe",
        look=look_for(kind),
        look_many=partial(scan_for, kind),
        read_config=read_config,
        contract="stripe.v1",
        routes=kind.routes,
    )


LOOKUPS: Final = (
    *(_lookup(word, kind) for word, kind in KIND_OF_LOOKUP.items()),
    Lookup(
        kind="stripe.updates",
        label="Stripe: retrieve the object that the call changes, match our marker",
        connection_kind="stripe",
        look=look_for_update,
        read_config=read_update_config,
        contract="stripe.v1",
        routes=UPDATE_ROUTES,
    ),
)
