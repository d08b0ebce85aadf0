"""Stripe's SDK: the answers of its contract, and what the SDK repeats by itself."""

from __future__ import annotations

from contextlib import closing

import pytest
import stripe

from effects.core.failures import Contract, Failure
from tests.effects.failing import NOT_SENT, REFUSED, STORED, UNKNOWN, Case, every_case, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closing_the_port,
    faulty,
    in_turn,
)
from tests.effects.senders import (
    TIMEOUT_SECONDS,
    Sender,
    by_httpx,
    by_stripe,
    by_stripe_over_httpx,
    by_stripe_with_retries,
)

CARD = b'{"error": {"type": "card_error", "code": "card_declined", "message": "No."}}'
MISSING = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
IN_USE = b'{"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}}'
OTHER_PARAMETERS = b'{"error": {"type": "idempotency_error", "message": "Keys can only ..."}}'
LIMIT = b'{"error": {"type": "invalid_request_error", "code": "rate_limit"}}'
LOCKED = b'{"error": {"type": "invalid_request_error", "code": "lock_timeout"}}'
BROKEN = b'{"error": {"type": "api_error"}}'


def sent(behaviour: Behaviour, send: Sender = by_stripe) -> object:
    with faulty(behaviour) as server:
        return send(server.url)


CASES = [
    Case("stripe.StripeError", UNKNOWN, lambda: sent(answers(409, IN_USE))),
    Case("stripe.APIConnectionError", UNKNOWN, lambda: sent(close_after_reading)),
]


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


def answered(status: int, body: bytes, **headers: str) -> Failure:
    return failure_of(lambda: sent(answers(status, body, **headers)))


REPLAYED = {"idempotent_replayed": "true"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "outcome"),
    [
        pytest.param(402, CARD, {}, STORED, id="declined"),
        pytest.param(402, CARD, REPLAYED, STORED, id="declined, and told again"),
        pytest.param(400, MISSING, REPLAYED, STORED, id="a refusal that was executed"),
        pytest.param(429, LIMIT, {}, REFUSED, id="the limiter"),
        pytest.param(429, LIMIT, REPLAYED, UNKNOWN, id="a limiter that cannot be replayed"),
        pytest.param(429, LOCKED, {}, UNKNOWN, id="a lock on the object"),
        pytest.param(409, IN_USE, {}, UNKNOWN, id="the same key is being executed"),
        pytest.param(400, OTHER_PARAMETERS, {}, UNKNOWN, id="a key of something else"),
        pytest.param(500, BROKEN, {}, UNKNOWN, id="a server error"),
        pytest.param(500, BROKEN, REPLAYED, UNKNOWN, id="a stored server error"),
        pytest.param(424, BROKEN, {}, UNKNOWN, id="a failed dependency"),
    ],
)
def test_an_answer_is_read_by_the_contract(status, body, headers, outcome):
    failure = answered(status, body, **headers)
    assert (failure.outcome, failure.http_status) == (outcome, status)
    assert failure.replayed is bool(headers)


def test_the_code_of_a_decline_is_kept():
    assert answered(402, CARD).provider_code == "card_declined"


def test_a_replayed_decline_is_the_stored_refusal_even_of_a_later_request():
    behaviour = in_turn(close_after_reading, answers(402, CARD, idempotent_replayed="true"))
    failure = failure_of(lambda: sent(behaviour, by_stripe_with_retries))
    assert (failure.outcome, failure.replayed) == (STORED, True)


def test_the_limiter_on_a_later_request_says_nothing_of_the_first():
    behaviour = in_turn(close_after_reading, answers(429, LIMIT))
    failure = failure_of(lambda: sent(behaviour, by_stripe_with_retries))
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, 429, None)


def test_the_contract_decides_how_an_answer_is_read():
    with faulty(answers(402, CARD)) as server:
        assert failure_of(lambda: by_httpx(server.url)).outcome is UNKNOWN
        stored = failure_of(lambda: by_httpx(server.url), contract=Contract.STRIPE_V1)
    assert stored.outcome is STORED


# What the SDK repeats by itself


def test_the_sdk_that_repeated_proves_nothing_by_its_last_refused_connection():
    behaviour = closing_the_port(close_after_reading)
    failure = failure_of(lambda: sent(behaviour, by_stripe_with_retries))
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)
    assert "Connection refused" in failure.error
    assert "earlier request" in failure.why


def test_the_sdk_that_did_not_repeat_proves_it():
    failure = failure_of(lambda: by_stripe("http://127.0.0.1:1"))
    assert (failure.outcome, failure.sends_seen) == (NOT_SENT, 1)


def test_an_answer_to_a_request_that_may_be_the_second_proves_nothing():
    with faulty(in_turn(close_after_reading, answers(400, MISSING))) as server:
        failure = failure_of(lambda: by_stripe_with_retries(server.url))
        assert len(server.requests) == 2
    assert failure.outcome is UNKNOWN


def test_the_stripe_module_repeats_by_default_so_its_answer_proves_nothing(monkeypatch):
    with faulty(answers(400, MISSING)) as server:
        monkeypatch.setattr(stripe, "api_base", server.url)
        monkeypatch.setattr(stripe, "api_key", "sk_test_not_real")
        client = stripe.RequestsClient(timeout=TIMEOUT_SECONDS)
        monkeypatch.setattr(stripe, "default_http_client", client)
        send = lambda: stripe.PaymentIntent.create(amount=1, currency="eur")  # noqa: E731 - a send
        assert failure_of(send).outcome is UNKNOWN
        monkeypatch.setattr(stripe, "max_network_retries", 0)
        failure = failure_of(send)
        assert (failure.outcome, failure.sends_seen) == (REFUSED, 1)
        client.close()


def test_retries_of_one_request_count_although_the_client_has_none():
    with (
        faulty(answers(400, MISSING)) as server,
        closing(stripe.RequestsClient(timeout=TIMEOUT_SECONDS)) as transport,
    ):
        client = stripe.StripeClient(
            "sk_test_not_real", base_addresses={"api": server.url}, http_client=transport
        )
        failure = failure_of(
            lambda: client.v1.refunds.create({"charge": "ch_1"}, {"max_network_retries": 2})
        )
    assert failure.outcome is UNKNOWN


def test_the_stripe_sdk_over_httpx_is_read_the_same():
    with faulty(answers(402, CARD)) as server:
        failure = failure_of(lambda: by_stripe_over_httpx(server.url))
    assert failure.outcome is STORED
