"""Asks Stripe what became of a PaymentIntent, Charge, Refund or Payout. Reads only.

No list of Stripe's can be filtered by metadata, so the list of the time in question is read whole
and our marker is looked for in each object. Top-level lists of API v1 are immediately consistent
(https://docs.stripe.com/api-v2-overview); search is not (https://docs.stripe.com/search). So it is
used only where the list is too long to be read whole: what it finds is then read from the object
itself, and what it does not find proves nothing. Where a request may have left without our marker,
events are asked too: each names the idempotency key of the request that caused it, for 30 days
(https://docs.stripe.com/api/events/object). Not finding an event proves nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import stripe

from effects.core.identity import MARKER_METADATA_KEY, read_marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import (
    CLOCK_SKEW_SECONDS,
    Delay,
    KeyLife,
    Look,
    Lookup,
    Probe,
    kept,
    looked_in_vain,
)
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.matching import Match, Seen, seen
from reconcile.adapters.stripe_client import ReadOnly, WrongAccount, client_at, forget_accounts
from reconcile.adapters.stripe_objects import (
    CHARGES,
    PAYMENT_INTENTS,
    PAYOUTS,
    REFUNDS,
    Kind,
    match,
    read_config,
    without_secrets,
)

__all__ = [
    "LOOKUPS",
    "forget_accounts",
    "look_for_charge",
    "look_for_payment_intent",
    "look_for_payout",
    "look_for_refund",
]

PAGE_SIZE: Final = 100
PAGES_MAX: Final = 50
"""Most pages of one list; an interval with more objects is read in part, and says so."""
LOOK_SECONDS_MAX: Final = 60.0
OBJECTS_BY_EVENT_MAX: Final = 5
"""Most objects that one key's events may lead to before the rest is left to a person."""

CLOCK_DIFFERENCE_NOTICED: Final = timedelta(seconds=CLOCK_SKEW_SECONDS / 2)
"""The interval is wide enough for less than this; for more it begins anew, and earlier."""
SEARCHES_MAX: Final = 3
"""Most generations whose marker is searched for, newest first."""

_KEY_MODE = re.compile(r"(?:sk|rk)_(live|test)_")


def look_for_payment_intent(probe: Probe) -> Look:
    """`lookup_kind` "stripe.payment_intents". Never raises for anything that Stripe does."""
    return _Search(probe, PAYMENT_INTENTS).look()


def look_for_refund(probe: Probe) -> Look:
    """`lookup_kind` "stripe.refunds". Never raises for anything that Stripe does."""
    return _Search(probe, REFUNDS).look()


def look_for_charge(probe: Probe) -> Look:
    """`lookup_kind` "stripe.charges". Never raises for anything that Stripe does."""
    return _Search(probe, CHARGES).look()


def look_for_payout(probe: Probe) -> Look:
    """`lookup_kind` "stripe.payouts". Never raises for anything that Stripe does."""
    return _Search(probe, PAYOUTS).look()


LOOKUPS: Final = tuple(
    Lookup(
        kind=kind,
        label=label,
        connection_kind="stripe",
        look=look,
        read_config=read_config,
    )
    for kind, label, look in (
        (
            "stripe.payment_intents",
            "Stripe: list PaymentIntents, match our marker",
            look_for_payment_intent,
        ),
        ("stripe.charges", "Stripe: list Charges, match our marker", look_for_charge),
        ("stripe.payouts", "Stripe: list Payouts, match our marker", look_for_payout),
        ("stripe.refunds", "Stripe: list Refunds, match our marker", look_for_refund),
    )
)


@dataclass(slots=True)
class _Scan:
    """What was read of one list."""

    matches: list[Match] = field(default_factory=list)
    objects: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0
    pages: int = 0
    complete: bool = False


