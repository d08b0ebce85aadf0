"""The kinds of object that Stripe is asked about, and the routes to them. Tables, and no questions.

What each status means is decided here and nowhere else. A status that is not in a table is unmapped
and never the end of anything: Stripe adds values, and its SDK passes every text on
(https://docs.stripe.com/upgrades#what-changes-does-stripe-consider-to-be-backward-compatible).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import stripe

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import Delay, MatchedBy, Route

# Routes


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePattern:
    """One way of looking for any kind of object. `proves_absence`: read whole, in the right place,
    it shows everything that is there. `source` is where that stands."""

    words: str
    delay: Delay
    proves_absence: bool
    source: str

    def of(self, noun: str) -> Route:
        return Route(
            name=self.words.format(noun=noun),
            delay_class=self.delay,
            proves_absence=self.proves_absence,
            matched_by=MatchedBy.MARKER,
        )


LIST: Final = RoutePattern(
    words="List {noun}s",
    delay=Delay.NONE,
    proves_absence=True,
    source="https://docs.stripe.com/api-v2-overview",  # lists of v1 are immediately consistent
)
BY_GROUP: Final = RoutePattern(
    words="List {noun}s by transfer_group",
    delay=Delay.NONE,
    proves_absence=True,
    source="https://docs.stripe.com/api/transfers/list",
)
SEARCH: Final = RoutePattern(
    words="Search {noun}s by marker, then retrieve",
    delay=Delay.EVENTUAL,
    proves_absence=False,
    source="https://docs.stripe.com/search",  # up to an hour behind
)
EVENTS: Final = RoutePattern(
    words="List Events by key, then retrieve the {noun}",
    delay=Delay.EVENTUAL,
    proves_absence=False,
    source="https://docs.stripe.com/api/events/list",  # 30 days back
)
DELETED: Final = RoutePattern(
    words="List Events of deleted {noun}s",
    delay=Delay.EVENTUAL,
    proves_absence=False,
    source="https://docs.stripe.com/api/events/types",
)
RETRIEVE: Final = RoutePattern(
    words="Retrieve the {noun}",
    delay=Delay.UNKNOWN,
    proves_absence=False,
    source="https://docs.stripe.com/api/metadata",  # what is not there now may have been replaced
)


# Statuses

PAYMENT_INTENT_WORDS: Final[Mapping[str, SightingWord]] = {
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
SETUP_INTENT_WORDS: Final = {
    status: word for status, word in PAYMENT_INTENT_WORDS.items() if status != "requires_capture"
}
REFUND_WORDS: Final[Mapping[str, SightingWord]] = {
    "succeeded": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    "requires_action": SightingWord.PENDING,
    "failed": SightingWord.FOUND_DIFFERENT,
    "canceled": SightingWord.FOUND_DIFFERENT,
}
UNCAPTURED: Final = "succeeded, not captured"
"""Our word for a charge that succeeded and only holds the money: Stripe says it in two fields."""
CHARGE_WORDS: Final[Mapping[str, SightingWord]] = {
    "succeeded": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    # Final, and no money moved: this object is proof of that, for the request that made it.
    "failed": SightingWord.ABSENT,
    UNCAPTURED: SightingWord.PENDING,
}
PAYOUT_WORDS: Final[Mapping[str, SightingWord]] = {
    # Some payouts that fail are shown as paid first, for up to five business days
    # (https://docs.stripe.com/api/payouts/object#payout_object-status).
    "paid": SightingWord.FOUND,
    "pending": SightingWord.PENDING,
    "in_transit": SightingWord.PENDING,
    "failed": SightingWord.FOUND_DIFFERENT,
    "canceled": SightingWord.FOUND_DIFFERENT,
}
MADE: Final = "made"
PARTLY_REVERSED: Final = "made, reversed in part"
REVERSED: Final = "made, reversed"
TRANSFER_WORDS: Final[Mapping[str, SightingWord]] = {
    # A transfer has no status: that it is there is the effect. A reversal is an act of its own, as
    # a refund is of a charge, and takes nothing away from the transfer having been made.
    MADE: SightingWord.FOUND,
    PARTLY_REVERSED: SightingWord.FOUND,
    REVERSED: SightingWord.FOUND,
}
GONE: Final = "deleted"
"""Our word for a draft that only the event of its deletion still tells of."""
INVOICE_WORDS: Final[Mapping[str, SightingWord]] = {
    # A draft asks nobody for money yet. A tool that is to draft and no more maps it to "found".
    "draft": SightingWord.PENDING,
    "open": SightingWord.FOUND,
    "paid": SightingWord.FOUND,
    # It was issued, and somebody has given up on it. It can still be paid, or voided.
    "uncollectible": SightingWord.FOUND,
    "void": SightingWord.FOUND_DIFFERENT,
    # It was drafted, and somebody did not want it: to say that nothing was would bring it back.
    GONE: SightingWord.FOUND_DIFFERENT,
}
SUBSCRIPTION_WORDS: Final[Mapping[str, SightingWord]] = {
    # The first payment is to come within 23 hours, or the subscription expires for good
    # (https://docs.stripe.com/billing/subscriptions/overview#subscription-statuses).
    "incomplete": SightingWord.PENDING,
    "incomplete_expired": SightingWord.ABSENT,
    "trialing": SightingWord.FOUND,
    "active": SightingWord.FOUND,
    # It runs, or ran: what happened to it afterwards is not what the call asked for.
    "past_due": SightingWord.FOUND,
    "unpaid": SightingWord.FOUND,
    "paused": SightingWord.FOUND,
    "canceled": SightingWord.FOUND_DIFFERENT,
}


def status_of(item: Mapping[str, Any]) -> str:
    """The provider's own word, with what it says in other fields; ours where it has none."""
    status = str(item.get("status"))
    noun = item.get("object")
    if noun == "transfer":
        partly = PARTLY_REVERSED if item.get("amount_reversed") else MADE
        return REVERSED if item.get("reversed") is True else partly
    held = noun == "charge" and item.get("captured") is False
    return UNCAPTURED if held and status == "succeeded" else status


