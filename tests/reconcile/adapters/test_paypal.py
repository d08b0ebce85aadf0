"""What the PayPal adapter sees at a sandbox that keeps PayPal's contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import requests

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters import paypal as adapter
from reconcile.adapters import rest
from reconcile.adapters.base import Delay, Look, MatchedBy, Probe
from reconcile.lookups import LOOKUPS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.loopback import loopback, whole
from tests.reconcile.adapters.probes import (
    CLAIM,
    MARKER,
    OTHER_CLAIM,
    a_life,
    a_place,
    a_probe,
)
from tests.reconcile.sandbox.shoppers import MERCHANT, Shopper


@pytest.fixture
def shopper(provider: Provider) -> Iterator[Shopper]:
    rest.forget()
    one = Shopper(provider.url)
    yield one
    one.close()


def asked(shopper: Shopper, **arguments: str) -> Probe:
    place = a_place(f"{shopper.url}/paypal", account=MERCHANT, secret=f"{MERCHANT}:client_secret")
    return replace(a_probe(shopper.url, place=place), arguments=arguments)


def at(probe: Probe, **place: Any) -> Probe:
    return replace(probe, place=replace(probe.place, **place))


def look(probe: Probe, kind: str = "paypal.orders") -> Look:
    return LOOKUPS[kind].look(probe)


def put(provider: Provider, kind: str, object_id: str, **changes: Any) -> None:
    """What only PayPal can do to its object; in an order it stands once more."""
    table = f"paypal/{MERCHANT}/test/{kind}"
    with provider.world.store.batch() as batch:
        row = provider.world.store.table(table)[object_id]
        batch.put(table, object_id, {**row, **changes})


def put_in_order(provider: Provider, order_id: str, **payments: Any) -> None:
    row = provider.world.store.table(f"paypal/{MERCHANT}/test/orders")[order_id]
    (unit,) = row["purchase_units"]
    put(provider, "orders", order_id, purchase_units=[{**unit, "payments": payments}])


# Captures of an order


def test_a_capture_whose_answer_was_lost_is_found_in_its_order(shopper: Shopper) -> None:
    order_id = shopper.order("k1", None).json()["id"]
    with pytest.raises(requests.ConnectionError):
        shopper.capture("k2", order_id, fault="drop_after_commit")
    (effect,) = shopper.truth()

    found = look(asked(shopper, order_id=order_id))

    assert (found.word, found.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert found.requested == found.found == {"amount": "42.00", "currency": "EUR"}
    assert (found.right_place, found.matched_by) == (True, MatchedBy.REFERENCE)
    assert found.delay_class is Delay.UNKNOWN, "nobody publishes how soon an order shows it"


CAPTURES = {
    "COMPLETED": SightingWord.FOUND,
    "PARTIALLY_REFUNDED": SightingWord.FOUND,
    "REFUNDED": SightingWord.FOUND,
    "PENDING": SightingWord.PENDING,
    "DECLINED": SightingWord.ABSENT,
    "FAILED": SightingWord.ABSENT,
    "REVERSED": SightingWord.UNMAPPED,
}
ORDERS = {
    "CREATED": SightingWord.ABSENT,
    "SAVED": SightingWord.ABSENT,
    "APPROVED": SightingWord.ABSENT,
    "PAYER_ACTION_REQUIRED": SightingWord.ABSENT,
    "VOIDED": SightingWord.FOUND_DIFFERENT,
    "COMPLETED": SightingWord.UNMAPPED,
    "PENDING_APPROVAL": SightingWord.UNMAPPED,
}


def test_each_status_of_a_capture_has_its_meaning_although_the_order_is_completed(
    shopper: Shopper, provider: Provider
) -> None:
    order_id, capture_id = shopper.paid_order()
    capture = shopper.paypal("GET", f"/v2/payments/captures/{capture_id}").json()
    said = {}
    for status in CAPTURES:
        put_in_order(provider, order_id, captures=[{**capture, "status": status}])
        said[status] = look(asked(shopper, order_id=order_id)).word

    assert said == CAPTURES


def test_an_order_without_captures_says_what_it_is_instead(
    shopper: Shopper, provider: Provider
) -> None:
    order_id = shopper.order("k1", None).json()["id"]
    said = {}
    for status in ORDERS:
        put(provider, "orders", order_id, status=status)
        said[status] = look(asked(shopper, order_id=order_id)).word

    assert said == ORDERS


def test_money_that_is_held_and_not_taken_is_partly_done(
    shopper: Shopper, provider: Provider
) -> None:
    order_id = shopper.order("k1", None).json()["id"]
    put_in_order(provider, order_id, authorizations=[{"id": "AUTH1", "status": "CREATED"}])

    found = look(asked(shopper, order_id=order_id))

    assert (found.word, found.partly, found.status) == (
        SightingWord.PENDING,
        True,
        "authorization CREATED",
    )


def test_two_captures_of_one_order_are_both_named(shopper: Shopper, provider: Provider) -> None:
    order_id, capture_id = shopper.paid_order()
    capture = shopper.paypal("GET", f"/v2/payments/captures/{capture_id}").json()
    put_in_order(provider, order_id, captures=[capture, {**capture, "id": "SECOND"}])

    found = look(asked(shopper, order_id=order_id))

    assert (found.word, set(found.objects)) == (SightingWord.FOUND_MANY, {capture_id, "SECOND"})


def test_another_amount_differs(shopper: Shopper) -> None:
    order_id, _ = shopper.paid_order()
    probe = replace(asked(shopper, order_id=order_id), amount=from_minor(4300, "eur"))

    found = look(probe)

    assert found.word is SightingWord.FOUND_DIFFERENT
    assert (found.requested["amount"], found.found["amount"]) == ("43.00", "42.00")


@pytest.mark.parametrize(
    "place",
    [
        {"account": "TESTMERCHANT2"},
        {"secret": "TESTMERCHANT2:other"},
        {"secret": "LIVEMERCHANT1:other"},
        {"secret": "nobody:at all"},
        {"secret": "a token that was never given"},
    ],
    ids=["registered otherwise", "another merchant", "live", "unknown client", "no token"],
)
def test_a_wrong_place_is_misconfigured_and_never_an_absence(
    shopper: Shopper, place: dict[str, str]
) -> None:
    order_id, _ = shopper.paid_order()

    found = look(at(asked(shopper, order_id=order_id), **place))

    assert found.word is SightingWord.MISCONFIGURED
    assert not found.right_place


def test_an_order_that_nobody_knows_is_no_absence(shopper: Shopper) -> None:
    found = look(asked(shopper, order_id="INVENTED"))

    assert found.word is SightingWord.MISCONFIGURED
    assert "RESOURCE_NOT_FOUND" in found.why


def test_arguments_without_an_order_are_said_to_be(shopper: Shopper) -> None:
    found = look(asked(shopper))

    assert found.word is SightingWord.MISCONFIGURED
    assert "no text at order_id" in found.why


# The token


def test_a_client_signs_in_once_and_again_when_its_token_is_over(shopper: Shopper) -> None:
    order_id, _ = shopper.paid_order()
    probe = asked(shopper, order_id=order_id)
    for _ in range(2):
        assert look(probe).reads == 1
    shopper.advance(hours=9.1)

    found = look(probe)

    assert (found.word, found.reads) == (SightingWord.FOUND, 2)
    operations = [one["operation"] for one in shopper.control("GET", "/requests")["requests"]]
    # The shopper signed in for itself once.
    assert operations.count("paypal.oauth2.token") == 3


def test_signing_in_asks_for_nothing_but_a_token(shopper: Shopper) -> None:
    with loopback(whole('{"access_token": "t", "expires_in": 60}')) as server:
        place = a_place(server.url, secret="client:secret of the client")
        look(replace(a_probe(server.url, place=place), arguments={"order_id": "O1"}))

    sign_in = server.requests[0]
    assert sign_in.startswith("POST /v1/oauth2/token ")
    assert f"Content-Length: {len('grant_type=client_credentials')}\r\n" in sign_in
    assert all(one.startswith("GET ") for one in server.requests[1:])


def test_an_answer_to_signing_in_is_neither_quoted_nor_kept(shopper: Shopper) -> None:
    with loopback(whole('{"refresh_token": "precious"}')) as server:
        place = a_place(server.url, secret="client:secret of the client")
        found = look(replace(a_probe(server.url, place=place), arguments={"order_id": "O1"}))

    assert found.word is SightingWord.UNMAPPED
    assert "precious" not in repr(found) + str(found.raw)


# Refunds


def test_a_refund_is_found_by_our_marker_in_the_order_of_its_capture(shopper: Shopper) -> None:
    _, capture_id = shopper.paid_order()
    shopper.give_back("k1", capture_id, "somebody else's", value="1.00")
    with pytest.raises(requests.ConnectionError):
        shopper.give_back("k2", capture_id, MARKER, fault="drop_after_commit")
    refund_id = shopper.truth()[-1]["object_id"]
    probe = replace(asked(shopper, capture_id=capture_id), amount=from_minor(1000, "eur"))

    found = look(probe, "paypal.refunds")

    assert (found.word, found.objects) == (SightingWord.FOUND, (refund_id,))
    assert found.requested == found.found == {"amount": "10.00", "currency": "EUR"}
    assert found.matched_by is MatchedBy.MARKER
    assert b"somebody" not in (found.raw or b"")


def test_a_refund_repeated_after_its_key_was_forgotten_is_two(shopper: Shopper) -> None:
    _, capture_id = shopper.paid_order()
    shopper.give_back("k1", capture_id, MARKER)
    shopper.advance(hours=6.1)
    shopper.give_back("k1", capture_id, MARKER)

    found = look(asked(shopper, capture_id=capture_id), "paypal.refunds")

    assert found.word is SightingWord.FOUND_MANY
    assert len(found.objects) == 2


def test_a_refund_that_is_not_there_is_an_absence_that_proves_nothing(shopper: Shopper) -> None:
    _, capture_id = shopper.paid_order()

    found = look(asked(shopper, capture_id=capture_id), "paypal.refunds")

    assert (found.word, found.delay_class) == (SightingWord.ABSENT, Delay.UNKNOWN)


# Transactions


def test_what_has_our_marker_and_no_known_id_is_found_among_the_transactions_hours_later(
    shopper: Shopper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "PAGE_SIZE", 2)
    _, capture_id = shopper.paid_order(MARKER)
    for number in range(3):
        shopper.paid_order(f"other-{number}")
    probe = asked(shopper)
    early = look(probe, "paypal.transactions")
    shopper.advance(hours=3.2)

    late = look(
        replace(probe, asked_at=probe.asked_at + timedelta(hours=3.2)), "paypal.transactions"
    )

    assert (early.word, early.right_place) == (SightingWord.ABSENT, True)
    assert (late.word, late.objects) == (SightingWord.FOUND, (capture_id,))
    assert "4 transactions on 2 pages" in late.query
    assert {early.delay_class, late.delay_class} == {Delay.EVENTUAL}


def test_one_report_answers_for_many_calls_and_names_what_is_nobodys(shopper: Shopper) -> None:
    theirs = marker(OTHER_CLAIM, 1)
    captures = {
        CLAIM: shopper.paid_order(MARKER)[1],
        OTHER_CLAIM: shopper.paid_order(theirs)[1],
    }
    _, stray = shopper.paid_order("no claim's")
    shopper.advance(hours=3.2)
    first = asked(shopper)
    first = replace(first, asked_at=first.asked_at + timedelta(hours=3.2))
    life = replace(a_life(), marker=theirs)
    second = replace(first, claim_id=OTHER_CLAIM, generations=(life,))
    look_many = LOOKUPS["paypal.transactions"].look_many
    assert look_many is not None

    scan = look_many([first, second])

    assert {claim: one.objects for claim, one in scan.looks.items()} == {
        claim: (capture_id,) for claim, capture_id in captures.items()
    }
    assert scan.reads == 3, "one for the report, one for each capture"
    assert [one.id for one in scan.strangers] == [stray]


def test_not_being_among_the_transactions_is_never_proof_whatever_the_entry_says(
    shopper: Shopper,
) -> None:
    probe = replace(asked(shopper), config={"delay_class": "none"})

    assert look(probe, "paypal.transactions").delay_class is Delay.EVENTUAL


def test_transactions_of_another_account_are_misconfigured(shopper: Shopper) -> None:
    found = look(at(asked(shopper), account="TESTMERCHANT2"), "paypal.transactions")

    assert found.word is SightingWord.MISCONFIGURED


@pytest.mark.parametrize("fault", ["rate_limit_429", "error_500", "drop_before", "cut_mid_body"])
def test_a_read_in_trouble_says_nothing(shopper: Shopper, fault: str) -> None:
    order_id, _ = shopper.paid_order()
    shopper.fault_reads("paypal.orders.retrieve", fault)

    found = look(asked(shopper, order_id=order_id))

    expected = SightingWord.RATE_LIMITED if "429" in fault else SightingWord.LOOKUP_FAILED
    assert (found.word, found.objects) == (expected, ())
