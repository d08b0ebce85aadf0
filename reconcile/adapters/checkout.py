"""Asks Checkout.com for the payments that bear our reference. Reads only.

``GET /payments?reference=`` lists them, newest first, by ``limit`` and ``skip``
(https://www.checkout.com/docs/payments/manage-payments/get-a-list-of-payments). How soon a payment
is listed is not published, so an absence is no proof unless the registry entry says so. A declined
payment is an object of its own, and its request was answered with success
(https://api-reference.checkout.com/#operation/getPaymentDetails names the statuses).

No answer names the account that a secret belongs to. The mode is in the secret ("sk_sbox_..." for
the sandbox) and in the host. So what is found by our marker is ours wherever it is; that nothing is
found proves nothing where an account is registered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    CannotSay,
    Page,
    Told,
    begun,
    misconfigured,
    read_pages,
    unusable,
)
from reconcile.adapters.base import Look, Lookup, MatchedBy, Place, Probe, Route
from reconcile.adapters.object_rules import (
    ARGUMENT_PREFIX,
    ObjectRules,
    Wanted,
    checked_items,
    match_of,
)
from reconcile.adapters.rest import (
    Finding,
    ProviderLookup,
    Reference,
    Rest,
    checked_mode,
    counted,
    found_out,
    host_mode,
    member,
    read_as,
    references,
)

ROUTE: Final = "List payments by reference"
PAGE_SIZE: Final = 100
HOSTS: Final = {"api.checkout.com": "live", "api.sandbox.checkout.com": "test"}
_MODES_OF_SECRETS: Final = (("sk_sbox_", "test"), ("sk_test_", "test"), ("sk_", "live"))
WORDS: Final = {
    "Captured": SightingWord.FOUND,
    "Paid": SightingWord.FOUND,
    # It was captured; what was given back afterwards is another effect.
    "Partially Refunded": SightingWord.FOUND,
    "Refunded": SightingWord.FOUND,
    "Pending": SightingWord.PENDING,
    "Authorized": SightingWord.PENDING,
    "Partially Captured": SightingWord.PENDING,
    # A card was looked at, and no money moved.
    "Card Verified": SightingWord.FOUND_DIFFERENT,
    "Canceled": SightingWord.FOUND_DIFFERENT,
    "Expired": SightingWord.FOUND_DIFFERENT,
    "Voided": SightingWord.FOUND_DIFFERENT,
    # Final, and no money moved: this object is proof of that, for the request that made it.
    "Declined": SightingWord.ABSENT,
}
_PARTLY: Final = frozenset({"Authorized", "Partially Captured"})


class CheckoutLookup(ProviderLookup):
    """`reference` is what this tool's requests hold in ``reference``: the marker, the key, the
    claim's id, or a member of the arguments ("arguments.order_id")."""

    reference: Reference = "marker"


read_config: Final = read_as(CheckoutLookup)


def look_for_payment(probe: Probe) -> Look:
    """`lookup_kind` "checkout.payments". Never raises for anything that a provider does."""
    try:
        config = read_config(probe.config)
        rules = config.rules(
            WORDS,
            reference=config.reference,
            reference_field="reference",
            amount="amount",
            currency="currency",
        )
        asked = references(probe, rules)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ROUTE)
    told = Told()
    rest = Rest(probe.place, told)
    # A reference of ours is in a payment only if the request carried it.
    ours = not config.reference.startswith(ARGUMENT_PREFIX)
    base = replace(
        begun(probe, ROUTE, rules=rules),
        matched_by=MatchedBy.MARKER if ours else MatchedBy.REFERENCE,
        query="; ".join(f"GET /payments?reference={one.reference}" for one in asked),
    )
    return found_out(probe, base, told, lambda look: _find(probe, rest, rules, asked, look))


LOOKUPS: Final = (
    Lookup(
        kind="checkout.payments",
        label="Checkout.com: list payments by our reference",
        connection_kind="checkout",
        look=look_for_payment,
        read_config=read_config,
        contract="checkout",
        routes=(
            Route(name=ROUTE, delay_class=None, proves_absence=True, matched_by=MatchedBy.MARKER),
        ),
    ),
)


def _find(
    probe: Probe, rest: Rest, rules: ObjectRules, asked: tuple[Wanted, ...], base: Look
) -> Finding:
    mode_known = checked_mode(probe.place, host_mode(probe.place, HOSTS), by="address")
    mode_known |= checked_mode(probe.place, _mode_of_secret(probe.place), by="secret")
    finding = Finding(base=base)
    for one in asked:
        reading = read_pages(partial(_page, rest, one.reference))
        finding.complete &= reading.complete
        for item in reading.items:
            if item.get("reference") != one.reference:
                # A filter that is ignored would show everybody's payments as ours.
                raise CannotSay(SightingWord.UNMAPPED, "Other calls' payments are in the answer.")
            match = match_of(probe, rules, item, one.life)
            finding.matches.append(replace(match, partly=match.status in _PARTLY))
            finding.items.append(item)
    sure = mode_known and (bool(finding.items) or not probe.place.account)
    finding.base = replace(base, right_place=sure)
    return finding


def _page(rest: Rest, reference: str, skip: str | None) -> Page:
    begin = int(skip or 0)
    params = {"reference": reference, "limit": str(PAGE_SIZE), "skip": str(begin)}
    _, answer = rest.read("/payments", params)
    items: list[Any] = checked_items(member(answer, "data"), named="data")
    end = begin + len(items)
    more = end < counted(answer, "total_count")
    if more and not items:
        raise ValueError("it counts more payments than it lists.")
    return Page(items=items, body=b"", following=str(end) if more else None)


def _mode_of_secret(place: Place) -> str | None:
    modes = (mode for prefix, mode in _MODES_OF_SECRETS if place.secret.startswith(prefix))
    return next(modes, None)
