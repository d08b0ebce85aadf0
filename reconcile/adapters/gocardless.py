"""Asks GoCardless for payments or refunds of the time in question that bear our marker. Reads only.

Lists are filtered by ``created_at`` and, for payments, by ``creditor``, come newest first with a
cursor, and show each object's metadata (https://developer.gocardless.com/api-reference, sections on
pagination, metadata, payments and refunds); no filter asks for metadata or for a key. One list
serves every call that was open in its interval. How soon an object is listed is not published, so
an absence is no proof unless the registry entry says so.

A key that made something is answered with 409 and the id of it. Where an attempt's report names
such an object and the list does not show it, it is retrieved.

A payment by direct debit is only asked for when it is made: until it is ``confirmed`` the money may
still not come, and even then it may be charged back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from effects.core.identity import MARKER_METADATA_KEY, read_marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Page,
    Reading,
    Told,
    all_alike,
    as_evidence,
    begun,
    completed,
    in_vain,
    misconfigured,
    one_of,
    read_pages,
    seen_in,
    sort_out,
    unreadable,
    unusable,
    window_of,
    written,
)
from reconcile.adapters.base import (
    CLOCK_SKEW_SECONDS,
    Look,
    Lookup,
    MatchedBy,
    Place,
    Probe,
    Route,
    Scan,
)
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.object_rules import ObjectRules, checked_items, match_of
from reconcile.adapters.rest import (
    ProviderLookup,
    Rest,
    account_is_known,
    checked_mode,
    host_mode,
    member,
    placed,
    read_as,
    remember_account,
)
from reconcile.adapters.stripe_objects import is_replaced

API_VERSION: Final = "2015-07-06"
PAGE_SIZE: Final = 500
NAMED_MAX: Final = 5
"""Most objects that reports named of which each is retrieved, the latest first."""
HOSTS: Final = {"api.gocardless.com": "live", "api-sandbox.gocardless.com": "test"}
CLOCK_DIFFERENCE_NOTICED: Final = timedelta(seconds=CLOCK_SKEW_SECONDS / 2)
"""The interval is wide enough for less than this; for more it is read anew, and begins earlier."""
PAYMENT_WORDS: Final = {
    "confirmed": SightingWord.FOUND,
    "paid_out": SightingWord.FOUND,
    "pending_customer_approval": SightingWord.PENDING,
    "pending_submission": SightingWord.PENDING,
    "submitted": SightingWord.PENDING,
    # A payment that failed may be tried again by hand: it is there, and nothing is final.
    "failed": SightingWord.FOUND_DIFFERENT,
    "cancelled": SightingWord.FOUND_DIFFERENT,
    "customer_approval_denied": SightingWord.FOUND_DIFFERENT,
    "charged_back": SightingWord.FOUND_DIFFERENT,
}
REFUND_WORDS: Final = {
    "paid": SightingWord.FOUND,
    "created": SightingWord.PENDING,
    "pending_submission": SightingWord.PENDING,
    "submitted": SightingWord.PENDING,
    "bounced": SightingWord.FOUND_DIFFERENT,
    "cancelled": SightingWord.FOUND_DIFFERENT,
    "failed": SightingWord.FOUND_DIFFERENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of object. `name` is its list's, `prefix` how its ids begin; `by_creditor`: the list
    knows that filter."""

    name: str
    prefix: str
    words: Mapping[str, SightingWord]
    by_creditor: bool

    @property
    def route(self) -> str:
        return f"List {self.name} of the time in question"

    @property
    def named_route(self) -> str:
        return f"Retrieve what an answer named of the {self.name}"


PAYMENTS: Final = Kind(name="payments", prefix="PM", words=PAYMENT_WORDS, by_creditor=True)
REFUNDS: Final = Kind(name="refunds", prefix="RF", words=REFUND_WORDS, by_creditor=False)

read_config: Final = read_as(ProviderLookup)


