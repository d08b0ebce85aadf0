"""The table of provider answers, row by row, and what holds for every row."""

from itertools import product

import pytest

from effects.core.answers import Contract, classify_answer, explain_answer
from effects.core.vocabulary import Outcome

G, S = Contract.GENERIC, Contract.STRIPE_V1
REFUSED, STORED, UNKNOWN = Outcome.REFUSED, Outcome.REFUSED_STORED, Outcome.UNKNOWN

ROWS = [
    # contract, status, code, first send, replayed, proves
    (S, 400, "parameter_missing", True, False, REFUSED, "validation"),
    (S, 400, None, True, False, UNKNOWN, "a 400 whose body was not read"),
    (S, 400, "idempotency_error", True, False, UNKNOWN, "the key was used for something else"),
    (S, 401, None, True, False, REFUSED, "a bad API key"),
    (S, 402, "card_declined", True, False, STORED, "a decline"),
    (S, 403, None, True, False, REFUSED, "no permission"),
    (S, 404, "resource_missing", True, False, REFUSED, "no such object"),
    (S, 404, "idempotency_error", True, False, UNKNOWN, "the key was used elsewhere"),
    (S, 409, "idempotency_key_in_use", True, False, UNKNOWN, "still executing"),
    (S, 409, None, True, False, UNKNOWN, "a conflict without a code"),
    (S, 429, "rate_limit", True, False, REFUSED, "the limiter"),
    (S, 429, "lock_timeout", True, False, UNKNOWN, "a lock on the object"),
    (S, 418, "teapot", True, False, UNKNOWN, "a status that nobody published"),
    (S, 424, None, True, False, UNKNOWN, "a failed dependency"),
    (S, 500, None, True, False, UNKNOWN, "a server error"),
    (S, 500, None, True, True, UNKNOWN, "a stored server error"),
    (S, 402, "card_declined", True, True, STORED, "a replayed decline"),
    (S, 402, "card_declined", False, True, STORED, "a replayed decline of a later send"),
    (S, 400, "charge_already_refunded", False, True, STORED, "a replayed refusal"),
    (S, 404, "resource_missing", False, True, STORED, "a replayed absence"),
    (S, 429, "rate_limit", False, True, UNKNOWN, "a replay that cannot be"),
    (S, 401, None, True, True, UNKNOWN, "another replay that cannot be"),
    (S, 400, "idempotency_error", False, True, UNKNOWN, "a replay about another request"),
    (S, 402, "card_declined", False, False, UNKNOWN, "a decline of a later send"),
    (S, 429, "rate_limit", False, False, UNKNOWN, "the limiter, on a later send"),
    (S, 401, None, False, False, UNKNOWN, "a rotated key, on a later send"),
    (G, 400, None, True, False, REFUSED, "a bad request"),
    (G, 401, None, True, False, REFUSED, "not authenticated"),
    (G, 403, None, True, False, REFUSED, "not allowed"),
    (G, 404, None, True, False, REFUSED, "nothing there"),
    (G, 405, None, True, False, REFUSED, "not this method"),
    (G, 422, None, True, False, REFUSED, "invalid content"),
    (G, 429, None, True, False, REFUSED, "a limiter"),
    (G, 402, None, True, False, UNKNOWN, "a payment that may have begun"),
    (G, 408, None, True, False, UNKNOWN, "somebody timed out"),
    (G, 409, None, True, False, UNKNOWN, "perhaps it exists already"),
    (G, 412, None, True, False, UNKNOWN, "perhaps an earlier request changed it"),
    (G, 413, None, True, False, UNKNOWN, "a gateway's word"),
    (G, 425, None, True, False, UNKNOWN, "too early"),
    (G, 400, "idempotency_key_reuse", True, False, UNKNOWN, "an earlier request with the key"),
    (G, 422, "IdempotencyMismatch", True, False, UNKNOWN, "the same in other words"),
    (G, 422, "reference_already_taken", True, False, UNKNOWN, "perhaps by a gateway's first copy"),
    (G, 422, "customer_does_not_exist", True, False, REFUSED, "invalid content with a code"),
    (G, 400, "DuplicateRequest", True, False, UNKNOWN, "a duplicate, perhaps of our own"),
    (G, 400, None, False, False, UNKNOWN, "a later send"),
    (G, 400, None, True, True, UNKNOWN, "a replay without published rules"),
    (G, 503, None, True, False, UNKNOWN, "a server error"),
]


@pytest.mark.parametrize(
    ("contract", "status", "code", "first_send", "replayed", "proves"),
    [pytest.param(*row[:6], id=f"{row[0]} {row[1]}: {row[6]}") for row in ROWS],
)
def test_each_row_proves_what_it_says(contract, status, code, first_send, replayed, proves):
    found = classify_answer(contract, status, code, first_send=first_send, replayed=replayed)
    assert found is proves


EVERY = list(
    product(
        Contract,
        range(100, 600),
        (None, "some_code", "idempotency_error", "idempotency_key_in_use", "lock_timeout"),
        (True, False),
        (True, False),
    )
)


def proven(
    contract: Contract,
    status: int,
    code: str | None,
    first_send: bool,  # noqa: FBT001 - a row of the table
    replayed: bool,  # noqa: FBT001 - a row of the table
) -> bool:
    meaning = explain_answer(contract, status, code, first_send=first_send, replayed=replayed)
    assert meaning.why
    assert not meaning.why.endswith(".")
    return meaning.outcome is not UNKNOWN


def test_every_answer_is_read_and_only_a_4xx_proves_anything():
    for row in EVERY:
        if proven(*row):
            assert 400 <= row[1] <= 499, row


def test_an_answer_never_says_that_it_happened_or_was_not_sent():
    for contract, status, code, first_send, replayed in EVERY:
        found = classify_answer(contract, status, code, first_send=first_send, replayed=replayed)
        assert found in {REFUSED, STORED, UNKNOWN}


def test_a_later_send_proves_nothing_unless_it_is_the_stored_answer():
    for row in EVERY:
        _, _, _, first_send, replayed = row
        if not first_send and not replayed:
            assert not proven(*row), row


def test_an_answer_that_speaks_of_the_key_never_proves_anything():
    for row in EVERY:
        if row[2] in {"idempotency_error", "idempotency_key_in_use"}:
            assert not proven(*row), row


def test_only_a_stored_refusal_burns_a_key_and_only_under_published_rules():
    for contract, status, code, first_send, replayed in EVERY:
        found = classify_answer(contract, status, code, first_send=first_send, replayed=replayed)
        if found is STORED:
            assert contract is S, status
            assert replayed or status == 402, status
