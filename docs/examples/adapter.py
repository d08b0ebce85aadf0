"""An adapter for an imaginary freight company, Harbor, as docs/adapters.md goes through it.

``GET /v1/shipments?ref=<reference>`` answers at once and whole, for a token in ``X-Harbor-Token``:
``{"account": "…", "shipments": [{"id", "ref", "state", "price", "currency", "sandbox"}]}``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Page,
    Told,
    begun,
    checked_place,
    completed,
    fault_of_status,
    in_vain,
    misconfigured,
    ours_in,
    read_pages,
    seen_in,
    unreadable,
    unusable,
)
from reconcile.adapters.base import Delay, Look, Lookup, MatchedBy, Probe, Route, faults_of
from reconcile.adapters.door import NoAnswer, NotAllowed, get
from reconcile.adapters.object_rules import ObjectRules, checked_items, decoded, wanted

ROUTE = "Shipments by reference"


class HarborRules(ObjectRules):
    """Where a shipment shows what, and what its states mean. An entry may say it otherwise."""

    map: dict[str, str] = {"delivered": "found", "under_way": "found", "booked": "pending"}
    reference_field: str = "ref"
    status: str = "state"
    amount: str = "price"
    currency: str = "currency"
    live: str = "!sandbox"
    delay_class: str = "none"  # type: ignore[assignment]  # one of the three words


def read_config(config: Mapping[str, Any]) -> HarborRules:
    """The entry of the registry. Raises ValueError with a sentence for whoever wrote it."""
    try:
        return HarborRules.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


def look(probe: Probe) -> Look:
    """One look: a question for each generation of the key, for any may have made the shipment."""
    try:
        rules = read_config(probe.config)
        asked = wanted(probe, rules)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ROUTE)
    if not probe.place.secret:
        return misconfigured(probe, NOT_SET, ROUTE)
    base, told, matches, evidence = begun(probe, ROUTE, rules=rules), Told(), [], []
    try:
        for about in asked:
            path = f"/v1/shipments?ref={quote(about.reference, safe='')}"
            base = replace(base, query=f"GET {path}")
            harbor = Harbor(probe, path, told)
            reading = read_pages(harbor.page)
            base = checked_place(base, "account", harbor.account)
            ours, kept = ours_in(probe, rules, reading, about)
            matches += ours
            evidence.append(kept)
    except (CannotSay, NoAnswer, NotAllowed) as error:
        return in_vain(base, error, told)
    return completed(seen_in(base, matches, complete=True), told, raw=b"\n".join(evidence))


class Harbor:
    """One question; `account` is whose the answer was."""

    def __init__(self, probe: Probe, path: str, told: Told) -> None:
        self.place, self.path, self.told, self.account = probe.place, path, told, ""

    def page(self, _following: str | None) -> Page:
        """The one page. Raises `CannotSay` for what says nothing about the call."""
        self.told.reads += 1
        headers = {"X-Harbor-Token": self.place.secret}
        answered = get(f"{self.place.base_url}{self.path}", way=self.place.way, headers=headers)
        self.told.note(answered)
        if (fault := fault_of_status(answered.status)) is not None:
            raise CannotSay(*fault, answered.body)
        try:
            body = decoded(answered.body)
            self.account = body["account"]
            items = checked_items(body["shipments"], named="shipments")
        except (ValueError, KeyError, TypeError) as error:
            why = unreadable(ValueError(str(error)))
            raise CannotSay(SightingWord.UNMAPPED, why, answered.body) from None
        return Page(items=items, body=answered.body, absent=not items)


LOOKUPS = (
    Lookup(
        kind="harbor.shipments",
        label="Harbor: shipments by reference",
        connection_kind="harbor",
        look=look,
        read_config=read_config,
        routes=(
            Route(
                name=ROUTE,
                delay_class=Delay.NONE,
                proves_absence=True,
                matched_by=MatchedBy.REFERENCE,
            ),
        ),
    ),
)