class _Search:
    """One look-up: a list from the first grant on, then events where a marker may be missing."""

    def __init__(self, probe: Probe, kind: Kind) -> None:
        self.probe = probe
        self.kind = kind
        self.route = f"List {kind.noun}s"
        self.door = ReadOnly(probe.place.way)
        self.since = probe.since - timedelta(seconds=CLOCK_SKEW_SECONDS)
        self.deadline = time.monotonic() + LOOK_SECONDS_MAX
        self.scan = _Scan()

    def look(self) -> Look:
        fault = _fault_of_the_config(self.probe) or _fault_of_the_key(self.probe)
        if fault is not None:
            return self._failed(SightingWord.MISCONFIGURED, fault)
        try:
            return self._look()
        except (NoAnswer, NotAllowed) as error:
            look = looked_in_vain(self.probe, error, route=self.route, query=self._query())
            return replace(look, reads=len(self.door.answers) + 1)
        except stripe.StripeError as error:
            return self._failed(*_word_of_error(error), error=error)

    def _look(self) -> Look:
        try:
            client, confirmed = client_at(self.probe.place, self.door)
        except WrongAccount as error:
            return self._failed(SightingWord.MISCONFIGURED, str(error))
        self._read_list(client)
        if not self.scan.matches and not self.scan.complete and self.kind.searchable:
            self._search(client)
        if not self.scan.matches and self.probe.unmarked:
            self._read_events(client)
        said = seen(self.scan.matches, noun=self.kind.noun)
        return self._answer(said, right_place=confirmed)

    # Reading

    def _read_list(self, client: stripe.StripeClient) -> None:
        service = self.kind.service(client)
        first = self._page(service, after=None)
        earlier = self._since_by_their_clock()
        if self.since - earlier > CLOCK_DIFFERENCE_NOTICED:
            # Their clock is behind ours: what we date after `since`, they may date before it.
            self.since = earlier
            first = self._page(service, after=None)
        for page in self._pages(service, first):
            for item in page:
                self._consider(item)

    def _page(self, service: Any, *, after: str | None) -> Any:
        params: dict[str, Any] = {
            "created": {"gte": int(self.since.timestamp())},
            "limit": PAGE_SIZE,
        }
        return service.list({**params, "starting_after": after} if after else params)

    def _pages(self, service: Any, first: Any) -> Iterator[list[dict[str, Any]]]:
        page = first
        while True:
            items = [item.to_dict() for item in page.data]
            self.scan.pages += 1
            self.scan.read += len(items)
            yield items
            self.scan.complete = not page.has_more
            spent = self.scan.pages >= PAGES_MAX or time.monotonic() > self.deadline
            if self.scan.complete or spent or not items:
                return
            page = self._page(service, after=items[-1]["id"])

    def _since_by_their_clock(self) -> datetime:
        """The start of the interval, if their clock is behind ours by what `Date` says."""
        dated = self.door.answers[-1].headers.get("date", "")
        try:
            behind = parsedate_to_datetime(dated) - self.probe.asked_at
        except (TypeError, ValueError):
            return self.since
        earliest = self.probe.since + min(behind, timedelta(0))
        return earliest - timedelta(seconds=CLOCK_SKEW_SECONDS)

    def _consider(self, item: dict[str, Any]) -> None:
        text = str((item.get("metadata") or {}).get(MARKER_METADATA_KEY))
        marked = read_marker(text)
        if marked is None or marked[0] != self.probe.claim_id:
            return
        self._take(item, self.probe.markers.get(text))

    def _search(self, client: stripe.StripeClient) -> None:
        """Look for our marker in an index that is late, and read what it names from the object."""
        service = self.kind.service(client)
        for life in self.probe.generations[::-1][:SEARCHES_MAX]:
            query = f"metadata['{MARKER_METADATA_KEY}']:'{life.marker}'"
            try:
                found = service.search({"query": query, "limit": OBJECTS_BY_EVENT_MAX}).data
            except (stripe.PermissionError, stripe.InvalidRequestError):
                return  # Not every secret may search, and not finding would prove nothing.
            for item in found:
                self.route = f"Search {self.kind.noun}s by marker, then retrieve"
                self._take(service.retrieve(item.id).to_dict(), life)

    def _read_events(self, client: stripe.StripeClient) -> None:
        """Look for objects that a request with one of our keys brought about."""
        lives: dict[str, KeyLife] = {}
        params: dict[str, Any] = {
            "created": {"gte": int(self.since.timestamp())},
            "type": self.kind.events,
            "limit": PAGE_SIZE,
        }
        for _ in range(PAGES_MAX):
            page = client.v1.events.list(params)  # type: ignore[arg-type] # built above
            for event in page.data:
                key = event.request.idempotency_key if event.request else None
                life = self.probe.keys.get(key) if key else None
                if life is not None:
                    lives[str(event.data.object["id"])] = life
            if not page.has_more or not page.data or time.monotonic() > self.deadline:
                break
            params = {**params, "starting_after": page.data[-1].id}
        if not lives:
            return
        self.route = f"List Events by key, then retrieve the {self.kind.noun}"
        for object_id, life in list(lives.items())[:OBJECTS_BY_EVENT_MAX]:
            # An event holds the object as it was then; what it is now is asked of the object.
            self._take(self.kind.service(client).retrieve(object_id).to_dict(), life)

    def _take(self, item: dict[str, Any], life: KeyLife | None) -> None:
        self.scan.objects.append(without_secrets(item))
        self.scan.matches.append(match(self.probe, self.kind, item, life))

    # Answering

    def _query(self) -> str:
        markers = ", ".join(self.probe.markers)
        return (
            f"created >= {self.since:%Y-%m-%dT%H:%M:%SZ}, metadata[{MARKER_METADATA_KEY}] in "
            f"{markers}; {self.scan.read} objects on {self.scan.pages} pages"
        )

    def _answer(self, said: Seen, *, right_place: bool) -> Look:
        last = self.door.answers[-1]
        raw = json.dumps(self.scan.objects, indent=1).encode() if self.scan.objects else None
        return Look(
            word=said.word,
            why=said.why,
            route=self.route,
            query=self._query(),
            asked_at=self.probe.asked_at,
            delay_class=Delay.NONE,
            interval_from=self.since,
            interval_to=self.probe.asked_at,
            account=self.probe.place.account,
            mode=self.probe.place.mode,
            right_place=right_place,
            pages_complete=self.scan.complete,
            partly=said.partly,
            status=said.status,
            objects=said.objects,
            others=said.others,
            requested=said.requested,
            found=said.found,
            request_id=last.headers.get("request-id", ""),
            http_status=last.status,
            reads=len(self.door.answers),
            raw=kept(raw) if raw else None,
        )

    def _failed(
        self, word: SightingWord, why: str, *, error: stripe.StripeError | None = None
    ) -> Look:
        last = self.door.answers[-1] if self.door.answers else None
        retry_after = last.headers.get("retry-after", "") if last else ""
        return Look(
            word=word,
            why=why,
            route=self.route,
            query=self._query(),
            asked_at=self.probe.asked_at,
            delay_class=Delay.NONE,
            account=self.probe.place.account,
            mode=self.probe.place.mode,
            right_place=False,
            request_id=last.headers.get("request-id", "") if last else "",
            http_status=last.status if last else None,
            reads=len(self.door.answers),
            retry_after_seconds=int(retry_after) if retry_after.isdecimal() else None,
            raw=kept(last.body) if last and error is not None else None,
        )