def look_for_many(kind: Kind, probes: Sequence[Probe]) -> Scan:
    """One reading for calls of one place and one entry; `probes` holds at least one."""
    first = probes[0]
    try:
        rules = read_config(first.config).rules(
            kind.words,
            reference="marker",
            reference_field=f"metadata.{MARKER_METADATA_KEY}",
            amount="amount",
            currency="currency",
            created="created_at",
        )
    except ValueError as error:
        return all_alike(probes, misconfigured(first, unusable(error), kind.route), reads=0)
    if not first.place.secret:
        return all_alike(probes, misconfigured(first, NOT_SET, kind.route), reads=0)
    return _Listing(kind, probes, rules).scan()


def look_for_one(kind: Kind, probe: Probe) -> Look:
    """Never raises for anything that a provider does."""
    return one_of(look_for_many(kind, [probe]), probe)


LOOKUPS: Final = tuple(
    Lookup(
        kind=f"gocardless.{kind.name}",
        label=f"GoCardless: list {kind.name}, match our marker",
        connection_kind="gocardless",
        look=partial(look_for_one, kind),
        read_config=read_config,
        look_many=partial(look_for_many, kind),
        contract="gocardless",
        routes=(
            Route(
                name=kind.route,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.MARKER,
            ),
            Route(
                name=kind.named_route,
                delay_class=None,
                proves_absence=False,
                matched_by=MatchedBy.REFERENCE,
            ),
        ),
    )
    for kind in (PAYMENTS, REFUNDS)
)


