"""What the Checkout.com adapter sees at a sandbox that keeps Checkout.com's contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters import checkout as adapter
from reconcile.adapters.base import Delay, Look, MatchedBy, Probe
from reconcile.adapters.rest import host_mode
from reconcile.lookups import LOOKUPS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.loopback import loopback, whole
from tests.reconcile.adapters.probes import CLAIM, MARKER, a_life, a_place, a_probe, key_of
from tests.reconcile.sandbox.shoppers import Shopper


@pytest.fixture
def shopper(provider: Provider) -> Iterator[Shopper]:
    one = Shopper(provider.url)
    yield one
    one.close()


def asked(shopper: Shopper, **changes: Any) -> Probe:
    place = a_place(f"{shopper.url}/checkout", **{"secret": "sk_sbox_halden", **changes})
    return a_probe(shopper.url, place=place)


def look(probe: Probe) -> Look:
    return LOOKUPS["checkout.payments"].look(probe)


def put_status(provider: Provider, payment_id: str, status: str) -> None:
    table = "checkout/halden/test/payments"
    with provider.world.store.batch() as batch:
        row = provider.world.store.table(table)[payment_id]
        batch.put(table, payment_id, {**row, "status": status})


def test_a_payment_whose_answer_was_lost_is_found_by_its_reference(shopper: Shopper) -> None:
    with pytest.raises(requests.ConnectionError):
        shopper.charge("k1", MARKER, fault="drop_after_commit")
    (effect,) = shopper.truth()

    found = look(asked(shopper))

    assert (found.word, found.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert found.requested == found.found == {"amount": "42.00", "currency": "EUR"}
    assert found.matched_by is MatchedBy.MARKER
    assert (found.right_place, found.pages_complete) == (True, True)
    assert f"reference={MARKER}" in found.query


STATUSES = {
    "Captured": SightingWord.FOUND,
    "Paid": SightingWord.FOUND,
    "Refunded": SightingWord.FOUND,
    "Partially Refunded": SightingWord.FOUND,
    "Pending": SightingWord.PENDING,
    "Authorized": SightingWord.PENDING,
    "Partially Captured": SightingWord.PENDING,
    "Card Verified": SightingWord.FOUND_DIFFERENT,
    "Voided": SightingWord.FOUND_DIFFERENT,
    "Canceled": SightingWord.FOUND_DIFFERENT,
    "Expired": SightingWord.FOUND_DIFFERENT,
    "Declined": SightingWord.ABSENT,
    "Retry Scheduled": SightingWord.UNMAPPED,
}


def test_each_status_has_its_meaning_and_none_is_guessed(
    shopper: Shopper, provider: Provider
) -> None:
    payment = shopper.charge("k1", MARKER).json()
    said, partly = {}, set()
    for status in STATUSES:
        put_status(provider, payment["id"], status)
        found = look(asked(shopper))
        said[status] = found.word
        partly |= {status} if found.partly else set()

    assert said == STATUSES
    assert partly == {"Authorized", "Partially Captured"}


def test_a_decline_is_kept_beside_the_payment_of_the_next_attempt(shopper: Shopper) -> None:
    declined = shopper.charge("k1", MARKER, fault="refuse_402").json()
    paid = shopper.charge("k2", marker(CLAIM, 2)).json()
    probe = replace(asked(shopper), generations=(a_life(1, is_open=False), a_life(2)))

    found = look(probe)

    assert (found.word, found.objects) == (SightingWord.FOUND, (paid["id"],))
    assert found.others == (declined["id"],)


def test_a_payment_attempted_again_after_a_500_that_came_to_pass_is_two(shopper: Shopper) -> None:
    shopper.charge("k1", MARKER, fault="error_500_then_late_commit=60")
    shopper.charge("k1", MARKER)
    shopper.advance(hours=1)

    found = look(asked(shopper))

    assert found.word is SightingWord.FOUND_MANY
    assert set(found.objects) == {effect["object_id"] for effect in shopper.truth()}


def test_every_page_is_read(shopper: Shopper, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {shopper.charge(f"k{number}", MARKER).json()["id"] for number in range(3)}
    monkeypatch.setattr(adapter, "PAGE_SIZE", 1)

    found = look(asked(shopper))

    assert (found.word, set(found.objects), found.reads) == (SightingWord.FOUND_MANY, ids, 3)


def test_another_amount_and_another_currency_differ(shopper: Shopper) -> None:
    shopper.charge("k1", MARKER, amount=4100, currency="USD")

    found = look(asked(shopper))

    assert found.word is SightingWord.FOUND_DIFFERENT
    assert found.found == {"amount": "41.00", "currency": "USD"}


@pytest.mark.parametrize("reference", ["key", "claim", "arguments.order"])
def test_a_tool_may_refer_to_its_payments_otherwise(shopper: Shopper, reference: str) -> None:
    order = {"key": key_of(1), "claim": str(CLAIM), "arguments.order": "O-7"}[reference]
    payment = shopper.charge("k1", order).json()
    probe = replace(asked(shopper), config={"reference": reference}, arguments={"order": "O-7"})

    found = look(probe)

    assert (found.word, found.objects) == (SightingWord.FOUND, (payment["id"],))
    by_arguments = found.matched_by is MatchedBy.REFERENCE
    assert by_arguments == (reference == "arguments.order")


def test_that_nothing_is_found_proves_nothing_where_an_account_is_registered(
    shopper: Shopper,
) -> None:
    config = {"delay_class": "none"}
    sure = look(replace(asked(shopper), config=config))
    unsure = look(replace(asked(shopper, account="ent_halden"), config=config))

    assert (sure.word, sure.delay_class, sure.right_place) == (
        SightingWord.ABSENT,
        Delay.NONE,
        True,
    )
    assert (unsure.word, unsure.right_place) == (SightingWord.ABSENT, False)


def test_what_bears_our_marker_is_ours_in_whatever_account(shopper: Shopper) -> None:
    shopper.charge("k1", MARKER)

    found = look(asked(shopper, account="ent_halden"))

    assert (found.word, found.right_place) == (SightingWord.FOUND, True)


@pytest.mark.parametrize(
    ("secret", "says"),
    [("sk_halden", "live mode, the workspace is test"), ("pk_halden", "does not let us ask")],
)
def test_a_wrong_secret_is_misconfigured(shopper: Shopper, secret: str, says: str) -> None:
    found = look(asked(shopper, secret=secret))

    assert found.word is SightingWord.MISCONFIGURED
    assert says in found.why


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("rate_limit_429", SightingWord.RATE_LIMITED),
        ("error_500", SightingWord.LOOKUP_FAILED),
        ("drop_before", SightingWord.LOOKUP_FAILED),
        ("cut_mid_body", SightingWord.LOOKUP_FAILED),
    ],
)
def test_a_read_in_trouble_says_nothing_about_the_payment(
    shopper: Shopper, fault: str, word: SightingWord
) -> None:
    shopper.charge("k1", MARKER)
    shopper.fault_reads("checkout.payments.list", fault)

    found = look(asked(shopper))

    assert (found.word, found.objects) == (word, ())
    if word is SightingWord.RATE_LIMITED:
        assert found.retry_after_seconds == 30


def test_a_filter_that_is_ignored_makes_nobodys_payments_ours() -> None:
    answer = (
        '{"total_count": 1, "data": [{"id": "pay_1", "reference": "other", "status": "Captured"}]}'
    )
    with loopback(whole(answer)) as server:
        found = look(a_probe(server.url, place=a_place(server.url, secret="sk_sbox_halden")))

    assert found.word is SightingWord.UNMAPPED
    assert b"pay_1" not in (found.raw or b"")


def test_a_list_that_counts_more_than_it_shows_is_not_whole() -> None:
    with loopback(whole('{"total_count": 2, "data": []}')) as server:
        found = look(a_probe(server.url, place=a_place(server.url, secret="sk_sbox_halden")))

    assert found.word is SightingWord.UNMAPPED


def test_the_name_before_a_host_leaves_it_the_same_host() -> None:
    modes = {
        host: host_mode(a_place(f"https://{host}"), adapter.HOSTS)
        for host in ("api.checkout.com", "shop.api.checkout.com", "evil-api.checkout.com.example")
    }

    assert list(modes.values()) == ["live", "live", None]


def test_more_generations_than_may_be_asked_about_are_not_asked_about_in_part() -> None:
    lives = tuple(a_life(number) for number in range(1, 12))
    place = a_place("https://api.sandbox.checkout.com", secret="sk_sbox_halden")

    found = look(replace(a_probe(place.base_url, place=place), generations=lives))

    assert (found.word, found.reads) == (SightingWord.MISCONFIGURED, 0)
    assert "11 questions; at most 10" in found.why
