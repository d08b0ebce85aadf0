"""Asks Stripe what became of a call that changes an object of its. Reads only.

The object is named in the arguments, so it is retrieved. What that shows proves an update in one
way only: it carries the marker that this update wrote. Fields that are as they were asked to be may
have been so before, and fields that are not may have been changed again since, so neither says
anything of its own. Where the marker is not there, events are asked: one that names our key was
caused by our request, and unless another says that it failed, it did what was asked. Stripe has no
event for every update
(https://docs.stripe.com/api/events/types), and not finding one proves nothing. So an update is
never proven not to have happened.

The marker of an update has a name of its own in the metadata. Under the name that creations use it
would take the place of the marker of the call that made the object, and that call's look-up would
find nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import stripe
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from effects.core.identity import read_marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import KeyLife, Look, Probe, faults_of
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import Expression, search, shown
from reconcile.adapters.stripe_client import ReadOnly, WrongAccount, client_at, version_for
from reconcile.adapters.stripe_findings import Findings, fault_of_the_key, in_vain, misplaced
from reconcile.adapters.stripe_kinds import EVENTS, KIND_OF_LOOKUP, RETRIEVE, Kind
from reconcile.adapters.stripe_objects import VERSION_PATTERN, status_of
from reconcile.adapters.stripe_reading import SECONDS_MAX, SKEW, Events, key_of

UPDATE_METADATA_KEY: Final = "counterfoil_update"
"""The name under which an update puts its marker into the object's metadata."""
FIELDS_MAX: Final = 20
FAILED: Final = "failed"
"""How the type of an event ends that tells of a failure ("invoice.payment_failed")."""
KIND_OF_OBJECT: Final[Mapping[str, Kind]] = {kind.object: kind for kind in KIND_OF_LOOKUP.values()}


UPDATE_ROUTES: Final = (RETRIEVE.of("object"), EVENTS.of("object"))
"""As they are shown where no kind is chosen yet."""


class StripeUpdate(BaseModel):
    """What a registry entry says: which kind of object, and where the arguments name it.

    `fields` says of members of the object where the arguments hold what they are to become
    ("metadata.order": "order_id"). All are JMESPath expressions. `marker_in_every_request` and
    `api_version` are as with the other look-ups.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    object: Literal[
        "payment_intent",
        "charge",
        "payout",
        "refund",
        "transfer",
        "invoice",
        "subscription",
        "setup_intent",
    ]
    id: Annotated[Expression, Field(min_length=1)]
    fields: Annotated[dict[Expression, Expression], Field(max_length=FIELDS_MAX)] = {}
    marker_in_every_request: bool = False
    api_version: Annotated[str, Field(pattern=VERSION_PATTERN)] | None = None


def read_update_config(config: Mapping[str, Any]) -> StripeUpdate:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return StripeUpdate.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


def look_for_update(probe: Probe) -> Look:
    """`lookup_kind` "stripe.updates". Never raises for anything that Stripe does."""
    door = ReadOnly(probe.place.way)
    try:
        config = read_update_config(probe.config)
    except ValueError as error:
        return _unusable(probe, door, f"This tool's look-up cannot be used: {error}.")
    named = search(config.id, probe.arguments)
    if not isinstance(named, str) or not named:
        return _unusable(probe, door, f"The arguments name no object at {config.id!r}.")
    fault = fault_of_the_key(probe)
    if fault is not None:
        return _unusable(probe, door, fault)
    return _Update(probe, config, door, named).look()


def _unusable(probe: Probe, door: ReadOnly, why: str) -> Look:
    return misplaced(probe, UPDATE_ROUTES[0], door, why)


class _Update:
    def __init__(self, probe: Probe, config: StripeUpdate, door: ReadOnly, named: str) -> None:
        self.probe = probe
        self.config = config
        self.door = door
        self.named = named
        self.kind = KIND_OF_OBJECT[config.object]
        self.door.version = version_for(probe, config.api_version)
        route = RETRIEVE.of(self.kind.noun)
        self.findings = Findings(probe=probe, kind=self.kind, route=route)

    def look(self) -> Look:
        try:
            client, confirmed = client_at(self.probe.place, self.door)
            item = self.kind.service(client).retrieve(self.named).to_dict()
            life, ours = self._life_by_marker(item)
            if not ours:
                life = self._life_by_key(client)
        except WrongAccount as error:
            return misplaced(self.probe, self.findings.route, self.door, str(error))
        except (NoAnswer, NotAllowed, stripe.StripeError) as error:
            return in_vain(
                self.probe, self.findings.route, self.door, error=error, query=self.named
            )
        ours = ours or life is not None
        if ours:
            self.findings.keep(item, self._match(item, life))
        look = self.findings.look(self.door, right_place=confirmed, query=self.named)
        return look if ours else self._unseen(look, item)

    def _life_by_marker(self, item: Mapping[str, Any]) -> tuple[KeyLife | None, bool]:
        """The generation whose marker the object carries, and whether it is this claim's at all."""
        text = str((item.get("metadata") or {}).get(UPDATE_METADATA_KEY) or "")
        marked = read_marker(text)
        ours = marked is not None and marked[0] == self.probe.claim_id
        return self.probe.markers.get(text) if ours else None, ours

    def _life_by_key(self, client: stripe.StripeClient) -> KeyLife | None:
        """The generation with whose key this very object was changed, as far as events tell.

        A request that failed changes its object too, and says so in an event of its own: then, or
        where not all events could be read, a change is no sign that the request did what was asked.
        """
        events = Events(
            client,
            self.kind.events,
            since=self.probe.since - SKEW,
            deadline=time.monotonic() + SECONDS_MAX,
        )
        changed, failed = set(), set()
        for event in events:
            if key_of(event) in self.probe.keys and event.data.object["id"] == self.named:
                changed.add(key_of(event))
                if event.type.endswith(FAILED):
                    failed.add(key_of(event))
        done = sorted(changed - failed)
        if not done or not events.complete:
            return None
        self.findings.route = EVENTS.of(self.kind.noun)
        return self.probe.keys[done[-1]]

    def _match(self, item: dict[str, Any], life: KeyLife | None) -> Match:
        requested, found = self._compared(item)
        return Match(
            id=self.named,
            status=status_of(item),
            # What was asked is that the request was executed, whatever the object's status.
            word=SightingWord.FOUND,
            open=life is None or life.open,
            requested=requested,
            found=found,
        )

    def _compared(self, item: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        requested, found = {}, {}
        for where, wish in self.config.fields.items():
            value = search(wish, self.probe.arguments)
            if value is not None:
                requested[where], found[where] = shown(value), shown(search(where, item))
        if "livemode" in item:
            requested["mode"] = self.probe.place.mode
            found["mode"] = "live" if item["livemode"] else "test"
        return requested, found

    def _unseen(self, look: Look, item: dict[str, Any]) -> Look:
        """Neither the object nor an event shows our update. What its fields say is shown with it,
        and settles nothing: `pages_complete` is False, and the delay of the route not known."""
        requested, found = self._compared(item)
        says = "as they were asked to be" if requested == found else "not what was asked for"
        fields = f" Its fields are {says}, which may have been so before, or changed since."
        return replace(
            look,
            why=f"{self.kind.noun} {self.named} does not carry our marker, and no event shows that "
            "a request with our key did what was asked." + (fields if self.config.fields else ""),
            status=status_of(item),
            others=(self.named,),
            requested=requested,
            found=found,
        )
