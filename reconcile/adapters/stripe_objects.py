"""What Stripe's objects say: which statuses are an effect, and whether it is the one asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import stripe
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from effects.core.vocabulary import SightingWord
from effects.money import Money, from_minor
from reconcile.adapters.base import KeyLife, Probe, checked_map, faults_of
from reconcile.adapters.matching import Match

_CUSTOMER = re.compile(r"cus_[A-Za-z0-9]+")
_INTENT_WORDS: Final[Mapping[str, SightingWord]] = {
    "succeeded": SightingWord.FOUND,
    # A PaymentIntent in any of these can still succeed, also after a decline: only `succeeded` and
    # `canceled` are final (https://docs.stripe.com/payments/paymentintents/lifecycle).
    "requires_payment_method": SightingWord.PENDING,
    "requires_confirmation": SightingWord.PENDING,
    "requires_action": SightingWord.PENDING,
    "requires_capture": SightingWord.PENDING,
    "processing": SightingWord.PENDING,
    # It was made and then ended, by somebody. That is neither what was asked for nor nothing.
    "canceled": SightingWord.FOUND_DIFFERENT,
}
_REFUND_WORDS: Final[Mapping[str, SightingWord]] = {
    "succeeded": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    "requires_action": SightingWord.PENDING,
    "failed": SightingWord.FOUND_DIFFERENT,
    "canceled": SightingWord.FOUND_DIFFERENT,
}
_CHARGE_WORDS: Final[Mapping[str, SightingWord]] = {
    "succeeded": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    # Final, and no money moved: this object is proof of that, for the request that made it.
    "failed": SightingWord.ABSENT,
}
_PAYOUT_WORDS: Final[Mapping[str, SightingWord]] = {
    # Some payouts that fail are shown as paid first, for up to five business days
    # (https://docs.stripe.com/api/payouts/object#payout_object-status).
    "paid": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    "in_transit": SightingWord.PENDING,
    "failed": SightingWord.FOUND_DIFFERENT,
    "canceled": SightingWord.FOUND_DIFFERENT,
}
UNCAPTURED: Final = "succeeded, not captured"
"""Our word for a charge that succeeded and only holds the money: Stripe says it in two fields."""
_PARTLY_DONE: Final = frozenset({"requires_capture", UNCAPTURED})


class StripeLookup(BaseModel):
    """What a registry entry may say beyond the kind of object.

    `map` says of a status what it means for this tool ("requires_capture": "found" for one that is
    to hold money and no more). `marker_in_every_request`: no request of this tool leaves without
    our marker, so that an attempt whose worker died can be looked for as well.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    map: Annotated[dict[str, str], AfterValidator(checked_map)] = {}
    marker_in_every_request: bool = False


def read_config(config: Mapping[str, Any]) -> StripeLookup:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return StripeLookup.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of object: how it is listed, and what its statuses say.

    `object` is Stripe's own word for it. `final` are the statuses after which no other comes: only
    these may be believed from a snapshot that is some time old. `searchable`: Stripe has a search
    for it.
    """

    noun: str
    object: str
    events: str
    words: Mapping[str, SightingWord]
    final: frozenset[str]
    searchable: bool = False
    service: Callable[[stripe.StripeClient], Any]


PAYMENT_INTENTS: Final = Kind(
    noun="PaymentIntent",
    object="payment_intent",
    events="payment_intent.*",
    words=_INTENT_WORDS,
    final=frozenset({"succeeded", "canceled"}),
    searchable=True,
    service=lambda client: client.v1.payment_intents,
)
REFUNDS: Final = Kind(
    noun="Refund",
    object="refund",
    events="refund.*",
    words=_REFUND_WORDS,
    # A refund that succeeded can still fail (https://docs.stripe.com/refunds#failed-refunds).
    final=frozenset({"failed", "canceled"}),
    service=lambda client: client.v1.refunds,
)
CHARGES: Final = Kind(
    noun="Charge",
    object="charge",
    events="charge.*",
    words={**_CHARGE_WORDS, UNCAPTURED: SightingWord.PENDING},
    final=frozenset({"succeeded", "failed"}),
    searchable=True,
    service=lambda client: client.v1.charges,
)
PAYOUTS: Final = Kind(
    noun="Payout",
    object="payout",
    events="payout.*",
    words=_PAYOUT_WORDS,
    final=frozenset({"failed", "canceled"}),
    service=lambda client: client.v1.payouts,
)
KIND_OF_LOOKUP: Final[Mapping[str, Kind]] = {
    "stripe.payment_intents": PAYMENT_INTENTS,
    "stripe.charges": CHARGES,
    "stripe.refunds": REFUNDS,
    "stripe.payouts": PAYOUTS,
}
"""By the word in `Tool.lookup_kind`."""
_SECRETS_IN_OBJECTS: Final = frozenset({"client_secret"})


def without_secrets(item: Mapping[str, Any]) -> dict[str, Any]:
    """The object as it may be kept and shown."""
    return {name: value for name, value in item.items() if name not in _SECRETS_IN_OBJECTS}


def status_of(item: Mapping[str, Any]) -> str:
    """The provider's own word, with what it says in a second field."""
    status = str(item.get("status"))
    held = item.get("object") == "charge" and item.get("captured") is False
    return UNCAPTURED if held and status == "succeeded" else status


def match(probe: Probe, kind: Kind, item: Mapping[str, Any], life: KeyLife | None) -> Match:
    """One object that carries our reference. A tool's own `map` of statuses comes before ours."""
    status = status_of(item)
    declared = read_config(probe.config).map
    word = SightingWord(declared[status]) if status in declared else kind.words.get(status)
    requested, found = _compared(probe, item, status)
    return Match(
        id=str(item["id"]),
        status=status,
        word=word,
        # An object of a generation that the record does not know is nobody's known refusal.
        open=life is None or life.open,
        partly=status in _PARTLY_DONE,
        requested=requested,
        found=found,
    )


def _compared(
    probe: Probe, item: Mapping[str, Any], status: str
) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that say whether this is what was asked for, on both sides."""
    requested, found = {}, {}
    if probe.amount is not None:
        # A payment that succeeded for less than was asked shows it in `amount_received` alone.
        taken = item.get("amount_received") if status == "succeeded" else None
        minor = item["amount"] if taken is None else taken
        there = from_minor(minor, str(item["currency"]), contract="stripe.v1")
        asked = Money(
            amount=probe.amount.amount, currency=probe.amount.currency, places=there.places
        )
        requested["amount"], found["amount"] = asked.figure, there.figure
        requested["currency"], found["currency"] = probe.amount.currency, there.currency
    # Customers may be named otherwise in the arguments; only Stripe's own ids can be compared.
    if probe.customer and _CUSTOMER.fullmatch(probe.customer) and "customer" in item:
        requested["customer"], found["customer"] = probe.customer, str(item["customer"])
    if "livemode" in item:
        requested["mode"] = probe.place.mode
        found["mode"] = "live" if item["livemode"] else "test"
    return requested, found
