"""What the caller sees of each fault, and what the provider's truth says about it."""

import time

import pytest
import requests
import stripe

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import Customer, is_replayed, stripe_client
from tests.reconcile.sandbox.test_stripe_keys import wait_for

LOST = stripe.APIConnectionError
NOTHING, ONE, TWO = 0, 1, 2


@pytest.mark.parametrize(
    ("fault", "seen", "status", "effects"),
    [
        pytest.param("none", None, 200, ONE, id="none"),
        pytest.param("drop_before", LOST, None, NOTHING, id="the answer is lost, nothing happened"),
        pytest.param("drop_after_commit", LOST, None, ONE, id="the answer is lost, it happened"),
        pytest.param("cut_mid_body", LOST, None, ONE, id="half an answer, it happened"),
        pytest.param("delay=0.2", None, 200, ONE, id="late, it happened"),
        pytest.param("error_500", stripe.APIError, 500, NOTHING, id="500, nothing happened"),
        pytest.param("refuse_402", stripe.CardError, 402, NOTHING, id="declined"),
        pytest.param("rate_limit_429", stripe.RateLimitError, 429, NOTHING, id="not let in"),
        pytest.param("gateway_duplicate", None, 200, ONE, id="sent twice with a key: one effect"),
    ],
)
def test_a_payment_meets_each_fault_as_described(customer, fault, seen, status, effects):
    if seen is None:
        customer.pay("k1", fault=fault)
    else:
        with pytest.raises(seen) as error:
            customer.pay("k1", fault=fault)
        assert error.value.http_status == status
    assert len(customer.truth()) == effects


@pytest.mark.parametrize("fault", ["drop_after_commit", "cut_mid_body"])
def test_a_lost_answer_comes_back_under_the_same_key(customer, fault):
    with pytest.raises(LOST):
        customer.pay("k1", fault=fault)
    again = customer.pay("k1")
    assert is_replayed(again)
    assert [effect["object_id"] for effect in customer.truth()] == [again.id]


def test_a_request_that_was_dropped_before_is_executed_by_its_retry(customer):
    with pytest.raises(LOST):
        customer.pay("k1", fault="drop_before")
    assert not is_replayed(customer.pay("k1"))
    assert len(customer.truth()) == ONE


def test_a_caller_that_gives_up_on_a_slow_provider_leaves_an_effect_behind(customer: Customer):
    hasty = stripe_client(customer.url, timeout_seconds=0.3)
    with pytest.raises(LOST):
        customer.pay("k1", client=hasty, fault="delay=0.8")
    assert customer.truth() == []
    assert customer.control("GET", "/arrived?marker=cf_k1_1") == {"arrived": 1}
    assert customer.control("GET", "/arrived?marker=cf_k2_1") == {"arrived": 0}
    wait_for(lambda: len(customer.truth()) == ONE)


def test_a_500_may_be_followed_by_the_effect_and_the_stored_500_never_changes(customer):
    with pytest.raises(stripe.APIError):
        customer.pay("k1", fault="error_500_then_late_commit=60")
    assert customer.truth() == []
    assert customer.stripe.v1.payment_intents.list().data == []
    customer.advance(seconds=61)
    (intent,) = customer.stripe.v1.payment_intents.list().data
    assert (intent.status, intent.metadata["counterfoil"]) == ("succeeded", "cf_k1_1")
    (effect,) = customer.truth()
    assert (effect["object_id"], effect["cause"]) == (intent.id, "late_commit")
    with pytest.raises(stripe.APIError) as replayed:
        customer.pay("k1")
    assert is_replayed(replayed.value)


def test_a_late_commit_comes_on_its_own_and_its_event_names_no_request(customer):
    with pytest.raises(stripe.APIError):
        customer.pay("k1", fault="error_500_then_late_commit=0.3")
    wait_for(lambda: len(customer.truth()) == ONE)
    (event,) = customer.stripe.v1.events.list({"type": "payment_intent.succeeded"}).data
    assert (event.request.id, event.request.idempotency_key) == (None, None)
    assert event.data.object.metadata["counterfoil"] == "cf_k1_1"


def test_a_gateway_that_sends_twice_makes_two_effects_where_there_is_no_key(customer):
    assert customer.transfer("ref-1", fault="gateway_duplicate").status_code == 201
    assert [effect["cause"] for effect in customer.truth()] == ["request", "gateway_duplicate"]
    found = _transfers(customer, "ref-1")
    assert found["count"] == TWO


def test_retries_of_a_payment_that_lost_its_answer_are_safe_with_a_key_and_not_without(customer):
    """The experiment of every idempotency article: two effects without a key, one with it."""
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            customer.transfer("ref-1", fault="drop_after_commit")
        with pytest.raises(LOST):
            customer.pay("k1", fault="drop_after_commit")
    kinds = [effect["kind"] for effect in customer.truth()]
    assert (kinds.count("transfer"), kinds.count("payment_intent")) == (TWO, ONE)


@pytest.mark.parametrize(
    ("fault", "status", "effects"),
    [
        pytest.param("none", 201, ONE, id="none"),
        pytest.param("drop_before", None, NOTHING, id="drop before"),
        pytest.param("drop_after_commit", None, ONE, id="drop after commit"),
        pytest.param("cut_mid_body", None, ONE, id="cut mid body"),
        pytest.param("delay=0.2", 201, ONE, id="delay"),
        pytest.param("error_500", 500, NOTHING, id="500"),
        pytest.param("refuse_402", 402, NOTHING, id="refused"),
        pytest.param("rate_limit_429", 429, NOTHING, id="429"),
        pytest.param("gateway_duplicate", 201, TWO, id="sent twice without a key: two effects"),
    ],
)
def test_a_transfer_meets_each_fault_as_described(customer, fault, status, effects):
    try:
        seen = customer.transfer("ref-1", fault=fault).status_code
    except requests.RequestException:
        seen = None
    assert seen == status
    assert len(customer.truth()) == effects
    assert _transfers(customer, "ref-1")["count"] == effects


