"""Charges, payouts, connected accounts and search, as the Stripe adapter sees them."""

from __future__ import annotations

import time
from typing import Any

import pytest
import stripe

from effects.core.vocabulary import SightingWord
from reconcile.adapters import stripe_reading
from reconcile.adapters.base import Look
from reconcile.adapters.stripe import look_for
from reconcile.adapters.stripe_kinds import CHARGES, PAYMENT_INTENTS, PAYOUTS
from reconcile.sandbox.provider.payouts import FAILS_LATE
from reconcile.sandbox.provider.recipes import PAYOUT_STEP_SECONDS, SEARCH_LAG_SECONDS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import MARKER, a_place, a_probe, key_of
from tests.reconcile.sandbox.customer import Customer, options, stripe_client

look_for_payment_intent = look_for(PAYMENT_INTENTS)
look_for_charge = look_for(CHARGES)
look_for_payout = look_for(PAYOUTS)
MARKED = {"counterfoil": MARKER}


def charge(customer: Customer, **changes: Any) -> None:
    params: Any = {"amount": 4200, "currency": "eur", "source": "tok_visa", "metadata": MARKED}
    params |= changes
    try:
        customer.stripe.v1.charges.create(params, options=options(key_of(1)))
    except stripe.CardError:
        return


def look_at_payout(customer: Customer, *, until: str) -> Look:
    """The look-up once the payout has got so far; it goes on by itself."""
    deadline = time.monotonic() + 10
    while (look := look_for_payout(a_probe(customer.url))).status != until:
        assert time.monotonic() < deadline, look
        customer.advance(seconds=PAYOUT_STEP_SECONDS / 2)
    return look


# Charges


def test_a_charge_is_found_by_its_marker(customer: Customer) -> None:
    charge(customer)

    look = look_for_charge(a_probe(customer.url))

    assert look.word is SightingWord.FOUND
    assert look.requested == look.found
    assert look.reads == 1


def test_a_declined_charge_is_proof_that_no_money_moved(customer: Customer) -> None:
    charge(customer, source="tok_chargeDeclined")

    look = look_for_charge(a_probe(customer.url))

    assert (look.word, look.objects) == (SightingWord.ABSENT, ())
    assert len(look.others) == 1, "it is shown all the same"


def test_the_charge_of_a_payment_that_only_holds_money_is_partly_done(customer: Customer) -> None:
    customer.pay(key_of(1), metadata=MARKED, capture_method="manual")

    look = look_for_charge(a_probe(customer.url))

    assert (look.word, look.partly) == (SightingWord.PENDING, True)
    assert look.status == "succeeded, not captured"


# Payouts


def test_a_payout_is_pending_until_it_is_paid_and_may_fail_then(customer: Customer) -> None:
    params: Any = {
        "amount": 4200,
        "currency": "eur",
        "metadata": MARKED,
        "destination": FAILS_LATE,
    }
    customer.stripe.v1.payouts.create(params, options=options(key_of(1)))

    words = [
        (status, look_at_payout(customer, until=status).word)
        for status in ("in_transit", "paid", "failed")
    ]

    assert words == [
        ("in_transit", SightingWord.PENDING),
        ("paid", SightingWord.FOUND),
        ("failed", SightingWord.FOUND_DIFFERENT),
    ]


# Whose account, and which mode


def test_a_platforms_secret_asks_in_the_connected_account(
    provider: Provider, customer: Customer
) -> None:
    account = customer.stripe.v1.accounts.create({"type": "custom"}).id
    there = stripe_client(provider.url, stripe_account=account)
    paid = customer.pay(key_of(1), metadata=MARKED, client=there)
    place = a_place(customer.url, account=account)

    look = look_for_payment_intent(a_probe(customer.url, place=place))
    at_the_platform = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.objects, look.right_place) == (SightingWord.FOUND, (paid.id,), True)
    assert look.account == account
    assert at_the_platform.word is SightingWord.ABSENT, "which says nothing about the other"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        pytest.param({"account": "acct_9"}, "may not act for it", id="not connected"),
        pytest.param({"secret": "sk_live_halden"}, "live mode", id="the other mode's secret"),
        pytest.param({"secret": "nobody"}, "not a Stripe key", id="no secret"),
    ],
)
def test_the_wrong_account_or_mode_proves_nothing(
    customer: Customer, place: dict[str, str], says: str
) -> None:
    look = look_for_payment_intent(a_probe(customer.url, place=a_place(customer.url, **place)))

    assert look.word is SightingWord.MISCONFIGURED
    assert says in look.why
    assert not look.right_place


def test_an_object_that_the_account_does_not_know_proves_nothing(
    customer: Customer, provider: Provider
) -> None:
    customer.pay(key_of(1), metadata={})
    with provider.world.store.batch() as batch:
        for intent in list(provider.world.store.table("acct_halden/test/payment_intents")):
            batch.remove("acct_halden/test/payment_intents", intent)

    look = look_for_payment_intent(a_probe(customer.url, unmarked=True))

    assert (look.word, look.http_status) == (SightingWord.MISCONFIGURED, 404)


# Search


@pytest.fixture
def one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are too long to be read whole."""
    monkeypatch.setattr(stripe_reading, "PAGES_MAX", 1)
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 1)


@pytest.mark.usefixtures("one_page")
def test_where_the_list_is_too_long_search_finds_it_and_the_object_itself_is_read(
    customer: Customer,
) -> None:
    ours = customer.pay(key_of(1), metadata=MARKED, capture_method="manual")
    customer.pay("other", metadata={})
    customer.advance(seconds=SEARCH_LAG_SECONDS + 1)
    customer.stripe.v1.payment_intents.capture(ours.id)

    look = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.objects) == (SightingWord.FOUND, (ours.id,))
    assert look.route == "Search PaymentIntents by marker, then retrieve"
    assert look.status == "succeeded", "search still shows it as it was before"


@pytest.mark.usefixtures("one_page")
def test_what_search_does_not_find_proves_nothing(customer: Customer) -> None:
    customer.pay(key_of(1), metadata=MARKED)
    customer.pay("other", metadata={})

    look = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.pages_complete) == (SightingWord.ABSENT, False)
    assert look.reads == 2


# Reads


def test_an_allowance_that_is_used_up_is_no_answer(customer: Customer) -> None:
    customer.control("POST", "/reads", {"reads_min": 0})

    look = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.retry_after_seconds) == (SightingWord.RATE_LIMITED, 60)
