"""Transfers, invoices, subscriptions, SetupIntents and updates, through the real SDK.

Source: https://docs.stripe.com/api, the page of each kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from reconcile.sandbox.provider.recipes import SEARCH_LAG_SECONDS, STEP_SECONDS
from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.provider.setup_intents import NEEDS_ACTION
from reconcile.sandbox.provider.subscriptions import FIRST_PAYMENT_SECONDS
from reconcile.sandbox.provider.updates import UPDATE_MARKER
from tests.reconcile.sandbox.customer import Customer, is_replayed, options, stripe_client

MARKED: dict[str, str] = {"counterfoil": "cf_k1_1"}


def connected(customer: Customer) -> str:
    return customer.stripe.v1.accounts.create({"type": "custom"}).id


def transfer(customer: Customer, key: str = "k1", **changes: Any) -> stripe.Transfer:
    params: Any = {"amount": 4200, "currency": "eur", "metadata": MARKED, **changes}
    params.setdefault("destination", connected(customer))
    return customer.stripe.v1.transfers.create(params, options=options(key))


def subscribe(customer: Customer, key: str = "k1", **changes: Any) -> stripe.Subscription:
    params: Any = {
        "customer": "cus_1",
        "items": [{"price": "price_900_eur", "quantity": 2}],
        "default_payment_method": "pm_card_visa",
        "metadata": MARKED,
        **changes,
    }
    return customer.stripe.v1.subscriptions.create(params, options=options(key))


def invoice(customer: Customer, key: str = "k1", **changes: Any) -> stripe.Invoice:
    params: Any = {"customer": "cus_1", "currency": "eur", "metadata": MARKED, **changes}
    return customer.stripe.v1.invoices.create(params, options=options(key))


def until(said: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + 5
    while said() != wanted:
        assert time.monotonic() < deadline, f"{said()} is not {wanted}"
        time.sleep(0.02)


def kinds_of_events(customer: Customer, kind: str) -> list[str]:
    return [event.type for event in reversed(customer.stripe.v1.events.list({"type": kind}).data)]


# Transfers


def test_a_transfer_has_no_status_and_says_what_was_reversed(customer: Customer) -> None:
    made = transfer(customer, transfer_group="order 7")

    assert "status" not in made.to_dict()
    assert (made.reversed, made.amount_reversed) == (False, 0)
    customer.stripe.v1.transfers.reversals.create(made.id, {"amount": 1000})
    part = customer.stripe.v1.transfers.retrieve(made.id)
    assert (part.reversed, part.amount_reversed) == (False, 1000)
    customer.stripe.v1.transfers.reversals.create(made.id)
    assert customer.stripe.v1.transfers.retrieve(made.id).reversed is True
    with pytest.raises(stripe.InvalidRequestError):
        customer.stripe.v1.transfers.reversals.create(made.id)
    assert kinds_of_events(customer, "transfer.*") == [
        "transfer.created",
        "transfer.reversed",
        "transfer.reversed",
    ]
    assert [(e["kind"], e["amount"]) for e in customer.truth()] == [("transfer", 4200)]


def test_transfers_are_filtered_by_group_and_destination(customer: Customer) -> None:
    there = connected(customer)
    mine = transfer(customer, destination=there, transfer_group="g1")
    transfer(customer, "k2", transfer_group="g2")

    for wanted in ({"transfer_group": "g1"}, {"destination": there}):
        assert [t.id for t in customer.stripe.v1.transfers.list(wanted).data] == [mine.id]  # type: ignore[arg-type] # built above


def test_a_transfer_needs_an_account_that_is_connected(customer: Customer) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        transfer(customer, destination="acct_somebody")
    assert refused.value.param == "destination"
    assert customer.truth() == []


# Invoices


def test_an_invoice_is_drafted_finalized_and_paid(customer: Customer) -> None:
    invoices = customer.stripe.v1.invoices
    draft = invoice(customer)
    assert (draft.status, draft.total) == ("draft", 0)
    invoices.add_lines(draft.id, {"lines": [{"amount": 4000}, {"amount": 200}]})
    assert customer.truth() == [], "a draft asks nobody for anything"
    issued = invoices.finalize_invoice(draft.id)
    assert (issued.status, issued.total, issued.amount_due) == ("open", 4200, 4200)
    with pytest.raises(stripe.CardError):
        invoices.pay(draft.id, {"payment_method": "pm_card_chargeDeclined"})
    assert invoices.retrieve(draft.id).status == "open"
    assert invoices.pay(draft.id).status == "paid"
    with pytest.raises(stripe.InvalidRequestError):
        invoices.void_invoice(draft.id)
    assert [e["kind"] for e in customer.truth()] == ["invoice"]
    assert kinds_of_events(customer, "invoice.*") == [
        *("invoice.created", "invoice.updated", "invoice.finalized"),
        *("invoice.updated", "invoice.payment_failed", "invoice.paid"),
    ]


def test_an_open_invoice_can_be_given_up_paid_after_all_or_voided(customer: Customer) -> None:
    invoices = customer.stripe.v1.invoices
    given_up, voided = (opened(customer, f"k{n}") for n in (1, 2))

    assert invoices.mark_uncollectible(given_up).status == "uncollectible"
    assert invoices.pay(given_up).status == "paid"
    assert invoices.void_invoice(voided).status == "void"
    assert [i.id for i in invoices.list({"status": "void"}).data] == [voided]


def opened(customer: Customer, key: str) -> str:
    made = invoice(customer, key).id
    customer.stripe.v1.invoices.add_lines(made, {"lines": [{"amount": 900}]})
    return customer.stripe.v1.invoices.finalize_invoice(made).id


def test_a_draft_that_is_deleted_is_gone_and_its_event_remembers_it(customer: Customer) -> None:
    draft = invoice(customer)

    customer.stripe.v1.invoices.delete(draft.id)

    assert customer.stripe.v1.invoices.list().data == []
    (event,) = customer.stripe.v1.events.list({"type": "invoice.deleted"}).data
    assert event.data.object["metadata"]["counterfoil"] == "cf_k1_1"


# Subscriptions


def test_a_subscription_runs_and_its_first_invoice_is_paid(customer: Customer) -> None:
    made = subscribe(customer)

    assert made.status == "active"
    first = customer.stripe.v1.invoices.retrieve(str(made.latest_invoice))
    assert (first.status, first.amount_paid) == ("paid", 1800)
    assert {e["kind"] for e in customer.truth()} == {"invoice", "subscription"}
    assert customer.stripe.v1.subscriptions.list({"price": "price_900_eur"}).data[0].id == made.id


def test_a_list_leaves_out_what_was_canceled_unless_all_are_asked_for(customer: Customer) -> None:
    subscriptions = customer.stripe.v1.subscriptions
    made, other = subscribe(customer), subscribe(customer, "k2")
    assert subscriptions.cancel(made.id).status == "canceled"

    assert [s.id for s in subscriptions.list().data] == [other.id]
    assert len(subscriptions.list({"status": "all"}).data) == 2
    assert [s.id for s in subscriptions.list({"status": "ended"}).data] == [made.id]
    assert kinds_of_events(customer, "customer.subscription.deleted")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"payment_behavior": "default_incomplete"}, "incomplete", id="to be paid"),
        pytest.param(
            {"default_payment_method": "pm_card_chargeDeclined"}, "incomplete", id="declined"
        ),
        pytest.param({"trial_period_days": 7}, "trialing", id="a trial"),
    ],
)
def test_how_a_subscription_begins(
    customer: Customer, changes: dict[str, Any], status: str
) -> None:
    assert subscribe(customer, **changes).status == status


def test_a_first_payment_that_does_not_come_in_23_hours_ends_it_and_one_that_comes_begins_it(
    customer: Customer,
) -> None:
    waits = {"payment_behavior": "default_incomplete"}
    late, paid = subscribe(customer, **waits), subscribe(customer, "k2", **waits)
    customer.stripe.v1.invoices.pay(str(paid.latest_invoice))

    customer.advance(seconds=FIRST_PAYMENT_SECONDS + 1)

    get = customer.stripe.v1.subscriptions.retrieve
    until(lambda: get(late.id).status, "incomplete_expired")
    assert get(paid.id).status == "active"
    effects = [e["object_id"] for e in customer.truth() if e["kind"] == "subscription"]
    assert effects == [paid.id]


# SetupIntents


def test_a_setup_intent_goes_through_its_states(customer: Customer) -> None:
    setups = customer.stripe.v1.setup_intents
    bare = setups.create({"metadata": MARKED}, options=options("k1"))
    assert bare.status == "requires_payment_method"
    with pytest.raises(stripe.CardError):
        setups.confirm(bare.id, {"payment_method": "pm_card_chargeDeclined"})
    assert setups.retrieve(bare.id).status == "requires_payment_method"
    assert setups.confirm(bare.id, {"payment_method": NEEDS_ACTION}).status == "requires_action"
    assert setups.cancel(bare.id).status == "canceled"
    done = setups.create({"payment_method": "pm_card_visa", "confirm": True})
    assert done.status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError):
        setups.cancel(done.id)
    assert [s.id for s in setups.list({"payment_method": "pm_card_visa"}).data] == [done.id]
    assert [e["object_id"] for e in customer.truth()] == [done.id]


# Refunds that are not over with


def refund_of(customer: Customer, method: str) -> stripe.Refund:
    return customer.refund("r1", customer.pay("p1", payment_method=method).id)


def test_a_refund_that_succeeded_may_fail_and_gives_the_money_back(customer: Customer) -> None:
    made = refund_of(customer, "pm_card_refundFail")
    assert made.status == "succeeded"

    customer.advance(seconds=STEP_SECONDS)

    until(lambda: customer.stripe.v1.refunds.retrieve(made.id).status, "failed")
    assert customer.stripe.v1.charges.retrieve(str(made.charge)).amount_refunded == 0
    assert kinds_of_events(customer, "refund.failed")


def test_a_refund_may_be_pending_first(customer: Customer) -> None:
    made = refund_of(customer, "pm_card_pendingRefund")
    assert made.status == "pending"
    customer.advance(seconds=STEP_SECONDS)
    until(lambda: customer.stripe.v1.refunds.retrieve(made.id).status, "succeeded")


# Updates


def test_an_update_merges_metadata_and_an_empty_value_unsets_it(customer: Customer) -> None:
    paid = customer.pay("p1", metadata={"a": "1", "b": "2"})
    changed = customer.stripe.v1.payment_intents.update(
        paid.id, {"metadata": {"b": "", "c": "3"}, "description": "seven"}
    )
    assert changed.metadata.to_dict() == {"a": "1", "c": "3"}
    assert (changed.description, changed.status) == ("seven", "succeeded")
    emptied = customer.stripe.v1.payment_intents.update(paid.id, {"metadata": ""})
    assert emptied.metadata.to_dict() == {}


def test_every_kind_can_be_updated_and_those_without_an_event_say_nothing(
    customer: Customer,
) -> None:
    v1 = customer.stripe.v1
    paid = customer.pay("p1")
    made: dict[Any, str] = {
        v1.payment_intents: paid.id,
        v1.charges: str(paid.latest_charge),
        v1.refunds: customer.refund("r1", paid.id).id,
        v1.payouts: v1.payouts.create({"amount": 9, "currency": "eur"}).id,
        v1.transfers: transfer(customer).id,
        v1.invoices: invoice(customer, "k2").id,
        v1.subscriptions: subscribe(customer, "k3").id,
        v1.setup_intents: v1.setup_intents.create({}).id,
    }
    before = len(v1.events.list({"limit": 100}).data)

    for service, object_id in made.items():
        changed = service.update(object_id, {"metadata": {UPDATE_MARKER: "cf_u_1"}})
        assert changed.metadata[UPDATE_MARKER] == "cf_u_1"

    new = len(v1.events.list({"limit": 100}).data) - before
    assert new == len(made) - 2, "PaymentIntents and SetupIntents have no event for it"
    updates = [e for e in customer.truth() if e["kind"].endswith(".update")]
    assert {e["marker"] for e in updates} == {"cf_u_1"}
    assert len(updates) == len(made)


def test_an_update_is_done_once_for_one_key_and_not_where_the_status_forbids_it(
    customer: Customer,
) -> None:
    waiting = customer.pay("p1", confirm=False)
    update = customer.stripe.v1.payment_intents.update
    assert update(waiting.id, {"amount": 9}, options=options("u1")).amount == 9
    assert is_replayed(update(waiting.id, {"amount": 9}, options=options("u1")))
    with pytest.raises(stripe.IdempotencyError):
        update(waiting.id, {"amount": 10}, options=options("u1"))
    with pytest.raises(stripe.InvalidRequestError):
        update(customer.pay("p2").id, {"amount": 9})


# Everywhere the same


def test_invoices_and_subscriptions_are_searched_and_the_others_are_not(
    customer: Customer,
) -> None:
    made: tuple[Any, ...] = (subscribe(customer), invoice(customer, "k2"))
    customer.advance(seconds=SEARCH_LAG_SECONDS + 0.1)
    query = "metadata['counterfoil']:'cf_k1_1'"

    services: tuple[Any, ...] = (customer.stripe.v1.subscriptions, customer.stripe.v1.invoices)
    for service, one in zip(services, made, strict=True):
        assert [found.id for found in service.search({"query": query}).data] == [one.id]
    for table in ("transfers", "setup_intents", "refunds", "payouts"):
        with pytest.raises(stripe.InvalidRequestError) as missing:
            customer.stripe.raw_request("get", f"/v1/{table}/search")
        assert missing.value.http_status == 404


def test_a_500_that_is_rolled_forward_later_makes_the_object_and_names_no_request(
    customer: Customer,
) -> None:
    params: Any = {"customer": "cus_1", "metadata": MARKED}
    for _ in range(2):
        with pytest.raises(stripe.APIError) as stored:
            customer.stripe.v1.invoices.create(
                params, options=options("k1", "error_500_then_late_commit=60")
            )
        assert stored.value.http_status == 500
    assert customer.stripe.v1.invoices.list().data == []

    customer.advance(seconds=61)

    until(lambda: len(customer.stripe.v1.invoices.list().data), 1)
    (event,) = customer.stripe.v1.events.list({"type": "invoice.*"}).data
    assert event.request is not None
    assert (event.request.id, event.request.idempotency_key) == (None, None)


def test_what_a_request_made_is_named_in_its_events(customer: Customer) -> None:
    made = subscribe(customer)
    (event,) = customer.stripe.v1.events.list({"type": "customer.subscription.created"}).data
    assert event.request is not None
    assert event.request.idempotency_key == "k1"
    assert event.request.id == made.last_response.request_id  # type: ignore[union-attr] # it was just made


def test_modes_and_connected_accounts_are_worlds_of_their_own(
    provider: Provider, customer: Customer
) -> None:
    account = connected(customer)
    invoice(customer)
    live = stripe_client(provider.url, api_key="sk_live_halden")
    there = stripe_client(provider.url, stripe_account=account)

    for other in (live, there):
        assert other.v1.invoices.list().data == []
    live.v1.invoices.create({"customer": "cus_1"}, options=options("k1"))
    assert live.v1.invoices.list().data[0].livemode is True


def test_the_version_of_each_request_is_noted(customer: Customer) -> None:
    client = stripe_client(customer.url, stripe_version="2024-06-20")
    client.v1.transfers.list()
    asked = customer.control("GET", "/requests")["requests"][-1]
    assert (asked["operation"], asked["api_version"]) == ("transfers.list", "2024-06-20")
