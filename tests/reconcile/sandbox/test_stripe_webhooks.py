"""The provider's webhooks, through the real SDK: signed, after the commit, again until a 2xx."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import stripe

from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import Customer, stripe_client
from tests.reconcile.sandbox.mailbox import Mailbox, a_mailbox


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with a_mailbox() as box:
        yield box


def subscribe(customer: Customer, box: Mailbox, *enabled: str, connect: bool = False) -> str:
    made = customer.stripe.v1.webhook_endpoints.create(
        {"url": box.url, "enabled_events": list(enabled or ("*",)), "connect": connect}  # type: ignore[arg-type] # a wildcard
    )
    assert made.secret is not None
    box.secret = made.secret
    return made.id


def waiting(customer: Customer) -> int:
    count = customer.control("GET", "/counters")["webhooks"]["waiting"]
    assert isinstance(count, int)
    return count


def test_a_payment_is_told_signed_with_the_endpoints_own_secret(
    customer: Customer, box: Mailbox
) -> None:
    endpoint = subscribe(customer, box)
    paid = customer.pay("k1")

    events = box.await_kinds("payment_intent.created", "payment_intent.succeeded")

    (told,) = [e for e in events if e.type == "payment_intent.succeeded"]
    assert told.data.object["id"] == paid.id
    assert told.data.object["metadata"]["counterfoil"] == "cf_k1_1"
    assert told.request is not None
    assert told.request.idempotency_key == "k1"
    assert told.livemode is False
    listed = customer.stripe.v1.webhook_endpoints.list().data
    assert [one.id for one in listed] == [endpoint]
    assert "secret" not in listed[0].to_dict(), "it is shown once"


def test_only_what_is_subscribed_to_is_told(customer: Customer, box: Mailbox) -> None:
    subscribe(customer, box, "charge.*")
    customer.pay("k1")

    box.await_kinds("charge.succeeded")
    time.sleep(0.3)

    assert {event.type for event in box.events} == {"charge.succeeded"}


def test_what_was_turned_away_comes_again_signed_anew(customer: Customer, box: Mailbox) -> None:
    subscribe(customer, box, "payment_intent.succeeded")
    box.refuses = lambda number: number <= 1
    customer.pay("k1")
    while box.tries < 1:
        time.sleep(0.02)
    undelivered = customer.stripe.v1.events.list({"delivery_success": False}).data

    box.await_kinds("payment_intent.succeeded")

    assert [event.type for event in undelivered] == ["payment_intent.succeeded"]
    assert box.tries == 2
    assert box.headers[0] != box.headers[1]


def test_a_deleted_endpoint_hears_no_more(customer: Customer, box: Mailbox) -> None:
    endpoint = subscribe(customer, box)
    customer.stripe.v1.webhook_endpoints.delete(endpoint)
    customer.pay("k1")
    time.sleep(0.3)

    assert box.tries == 0
    assert waiting(customer) == 0


def test_a_recipe_sends_copies_lets_events_overtake_and_loses_first_tries(
    customer: Customer, box: Mailbox
) -> None:
    subscribe(customer, box, "payment_intent.succeeded")
    recipe = {"duplicated_share": 1, "overtaken_share": 1, "lost_share": 1, "late_seconds": 0.2}
    customer.control("POST", "/webhooks", recipe)
    customer.pay("k1")

    box.await_kinds("payment_intent.succeeded")
    until = time.monotonic() + 8
    while len(box.events) < 2 and time.monotonic() < until:
        time.sleep(0.05)

    counts = customer.control("GET", "/counters")["webhooks"]
    assert len({event.id for event in box.events}) == 1
    assert len(box.events) == 2
    assert (counts["overtaken"], counts["duplicated"], counts["failed"]) == (1, 1, 1)


def test_what_was_not_sent_when_the_provider_stopped_is_sent_when_it_is_back(
    provider: Provider, customer: Customer, box: Mailbox
) -> None:
    subscribe(customer, box, "payment_intent.succeeded")
    box.refuses = lambda _: True
    customer.pay("k1")
    while box.tries < 1:
        time.sleep(0.02)
    folder = provider.world.store.truth_path("stripe").parent
    provider.stop()
    box.refuses = lambda _: False

    with Provider(folder):
        box.await_kinds("payment_intent.succeeded")


def test_a_platforms_endpoint_hears_of_its_connected_accounts(
    provider: Provider, customer: Customer, box: Mailbox
) -> None:
    subscribe(customer, box, "payment_intent.succeeded", connect=True)
    account = customer.stripe.v1.accounts.create({"type": "custom"}).id
    there = stripe_client(provider.url, stripe_account=account)
    customer.pay("own")
    paid = customer.pay("theirs", client=there)

    (told,) = box.await_kinds("payment_intent.succeeded")

    assert (told.account, told.data.object["id"]) == (account, paid.id)


def test_no_webhook_leaves_for_what_was_rolled_back(customer: Customer, box: Mailbox) -> None:
    subscribe(customer, box, "payment_intent.succeeded", "payment_intent.created")
    with pytest.raises(stripe.StripeError):
        customer.pay("k1", fault="error_500")
    time.sleep(0.3)

    assert box.tries == 0
