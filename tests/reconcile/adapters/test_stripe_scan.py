"""One reading for many claims: what it costs, and that it never says less than the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters import stripe_reading, stripe_scan
from reconcile.adapters.base import KeyLife, Probe, Scan
from reconcile.adapters.stripe import LOOKUPS, look_for
from reconcile.adapters.stripe_kinds import PAYMENT_INTENTS
from reconcile.adapters.stripe_scan import scan_for
from reconcile.sandbox.provider.recipes import SEARCH_LAG_SECONDS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import a_place, a_probe
from tests.reconcile.adapters.stripe_rows import a_row, claim_number, enter, gets
from tests.reconcile.sandbox.customer import Customer

CLAIMS = 1000


def key_of(number: int) -> str:
    return f"cf1-{number:032d}"


def probe_of(url: str, number: int, **changes: Any) -> Probe:
    life = KeyLife(
        generation=1, key=key_of(number), marker=marker(claim_number(number), 1), open=True
    )
    return replace(a_probe(url), claim_id=claim_number(number), generations=(life,), **changes)


def scan(probes: Sequence[Probe]) -> Scan:
    return scan_for(PAYMENT_INTENTS, probes)


def words(answered: Scan) -> dict[int, str]:
    return {int(str(claim)[-12:]): str(look.word) for claim, look in answered.looks.items()}


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are too long to be read whole."""
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 3)
    monkeypatch.setattr(stripe_reading, "PAGES_MAX", 2)


def test_a_thousand_claims_cost_at_most_two_in_a_hundred_of_a_thousand_look_ups(
    provider: Provider,
) -> None:
    now = datetime.now(UTC)
    made = [n for n in range(CLAIMS) if n % 3]
    enter(provider, [a_row(n, created=now - timedelta(seconds=n)) for n in made])
    probes = [
        probe_of(provider.url, n, since=now - timedelta(seconds=n + 5), asked_at=now)
        for n in range(CLAIMS)
    ]
    before = gets(provider)

    answered = scan(probes)

    used = gets(provider) - before
    assert used == answered.reads
    assert used * 50 <= CLAIMS, f"{used} requests"
    assert {n for n, look in enumerate(answered.looks.values()) if look.word == "found"} == set(
        made
    )
    assert {look.reads for look in answered.looks.values()} == {0}, "the scan is counted once"
    assert all(look.pages_complete and look.right_place for look in answered.looks.values())
    assert answered.strangers == ()


def test_each_look_keeps_its_own_object_and_how_the_reading_went(provider: Provider) -> None:
    now = datetime.now(UTC)
    enter(provider, [a_row(n, created=now) for n in (1, 2)])

    answered = scan([probe_of(provider.url, n) for n in (1, 2, 3)])

    look = answered.looks[claim_number(1)]
    assert look.raw is not None
    assert look.objects == ("pi_000001",)
    assert "pi_000002" not in look.raw.decode()
    assert "one reading for 3 calls" in look.query
    assert "2 objects on 1 pages" in look.query
    assert marker(claim_number(2), 1) not in look.query
    assert look.interval_from is not None
    assert words(answered) == {1: "found", 2: "found", 3: "absent"}


def test_a_scan_says_what_a_look_up_of_its_own_says(provider: Provider) -> None:
    now = datetime.now(UTC)
    enter(
        provider,
        [
            a_row(1, created=now),
            a_row(2, created=now, status="processing"),
            a_row(3, created=now, amount_received=4100),
            a_row(4, created=now),
            a_row(40, created=now, metadata={"counterfoil": marker(claim_number(4), 1)}),
            a_row(5, created=now, status="a_word_from_next_year"),
            a_row(6, created=now, livemode=True),
        ],
    )
    probes = [probe_of(provider.url, n) for n in range(1, 8)]

    together = scan(probes).looks

    for probe in probes:
        alone = look_for(PAYMENT_INTENTS)(probe)
        shared = together[probe.claim_id]
        own = {"query": "", "request_id": "", "reads": 0}
        assert replace(shared, **own) == replace(alone, **own)  # type: ignore[arg-type] # texts and a number
    assert len({look.word for look in together.values()}) == 6


