"""Which look-ups there are, and whether a registry entry describes one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from effects.models import Connection
from reconcile.adapters import http, stripe
from reconcile.adapters.base import Look, Probe
from reconcile.adapters.http_config import read_config as read_http
from reconcile.adapters.stripe_objects import read_config as read_stripe


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """One way of asking: its name for people, and the kind of connection that it needs."""

    label: str
    connection_kind: str
    look: Callable[[Probe], Look]
    read_config: Callable[[Mapping[str, Any]], object]


LOOKUPS: Final[Mapping[str, Lookup]] = {
    "stripe.payment_intents": Lookup(
        label="Stripe: list PaymentIntents, match our marker",
        connection_kind=Connection.Kind.STRIPE,
        look=stripe.look_for_payment_intent,
        read_config=read_stripe,
    ),
    "stripe.charges": Lookup(
        label="Stripe: list Charges, match our marker",
        connection_kind=Connection.Kind.STRIPE,
        look=stripe.look_for_charge,
        read_config=read_stripe,
    ),
    "stripe.payouts": Lookup(
        label="Stripe: list Payouts, match our marker",
        connection_kind=Connection.Kind.STRIPE,
        look=stripe.look_for_payout,
        read_config=read_stripe,
    ),
    "stripe.refunds": Lookup(
        label="Stripe: list Refunds, match our marker",
        connection_kind=Connection.Kind.STRIPE,
        look=stripe.look_for_refund,
        read_config=read_stripe,
    ),
    "http": Lookup(
        label="A status endpoint of your own",
        connection_kind=Connection.Kind.HTTP,
        look=http.look_by_url,
        read_config=read_http,
    ),
}
"""By the word in `Tool.lookup_kind`; the empty word means that nobody can be asked."""


def fault_of(kind: str, config: Mapping[str, Any], *, connection_kind: str | None) -> str | None:
    """What is wrong with a tool's look-up, in one sentence for whoever enters it, or None."""
    if not kind:
        return None
    lookup = LOOKUPS.get(kind)
    if lookup is None:
        return f"{kind!r} is no look-up. Choose one of {', '.join(LOOKUPS)}, or none."
    if connection_kind != lookup.connection_kind:
        return f"{lookup.label} needs a connection of the kind {lookup.connection_kind}."
    try:
        lookup.read_config(config)
    except ValueError as error:
        return f"The look-up cannot be used: {error}."
    return None
