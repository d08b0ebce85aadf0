"""The idempotency contract of API v1, line by line, through the real SDK.

Source: https://docs.stripe.com/api/idempotent_requests and https://docs.stripe.com/error-low-level.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import (
    Customer,
    headers_of,
    is_replayed,
    options,
    stripe_client,
)

DAY_SECONDS = 24 * 60 * 60


def test_the_same_request_with_the_same_key_is_executed_once_and_replayed(customer):
    first = customer.pay("k1")
    again = customer.pay("k1")
    assert again.id == first.id
    assert not is_replayed(first)
    assert is_replayed(again)
    assert again.last_response.idempotency_key == "k1"
    assert again.last_response.request_id != first.last_response.request_id
    assert len(customer.truth()) == 1


def test_the_order_in_which_parameters_are_sent_does_not_matter(customer):
    first = customer.pay("k1")
    again = customer.stripe.v1.payment_intents.create(
        {
            "payment_method": "pm_card_visa",
            "metadata": {"order": "7", "counterfoil": "cf_k1_1"},
            "confirm": True,
            "currency": "eur",
            "amount": 4200,
        },
        options=options("k1"),
    )
    assert again.id == first.id


def test_other_parameters_under_the_same_key_are_an_idempotency_error(customer):
    customer.pay("k1")
    with pytest.raises(stripe.IdempotencyError) as refused:
        customer.pay("k1", amount=9900)
    assert refused.value.http_status == 400
    assert "same parameters they were first used with" in str(refused.value)
    assert len(customer.truth()) == 1


def test_a_key_belongs_to_the_account_and_not_to_the_endpoint(customer):
    paid = customer.pay("k1")
    with pytest.raises(stripe.IdempotencyError) as refused:
        customer.refund("k1", paid.id)
    assert refused.value.http_status == 400
    assert "same endpoint they were first used for" in str(refused.value)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"api_key": "sk_live_halden"}, id="live and test"),
        pytest.param({"api_key": "sk_test_other"}, id="two accounts"),
        pytest.param({"stripe_account": "connected"}, id="a connected account"),
    ],
)
def test_keys_and_objects_of_two_worlds_never_meet(provider, customer, other):
    if "stripe_account" in other:
        other = {"stripe_account": customer.stripe.v1.accounts.create({"type": "custom"}).id}
    there = stripe_client(provider.url, **other)
    first, second = customer.pay("k1"), customer.pay("k1", client=there)
    assert first.id != second.id
    assert len(customer.truth()) == 2
    with pytest.raises(stripe.InvalidRequestError) as missing:
        there.v1.payment_intents.retrieve(first.id)
    assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")


def test_a_rotated_secret_of_the_same_account_still_replays(provider, customer):
    rotated = stripe_client(provider.url, api_key="sk_test_halden_2")
    assert customer.pay("k1").id == customer.pay("k1", client=rotated).id


def test_a_key_is_kept_for_24_hours_from_its_first_receipt(customer):
    first = customer.pay("k1")
    customer.advance(seconds=DAY_SECONDS - 60)
    assert customer.pay("k1").id == first.id


def test_a_retry_does_not_extend_the_life_of_a_key_and_afterwards_it_charges_again(customer):
    first = customer.pay("k1")
    customer.advance(seconds=DAY_SECONDS - 60)
    customer.pay("k1")
    customer.advance(seconds=61)
    assert customer.pay("k1").id != first.id
    assert len(customer.truth()) == 2


def test_a_request_in_flight_answers_the_same_key_with_a_409_that_is_no_idempotency_error(
    customer: Customer, provider: Provider
):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(customer.pay, "k1", fault="delay=1.0")
        wait_for(lambda: provider.world.requests()["faults"]["delay"] == 1)
        time.sleep(0.1)
        with pytest.raises(stripe.APIError) as in_use:
            customer.pay("k1", client=stripe_client(provider.url))
        assert not isinstance(in_use.value, stripe.IdempotencyError)
        assert in_use.value.http_status == 409
        assert '"code": "idempotency_key_in_use"' in str(in_use.value.http_body)
        first = slow.result()
    assert customer.pay("k1").id == first.id
    assert len(customer.truth()) == 1


def test_eight_senders_of_one_key_make_one_effect(customer: Customer, provider: Provider):
    gate = threading.Barrier(8)

    def send(_: int) -> str:
        client = stripe_client(provider.url)
        gate.wait()
        try:
            return customer.pay("k1", client=client).id
        except stripe.APIError as error:
            return str(error.http_status)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(8)))
    assert len(customer.truth()) == 1
    assert {answer for answer in answers if answer != "409"} == {customer.truth()[0]["object_id"]}


def test_a_rate_limit_stands_before_the_keys_and_stores_nothing(customer):
    with pytest.raises(stripe.RateLimitError):
        customer.pay("k1", fault="rate_limit_429")
    assert customer.truth() == []
    assert not is_replayed(customer.pay("k1"))


def test_a_rate_limit_on_a_replay_says_nothing_about_the_first_request(customer):
    customer.pay("k1")
    with pytest.raises(stripe.RateLimitError):
        customer.pay("k1", fault="rate_limit_429")
    assert len(customer.truth()) == 1


def test_an_unknown_secret_is_turned_away_before_the_keys(provider, customer):
    stranger = stripe_client(provider.url, api_key="nobody")
    with pytest.raises(stripe.AuthenticationError) as refused:
        customer.pay("k1", client=stranger)
    assert refused.value.http_status == 401
    assert customer.pay("k1").id
    assert len(customer.truth()) == 1


def test_a_secret_says_whose_it_is(provider):
    reader = stripe_client(provider.url, api_key="rk_test_halden")
    assert reader.v1.accounts.retrieve_current().id == "acct_halden"


def test_a_restricted_secret_may_look_and_may_not_write(provider, customer):
    reader = stripe_client(provider.url, api_key="rk_test_halden")
    paid = customer.pay("k1")
    assert reader.v1.payment_intents.retrieve(paid.id).id == paid.id
    with pytest.raises(stripe.PermissionError):
        customer.pay("k2", client=reader)


def test_a_validation_failure_is_not_stored_so_the_corrected_request_may_keep_its_key(customer):
    with pytest.raises(stripe.InvalidRequestError) as invalid:
        customer.pay("k1", amount=0)
    assert (invalid.value.http_status, invalid.value.param) == (400, "amount")
    assert customer.pay("k1").status == "succeeded"


def test_a_failure_that_only_execution_could_find_is_stored(customer):
    paid = customer.pay("k1")
    customer.refund("r1", paid.id)
    with pytest.raises(stripe.InvalidRequestError):
        customer.refund("r2", paid.id)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.refund("r2", paid.id)
    assert refused.value.code == "charge_already_refunded"
    assert is_replayed(refused.value)
    assert headers_of(refused.value)["stripe-should-retry"] == "false"


def test_a_reference_to_nothing_is_refused_before_execution_and_not_stored(customer):
    for _ in range(2):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            customer.refund("r1", "pi_nobody")
        assert refused.value.code == "resource_missing"
        assert not is_replayed(refused.value)


def test_a_decline_is_executed_stored_and_replayed_and_the_payment_intent_exists(customer):
    method = "pm_card_chargeDeclinedInsufficientFunds"
    with pytest.raises(stripe.CardError) as first:
        customer.pay("k1", payment_method=method)
    with pytest.raises(stripe.CardError) as declined:
        customer.pay("k1", payment_method=method)
    assert first.value.http_status == declined.value.http_status == 402
    assert is_replayed(declined.value)
    (intent,) = customer.stripe.v1.payment_intents.list().data
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error.decline_code == "insufficient_funds"
    assert customer.truth() == []


def test_a_500_is_stored_and_replayed_for_as_long_as_the_key_lives(customer):
    with pytest.raises(stripe.APIError) as first:
        customer.pay("k1", fault="error_500")
    customer.advance(seconds=DAY_SECONDS - 60)
    with pytest.raises(stripe.APIError) as again:
        customer.pay("k1")
    assert first.value.http_status == again.value.http_status == 500
    assert headers_of(first.value)["stripe-should-retry"] == "false"
    assert is_replayed(again.value)
    assert again.value.http_body == first.value.http_body


def test_every_answer_carries_a_request_id_errors_too(customer):
    assert headers_of(customer.pay("k1"))["request-id"].startswith("req_")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.pay("k2", currency="xyz")
    assert str(refused.value.request_id).startswith("req_")


def test_a_key_of_more_than_255_characters_is_refused(customer):
    with pytest.raises(stripe.InvalidRequestError):
        customer.pay("k" * 256)
    assert customer.pay("k" * 255).id


def test_the_sdk_invents_a_key_for_every_post_so_two_calls_are_two_effects(customer):
    params = {"amount": 100, "currency": "eur", "confirm": True, "payment_method": "pm_card_visa"}
    first = customer.stripe.v1.payment_intents.create(params)
    second = customer.stripe.v1.payment_intents.create(params)
    assert first.id != second.id
    assert all(effect["idempotency_key"] for effect in customer.truth())


def wait_for(condition: Callable[[], bool], *, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
