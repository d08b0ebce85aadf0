"""What the Stripe adapter can and cannot say about a call that changes an object."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import stripe

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters import stripe_reading
from reconcile.adapters.base import Delay, Look
from reconcile.adapters.stripe import look_for
from reconcile.adapters.stripe_kinds import PAYMENT_INTENTS
from reconcile.adapters.stripe_updates import (
    UPDATE_METADATA_KEY,
    look_for_update,
    read_update_config,
)
from tests.reconcile.adapters.probes import (
    CLAIM,
    MARKER,
    OTHER_CLAIM,
    a_life,
    a_place,
    a_probe,
    key_of,
)
from tests.reconcile.sandbox.customer import Customer, options, stripe_client

CONFIG = {
    "object": "subscription",
    "id": "subscription",
    "fields": {"metadata.seat": "seat", "cancel_at_period_end": "ends"},
}
MINE = {UPDATE_METADATA_KEY: MARKER}


def subscribed(client: stripe.StripeClient) -> str:
    items: Any = [{"price": "price_900_eur"}]
    card = "pm_card_visa"
    return client.v1.subscriptions.create(
        {"customer": "cus_1", "items": items, "default_payment_method": card}
    ).id


def change(
    client: stripe.StripeClient, object_id: str, key: str = key_of(1), **params: Any
) -> None:
    sent: Any = {"metadata": {**MINE, "seat": "7"}, "cancel_at_period_end": True, **params}
    client.v1.subscriptions.update(object_id, sent, options=options(key))


def ask(customer: Customer, object_id: str, **changes: Any) -> Look:
    arguments = {"subscription": object_id, "seat": "7", "ends": True}
    given: dict[str, Any] = {"config": CONFIG, "arguments": arguments, **changes}
    return look_for_update(a_probe(customer.url, **given))


def test_an_update_is_found_by_the_marker_that_it_wrote(customer: Customer) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made)

    look = ask(customer, made)

    assert (look.word, look.objects) == (SightingWord.FOUND, (made,))
    assert (
        look.requested
        == look.found
        == {"metadata.seat": "7", "cancel_at_period_end": "True", "mode": "test"}
    )
    assert (look.route, look.reads, look.status) == ("Retrieve the Subscription", 1, "active")
    assert look.raw is not None


def test_an_object_that_only_looks_as_asked_proves_nothing(customer: Customer) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made, "somebody", metadata={"seat": "7"})

    look = ask(customer, made)

    assert (look.word, look.objects, look.others) == (SightingWord.ABSENT, (), (made,))
    assert (look.delay_class, look.pages_complete) == (Delay.UNKNOWN, False)
    assert "may have been so before" in look.why
    assert look.requested == look.found


def test_an_update_that_nothing_shows_is_never_an_absence_that_could_count(
    customer: Customer,
) -> None:
    made = subscribed(customer.stripe)

    look = ask(customer, made)

    assert (look.word, look.pages_complete, look.delay_class) == ("absent", False, "unknown")
    assert look.found["metadata.seat"] != look.requested["metadata.seat"]


def test_an_update_whose_marker_was_replaced_is_found_by_its_key(customer: Customer) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made)
    later = {UPDATE_METADATA_KEY: marker(OTHER_CLAIM, 1), "seat": "7"}
    change(customer.stripe, made, "later", metadata=later)

    look = ask(customer, made)

    assert (look.word, look.objects) == (SightingWord.FOUND, (made,))
    assert look.route == "List Events by key, then retrieve the Subscription"


PAY = {"object": "invoice", "id": "invoice"}


def opened(client: stripe.StripeClient) -> str:
    made = client.v1.invoices.create({"customer": "cus_1"}).id
    client.v1.invoices.add_lines(made, {"lines": [{"amount": 4200}]})
    return client.v1.invoices.finalize_invoice(made).id


@pytest.mark.parametrize(
    ("card", "word"),
    [
        pytest.param("pm_card_visa", SightingWord.FOUND, id="paid"),
        pytest.param("pm_card_chargeDeclined", SightingWord.ABSENT, id="declined"),
    ],
)
def test_a_payment_of_an_invoice_is_found_by_its_key_and_a_declined_one_is_not(
    customer: Customer, card: str, word: SightingWord
) -> None:
    made = opened(customer.stripe)
    with contextlib.suppress(stripe.CardError):
        customer.stripe.v1.invoices.pay(made, {"payment_method": card}, options=options(key_of(1)))
    assert customer.stripe.v1.events.list({"type": "invoice.*"}).data[0].request is not None

    look = ask(customer, made, config=PAY, arguments={"invoice": made})

    assert (look.word, look.pages_complete) == (word, False)
    assert "fields" not in look.why


def test_events_that_could_not_be_read_to_the_end_show_no_payment(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_reading, "EVENTS_PAGE_SIZE", 1)
    monkeypatch.setattr(stripe_reading, "PAGES_MAX", 1)
    made = opened(customer.stripe)
    customer.stripe.v1.invoices.pay(made, options=options(key_of(1)))

    look = ask(customer, made, config=PAY, arguments={"invoice": made})

    assert look.word is SightingWord.ABSENT


def test_an_event_with_our_key_about_another_object_is_not_this_update(
    customer: Customer,
) -> None:
    made, other = subscribed(customer.stripe), subscribed(customer.stripe)
    change(customer.stripe, other, metadata={"seat": "7"})

    assert ask(customer, made).word is SightingWord.ABSENT


def test_an_update_that_was_changed_again_since_differs(customer: Customer) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made)
    change(customer.stripe, made, "later", metadata={"seat": "8"})

    look = ask(customer, made)

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert "metadata.seat 8 instead of 7" in look.why


def test_an_update_by_an_older_key_is_found_as_well(customer: Customer) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made)

    look = ask(customer, made, generations=(a_life(1, is_open=False), a_life(2)))

    assert look.word is SightingWord.FOUND


def test_an_update_does_not_hide_the_call_that_made_the_object(customer: Customer) -> None:
    paid = customer.pay(key_of(1), metadata={"counterfoil": MARKER})
    theirs: Any = {"metadata": {UPDATE_METADATA_KEY: marker(OTHER_CLAIM, 1)}}
    customer.stripe.v1.payment_intents.update(paid.id, theirs)

    assert look_for(PAYMENT_INTENTS)(a_probe(customer.url)).objects == (paid.id,)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"arguments": None}, "name no object", id="emptied arguments"),
        pytest.param({"arguments": {"subscription": 7}}, "name no object", id="a number"),
        pytest.param({"config": {**CONFIG, "object": "customer"}}, "object", id="another kind"),
        pytest.param({"config": {"object": "refund", "id": "a["}}, "JMESPath", id="no expression"),
        pytest.param({"config": {"object": "refund"}}, "id", id="no place for the id"),
    ],
)
def test_what_cannot_be_asked_is_misconfigured(
    customer: Customer, changes: dict[str, Any], says: str
) -> None:
    look = ask(customer, "sub_1", **changes)

    assert look.word is SightingWord.MISCONFIGURED
    assert says in look.why
    assert look.reads == 0


def test_an_object_that_is_not_there_is_no_absence(customer: Customer) -> None:
    live = stripe_client(customer.url, api_key="sk_live_halden")
    made = subscribed(live)

    look = ask(customer, made)

    assert (look.word, look.http_status) == (SightingWord.MISCONFIGURED, 404)
    assert "similar object exists in live mode" in look.why


@pytest.mark.parametrize(
    "place",
    [{"account": "acct_other"}, {"secret": "rk_live_halden"}, {"secret": ""}],
    ids=["another account", "the other mode", "no secret"],
)
def test_the_wrong_place_is_misconfigured(customer: Customer, place: dict[str, str]) -> None:
    made = subscribed(customer.stripe)
    change(customer.stripe, made)

    look = ask(customer, made, place=a_place(customer.url, **place))

    assert (look.word, look.right_place) == (SightingWord.MISCONFIGURED, False)


def test_an_id_that_leaves_its_path_asks_for_nothing_else(customer: Customer) -> None:
    look = ask(customer, "../charges")

    assert look.word is SightingWord.MISCONFIGURED
    asked = [one["operation"] for one in customer.control("GET", "/requests")["requests"]]
    assert "charges.list" not in asked


def test_a_marker_of_a_generation_that_the_record_does_not_know_is_ours_all_the_same(
    customer: Customer,
) -> None:
    made = subscribed(customer.stripe)
    change(
        customer.stripe, made, "k", metadata={UPDATE_METADATA_KEY: marker(CLAIM, 9), "seat": "7"}
    )

    assert ask(customer, made).word is SightingWord.FOUND


def test_an_entry_may_be_as_short_as_two_names() -> None:
    assert read_update_config({"object": "refund", "id": "refund.id"}).fields == {}