def test_a_transfer_can_follow_its_500(customer):
    assert customer.transfer("ref-1", fault="error_500_then_late_commit=60").status_code == 500
    assert _transfers(customer, "ref-1") == {"count": 0, "transfers": []}
    customer.advance(seconds=61)
    assert _transfers(customer, "ref-1")["count"] == ONE


def test_a_letter_leaves_a_truth_that_no_look_up_can_see(customer):
    with pytest.raises(requests.ConnectionError):
        customer.letter("ref-1", fault="drop_after_commit")
    assert [effect["kind"] for effect in customer.truth()] == ["letter"]
    answer = customer.plain.get(f"{customer.url}/plain/letters?reference=ref-1", timeout=5)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"amount": "9", "currency": "eur"}, 422, id="amount as text"),
        pytest.param({"amount": True, "currency": "eur"}, 422, id="a boolean amount"),
        pytest.param({"amount": 9, "currency": "eur", "destination": "x"}, 422, id="no reference"),
        pytest.param([], 400, id="a list"),
    ],
)
def test_the_plain_provider_refuses_what_it_cannot_read(customer, body, status):
    answer = customer.plain.post(f"{customer.url}/plain/transfers", json=body, timeout=5)
    assert answer.status_code == status
    assert customer.truth() == []


def test_the_plain_provider_knows_its_callers(provider):
    answer = requests.get(f"{provider.url}/plain/transfers?reference=a", timeout=5)
    assert answer.status_code == 401


def test_a_plan_decides_for_requests_that_ask_for_nothing(customer):
    plan = {"seed": 7, "rates": {"error_500": 1.0}, "operations": ["payment_intents.create"]}
    assert customer.control("POST", "/faults", plan)["rates"] == {"error_500": 1.0}
    with pytest.raises(stripe.APIError):
        customer.pay("k1")
    assert customer.transfer("ref-1").status_code == 201
    customer.control("DELETE", "/faults")
    customer.pay("k2")


def test_a_rule_speaks_of_the_first_send_only_so_that_a_retry_passes(customer):
    customer.control(
        "POST", "/faults", {"rules": [{"fault": "drop_before", "idempotency_key": "k1"}]}
    )
    with pytest.raises(LOST):
        customer.pay("k1")
    customer.pay("k1")


def test_reads_are_spared_unless_they_ask_for_a_fault(customer):
    customer.control("POST", "/faults", {"rates": {"error_500": 1.0}})
    assert customer.stripe.v1.payment_intents.list().data == []
    with pytest.raises(stripe.APIError):
        customer.stripe.v1.payment_intents.list(
            options={"headers": {"X-Sandbox-Fault": "error_500"}}
        )


def test_a_fault_that_nobody_knows_is_an_error_and_not_a_payment(customer):
    with pytest.raises(stripe.InvalidRequestError, match="no fault 'explode'"):
        customer.pay("k1", fault="explode")
    assert customer.truth() == []


def test_the_sandbox_tells_which_faults_it_has_met(customer):
    customer.pay("k1", fault="gateway_duplicate")
    customer.pay("k2")
    asked = customer.control("GET", "/requests")
    met = {name: count for name, count in asked["faults"].items() if count}
    assert met == {"none": 1, "gateway_duplicate": 1}
    assert set(asked["faults"]) == set(Fault)
    assert [row["outcome"] for row in asked["requests"]] == ["whole, replayed", "whole"]
    assert asked["requests"][0]["marker"] == "cf_k1_1"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/clock", {"advance_seconds": -1}, id="time does not run backwards"),
        pytest.param("/clock", {"advance_seconds": "1"}, id="seconds are a number"),
        pytest.param("/faults", {"rates": {"explode": 0.1}}, id="an unknown fault"),
        pytest.param("/faults", {"rates": {"delay": 0.6, "error_500": 0.5}}, id="more than 1"),
        pytest.param("/faults", {"speed": 7}, id="an unknown field"),
        pytest.param("/faults", [], id="not an object"),
    ],
)
def test_control_refuses_what_it_cannot_read(customer, path, body):
    answer = customer.plain.post(f"{customer.url}/_sandbox{path}", json=body, timeout=5)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_a_body_that_is_too_large_is_not_read(provider: Provider):
    answer = requests.post(f"{provider.url}/plain/letters", data=b"x" * (256 * 1024 + 1), timeout=5)
    assert answer.status_code == 413


def test_stopping_does_not_wait_for_a_stalled_request(provider: Provider, customer: Customer):
    hasty = stripe_client(provider.url, timeout_seconds=0.1)
    with pytest.raises(LOST):
        customer.pay("k1", client=hasty, fault="delay=3")
    started = time.monotonic()
    provider.stop()
    assert time.monotonic() - started < 2


def _transfers(customer: Customer, reference: str):
    answer = customer.plain.get(
        f"{customer.url}/plain/transfers", params={"reference": reference}, timeout=5
    )
    assert answer.status_code == 200
    return answer.json()