# What an object says it is about, in the currency's smallest unit; None where it does not say


def _amount(item: Mapping[str, Any]) -> int | None:
    return item.get("amount")


def _received(item: Mapping[str, Any]) -> int | None:
    # A payment that succeeded for less than was asked shows it in `amount_received` alone.
    taken = item.get("amount_received") if item.get("status") == "succeeded" else None
    return _amount(item) if taken is None else taken


def _total(item: Mapping[str, Any]) -> int | None:
    # Lines are still added to a draft.
    return None if item.get("status") in {"draft", GONE} else item.get("total")


def _recurring(item: Mapping[str, Any]) -> int | None:
    total, rows = 0, (item.get("items") or {}).get("data") or []
    for row in rows:
        price, quantity = (row.get("price") or {}).get("unit_amount"), row.get("quantity")
        if price is None or quantity is None:
            return None  # Tiered and metered prices are known when the month is over.
        total += price * quantity
    return total if rows else None


def _no_amount(_item: Mapping[str, Any]) -> int | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One kind of object: how it is listed, and what its statuses say.

    `object` is Stripe's own word for it. `final` are the statuses after which no other comes: only
    these may be believed from a snapshot that is some time old. `partly` are those in which the
    effect has begun and is not whole. `searchable`: Stripe has a search for it. `listed_with` is
    what its list must be asked with to show every object. `deleted_by` is the event of one that was
    deleted, empty where none can be. `counterpart` names the field that says who it is for.
    """

    noun: str
    object: str
    events: str
    words: Mapping[str, SightingWord]
    final: frozenset[str]
    service: Callable[[stripe.StripeClient], Any]
    partly: frozenset[str] = frozenset()
    searchable: bool = False
    has_group: bool = False
    listed_with: Mapping[str, str] = field(default_factory=dict)
    amount: Callable[[Mapping[str, Any]], int | None] = _amount
    deleted_by: str = ""
    counterpart: str = "customer"

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes to an object of this kind, the strongest first."""
        group = (BY_GROUP,) if self.has_group else ()
        search = (SEARCH,) if self.searchable else ()
        deleted = (DELETED,) if self.deleted_by else ()
        patterns = (LIST, *group, *search, *deleted, EVENTS)
        return tuple(pattern.of(self.noun) for pattern in patterns)


