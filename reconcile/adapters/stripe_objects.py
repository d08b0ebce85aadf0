"""What Stripe's objects say: whose they are, and whether they are what was asked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from effects.core.identity import MARKER_METADATA_KEY
from effects.core.vocabulary import SightingWord
from effects.money import Money, from_minor
from reconcile.adapters.base import KeyLife, Probe, Stranger, checked_map, faults_of
from reconcile.adapters.matching import Match
from reconcile.adapters.stripe_kinds import (
    CHARGES,
    KIND_OF_LOOKUP,
    PAYMENT_INTENTS,
    PAYOUTS,
    REFUNDS,
    Kind,
    status_of,
)

__all__ = [
    "CHARGES",
    "KIND_OF_LOOKUP",
    "PAYMENT_INTENTS",
    "PAYOUTS",
    "REFUNDS",
    "VERSION_PATTERN",
    "Kind",
    "MarkerIn",
    "StripeLookup",
    "compared",
    "is_replaced",
    "marker_of",
    "match",
    "read_config",
    "status_of",
    "stranger_of",
    "without_secrets",
]

VERSION_PATTERN: Final = r"^20\d\d-\d\d-\d\d(\.[a-z]{1,30})?$"
"""A version of Stripe's API, "2026-10-28.endive" (https://docs.stripe.com/api/versioning)."""
UUID_WITH_TIME: Final = 7
_SECRETS_IN_OBJECTS: Final = frozenset({"client_secret"})
_COUNTERPARTS: Final = re.compile(r"(?:cus|acct)_[A-Za-z0-9]+")


class MarkerIn(StrEnum):
    """Where the requests of a tool put our marker."""

    METADATA = "metadata"
    TRANSFER_GROUP = "transfer_group"


class StripeLookup(BaseModel):
    """What a registry entry may say beyond the kind of object.

    `map` says of a status what it means for this tool ("requires_capture": "found" for one that is
    to hold money and no more). `marker_in_every_request`: no request of this tool leaves without
    our marker, so that an attempt whose worker died can be looked for as well. `marker_in` says
    where it stands; `transfer_group` is the one text of the caller's that Stripe filters a list by.
    `api_version` is the version in which the tool's calls are asked about; none is the adapter's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    map: Annotated[dict[str, str], AfterValidator(checked_map)] = {}
    marker_in_every_request: bool = False
    marker_in: Annotated[MarkerIn, Field(strict=False)] = MarkerIn.METADATA
    api_version: Annotated[str, Field(pattern=VERSION_PATTERN)] | None = None


def read_config(config: Mapping[str, Any]) -> StripeLookup:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return StripeLookup.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


def without_secrets(item: Mapping[str, Any]) -> dict[str, Any]:
    """The object as it may be kept and shown."""
    return {name: value for name, value in item.items() if name not in _SECRETS_IN_OBJECTS}


def marker_of(item: Mapping[str, Any], where: MarkerIn = MarkerIn.METADATA) -> str:
    """What stands where our marker would, or an empty text."""
    if where is MarkerIn.TRANSFER_GROUP:
        return str(item.get("transfer_group") or "")
    return str((item.get("metadata") or {}).get(MARKER_METADATA_KEY) or "")


def is_replaced(marked: tuple[UUID, int], created: datetime) -> bool:
    """Whether an object carries the marker of a call that began after the object was made.

    A call that only changed the object has written its own marker over the one of the call that
    made it, so that whose the object is can no longer be seen. The name of a claim is a UUID of
    version 7, which begins with the time of its making.
    """
    claim_id, _ = marked
    if claim_id.version != UUID_WITH_TIME:
        return False
    return datetime.fromtimestamp((claim_id.int >> 80) / 1000, UTC) > created


def match(probe: Probe, kind: Kind, item: Mapping[str, Any], life: KeyLife | None) -> Match:
    """One object that carries our reference. A tool's own `map` of statuses comes before ours."""
    status = status_of(item)
    declared = read_config(probe.config).map
    word = SightingWord(declared[status]) if status in declared else kind.words.get(status)
    requested, found = compared(probe, kind, item)
    return Match(
        id=str(item["id"]),
        status=status,
        word=word,
        # An object of a generation that the record does not know is nobody's known refusal.
        open=life is None or life.open,
        partly=status in kind.partly,
        requested=requested,
        found=found,
    )


def compared(
    probe: Probe, kind: Kind, item: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that say whether this is what was asked for, on both sides."""
    requested, found = {}, {}
    minor = kind.amount(item)
    if probe.amount is not None and minor is not None:
        there = from_minor(minor, str(item["currency"]), contract="stripe.v1")
        asked = Money(
            amount=probe.amount.amount, currency=probe.amount.currency, places=there.places
        )
        requested["amount"], found["amount"] = asked.figure, there.figure
        requested["currency"], found["currency"] = probe.amount.currency, there.currency
    # Customers may be named otherwise in the arguments; only Stripe's own ids can be compared.
    who = kind.counterpart
    if probe.customer and _COUNTERPARTS.fullmatch(probe.customer) and who in item:
        requested[who], found[who] = probe.customer, str(item[who])
    if "livemode" in item:
        requested["mode"] = probe.place.mode
        found["mode"] = "live" if item["livemode"] else "test"
    return requested, found


def stranger_of(kind: Kind, item: Mapping[str, Any], *, marker: str) -> Stranger:
    """An object that nobody asked about, as far as it is kept: what it is, and whose it may be."""
    minor, created = kind.amount(item), item.get("created")
    money = minor is not None and from_minor(minor, str(item["currency"]), contract="stripe.v1")
    return Stranger(
        id=str(item["id"]),
        noun=kind.noun,
        created_at=datetime.fromtimestamp(created, UTC) if isinstance(created, int) else None,
        status=status_of(item),
        marker=marker,
        amount=str(money) if money else "",
    )