def _fault_of_the_config(probe: Probe) -> str | None:
    try:
        read_config(probe.config)
    except ValueError as error:
        return f"This tool's look-up cannot be used: {error}."
    return None


def _fault_of_the_key(probe: Probe) -> str | None:
    if not probe.place.secret:
        return "The secret of this connection is not set in the environment of the worker."
    said = _KEY_MODE.match(probe.place.secret)
    if said is None:
        return "The secret is not a Stripe key: it starts with neither sk_ nor rk_ and a mode."
    if said[1] != probe.place.mode:
        return f"The secret is for {said[1]} mode, the workspace is {probe.place.mode}."
    return None


def _word_of_error(error: stripe.StripeError) -> tuple[SightingWord, str]:
    status = error.http_status
    said = error.user_message or str(error) or type(error).__name__
    match error:
        case stripe.RateLimitError():
            return SightingWord.RATE_LIMITED, f"Stripe asks for fewer questions: {said}"
        case stripe.AuthenticationError() | stripe.PermissionError():
            return SightingWord.MISCONFIGURED, f"Stripe does not let us ask ({status}): {said}"
        case stripe.InvalidRequestError():
            # "No such ..." is what a wrong account or mode answers too, so it is no absence.
            return SightingWord.MISCONFIGURED, f"Stripe did not understand ({status}): {said}"
        case _:
            return SightingWord.LOOKUP_FAILED, f"Stripe could not answer ({status}): {said}"