def test_what_belongs_to_no_probe_is_a_stranger_and_no_more_than_so_many_are_named(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    enter(provider, [a_row(1, created=now), a_row(9, created=now)])
    enter(provider, [a_row(20, created=now, metadata={}, status="processing")])

    answered = scan([probe_of(provider.url, 1)])

    named = {(s.id, s.noun, s.status, s.marker, s.amount) for s in answered.strangers}
    assert named == {
        ("pi_000009", "PaymentIntent", "succeeded", marker(claim_number(9), 1), "42.00 EUR"),
        ("pi_000020", "PaymentIntent", "processing", "", "42.00 EUR"),
    }
    assert all(s.created_at == now.replace(microsecond=0) for s in answered.strangers)
    monkeypatch.setattr(stripe_scan, "STRANGERS_MAX", 1)
    few = scan([probe_of(provider.url, 1)])
    assert (len(few.strangers), few.strangers_left_off) == (1, 1)


# More than can be read


@pytest.mark.usefixtures("small_pages")
def test_a_list_that_is_too_long_is_whole_for_the_claims_that_it_reached(
    provider: Provider,
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    hours = [now - timedelta(hours=n) for n in range(9)]
    enter(provider, [a_row(100 + n, created=at, metadata={}) for n, at in enumerate(hours)])
    young = probe_of(provider.url, 1, since=hours[3], asked_at=now)
    old = probe_of(provider.url, 2, since=hours[8], asked_at=now)

    looks = scan([young, old]).looks

    assert (looks[young.claim_id].word, looks[young.claim_id].pages_complete) == ("absent", True)
    assert looks[young.claim_id].interval_from == young.since - stripe_reading.SKEW
    assert (looks[old.claim_id].word, looks[old.claim_id].pages_complete) == ("absent", False)


@pytest.mark.usefixtures("small_pages")
def test_a_page_that_ends_within_a_second_has_not_reached_that_second(provider: Provider) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    then = now - timedelta(hours=1)
    rows = [a_row(100 + n, created=then, metadata={}) for n in range(9)]
    enter(provider, [a_row(1, created=then - timedelta(seconds=9)), *rows])

    for seconds, whole in ((0, False), (1, True)):
        since = then + stripe_reading.SKEW + timedelta(seconds=seconds)
        asked = [probe_of(provider.url, n, since=since, asked_at=now) for n in (2, 3)]
        older = replace(asked[1], since=then - timedelta(hours=5))
        look = scan([asked[0], older]).looks[asked[0].claim_id]
        assert (look.word, look.pages_complete) == (SightingWord.ABSENT, whole)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("settled", [True, False], ids=["all ended", "may still be sent"])
def test_an_old_claim_is_looked_for_in_a_slice_around_its_own_time(
    provider: Provider, *, settled: bool
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    then = now - timedelta(days=9)
    rows = (a_row(100 + n, created=now - timedelta(hours=n), metadata={}) for n in range(40))
    enter(provider, [a_row(1, created=then + timedelta(seconds=2)), *rows])
    until = then + timedelta(minutes=20) if settled else None
    probes = [
        probe_of(provider.url, n, since=then, asked_at=now, settled_from=until) for n in (1, 2)
    ]

    looks = scan(probes).looks

    found, missed = (looks[probe.claim_id] for probe in probes)
    assert found.word is SightingWord.FOUND
    assert (missed.word, missed.pages_complete) == (SightingWord.ABSENT, settled)
    assert found.interval_to is not None
    assert found.interval_to < now


@pytest.mark.usefixtures("small_pages")
def test_a_look_up_of_its_own_reads_the_slice_as_well(provider: Provider) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    then = now - timedelta(days=9)
    rows = (a_row(100 + n, created=now - timedelta(hours=n), metadata={}) for n in range(40))
    enter(provider, [a_row(1, created=then + timedelta(seconds=2)), *rows])
    settled = {"since": then, "asked_at": now, "settled_from": then + timedelta(minutes=20)}

    found = look_for(PAYMENT_INTENTS)(probe_of(provider.url, 1, **settled))
    missed = look_for(PAYMENT_INTENTS)(probe_of(provider.url, 2, **settled))

    assert found.word is SightingWord.FOUND
    assert (missed.word, missed.pages_complete) == (SightingWord.ABSENT, True)


@pytest.mark.usefixtures("small_pages")
def test_a_slice_of_a_provider_whose_clock_is_ahead_reaches_as_far(
    provider: Provider, customer: Customer
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    then, ahead = now - timedelta(days=9), timedelta(hours=2)
    customer.advance(seconds=ahead.total_seconds())
    rows = (a_row(100 + n, created=now - timedelta(hours=n), metadata={}) for n in range(40))
    enter(provider, [a_row(1, created=then + ahead), *rows])

    look = look_for(PAYMENT_INTENTS)(
        probe_of(
            provider.url, 1, since=then, asked_at=now, settled_from=then + timedelta(minutes=20)
        )
    )

    assert look.word is SightingWord.FOUND


@pytest.mark.usefixtures("small_pages")
def test_what_no_list_reaches_is_searched_for_and_read_from_the_object(
    provider: Provider, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_scan, "SLICES_MAX", 0)
    now = datetime.now(UTC).replace(microsecond=0)
    then = now - timedelta(days=2)
    rows = (a_row(100 + n, created=now - timedelta(hours=n), metadata={}) for n in range(12))
    enter(provider, [a_row(1, created=then, status="processing"), *rows])
    customer.advance(seconds=SEARCH_LAG_SECONDS + 1)
    probes = [probe_of(provider.url, n, since=then, asked_at=now) for n in (1, 2)]

    looks = scan(probes).looks

    found, missed = (looks[probe.claim_id] for probe in probes)
    assert (found.word, found.objects) == (SightingWord.PENDING, ("pi_000001",))
    assert found.route == "Search PaymentIntents by marker, then retrieve"
    assert (missed.word, missed.pages_complete) == (SightingWord.ABSENT, False)


# A marker that is no longer there


def born(at: datetime) -> UUID:
    """A claim's name, as it is made at that time."""
    return UUID(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | 9)


@pytest.mark.parametrize(
    ("later_minutes", "since_minutes", "whole"),
    [
        pytest.param(30, 60, False, id="a later call's marker stands on it"),
        pytest.param(-1, 60, True, id="its own call's does"),
        pytest.param(30, 10, True, id="it was made before this call began"),
    ],
)
def test_an_object_that_may_have_lost_our_marker_keeps_its_absence_from_being_proof(
    provider: Provider, *, later_minutes: int, since_minutes: int, whole: bool
) -> None:
    now = datetime.now(UTC)
    made = now - timedelta(minutes=40)
    writer = born(made + timedelta(minutes=later_minutes))
    enter(provider, [a_row(9, created=made, metadata={"counterfoil": marker(writer, 1)})])
    probe = probe_of(provider.url, 1, since=now - timedelta(minutes=since_minutes))

    alone, shared = look_for(PAYMENT_INTENTS)(probe), scan([probe]).looks[probe.claim_id]

    for look in (alone, shared):
        assert (look.word, look.pages_complete) == (SightingWord.ABSENT, whole)
        assert ("written its marker over" in look.why) is not whole


# Without a marker, without an answer


def test_what_was_made_without_a_marker_goes_to_the_claim_of_its_key(
    provider: Provider, customer: Customer
) -> None:
    ours = customer.pay(key_of(2), metadata={})
    customer.pay("somebody", metadata={})
    probes = [probe_of(provider.url, n, unmarked=True) for n in (1, 2)]

    answered = scan(probes)

    assert words(answered) == {1: "absent", 2: "found"}
    assert answered.looks[claim_number(2)].objects == (ours.id,)
    assert "Events" in answered.looks[claim_number(2)].route
    assert ours.id not in {s.id for s in answered.strangers}
    assert answered.reads == 2, "the objects were on the list's pages already"


def test_events_are_not_read_for_claims_that_were_found_by_their_marker(
    provider: Provider,
) -> None:
    now = datetime.now(UTC)
    enter(provider, [a_row(1, created=now), a_row(2, created=now, metadata={})])

    answered = scan([probe_of(provider.url, 1, unmarked=True)])

    assert (words(answered), answered.reads) == ({1: "found"}, 1)
    assert [stranger.id for stranger in answered.strangers] == ["pi_000002"]


@pytest.mark.usefixtures("small_pages")
def test_what_was_made_without_a_marker_beyond_the_pages_is_read_one_by_one(
    provider: Provider, customer: Customer
) -> None:
    ours = customer.pay(key_of(1), metadata={})
    now = datetime.now(UTC)
    later = now + timedelta(seconds=2)
    enter(provider, [a_row(100 + n, created=later, metadata={}) for n in range(9)])

    answered = scan([probe_of(provider.url, 1, unmarked=True)])

    (look,) = answered.looks.values()
    assert (look.word, look.objects) == (SightingWord.FOUND, (ours.id,))


def test_a_reading_that_breaks_off_keeps_what_it_saw_and_calls_the_rest_unanswered(
    provider: Provider, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 2)
    now = datetime.now(UTC).replace(microsecond=0)
    enter(provider, [a_row(n, created=now - timedelta(minutes=n)) for n in range(1, 7)])
    customer.control("POST", "/reads", {"reads_min": 2})

    answered = scan(
        [
            probe_of(provider.url, n, since=now - timedelta(minutes=n + 1), asked_at=now)
            for n in range(1, 7)
        ]
    )

    assert words(answered) == {
        1: "found",
        2: "found",
        3: "found",
        4: "found",
        5: "rate_limited",
        6: "rate_limited",
    }


def test_the_wrong_account_is_misconfigured_for_every_claim(provider: Provider) -> None:
    place = a_place(provider.url, account="acct_other")

    answered = scan([probe_of(provider.url, n, place=place) for n in (1, 2)])

    assert words(answered) == {1: "misconfigured", 2: "misconfigured"}
    assert answered.strangers == ()


def test_nobody_to_ask_about_costs_nothing() -> None:
    assert scan([]) == Scan(looks={})


def test_every_list_of_stripes_can_be_shared() -> None:
    shared = {lookup.kind for lookup in LOOKUPS if lookup.look_many is not None}

    assert shared == {lookup.kind for lookup in LOOKUPS} - {"stripe.updates"}
