"""Reads Stripe's lists from now back to an instant, page by page, within limits.

Lists come newest first (https://docs.stripe.com/api/pagination). So a reading that has to end early
has still read everything from some instant on, and can say which.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import stripe

from effects.core.identity import MARKER_METADATA_KEY, read_marker
from reconcile.adapters.base import CLOCK_SKEW_SECONDS, KeyLife
from reconcile.adapters.stripe_client import ReadOnly
from reconcile.adapters.stripe_kinds import GONE, Kind
from reconcile.adapters.stripe_objects import is_replaced, marker_of

PAGE_SIZE: Final = 100
PAGES_MAX: Final = 50
"""Most pages of one list; an interval with more objects is read in part, and says so."""
SECONDS_MAX: Final = 60.0
"""Longest that one look-up, or one reading for many, goes on."""
SKEW: Final = timedelta(seconds=CLOCK_SKEW_SECONDS)
CLOCK_DIFFERENCE_NOTICED: Final = SKEW / 2
"""An interval is wide enough for less than this; for more it begins anew, and earlier."""


EVENTS_PAGE_SIZE: Final = 100
SEARCHES_MAX: Final = 3
"""Most generations whose marker is searched for, newest first."""
OBJECTS_SEARCHED_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is to be read, by our clock: from `until` (`asked_at` where it is None) back to `since`.
    `deadline` is on the monotonic clock."""

    since: datetime
    asked_at: datetime
    deadline: float
    until: datetime | None = None


class Reading:
    """One list, read over a window with `filters`.

    Where the provider's `Date` shows another time than ours, the window becomes wider: `since`
    moves back by `behind`, `until` on.
    """

    def __init__(
        self,
        door: ReadOnly,
        window: Window,
        *,
        filters: Mapping[str, str],
        pages_max: int | None = None,
    ) -> None:
        self._door = door
        self.since = window.since
        self.until = window.until
        self.asked_at = window.asked_at
        self.deadline = window.deadline
        self.filters = dict(filters)
        self.pages_max = PAGES_MAX if pages_max is None else pages_max
        self.behind = timedelta(0)
        self.read = 0
        self.pages = 0
        self.complete = False
        self._oldest: int | None = None
        self._replaced: list[datetime] = []

    def items(self, service: Any) -> Iterator[dict[str, Any]]:
        """Every object, newest first. Raises Stripe's errors, `NoAnswer` and `NotAllowed`."""
        page = self._page(service, after=None)
        if self._widened():
            page = self._page(service, after=None)
        while True:
            items = [item.to_dict() for item in page.data]
            self.pages += 1
            self.read += len(items)
            for item in items:
                self._note(item)
                yield item
            self.complete = not page.has_more
            if items:
                self._oldest = int(items[-1]["created"])
            spent = self.pages >= self.pages_max or time.monotonic() > self.deadline
            if self.complete or spent or not items:
                return
            page = self._page(service, after=items[-1]["id"])

    def covers(self, start: datetime) -> bool:
        """Whether everything that was created from `start` on has been read."""
        if self.complete:
            return start >= self.since
        # The next page may begin in the second in which this one ends.
        return self._oldest is not None and int(start.timestamp()) > self._oldest

    def _note(self, item: Mapping[str, Any]) -> None:
        marked, created = read_marker(marker_of(item)), item.get("created")
        if marked is not None and isinstance(created, int):
            made = datetime.fromtimestamp(created, UTC) + self.behind
            if is_replaced(marked, made + SKEW):
                self._replaced.append(made)

    def replaced_since(self, start: datetime) -> int:
        """How many objects from `start` on have lost the marker with which they were made."""
        return sum(made >= start for made in self._replaced)

    @property
    def reached(self) -> datetime:
        """How far back it got."""
        if self.complete:
            return self.since
        return self.asked_at if self._oldest is None else datetime.fromtimestamp(self._oldest, UTC)

    @property
    def described(self) -> str:
        """The interval and what was read of it, for people."""
        until = f", <= {self.until:%Y-%m-%dT%H:%M:%SZ}" if self.until else ""
        return f"created >= {self.since:%Y-%m-%dT%H:%M:%SZ}{until}"

    @property
    def extent(self) -> str:
        return f"{self.read} objects on {self.pages} pages"

    def _page(self, service: Any, *, after: str | None) -> Any:
        created = {"gte": int(self.since.timestamp())}
        if self.until is not None:
            created["lte"] = int(self.until.timestamp())
        cursor = {"starting_after": after} if after else {}
        return service.list({"created": created, "limit": PAGE_SIZE, **self.filters, **cursor})

    def _widened(self) -> bool:
        """Whether the interval had to be: what we date within it, they may date outside."""
        difference = self._difference()
        if difference < -CLOCK_DIFFERENCE_NOTICED:
            self.behind = -difference
            self.since -= self.behind
            return True
        if self.until is not None and difference > CLOCK_DIFFERENCE_NOTICED:
            self.until += difference
            return True
        return False

    def _difference(self) -> timedelta:
        """Their clock less ours, as far as `Date` says it."""
        dated = self._door.last.headers.get("date", "") if self._door.last else ""
        try:
            said = parsedate_to_datetime(dated)
        except (TypeError, ValueError):
            return timedelta(0)
        return (said if said.tzinfo else said.replace(tzinfo=UTC)) - self.asked_at


