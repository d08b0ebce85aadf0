"""What the Stripe adapter sees through the real SDK, at a provider that keeps the contract."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import stripe
from django.db import transaction

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters import stripe_reading
from reconcile.adapters.base import Delay, MatchedBy
from reconcile.adapters.stripe import look_for
from reconcile.adapters.stripe_client import ReadOnly
from reconcile.adapters.stripe_kinds import PAYMENT_INTENTS, REFUNDS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import (
    CLAIM,
    MARKER,
    OTHER_CLAIM,
    a_life,
    a_place,
    a_probe,
    key_of,
)
from tests.reconcile.sandbox.customer import Customer, stripe_client

look_for_payment_intent = look_for(PAYMENT_INTENTS)
look_for_refund = look_for(REFUNDS)


def pay(shopper: Customer, generation: int = 1, **changes: Any) -> stripe.PaymentIntent:
    params = {"metadata": {"counterfoil": marker(CLAIM, generation)}, **changes}
    return shopper.pay(key_of(generation), **params)


def pay_in_vain(customer: Customer, generation: int = 1, **changes: Any) -> None:
    with pytest.raises(stripe.StripeError):
        pay(customer, generation, **changes)


def put_status(provider: Provider, intent_id: str, **changes: Any) -> None:
    """What only the provider itself can do to its object."""
    with provider.world.store.batch() as batch:
        for scope in ("acct_halden/test",):
            row = provider.world.store.table(f"{scope}/payment_intents")[intent_id]
            batch.put(f"{scope}/payment_intents", intent_id, {**row, **changes})


# An effect


def test_a_payment_whose_answer_was_lost_is_found_by_its_marker(customer: Customer) -> None:
    pay_in_vain(customer, fault="drop_after_commit")
    (effect,) = customer.truth()

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is SightingWord.FOUND
    assert look.objects == (effect["object_id"],)
    assert look.status == "succeeded"
    assert look.delay_class is Delay.NONE
    assert look.matched_by is MatchedBy.MARKER
    assert look.pages_complete
    assert look.right_place
    assert look.requested == look.found
    assert look.request_id.startswith("req_")
    assert look.http_status == 200
    assert look.route == "List PaymentIntents"


def test_the_evidence_keeps_our_object_and_nobody_elses(customer: Customer) -> None:
    ours = pay(customer)
    other = customer.pay("other", metadata={"counterfoil": marker(OTHER_CLAIM, 1)})

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.raw is not None
    (kept,) = json.loads(look.raw)
    assert kept["id"] == ours.id
    assert other.id not in look.raw.decode()
    assert "secret" not in look.raw.decode()


def test_a_refund_is_found_by_its_marker(customer: Customer) -> None:
    intent = customer.pay("first")
    refund = customer.refund(key_of(1), intent.id, metadata={"counterfoil": MARKER}, amount=1000)

    look = look_for_refund(a_probe(customer.url, amount=from_minor(1000, "eur")))

    assert (look.word, look.objects) == (SightingWord.FOUND, (refund.id,))
    assert look.route == "List Refunds"


def test_an_object_on_a_later_page_is_found(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = pay(customer)
    for number in range(7):
        customer.pay(f"later-{number}")
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 3)

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.objects == (ours.id,)
    assert look.pages_complete
    assert "8 objects on 3 pages" in look.query


def test_two_objects_with_our_marker_are_both_named(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pay(customer)
    for number in range(3):
        customer.pay(f"between-{number}")
    second = customer.pay("another key", metadata={"counterfoil": MARKER})
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 2)

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is SightingWord.FOUND_MANY
    assert set(look.objects) == {first.id, second.id}


def test_a_declined_first_key_beside_a_payment_with_the_second_is_one_effect(
    customer: Customer,
) -> None:
    pay_in_vain(customer, 1, fault="refuse_402")
    paid = pay(customer, 2)

    look = look_for_payment_intent(
        a_probe(customer.url, generations=(a_life(1, is_open=False), a_life(2)))
    )

    assert (look.word, look.objects) == (SightingWord.FOUND, (paid.id,))
    assert len(look.others) == 1


@pytest.mark.parametrize(
    ("amount", "currency", "differing"),
    [
        pytest.param(4300, "eur", "amount 42.00 instead of 43.00", id="another amount"),
        pytest.param(4200, "usd", "currency EUR instead of USD", id="another currency"),
        pytest.param(4200, "jpy", "currency EUR instead of JPY", id="a currency without cents"),
    ],
)
def test_a_payment_that_is_not_the_one_asked_for_differs(
    customer: Customer, amount: int, currency: str, differing: str
) -> None:
    ours = pay(customer)

    look = look_for_payment_intent(
        a_probe(customer.url, amount=from_minor(amount, currency, contract="stripe.v1"))
    )

    assert (look.word, look.objects) == (SightingWord.FOUND_DIFFERENT, (ours.id,))
    assert differing in look.why
    assert look.requested != look.found


def test_a_payment_that_took_less_than_was_asked_differs(
    customer: Customer, provider: Provider
) -> None:
    ours = pay(customer)
    put_status(provider, ours.id, amount_received=4100)

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert look.found["amount"] == "41.00"


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        pytest.param("cus_Right1", SightingWord.FOUND, id="the customer"),
        pytest.param("cus_Wrong1", SightingWord.FOUND_DIFFERENT, id="another customer"),
        pytest.param("anna@example.com", SightingWord.FOUND, id="a name that Stripe does not use"),
    ],
)
def test_a_customer_is_compared_where_stripe_names_it_so(
    customer: Customer, asked: str, word: SightingWord
) -> None:
    pay(customer, customer="cus_Right1")

    assert look_for_payment_intent(a_probe(customer.url, customer=asked)).word is word


# No effect


def test_nothing_with_our_marker_is_an_absence(customer: Customer) -> None:
    pay_in_vain(customer, fault="drop_before")
    customer.pay("other", metadata={"counterfoil": marker(OTHER_CLAIM, 1)})
    customer.pay("forged", metadata={"counterfoil": f"{MARKER} "})

    look = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.objects) == (SightingWord.ABSENT, ())
    assert look.pages_complete
    assert "2 objects on 1 pages" in look.query


def test_an_interval_that_was_read_in_part_is_not_complete(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        customer.pay(f"other-{number}")
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 2)
    monkeypatch.setattr(stripe_reading, "PAGES_MAX", 1)

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is SightingWord.ABSENT
    assert not look.pages_complete


def test_the_interval_begins_before_the_first_grant(customer: Customer) -> None:
    pay(customer)

    early = look_for_payment_intent(a_probe(customer.url))
    late = look_for_payment_intent(
        replace(
            a_probe(customer.url),
            since=a_probe(customer.url).asked_at + timedelta(seconds=302),
        )
    )

    assert early.word is SightingWord.FOUND
    assert late.word is SightingWord.ABSENT, "objects before the interval are not read"


def test_a_provider_whose_clock_is_behind_ours_is_read_from_earlier_on(
    customer: Customer,
) -> None:
    pay(customer)
    probe = a_probe(customer.url)
    ahead = timedelta(hours=25)

    look = look_for_payment_intent(
        replace(probe, since=probe.since + ahead, asked_at=probe.asked_at + ahead)
    )

    assert look.word is SightingWord.FOUND


def test_a_clock_that_is_a_second_behind_costs_no_second_reading(customer: Customer) -> None:
    look_for_payment_intent(a_probe(customer.url))

    asked = [one["operation"] for one in customer.control("GET", "/requests")["requests"]]
    assert asked == ["payment_intents.list"]


@pytest.mark.parametrize(
    ("status", "word", "partly"),
    [
        ("processing", SightingWord.PENDING, False),
        ("requires_action", SightingWord.PENDING, False),
        ("requires_confirmation", SightingWord.PENDING, False),
        ("requires_payment_method", SightingWord.PENDING, False),
        ("requires_capture", SightingWord.PENDING, True),
        ("succeeded", SightingWord.FOUND, False),
        ("canceled", SightingWord.FOUND_DIFFERENT, False),
        ("a_word_from_next_year", SightingWord.UNMAPPED, False),
        (None, SightingWord.UNMAPPED, False),
    ],
)
def test_only_an_effect_is_found_and_an_unknown_status_is_quoted(
    customer: Customer,
    provider: Provider,
    *,
    status: str | None,
    word: SightingWord,
    partly: bool,
) -> None:
    ours = pay(customer)
    put_status(provider, ours.id, status=status)

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is word
    assert look.partly is partly
    assert str(status) in look.why
    assert look.objects == (ours.id,)


def test_a_tool_may_say_what_a_status_means_to_it(customer: Customer) -> None:
    held = pay(customer, capture_method="manual")

    look = look_for_payment_intent(
        a_probe(customer.url, config={"map": {"requires_capture": "found"}})
    )

    assert (look.word, look.objects) == (SightingWord.FOUND, (held.id,))


def test_a_decline_whose_answer_was_lost_moved_nothing_yet(customer: Customer) -> None:
    pay_in_vain(customer, fault="refuse_402")

    look = look_for_payment_intent(a_probe(customer.url))

    assert (look.word, look.status) == (SightingWord.PENDING, "requires_payment_method")


def test_a_decline_that_is_known_does_not_hide_that_the_next_key_made_nothing(
    customer: Customer,
) -> None:
    pay_in_vain(customer, 1, fault="refuse_402")
    pay_in_vain(customer, 2, fault="drop_before")

    look = look_for_payment_intent(
        a_probe(customer.url, generations=(a_life(1, is_open=False), a_life(2)))
    )

    assert look.word is SightingWord.ABSENT
    assert len(look.others) == 1


# The second route


def test_a_payment_without_a_marker_is_found_by_the_key_of_its_events(
    customer: Customer,
) -> None:
    ours = pay(customer, metadata={})
    customer.pay("other")

    without = look_for_payment_intent(a_probe(customer.url))
    look = look_for_payment_intent(a_probe(customer.url, unmarked=True))

    assert without.word is SightingWord.ABSENT
    assert (look.word, look.objects) == (SightingWord.FOUND, (ours.id,))
    assert "Events" in look.route


def test_a_refund_without_a_marker_is_found_by_the_key_of_its_events(
    customer: Customer,
) -> None:
    intent = customer.pay("first")
    refund = customer.refund(key_of(1), intent.id, metadata={})

    look = look_for_refund(a_probe(customer.url, unmarked=True))

    assert (look.word, look.objects) == (SightingWord.FOUND, (refund.id,))


def test_no_event_with_our_key_leaves_the_list_as_it_was(customer: Customer) -> None:
    customer.pay("other")

    look = look_for_payment_intent(a_probe(customer.url, unmarked=True))

    assert (look.word, look.route) == (SightingWord.ABSENT, "List PaymentIntents")


# No answer


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"secret": ""}, "not set", id="no secret"),
        pytest.param({"secret": "sk_live_halden"}, "live mode", id="a key of the other mode"),
        pytest.param({"secret": "pk_test_halden"}, "not a Stripe key", id="a publishable key"),
        pytest.param({"account": "acct_other"}, "acct_halden", id="another account"),
        pytest.param({"secret": "rk_test_!"}, "401", id="a key that Stripe does not know"),
        pytest.param({"secret": "rk_test_halden\n"}, "header", id="a secret with a line end"),
    ],
)
def test_asking_in_the_wrong_place_is_no_absence(
    customer: Customer, changes: dict[str, Any], said: str
) -> None:
    probe = a_probe(customer.url, place=a_place(customer.url, **changes))

    look = look_for_payment_intent(probe)

    assert look.word is SightingWord.MISCONFIGURED
    assert said in look.why
    assert probe.place.secret.strip() not in look.why or not probe.place.secret


def test_the_registered_account_is_confirmed(customer: Customer) -> None:
    place = a_place(customer.url, account="acct_halden")

    look = look_for_payment_intent(a_probe(customer.url, place=place))

    assert look.word is SightingWord.ABSENT
    assert look.right_place


def test_a_config_that_cannot_be_used_says_so(customer: Customer) -> None:
    look = look_for_payment_intent(a_probe(customer.url, config={"map": {"succeeded": "yes"}}))

    assert look.word is SightingWord.MISCONFIGURED
    assert "map" in look.why


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("rate_limit_429", SightingWord.RATE_LIMITED),
        ("error_500", SightingWord.LOOKUP_FAILED),
        ("drop_before", SightingWord.LOOKUP_FAILED),
        ("drop_after_commit", SightingWord.LOOKUP_FAILED),
        ("cut_mid_body", SightingWord.LOOKUP_FAILED),
    ],
)
def test_a_provider_that_does_not_answer_says_nothing(
    customer: Customer, fault: str, word: SightingWord
) -> None:
    pay(customer)
    customer.control(
        "POST", "/faults", {"rules": [{"fault": fault, "operation": "payment_intents.list"}]}
    )

    look = look_for_payment_intent(a_probe(customer.url))

    assert look.word is word
    assert look.objects == ()


def test_a_provider_that_is_not_there_says_nothing() -> None:
    look = look_for_payment_intent(a_probe("http://127.0.0.1:1"))

    assert look.word is SightingWord.LOOKUP_FAILED


def test_nothing_but_reads_leaves_the_door(customer: Customer) -> None:
    client = stripe.StripeClient(
        "sk_test_halden",
        http_client=ReadOnly(a_place(customer.url).way),
        base_addresses={"api": customer.url},
    )

    with pytest.raises(AssertionError, match="only reads"):
        client.v1.payment_intents.create({"amount": 1, "currency": "eur"})

    assert customer.truth() == []


@pytest.mark.django_db(transaction=True)
def test_no_provider_is_asked_inside_a_transaction(customer: Customer) -> None:
    with transaction.atomic(), pytest.raises(AssertionError, match="transaction"):
        look_for_payment_intent(a_probe(customer.url))


def test_looking_changes_nothing_at_the_provider(customer: Customer) -> None:
    pay(customer)
    before = customer.truth()

    look_for_payment_intent(a_probe(customer.url, unmarked=True))

    assert customer.truth() == before
    assert stripe_client(customer.url).v1.payment_intents.list().data[0].status == "succeeded"
