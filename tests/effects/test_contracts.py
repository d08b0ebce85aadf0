"""Provider contracts: what their files may say, and how far a tool may go beside one."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.contracts import (
    ASSUMED_WORKING_SECONDS,
    CONTRACTS,
    PERMANENT_SECONDS,
    Basis,
    ContractFault,
    Promise,
    Terms,
    compared,
    contract_of,
    faults,
    filled,
    lines_of,
    promise_words,
    read_contract,
    refusal_table,
    remarks,
    window_words,
)
from effects.contracts.page import contract_page
from effects.core.answers import TABLES, Contract
from effects.core.refusals import Reply, proves_refusal
from effects.core.vocabulary import EffectClass, Outcome

ROOT = Path(__file__).resolve().parents[2]
HOUR, DAY = 3600, 86_400
SEEDED = {
    *("generic", "stripe.v1", "stripe.v2", "paypal", "paypal.payouts", "adyen", "checkout"),
    *("increase", "gocardless", "zendesk", "salesforce", "resend"),
}
KEYED, UNKEYED = EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE


def known(name: str) -> Terms:
    terms = contract_of(name)
    assert terms is not None
    return terms


def keyed(window: int | None, **more: Any) -> Promise:
    given = {"effect_class": KEYED, "window_seconds": window, "server_working_seconds_max": None}
    return Promise(**{**given, **more})


def with_working(name: str, seconds: int) -> Terms:
    """The contract with a published longest work; no real provider publishes one today."""
    terms = known(name)
    return terms.model_copy(
        update={"working": terms.working.model_copy(update={"seconds": seconds})}
    )


# The files


def test_the_page_says_what_the_files_say() -> None:
    page = (ROOT / "docs" / "contracts.md").read_text(encoding="utf-8")
    assert contract_page() == page, "make it: python -m effects.contracts > docs/contracts.md"


def test_the_seeded_contracts_are_there_and_generic_is_offered_first() -> None:
    assert set(CONTRACTS) >= SEEDED
    assert next(iter(CONTRACTS)) == "generic"
    assert contract_of("halden") is None


@pytest.mark.parametrize("terms", CONTRACTS.values(), ids=lambda terms: terms.name)
def test_every_statement_says_where_it_stands_and_when_that_was_looked_at(terms: Terms) -> None:
    for line in lines_of(terms):
        assert line.words
        assert date(2025, 1, 1) <= line.source.checked <= date(2026, 12, 31)
        if line.source.basis in {Basis.DOCUMENT, Basis.COPY, Basis.CODE}:
            assert line.source.url, f"{line.label}: {line.source.title} has no address"


@pytest.mark.parametrize(
    ("name", "seconds", "words"),
    [
        ("stripe.v1", DAY, "at least 24 h from first receipt"),
        ("stripe.v2", 30 * DAY, "30 d from first receipt"),
        ("paypal", 6 * HOUR, "at least 6 h from first receipt"),
        ("paypal.payouts", 30 * DAY, "30 d from first receipt"),
        ("adyen", 7 * DAY, "at least 7 d from first receipt"),
        ("checkout", DAY, "24 h from first receipt"),
        ("zendesk", 2 * HOUR, "2 h from first receipt"),
        ("resend", DAY, "24 h from first receipt"),
        ("increase", PERMANENT_SECONDS, "for good"),
        ("salesforce", PERMANENT_SECONDS, "for good"),
        ("gocardless", None, "not published"),
        ("generic", None, "not published"),
        ("twilio", None, "no key"),
        # 24 hours were heard of and could not be verified: shown, and not relied on.
        ("modern_treasury", None, "24 h from first receipt"),
    ],
)
def test_a_window_is_what_may_be_relied_on(name: str, seconds: int | None, words: str) -> None:
    assert known(name).window_seconds == seconds
    assert promise_words(known(name)) == words


def test_only_a_route_that_shows_at_once_can_prove_that_there_is_none() -> None:
    proving = [
        (terms.name, lookup.delay)
        for terms in CONTRACTS.values()
        for lookup in terms.lookups
        if lookup.absence_proves
    ]
    assert {name for name, _ in proving} == {"stripe.v1"}
    assert {str(delay) for _, delay in proving} == {"none"}


FILE = """
name = "halden"
title = "Halden Pay"
provider = "Halden"
[sources.page]
title = "Halden, Keys"
url = "https://halden.example/keys"
basis = "document"
checked = 2026-11-29
[key]
where = "header"
name = "Idempotency-Key"
source = "page"
[window]
state = "published"
seconds = 3600
source = "page"
[scope]
within = ["account"]
source = "page"
[stored]
kind = "all"
source = "page"
[mismatch]
statuses = [409]
source = "page"
[in_flight]
source = "page"
[conflict]
means = "mismatch"
source = "page"
[replay]
kind = "snapshot"
source = "page"
[refusals]
base = "generic"
source = "page"
[working]
source = "page"
"""
ROUTE = '[[lookups]]\nroute = "GET /search"\nfinds_by = ["key"]\nsource = "page"\n'


def test_a_file_is_read_whole() -> None:
    terms = read_contract("halden.toml", FILE)
    assert (terms.name, terms.window_seconds, terms.key.source.url) == (
        "halden",
        3600,
        "https://halden.example/keys",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(FILE[:-1] + "x", "halden.toml: ", id="no TOML"),
        pytest.param(
            FILE.replace('state = "published"', 'state = "published"\nhours = 1'),
            "window.hours: Extra inputs",
            id="a member that nobody knows",
        ),
        pytest.param(
            FILE.replace("seconds = 3600\n", ""),
            "seconds are given exactly where the window is published",
            id="a published window without a figure",
        ),
        pytest.param(
            FILE.replace('kind = "all"\nsource = "page"', 'kind = "all"'),
            "stored names no source of this file",
            id="a statement without a source",
        ),
        pytest.param(
            FILE.replace("checked = 2026-11-29\n", ""),
            "sources: checked: Field required",
            id="a source that nobody dated",
        ),
        pytest.param(
            FILE.replace('"https://', '"http://'), "sources: url", id="an address that is not safe"
        ),
        pytest.param(
            FILE.replace('where = "header"\nname = "Idempotency-Key"', 'where = "none"'),
            "a contract without a key has the window no_key",
            id="a window without a key",
        ),
        pytest.param(
            FILE + ROUTE + 'delay = "eventual"\nabsence_proves = true\n',
            "a route that may show an effect late cannot prove that there is none",
            id="a late route that is to prove absence",
        ),
        pytest.param(
            (FILE + ROUTE + 'delay = "none"\nabsence_proves = true\n').replace(
                '"document"', '"not_verified"'
            ),
            "what is not verified cannot prove that there is none",
            id="an unverified route that is to prove absence",
        ),
        pytest.param(
            FILE.replace('base = "generic"', 'base = "generic"\nrefusals = [409]'),
            "refusals.refusals: Extra inputs",
            id="a refusal that would be added",
        ),
    ],
)
def test_a_mistake_in_a_file_is_said_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(ContractFault) as caught:
        read_contract("halden.toml", text)
    assert fault in str(caught.value)
    assert str(caught.value).startswith("halden.toml: ")


def test_a_file_holds_the_contract_of_its_name() -> None:
    with pytest.raises(ContractFault, match=r"other\.toml: holds the contract 'halden'"):
        read_contract("other.toml", FILE)


# What answers prove


@pytest.mark.parametrize(
    ("name", "status", "body"),
    [
        ("adyen", 422, {"errorCode": "704", "errorType": "validation"}),
        ("gocardless", 409, {"error": {"errors": [{"reason": "idempotent_creation_conflict"}]}}),
        ("increase", 409, {"type": "idempotency_key_already_used_error"}),
        ("resend", 409, {"name": "invalid_idempotent_request"}),
        ("zendesk", 400, {"error": "IdempotentRequestError"}),
        ("acp", 422, {"code": "request_conflicts"}),
        ("acp", 422, None),
        ("paypal.payouts", 400, {"name": "USER_BUSINESS_ERROR"}),
        ("paypal", 422, None),
        ("stripe.v2", 400, {"error": {"type": "idempotency_error"}}),
        ("aws", 400, {"__type": "IdempotentParameterMismatch"}),
    ],
)
def test_an_answer_about_the_key_is_no_refusal_anywhere(name: str, status: int, body: Any) -> None:
    reply = Reply(status=status, body=body, first_send=True)
    assert proves_refusal(reply, refusal_table(name)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("name", CONTRACTS)
def test_no_contract_proves_more_than_the_table_it_is_made_of(name: str) -> None:
    base = TABLES[Contract(known(name).refusals.base)]
    table = refusal_table(name)
    for status in range(100, 600):
        for body in (None, {"error": {"code": "x"}}, {"code": "idempotency_error"}):
            reply = Reply(status=status, body=body, first_send=True)
            got, most = proves_refusal(reply, table), proves_refusal(reply, base)
            assert got.outcome in {most.outcome, Outcome.UNKNOWN}


def test_an_unknown_contract_is_read_as_generic() -> None:
    assert refusal_table("halden").name == "generic"


def test_an_error_of_a_gateway_before_stripe_is_not_stripes() -> None:
    body = {"error": {"code": "bad_request"}}
    for host, outcome in (("api.stripe.com", "refused"), ("proxy.halden.example", "unknown")):
        reply = Reply(status=400, body=body, host=host, first_send=True)
        assert proves_refusal(reply, refusal_table("stripe.v1")).outcome == outcome


# A tool beside its contract


@pytest.mark.parametrize(
    ("name", "promise", "fields"),
    [
        pytest.param("zendesk", keyed(2 * HOUR), {}, id="the contract's own figure"),
        pytest.param("zendesk", keyed(HOUR), {}, id="a shorter window"),
        pytest.param("zendesk", keyed(DAY), {"window_seconds"}, id="a longer one"),
        pytest.param("stripe.v1", keyed(30 * DAY), {}, id="longer than a minimum"),
        pytest.param("gocardless", keyed(DAY), {}, id="where none is published"),
        pytest.param("modern_treasury", keyed(DAY), {}, id="where none could be verified"),
        pytest.param("generic", keyed(DAY), {}, id="where nothing is known"),
        pytest.param("increase", keyed(PERMANENT_SECONDS), {}, id="a key that is kept for good"),
        pytest.param("twilio", keyed(HOUR), {"contract"}, id="a key where there is none"),
        pytest.param("twilio", keyed(None, effect_class=UNKEYED), {}, id="no key there"),
    ],
)
def test_a_promise_is_refused_only_beyond_a_published_figure(
    name: str, promise: Promise, fields: set[str]
) -> None:
    assert set(faults(promise, known(name))) == set(fields)


def test_a_refusal_names_the_figure_and_where_it_stands() -> None:
    (sentence,) = faults(keyed(2 * DAY), known("checkout")).values()
    assert "24 h and no longer (Checkout.com, Retry a payment)" in sentence


def test_the_provider_may_not_be_taken_to_be_done_sooner_than_it_says() -> None:
    terms = with_working("checkout", 120)
    fields = faults(keyed(HOUR, server_working_seconds_max=60), terms)
    assert "2 m (" in fields["server_working_seconds_max"]
    assert faults(keyed(HOUR, server_working_seconds_max=300), terms) == {}
    assert filled(keyed(HOUR), terms).server_working_seconds_max == 120


@pytest.mark.parametrize(
    ("name", "promise", "window"),
    [
        ("zendesk", keyed(None), 2 * HOUR),
        ("zendesk", keyed(HOUR), HOUR),
        ("increase", keyed(None), PERMANENT_SECONDS),
        ("gocardless", keyed(None), None),
        ("modern_treasury", keyed(None), None),
        ("zendesk", keyed(HOUR, effect_class=UNKEYED), None),
        ("zendesk", keyed(HOUR, effect_class=EffectClass.READ), None),
    ],
)
def test_what_is_left_empty_is_the_contracts(
    name: str, promise: Promise, window: int | None
) -> None:
    assert filled(promise, known(name)).window_seconds == window


OWN_AT_MODERN_TREASURY = (
    "! window set to 24 h, your own figure: Modern Treasury has none that could be verified"
)
OWN_WORKING = (
    "the provider is taken to be done after 10 s, your own figure: none is published, 15 m would "
    "be assumed"
)


@pytest.mark.parametrize(
    ("name", "promise", "said"),
    [
        ("zendesk", keyed(2 * HOUR), []),
        ("zendesk", keyed(HOUR), []),
        ("zendesk", keyed(DAY), ["! window set to 24 h, Zendesk promises 2 h"]),
        (
            "stripe.v1",
            keyed(30 * DAY),
            ["! window set to 30 d, your own figure, Stripe promises at least 24 h"],
        ),
        (
            "gocardless",
            keyed(DAY),
            ["! window set to 24 h, your own figure: GoCardless publishes none"],
        ),
        (
            "modern_treasury",
            keyed(DAY),
            [OWN_AT_MODERN_TREASURY],
        ),
        (
            "generic",
            keyed(DAY),
            ["window set to 24 h, your own figure: no provider's is known"],
        ),
        (
            "gocardless",
            keyed(None),
            ["window not published: it counts as closed, so no call is repeated with its key"],
        ),
        ("checkout", keyed(None), ["no window set: it counts as closed. Checkout.com: 24 h"]),
        (
            "stripe.v1",
            keyed(DAY, key_name="X-Request-Key"),
            ["! key sent as X-Request-Key, Stripe reads Idempotency-Key"],
        ),
        ("stripe.v1", keyed(DAY, key_name="idempotency-key"), []),
        (
            "stripe.v1",
            keyed(None, effect_class=UNKEYED),
            ["unkeyed write, although Stripe takes a key (Idempotency-Key)"],
        ),
        ("generic", keyed(None, effect_class=UNKEYED), []),
        (
            "twilio",
            keyed(HOUR),
            ["! keyed write, but Twilio knows no key: every repeat is a new effect"],
        ),
        (
            "stripe.v1",
            keyed(DAY, server_working_seconds_max=10),
            [OWN_WORKING],
        ),
        ("stripe.v1", keyed(DAY, server_working_seconds_max=ASSUMED_WORKING_SECONDS), []),
        ("zendesk", keyed(DAY, effect_class=EffectClass.READ), []),
    ],
)
def test_what_a_tool_says_otherwise_is_remarked_with_its_source(
    name: str, promise: Promise, said: list[str]
) -> None:
    found = list(remarks(promise, known(name)))
    assert [f"{'! ' * one.bad}{one.words}" for one in found] == said
    assert all(one.source for one in found)


PROMISES = st.builds(
    Promise,
    effect_class=st.sampled_from([KEYED, UNKEYED]),
    window_seconds=st.none() | st.integers(min_value=1, max_value=PERMANENT_SECONDS),
    server_working_seconds_max=st.none() | st.integers(min_value=1, max_value=DAY),
)


@settings(deadline=None)
@given(PROMISES, st.sampled_from(list(CONTRACTS.values())))
def test_what_goes_beyond_a_contract_is_refused_or_called_the_admins_own(
    promise: Promise, terms: Terms
) -> None:
    window, most = promise.window_seconds, terms.window_seconds
    beyond = promise.keyed and window is not None and (most is None or window > most)
    own = [one for one in compared(promise, terms) if one.label == "Window" and one.own]
    assert bool(own) == beyond
    if beyond:
        remarked = any("window set to" in one.words for one in remarks(promise, terms))
        assert remarked or faults(promise, terms)
    full = filled(promise, terms)
    if not faults(promise, terms):
        assert faults(full, terms) == {}
    assert filled(full, terms) == full


def test_a_window_in_words() -> None:
    assert [window_words(s) for s in (None, 2 * HOUR, PERMANENT_SECONDS)] == [
        "not published",
        "2 h",
        "for good",
    ]
