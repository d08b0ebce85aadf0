"""Charges, payouts, search, connected accounts, modes and reads, through the real SDK."""

from __future__ import annotations

import time
from typing import Any

import pytest
import stripe

from reconcile.sandbox.provider.payouts import FAILS_LATE
from reconcile.sandbox.provider.recipes import PAYOUT_STEP_SECONDS, SEARCH_LAG_SECONDS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import Customer, options, stripe_client

MARKED: dict[str, str] = {"counterfoil": "cf_k1_1"}


def charge(customer: Customer, key: str = "k1", **changes: Any) -> stripe.Charge:
    params: Any = {"amount": 4200, "currency": "eur", "source": "tok_visa", "metadata": MARKED}
    params |= changes
    return customer.stripe.v1.charges.create(params, options=options(key))


def payout(customer: Customer, key: str = "k1", **changes: Any) -> stripe.Payout:
    params: Any = {"amount": 9900, "currency": "eur", "metadata": MARKED}
    params |= changes
    return customer.stripe.v1.payouts.create(params, options=options(key))


def become(customer: Customer, payout_id: str, status: str) -> stripe.Payout:
    until = time.monotonic() + 5
    while (seen := customer.stripe.v1.payouts.retrieve(payout_id)).status != status:
        assert time.monotonic() < until, f"{payout_id} is {seen.status}, not {status}"
        time.sleep(0.05)
    return seen


# Charges


def test_a_payment_intent_has_its_charge_and_the_charge_its_intent(customer: Customer) -> None:
    paid = customer.pay("k1", transfer_group="group")

    made = customer.stripe.v1.charges.retrieve(str(paid.latest_charge))

    assert (made.payment_intent, made.status, made.amount) == (paid.id, "succeeded", 4200)
    assert made.metadata["counterfoil"] == "cf_k1_1"
    for wanted in ({"payment_intent": paid.id}, {"transfer_group": "group"}):
        assert [c.id for c in customer.stripe.v1.charges.list(wanted).data] == [made.id]  # type: ignore[arg-type] # built above


def test_a_charge_is_made_once_for_one_key_and_a_decline_is_stored(customer: Customer) -> None:
    assert charge(customer).id == charge(customer).id
    assert len(customer.truth()) == 1
    for _ in range(2):
        with pytest.raises(stripe.CardError) as declined:
            charge(customer, "k2", source="tok_chargeDeclined")
        assert declined.value.code == "card_declined"
    assert len(customer.stripe.v1.charges.list().data) == 2
    assert len(customer.truth()) == 1


# Payouts


def test_a_payout_is_paid_step_by_step(customer: Customer) -> None:
    made = payout(customer)
    assert made.status == "pending"
    for status in ("in_transit", "paid"):
        customer.advance(seconds=PAYOUT_STEP_SECONDS)
        become(customer, made.id, status)

    (effect,) = customer.truth()
    assert (effect["kind"], effect["object_id"]) == ("payout", made.id)
    assert [p.id for p in customer.stripe.v1.payouts.list({"status": "paid"}).data] == [made.id]


def test_a_payout_may_fail_after_it_was_paid(customer: Customer) -> None:
    made = payout(customer, destination=FAILS_LATE)
    for status in ("in_transit", "paid", "failed"):
        customer.advance(seconds=PAYOUT_STEP_SECONDS)
        become(customer, made.id, status)

    assert customer.stripe.v1.payouts.retrieve(made.id).failure_code == "account_closed"
    events = customer.stripe.v1.events.list({"type": "payout.*"}).data
    kinds = [event.type for event in reversed(events)]
    assert kinds == ["payout.created", "payout.updated", "payout.paid", "payout.failed"]
    assert events[0].request is not None
    assert events[0].request.id is None, "nobody asked for it"


def test_a_pending_payout_can_be_canceled_and_a_paid_one_cannot(customer: Customer) -> None:
    made = payout(customer)
    assert customer.stripe.v1.payouts.cancel(made.id).status == "canceled"
    other = payout(customer, "k2")
    customer.advance(seconds=PAYOUT_STEP_SECONDS)
    become(customer, other.id, "in_transit")
    with pytest.raises(stripe.InvalidRequestError):
        customer.stripe.v1.payouts.cancel(other.id)


# Search


def found(customer: Customer, query: str) -> list[str]:
    return [one.id for one in customer.stripe.v1.payment_intents.search({"query": query}).data]


def test_search_is_late_and_the_list_is_not(customer: Customer) -> None:
    paid = customer.pay("k1")
    query = "metadata['counterfoil']:'cf_k1_1'"

    assert found(customer, query) == []
    assert len(customer.stripe.v1.payment_intents.list().data) == 1
    customer.advance(seconds=SEARCH_LAG_SECONDS + 0.1)

    assert found(customer, query) == [paid.id]


