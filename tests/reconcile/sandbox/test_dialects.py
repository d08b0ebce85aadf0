"""The sandbox's other providers: what each does with a key, and with a request that went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import requests

from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.shoppers import Shopper


@pytest.fixture
def shopper(provider: Provider) -> Iterator[Shopper]:
    one = Shopper(provider.url)
    yield one
    one.close()


def effects(shopper: Shopper, provider: str) -> list[str]:
    return [effect["object_id"] for effect in shopper.truth() if effect["provider"] == provider]


# GoCardless


def test_gocardless_answers_a_known_key_with_409_and_the_id_of_what_it_made(
    shopper: Shopper,
) -> None:
    made = shopper.debit("k1", "cf_1").json()["payments"]

    again = shopper.debit("k1", "cf_1", amount=1)

    assert again.status_code == 409
    error = again.json()["error"]
    assert (error["type"], error["errors"][0]["reason"]) == (
        "invalid_state",
        "idempotent_creation_conflict",
    )
    assert error["errors"][0]["links"] == {"conflicting_resource_id": made["id"]}
    assert effects(shopper, "gocardless") == [made["id"]]
    assert shopper.gocardless("GET", f"/payments/{made['id']}").json()["payments"] == made


def test_gocardless_keeps_nothing_of_a_failure(shopper: Shopper) -> None:
    assert shopper.debit("k1", "cf_1", fault="error_500").status_code == 500
    assert shopper.debit("k1", "cf_1", fault="refuse_402").status_code == 422

    assert shopper.debit("k1", "cf_1").status_code == 201


def test_gocardless_lets_a_second_request_wait_for_the_first_with_its_key(
    shopper: Shopper,
) -> None:
    answers: list[int] = []

    def send(fault: str) -> None:
        one = Shopper(shopper.url)
        answers.append(one.debit("k1", "cf_1", fault=fault).status_code)
        one.close()

    threads = [threading.Thread(target=send, args=("delay=0.3",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [201, 409, 409]
    assert len(effects(shopper, "gocardless")) == 1


def test_gocardless_lists_by_window_and_creditor_newest_first_with_a_cursor(
    shopper: Shopper,
) -> None:
    ids = [shopper.debit(f"k{n}", f"cf_{n}").json()["payments"]["id"] for n in range(3)]

    first = shopper.gocardless("GET", "/payments?limit=2&creditor=CRHALDEN").json()
    cursor = first["meta"]["cursors"]["after"]
    second = shopper.gocardless("GET", f"/payments?limit=2&after={cursor}").json()
    later = shopper.gocardless("GET", "/payments?created_at[gte]=2099-01-01T00:00:00Z").json()
    other = shopper.gocardless("GET", "/payments?creditor=CROTHER").json()

    assert [one["id"] for one in first["payments"] + second["payments"]] == ids[::-1]
    assert second["meta"]["cursors"]["after"] is None
    assert later["payments"] == other["payments"] == []


# PayPal


def test_paypal_gives_a_known_key_the_object_as_it_is_now(shopper: Shopper) -> None:
    order = shopper.order("k1", "cf_1")
    assert (order.status_code, order.json()["status"]) == (201, "APPROVED")
    shopper.capture("k2", order.json()["id"])

    again = shopper.order("k1", "cf_1")

    assert (again.status_code, again.json()["status"]) == (200, "COMPLETED")
    assert len(effects(shopper, "paypal")) == 1


def test_paypal_forgets_a_key_after_six_hours_and_then_executes_again(shopper: Shopper) -> None:
    _, capture_id = shopper.paid_order()
    first = shopper.give_back("k1", capture_id, "cf_1").json()
    shopper.advance(hours=5.9)
    assert shopper.give_back("k1", capture_id, "cf_1").json()["id"] == first["id"]

    shopper.advance(hours=0.2)
    second = shopper.give_back("k1", capture_id, "cf_1")

    assert second.status_code == 201
    assert second.json()["id"] != first["id"]


def test_paypal_refuses_a_second_capture_under_another_key(shopper: Shopper) -> None:
    order_id = shopper.order("k1", "cf_1").json()["id"]
    shopper.capture("k2", order_id)

    refused = shopper.capture("k3", order_id)

    assert (refused.status_code, refused.json()["details"][0]["issue"]) == (
        422,
        "ORDER_ALREADY_CAPTURED",
    )


def test_paypal_shows_a_transaction_three_hours_late(shopper: Shopper) -> None:
    _, capture_id = shopper.paid_order("cf_1")

    def listed() -> list[tuple[str, str]]:
        start, end = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 1))
        window = f"start_date={start:%Y-%m-%dT%H:%M:%SZ}&end_date={end:%Y-%m-%dT%H:%M:%SZ}"
        told = shopper.paypal("GET", f"/v1/reporting/transactions?{window}").json()
        lines = [one["transaction_info"] for one in told["transaction_details"]]
        return [(one["transaction_id"], one["custom_field"]) for one in lines]

    shopper.advance(hours=2.9)
    assert listed() == []
    shopper.advance(hours=0.2)

    assert listed() == [(capture_id, "cf_1")]


# Checkout.com


def test_checkout_gives_a_known_key_the_first_success_for_a_day(shopper: Shopper) -> None:
    first = shopper.charge("k1", "cf_1")
    again = shopper.charge("k1", "cf_1")
    assert (again.status_code, again.json()) == (first.status_code, first.json())

    shopper.advance(hours=24.1)
    later = shopper.charge("k1", "cf_1")

    assert later.json()["id"] != first.json()["id"]
    assert len(effects(shopper, "checkout")) == 2


def test_checkout_attempts_again_what_failed(shopper: Shopper) -> None:
    assert shopper.charge("k1", "cf_1", fault="error_500").status_code == 500

    assert shopper.charge("k1", "cf_1").status_code == 201


def test_checkout_keeps_a_decline_because_it_is_a_success(shopper: Shopper) -> None:
    declined = shopper.charge("k1", "cf_1", fault="refuse_402").json()

    assert shopper.charge("k1", "cf_1").json() == declined
    assert (declined["status"], declined["approved"]) == ("Declined", False)
    assert effects(shopper, "checkout") == []


def test_checkout_pays_twice_where_a_500_comes_to_pass_after_a_retry(shopper: Shopper) -> None:
    shopper.charge("k1", "cf_1", fault="error_500_then_late_commit=60")
    shopper.charge("k1", "cf_1")
    shopper.advance(hours=1)

    assert len(effects(shopper, "checkout")) == 2


def test_gocardless_leaves_a_500_undone_whose_key_has_become_known(shopper: Shopper) -> None:
    shopper.debit("k1", "cf_1", fault="error_500_then_late_commit=60")
    shopper.debit("k1", "cf_1")
    shopper.advance(hours=1)

    assert len(effects(shopper, "gocardless")) == 1


@pytest.mark.parametrize("provider_name", ["checkout", "paypal"])
def test_a_key_that_is_being_worked_on_is_answered_with_409(
    shopper: Shopper, provider_name: str
) -> None:
    def send(one: Shopper, fault: str) -> requests.Response:
        if provider_name == "checkout":
            return one.charge("k1", "cf_1", fault=fault)
        return one.order("k1", "cf_1", fault=fault)

    shopper.order("warm", None)
    first = Shopper(shopper.url)
    first.order("warm", None)
    thread = threading.Thread(target=send, args=(first, "delay=0.6"))
    thread.start()
    while not any(one["fault"] == "delay" for one in [*under_way(shopper)]):
        pass
    second = send(shopper, "")
    thread.join()
    first.close()

    assert second.status_code == 409


def under_way(shopper: Shopper) -> list[dict[str, str]]:
    """The delays that were met, also those that are not over."""
    met = shopper.control("GET", "/requests")["faults"]
    return [{"fault": "delay"}] * met["delay"]


# Salesforce


def test_salesforce_makes_a_record_once_and_changes_it_afterwards(shopper: Shopper) -> None:
    made = shopper.upsert("cf_1")
    changed = shopper.upsert("cf_1", Amount__c="43.00")

    assert (made.status_code, made.json()["created"]) == (201, True)
    assert (changed.status_code, changed.json()["created"]) == (200, False)
    record = shopper.salesforce("GET", "/sobjects/Refund__c/Counterfoil__c/cf_1").json()
    assert (record["Id"], record["Amount__c"]) == (made.json()["id"], "43.00")
    assert effects(shopper, "salesforce") == [made.json()["id"]]


def test_salesforce_does_nothing_where_several_records_bear_the_id(shopper: Shopper) -> None:
    ids = [shopper.insert("cf_1").json()["id"] for _ in range(2)]

    refused = shopper.upsert("cf_1", Amount__c="1.00")

    assert refused.status_code == 300
    assert [path.rpartition("/")[2] for path in refused.json()] == ids
    assert len(effects(shopper, "salesforce")) == 2


# All of them


@pytest.mark.parametrize(
    ("send", "provider_name", "limit_status"),
    [
        (lambda s, f: s.debit("k1", "cf_1", fault=f), "gocardless", 429),
        (lambda s, f: s.charge("k1", "cf_1", fault=f), "checkout", 429),
        (
            lambda s, f: s.order("k1", "cf_1", fault=f, payment_source={"card": {}}),
            "paypal",
            429,
        ),
        (lambda s, f: s.upsert("cf_1", fault=f), "salesforce", 403),
    ],
    ids=["gocardless", "checkout", "paypal", "salesforce"],
)
def test_every_dialect_meets_the_faults_of_the_plan_and_counts_its_effects(
    shopper: Shopper, send, provider_name: str, limit_status: int
) -> None:
    assert send(shopper, "rate_limit_429").status_code == limit_status
    assert effects(shopper, provider_name) == []
    for fault in ("drop_before", "drop_after_commit"):
        with pytest.raises(requests.ConnectionError):
            send(shopper, fault)

    (effect,) = [one for one in shopper.truth() if one["provider"] == provider_name]
    assert effect["marker"] == "cf_1"
    assert send(shopper, "gateway_duplicate").status_code in {200, 201, 409}
    assert len(effects(shopper, provider_name)) == 1
    asked = shopper.control("GET", "/requests")["requests"]
    assert {one["operation"].partition(".")[0] for one in asked} == {provider_name}