class Events:
    """Events of one type, or of several ("invoice.*"), newest first, back to `since`. Reading them
    raises as `Reading` does; `complete` says afterwards whether they were all."""

    def __init__(
        self, client: stripe.StripeClient, kind: str, *, since: datetime, deadline: float
    ) -> None:
        self._client = client
        self._params: dict[str, Any] = {
            "created": {"gte": int(since.timestamp())},
            "type": kind,
            "limit": EVENTS_PAGE_SIZE,
        }
        self._deadline = deadline
        self.complete = False

    def __iter__(self) -> Iterator[stripe.Event]:
        params = self._params
        for _ in range(PAGES_MAX):
            page = self._client.v1.events.list(params)  # type: ignore[arg-type] # built above
            yield from page.data
            self.complete = not page.has_more
            if self.complete or not page.data or time.monotonic() > self._deadline:
                return
            params = {**params, "starting_after": page.data[-1].id}


def key_of(event: stripe.Event) -> str:
    """The idempotency key of the request that caused the event, empty where none did."""
    return (event.request.idempotency_key or "") if event.request else ""


def objects_by_key[Life](
    client: stripe.StripeClient,
    kind: Kind,
    keys: Mapping[str, Life],
    *,
    since: datetime,
    deadline: float,
) -> dict[str, Life]:
    """Ids of objects that a request with one of these keys brought about, as far as events tell.

    An event holds the object as it was then, so only its id is taken. Raises as `Reading` does.
    """
    found: dict[str, Life] = {}
    for event in Events(client, kind.events, since=since, deadline=deadline):
        key = key_of(event)
        # "charge.*" also tells of disputes and refunds.
        if key in keys and event.data.object["object"] == kind.object:
            found[str(event.data.object["id"])] = keys[key]
    return found


def objects_deleted(
    client: stripe.StripeClient, kind: Kind, *, since: datetime, deadline: float
) -> Iterator[dict[str, Any]]:
    """What was deleted, as it was last; nothing where the secret may not read events."""
    if not kind.deleted_by:
        return
    try:
        for event in Events(client, kind.deleted_by, since=since, deadline=deadline):
            yield {**event.to_dict()["data"]["object"], "status": GONE}
    except (stripe.PermissionError, stripe.InvalidRequestError):
        return


def objects_by_search(
    client: stripe.StripeClient, kind: Kind, lives: Sequence[KeyLife]
) -> Iterator[tuple[dict[str, Any], KeyLife]]:
    """Look for our marker in an index that is late, and read what it names from the object.

    Nothing where the secret may not search: not finding would prove nothing either.
    """
    if not kind.searchable:
        return
    service = kind.service(client)
    for life in lives[::-1][:SEARCHES_MAX]:
        query = f"metadata['{MARKER_METADATA_KEY}']:'{life.marker}'"
        try:
            found = service.search({"query": query, "limit": OBJECTS_SEARCHED_MAX}).data
        except (stripe.PermissionError, stripe.InvalidRequestError):
            return
        for item in found:
            yield service.retrieve(item.id).to_dict(), life