def test_in_an_outage_search_is_an_hour_late(customer: Customer) -> None:
    customer.control("POST", "/search", {"lag_seconds": 3600})
    customer.pay("k1")
    customer.advance(seconds=3500)
    assert found(customer, "status:'succeeded'") == []
    customer.advance(seconds=101)
    assert len(found(customer, "status:'succeeded'")) == 1


def test_search_shows_the_object_as_it_was_then(customer: Customer) -> None:
    held = customer.pay("k1", capture_method="manual")
    customer.advance(seconds=SEARCH_LAG_SECONDS + 0.1)
    customer.stripe.v1.payment_intents.capture(held.id)

    assert found(customer, "status:'requires_capture'") == [held.id]
    assert found(customer, "status:'succeeded'") == []


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("amount:4200", 1),
        ("amount>4200", 1),
        ("amount>=4200 AND currency:'eur'", 2),
        ("amount<4200 OR status:'succeeded'", 2),
        ("-metadata['order']:'7'", 0),
        ("metadata['counterfoil']~'k1'", 0),
        ("metadata['counterfoil']~'cf_k1'", 1),
        ("customer:null", 2),
        ('metadata["order"]:"7"', 2),
    ],
)
def test_queries_of_the_documented_subset(customer: Customer, query: str, count: int) -> None:
    customer.pay("k1")
    customer.pay("k2", amount=5000)
    customer.advance(seconds=SEARCH_LAG_SECONDS + 0.1)
    if query == "metadata['counterfoil']~'k1'":
        with pytest.raises(stripe.InvalidRequestError):
            found(customer, query)
        return
    assert len(found(customer, query)) == count


@pytest.mark.parametrize(
    "query",
    ["", "nonsense", "amount:'x'", "a:1 AND", "colour:'red'", "amount:1 AND amount:2 OR amount:3"],
)
def test_queries_that_are_none_are_refused(customer: Customer, query: str) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        found(customer, query)
    assert refused.value.http_status == 400


def test_charges_are_searched_by_pages(customer: Customer) -> None:
    for number in range(3):
        charge(customer, f"k{number}")
    customer.advance(seconds=SEARCH_LAG_SECONDS + 0.1)

    first = customer.stripe.v1.charges.search({"query": "amount:4200", "limit": 2})
    assert first.next_page is not None
    second = customer.stripe.v1.charges.search(
        {"query": "amount:4200", "limit": 2, "page": first.next_page}
    )

    assert (len(first.data), len(second.data), second.has_more) == (2, 1, False)


# Accounts and modes


def test_a_connected_account_is_a_world_of_its_own(provider: Provider, customer: Customer) -> None:
    account = customer.stripe.v1.accounts.create({"type": "custom"}).id
    there = stripe_client(provider.url, stripe_account=account)
    first, second = customer.pay("k1"), customer.pay("k1", client=there)

    assert first.id != second.id
    assert there.v1.accounts.retrieve_current().id == account
    assert [p.id for p in there.v1.payment_intents.list().data] == [second.id]
    with pytest.raises(stripe.InvalidRequestError) as missing:
        customer.stripe.v1.payment_intents.retrieve(second.id)
    assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")


def test_an_account_that_is_not_connected_is_refused(provider: Provider) -> None:
    stranger = stripe_client(provider.url, stripe_account="acct_somebody")
    with pytest.raises(stripe.PermissionError) as refused:
        stranger.v1.payment_intents.list()
    assert refused.value.http_status == 403
    assert '"account_invalid"' in str(refused.value.http_body)


def test_the_other_modes_object_is_hinted_at_and_not_shown(
    provider: Provider, customer: Customer
) -> None:
    paid = customer.pay("k1")
    live = stripe_client(provider.url, api_key="sk_live_halden")

    with pytest.raises(stripe.InvalidRequestError) as missing:
        live.v1.payment_intents.retrieve(paid.id)

    assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")
    assert "a similar object exists in test mode" in str(missing.value)
    assert customer.pay("k1", client=live).livemode is True


# Reads


def test_reads_are_counted_and_those_over_the_allowance_are_turned_away(
    provider: Provider, customer: Customer
) -> None:
    customer.control("POST", "/reads", {"reads_min": 3})
    for _ in range(3):
        customer.stripe.v1.payment_intents.list()
    with pytest.raises(stripe.RateLimitError) as refused:
        customer.stripe.v1.payment_intents.list()
    assert refused.value.headers is not None
    assert refused.value.headers["retry-after"] == "60"

    customer.pay("k1")

    assert customer.stripe.v1.payment_intents.list().data, "a transaction brings 500 more"
    (used,) = customer.control("GET", "/counters")["reads"]
    assert (used["scope"], used["transactions"], used["allowed"]) == ("acct_halden/test", 1, 500)
    customer.advance(seconds=31 * 86_400)
    (used,) = customer.control("GET", "/counters")["reads"]
    assert (used["reads"], used["transactions"]) == (0, 0)