class _Listing:
    """One reading of one list."""

    def __init__(self, kind: Kind, probes: Sequence[Probe], rules: ObjectRules) -> None:
        self.kind = kind
        self.probes = probes
        self.rules = rules
        self.told = Told()
        version = {"GoCardless-Version": API_VERSION}
        self.rest = Rest(probes[0].place, self.told, headers=version)
        # No end is asked for: their clock may be ahead of ours, and what is new comes first anyway.
        self.since, _ = window_of(probes)
        base = begun(probes[0], kind.route, rules=rules)
        self.base = replace(base, matched_by=MatchedBy.MARKER)

    @property
    def place(self) -> Place:
        return self.probes[0].place

    def scan(self) -> Scan:
        try:
            self._check_the_place()
            reading = self._read()
            behind = self._clock_behind()
            if behind > CLOCK_DIFFERENCE_NOTICED:
                # Their clock is behind ours: what we date after `since`, they may date before it.
                self.since -= behind
                reading = self._read()
        except (CannotSay, NoAnswer, NotAllowed) as error:
            look = in_vain(replace(self.base, right_place=False), error, self.told)
            return all_alike(self.probes, look, reads=self.told.reads)
        self.base = replace(
            self.base,
            query=f"{self.base.query}; {len(reading.items)} objects on {reading.pages} pages",
            interval_from=self.since,
        )
        replaced = sum(_is_replaced(item) for item in reading.items)
        # Metadata can be written anew: what such an object was made for, nobody can see any more.
        reading.complete &= not replaced
        scan = sort_out(self.probes, self.rules, reading, self.base, self.told)
        if replaced:
            scan = replace(scan, looks={name: _doubted(one) for name, one in scan.looks.items()})
        looks = {probe.claim_id: self._with_named(probe, scan) for probe in self.probes}
        return replace(scan, looks=looks, reads=self.told.reads)

    def _with_named(self, probe: Probe, scan: Scan) -> Look:
        """The call's look; where it shows nothing, what the objects say that its reports named."""
        listed = scan.looks[probe.claim_id]
        if listed.word is not SightingWord.ABSENT or listed.others or not probe.named:
            return listed
        named = probe.named[-NAMED_MAX:]
        base = replace(
            self.base,
            route=self.kind.named_route,
            matched_by=MatchedBy.REFERENCE,
            asked_at=probe.asked_at,
            query=f"GET /{self.kind.name}/ {', '.join(named)}",
        )
        try:
            items = [item for one in named for item in self._retrieved(one, probe)]
            matches = [
                match_of(probe, self.rules, item, probe.markers.get(_marker_of(item)))
                for item in items
            ]
        except (CannotSay, NoAnswer, NotAllowed) as error:
            return replace(in_vain(base, error, self.told), reads=0)
        except ValueError as error:
            return replace(base, word=SightingWord.UNMAPPED, why=unreadable(error))
        if not matches:
            return listed
        look = completed(seen_in(base, matches, complete=True), self.told, raw=as_evidence(items))
        return replace(look, reads=0)

    def _retrieved(self, object_id: str, probe: Probe) -> list[dict[str, Any]]:
        """The named object, unless it is of another kind, gone, or bears another call's marker."""
        if not object_id.startswith(self.kind.prefix):
            return []
        path = f"/{self.kind.name}/{quote(object_id, safe='')}"
        status, answer = self.rest.read(path, also=(404,))
        item = member(answer, self.kind.name)
        if status == 404 or not isinstance(item, dict):
            return []
        foreign = read_marker(_marker_of(item))
        return [] if foreign and foreign[0] != probe.claim_id else [item]

    def _check_the_place(self) -> None:
        """See whether the secret reads the registered creditor, which is another's elsewhere."""
        mode_known = checked_mode(self.place, host_mode(self.place, HOSTS), by="address")
        account = self.place.account
        if account and not account_is_known(self.place):
            status, answer = self.rest.read(f"/creditors/{account}", also=(403, 404))
            if status == 404:
                why = f"The secret does not belong to the creditor {account}."
                raise CannotSay(SightingWord.MISCONFIGURED, why)
            if status == 200 and member(answer, "creditors", "id") == account:
                remember_account(self.place)
        known = account_is_known(self.place) if account else None
        self.base = placed(self.base, account if known else None, mode_known=mode_known)

    def _read(self) -> Reading:
        params = {
            "created_at[gte]": written(self.since, "iso"),
            "limit": str(PAGE_SIZE),
        }
        if self.place.account and self.kind.by_creditor:
            params["creditor"] = self.place.account
        asked = " ".join(f"{name}={value}" for name, value in params.items())
        self.base = replace(self.base, query=f"GET /{self.kind.name} {asked}")
        return read_pages(partial(self._page, params))

    def _page(self, params: Mapping[str, str], after: str | None) -> Page:
        cursor = {"after": after} if after else {}
        _, answer = self.rest.read(f"/{self.kind.name}", {**params, **cursor})
        try:
            return _page_of(answer, self.kind.name)
        except ValueError as error:
            raise CannotSay(SightingWord.UNMAPPED, unreadable(error)) from None

    def _clock_behind(self) -> timedelta:
        try:
            return self.probes[0].asked_at - parsedate_to_datetime(self.told.dated)
        except (TypeError, ValueError):
            return timedelta(0)


def _marker_of(item: Mapping[str, Any]) -> str:
    return str(member(item, "metadata", MARKER_METADATA_KEY))


def _is_replaced(item: Mapping[str, Any]) -> bool:
    """Whether the object bears the marker of a call that began after it was made."""
    marked = read_marker(_marker_of(item))
    try:
        created = datetime.fromisoformat(str(item.get("created_at")))
    except ValueError:
        return False
    skew = timedelta(seconds=CLOCK_SKEW_SECONDS)
    return marked is not None and is_replaced(marked, created + skew)


def _doubted(look: Look) -> Look:
    if look.word is not SightingWord.ABSENT:
        return look
    why = f"{look.why} A later call wrote its marker over that of an object that is there."
    return replace(look, why=why)


def _page_of(answer: Any, name: str) -> Page:
    """Raises ValueError for an answer that does not say whether further pages exist."""
    cursors = member(answer, "meta", "cursors")
    if not isinstance(cursors, dict) or "after" not in cursors:
        raise ValueError("it does not say whether further pages exist.")
    items = checked_items(member(answer, name), named=name)
    following = cursors["after"]
    return Page(items=items, body=b"", following=str(following) if following else None)
