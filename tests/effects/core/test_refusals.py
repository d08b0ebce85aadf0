"""Which HTTP answers prove that a write was refused, read from a provider's whole table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.answers import TABLES, Contract
from effects.core.refusals import (
    CODES_READ_MAX,
    RefusalTable,
    Reply,
    codes_of_body,
    proves_refusal,
)
from effects.core.vocabulary import Outcome

GENERIC, STRIPE = TABLES[Contract.GENERIC], TABLES[Contract.STRIPE_V1]
REFUSED, STORED, UNKNOWN = Outcome.REFUSED, Outcome.REFUSED_STORED, Outcome.UNKNOWN


def reply(status: int, **more: Any) -> Reply:
    return Reply(status=status, **{"first_send": True, **more})


@pytest.mark.parametrize("status", [408, 409, 410, 425, 500, 502, 503, 504, 200, 302])
def test_what_a_gateway_or_a_busy_server_says_is_no_refusal(status: int) -> None:
    assert proves_refusal(reply(status), GENERIC).outcome is UNKNOWN


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429])
def test_a_refusal_is_one_on_the_first_send_alone(status: int) -> None:
    assert proves_refusal(reply(status), GENERIC).outcome is REFUSED
    assert proves_refusal(reply(status, first_send=False), GENERIC).outcome is UNKNOWN


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(400, {"error": {"type": "idempotency_error"}}, id="Stripe's mismatch"),
        pytest.param(422, {"error": {"code": "IdempotencyMismatch"}}, id="a mismatch elsewhere"),
        pytest.param(
            400,
            {"error": {"type": "x", "errors": [{"reason": "idempotent_creation_conflict"}]}},
            id="a reason that stands deep in the body",
        ),
        pytest.param(
            422, {"name": "UNPROCESSABLE", "details": [{"issue": "DUPLICATE_ID"}]}, id="2"
        ),
        pytest.param(400, [{"errorCode": "DUPLICATE_VALUE"}], id="a list of errors"),
        pytest.param(422, {"error_codes": ["payment_in_progress"]}, id="a list of codes"),
    ],
)
def test_the_body_outranks_the_status(status: int, body: Any) -> None:
    assert proves_refusal(reply(status), GENERIC).outcome is REFUSED
    assert proves_refusal(reply(status, body=body), GENERIC).outcome is UNKNOWN


def test_stripes_own_type_outranks_its_finer_code() -> None:
    body = {"error": {"type": "idempotency_error", "code": "parameter_missing"}}
    assert proves_refusal(reply(400, body=body), STRIPE).outcome is UNKNOWN


def test_an_answer_of_a_host_that_is_not_the_provider_is_a_gateways() -> None:
    table = STRIPE.narrowed(hosts=frozenset({"stripe.com"}))
    body = {"error": {"code": "parameter_missing"}}
    for host, outcome in (
        ("api.stripe.com", REFUSED),
        ("API.Stripe.com:443", REFUSED),
        ("gateway.halden.example", UNKNOWN),
        ("notstripe.com", UNKNOWN),
        (None, REFUSED),
    ):
        assert proves_refusal(reply(400, body=body, host=host), table).outcome is outcome


def test_a_body_that_was_not_read_may_be_a_gateways_page() -> None:
    assert proves_refusal(reply(400), STRIPE).outcome is UNKNOWN
    # A number repeats the status, which any gateway can do.
    assert proves_refusal(reply(400, body={"error": {"code": 400}}), STRIPE).outcome is UNKNOWN
    assert proves_refusal(reply(400, body={"error": {"code": "x"}}), STRIPE).outcome is REFUSED


def test_a_replayed_refusal_is_the_keys_only_execution() -> None:
    again = {"idempotent-replayed": "true"}
    body = {"error": {"code": "card_declined"}}
    for first in (True, False):
        found = proves_refusal(reply(402, body=body, headers=again, first_send=first), STRIPE)
        assert found.outcome is STORED
    assert proves_refusal(reply(429, headers=again), STRIPE).outcome is UNKNOWN


def test_a_code_may_be_asked_for_by_name() -> None:
    table = replace(GENERIC, coded={422: frozenset({"validation_error"})})
    assert proves_refusal(reply(422, body={"code": "Validation_Error"}), table).outcome is REFUSED
    assert proves_refusal(reply(422, body={"code": "other"}), table).outcome is UNKNOWN
    assert proves_refusal(reply(422), table).outcome is UNKNOWN


def test_a_body_with_too_many_codes_proves_nothing() -> None:
    body = {"errors": [{"code": f"c{n}"} for n in range(CODES_READ_MAX + 5)]}
    assert len(codes_of_body(body)) == CODES_READ_MAX + 1
    assert proves_refusal(reply(422, body=body), GENERIC).outcome is UNKNOWN


def test_hosts_cannot_be_added_to_a_table_that_names_some() -> None:
    table = GENERIC.narrowed(hosts=frozenset({"pay.example"}))
    assert table.narrowed(hosts=frozenset({"eu.pay.example"})).hosts == {"eu.pay.example"}
    with pytest.raises(ValueError, match="would widen who answers for it"):
        table.narrowed(hosts=frozenset({"other.example"}))


CODES = st.sampled_from(["", "x", "704", "idempotency_error", "in_progress", "exists", "Declined"])
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | CODES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "code", "details", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
REPLIES = st.builds(
    Reply,
    status=st.sampled_from([200, 400, 401, 402, 404, 409, 422, 424, 429, 500]),
    body=BODIES,
    headers=st.sampled_from([{}, {"idempotent-replayed": "true"}, {"x": "y"}]),
    host=st.sampled_from([None, "api.pay.example", "proxy.example"]),
    first_send=st.booleans(),
)
NARROWER: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    without=st.dictionaries(st.sampled_from([400, 402, 404, 429]), st.just("it is open here")),
    needs_code=st.frozensets(st.sampled_from([400, 401, 422])),
    open_codes=st.dictionaries(st.sampled_from(["Declined", "x", "704"]), st.just("it is open")),
    hosts=st.sampled_from([frozenset(), frozenset({"pay.example"})]),
)


@settings(deadline=None)
@given(REPLIES, NARROWER, st.sampled_from([GENERIC, STRIPE]))
def test_a_narrowed_table_never_proves_more(
    given_reply: Reply, less: dict[str, Any], table: RefusalTable
) -> None:
    narrow = proves_refusal(given_reply, table.narrowed(**less))
    wide = proves_refusal(given_reply, table)
    assert narrow.outcome in {wide.outcome, UNKNOWN}
    assert narrow.why
    assert not narrow.why.endswith(".")