PAYMENT_INTENTS: Final = Kind(
    noun="PaymentIntent",
    object="payment_intent",
    events="payment_intent.*",
    words=PAYMENT_INTENT_WORDS,
    final=frozenset({"succeeded", "canceled"}),
    partly=frozenset({"requires_capture"}),
    searchable=True,
    amount=_received,
    service=lambda client: client.v1.payment_intents,
)
SETUP_INTENTS: Final = Kind(
    noun="SetupIntent",
    object="setup_intent",
    events="setup_intent.*",
    words=SETUP_INTENT_WORDS,
    final=frozenset({"succeeded", "canceled"}),
    amount=_no_amount,
    service=lambda client: client.v1.setup_intents,
)
REFUNDS: Final = Kind(
    noun="Refund",
    object="refund",
    events="refund.*",
    words=REFUND_WORDS,
    # A refund that succeeded can still fail (https://docs.stripe.com/refunds#failed-refunds).
    final=frozenset({"failed", "canceled"}),
    service=lambda client: client.v1.refunds,
)
CHARGES: Final = Kind(
    noun="Charge",
    object="charge",
    events="charge.*",
    words=CHARGE_WORDS,
    final=frozenset({"succeeded", "failed"}),
    partly=frozenset({UNCAPTURED}),
    searchable=True,
    has_group=True,
    service=lambda client: client.v1.charges,
)
PAYOUTS: Final = Kind(
    noun="Payout",
    object="payout",
    events="payout.*",
    words=PAYOUT_WORDS,
    final=frozenset({"failed", "canceled"}),
    service=lambda client: client.v1.payouts,
)
TRANSFERS: Final = Kind(
    noun="Transfer",
    object="transfer",
    events="transfer.*",
    words=TRANSFER_WORDS,
    final=frozenset(TRANSFER_WORDS),
    has_group=True,
    counterpart="destination",
    service=lambda client: client.v1.transfers,
)
INVOICES: Final = Kind(
    noun="Invoice",
    object="invoice",
    events="invoice.*",
    words=INVOICE_WORDS,
    final=frozenset({"paid", "void", GONE}),
    partly=frozenset({"draft"}),
    deleted_by="invoice.deleted",
    searchable=True,
    amount=_total,
    service=lambda client: client.v1.invoices,
)
SUBSCRIPTIONS: Final = Kind(
    noun="Subscription",
    object="subscription",
    events="customer.subscription.*",
    words=SUBSCRIPTION_WORDS,
    final=frozenset({"canceled", "incomplete_expired"}),
    searchable=True,
    # Without it the list leaves out what was canceled (https://docs.stripe.com/api/subscriptions/list).
    listed_with={"status": "all"},
    amount=_recurring,
    service=lambda client: client.v1.subscriptions,
)
KIND_OF_LOOKUP: Final[Mapping[str, Kind]] = {
    "stripe.payment_intents": PAYMENT_INTENTS,
    "stripe.charges": CHARGES,
    "stripe.payouts": PAYOUTS,
    "stripe.refunds": REFUNDS,
    "stripe.transfers": TRANSFERS,
    "stripe.invoices": INVOICES,
    "stripe.subscriptions": SUBSCRIPTIONS,
    "stripe.setup_intents": SETUP_INTENTS,
}
"""By the word in `Tool.lookup_kind`, in the order in which they are offered."""
