"""What the GoCardless adapter sees at a sandbox that keeps GoCardless's contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import requests

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters import gocardless as adapter
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
from tests.reconcile.sandbox.shoppers import Shopper


@pytest.fixture
def shopper(provider: Provider) -> Iterator[Shopper]:
    rest.forget()
    one = Shopper(provider.url)
    yield one
    one.close()


def asked(shopper: Shopper, **changes: Any) -> Probe:
    place = a_place(
        f"{shopper.url}/gocardless", account="CRHALDEN", secret="sandbox_halden", **changes
    )
    return a_probe(shopper.url, place=place)


def look(probe: Probe, kind: str = "gocardless.payments") -> Look:
    return LOOKUPS[kind].look(probe)


def put_status(provider: Provider, kind: str, object_id: str, status: str) -> None:
    """What only GoCardless and the banks can do to its object."""
    table = f"gocardless/halden/test/{kind}"
    with provider.world.store.batch() as batch:
        row = provider.world.store.table(table)[object_id]
        batch.put(table, object_id, {**row, "status": status})


def test_a_payment_whose_answer_was_lost_is_found_by_its_marker(
    shopper: Shopper, provider: Provider
) -> None:
    with pytest.raises(requests.ConnectionError):
        shopper.debit("k1", MARKER, fault="drop_after_commit")
    (effect,) = shopper.truth()
    put_status(provider, "payments", effect["object_id"], "confirmed")

    found = look(asked(shopper))

    assert (found.word, found.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert found.requested == found.found == {"amount": "42.00", "currency": "EUR"}
    assert (found.right_place, found.pages_complete) == (True, True)
    assert found.matched_by is MatchedBy.MARKER
    assert found.delay_class is Delay.UNKNOWN, "nobody publishes how soon an object is listed"
    assert found.request_id.startswith("gocardless_")


STATUSES = {
    "pending_customer_approval": SightingWord.PENDING,
    "pending_submission": SightingWord.PENDING,
    "submitted": SightingWord.PENDING,
    "confirmed": SightingWord.FOUND,
    "paid_out": SightingWord.FOUND,
    "cancelled": SightingWord.FOUND_DIFFERENT,
    "customer_approval_denied": SightingWord.FOUND_DIFFERENT,
    "failed": SightingWord.FOUND_DIFFERENT,
    "charged_back": SightingWord.FOUND_DIFFERENT,
    "late_success_settled": SightingWord.UNMAPPED,
}


def test_each_status_of_a_payment_has_its_meaning_and_none_is_guessed(
    shopper: Shopper, provider: Provider
) -> None:
    made = shopper.debit("k1", MARKER).json()["payments"]
    said = {}
    for status in STATUSES:
        put_status(provider, "payments", made["id"], status)
        found = look(asked(shopper))
        said[found.status] = found.word

    assert said == STATUSES


def test_a_tool_may_hold_a_submitted_payment_to_be_its_effect(shopper: Shopper) -> None:
    shopper.debit("k1", MARKER)
    probe = replace(asked(shopper), config={"map": {"pending_submission": "found"}})

    assert look(probe).word is SightingWord.FOUND


def test_a_refund_is_found_by_its_marker_and_waits_for_the_bank(
    shopper: Shopper, provider: Provider
) -> None:
    payment_id = shopper.debit("k1", "other").json()["payments"]["id"]
    refund = {"amount": 1000, "links": {"payment": payment_id}, "metadata": {"counterfoil": MARKER}}
    made = shopper.gocardless("POST", "/refunds", {"refunds": refund}).json()["refunds"]
    probe = replace(asked(shopper), amount=from_minor(1000, "eur"))

    assert look(probe, "gocardless.refunds").word is SightingWord.PENDING
    put_status(provider, "refunds", made["id"], "paid")

    found = look(probe, "gocardless.refunds")

    assert (found.word, found.objects) == (SightingWord.FOUND, (made["id"],))


def test_nothing_is_no_proof_until_somebody_says_that_lists_are_not_late(shopper: Shopper) -> None:
    probe = asked(shopper)

    assert (look(probe).word, look(probe).delay_class) == (SightingWord.ABSENT, Delay.UNKNOWN)
    told = look(replace(probe, config={"delay_class": "none"}))
    assert (told.word, told.delay_class) == (SightingWord.ABSENT, Delay.NONE)


def test_objects_on_later_pages_are_read_and_two_are_named(
    shopper: Shopper, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {shopper.debit("k1", MARKER).json()["payments"]["id"]}
    for number in range(5):
        shopper.debit(f"between-{number}", "somebody else's")
    ids.add(shopper.debit("k2", MARKER).json()["payments"]["id"])
    for one in ids:
        put_status(provider, "payments", one, "confirmed")
    monkeypatch.setattr(adapter, "PAGE_SIZE", 3)

    found = look(asked(shopper))

    assert (found.word, set(found.objects)) == (SightingWord.FOUND_MANY, ids)
    assert "7 objects on 3 pages" in found.query
    assert b"somebody" not in (found.raw or b"")


def test_another_amount_differs(shopper: Shopper, provider: Provider) -> None:
    made = shopper.debit("k1", MARKER, amount=4100).json()["payments"]
    put_status(provider, "payments", made["id"], "confirmed")

    found = look(asked(shopper))

    assert found.word is SightingWord.FOUND_DIFFERENT
    assert (found.requested["amount"], found.found["amount"]) == ("42.00", "41.00")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"account": "CROTHER"}, "does not belong to the creditor CROTHER"),
        ({"secret": "live_halden"}, "does not belong to the creditor CRHALDEN"),
        ({"secret": "nobody"}, "does not let us ask"),
    ],
    ids=["another creditor", "another mode", "no token"],
)
def test_a_wrong_place_is_misconfigured_and_never_an_absence(
    shopper: Shopper, place: dict[str, Any], says: str
) -> None:
    shopper.debit("k1", MARKER)
    probe = asked(shopper)

    found = look(replace(probe, place=replace(probe.place, **place)))

    assert found.word is SightingWord.MISCONFIGURED
    assert says in found.why
    assert not found.right_place


def test_without_a_registered_creditor_the_place_is_not_sure(shopper: Shopper) -> None:
    probe = asked(shopper)

    found = look(replace(probe, place=replace(probe.place, account="")))

    assert (found.word, found.right_place) == (SightingWord.ABSENT, False)


@pytest.mark.parametrize(
    ("host", "mode"), [("api.gocardless.com", "test"), ("api-sandbox.gocardless.com", "live")]
)
def test_the_host_of_one_mode_is_not_asked_for_the_other(host: str, mode: str) -> None:
    # Nobody is asked, so no name is resolved.
    found = look(a_probe(f"https://{host}", place=a_place(f"https://{host}", mode=mode)))

    assert (found.word, found.reads) == (SightingWord.MISCONFIGURED, 0)
    assert f"the workspace is {mode}" in found.why


def test_a_rate_limit_says_when_to_come_again(shopper: Shopper) -> None:
    shopper.fault_reads("gocardless.payments.list", "rate_limit_429")

    found = look(asked(shopper))

    assert found.word is SightingWord.RATE_LIMITED
    assert found.retry_after_seconds is not None
    assert 20 <= found.retry_after_seconds <= 31


def test_one_list_answers_for_many_calls_and_names_what_is_nobodys(shopper: Shopper) -> None:
    calls = {
        CLAIM: shopper.debit("k1", MARKER).json()["payments"]["id"],
        OTHER_CLAIM: shopper.debit("k2", marker(OTHER_CLAIM, 1)).json()["payments"]["id"],
    }
    stray = shopper.debit("k3", "no claim's").json()["payments"]["id"]
    first = replace(asked(shopper), config={"map": {"pending_submission": "found"}})
    life = replace(a_life(), marker=marker(OTHER_CLAIM, 1))
    second = replace(first, claim_id=OTHER_CLAIM, generations=(life,))
    look_many = LOOKUPS["gocardless.payments"].look_many
    assert look_many is not None

    scan = look_many([first, second])

    assert {claim: one.objects for claim, one in scan.looks.items()} == {
        claim: (object_id,) for claim, object_id in calls.items()
    }
    assert scan.reads == 2, "one for the creditor, one for the list"
    assert [one.id for one in scan.strangers] == [stray]
    assert look_many([first, second]).reads == 1, "whose the secret is, is remembered"


def test_an_object_whose_marker_a_later_call_wrote_over_keeps_its_absence_from_being_proof(
    shopper: Shopper,
) -> None:
    later = UUID("03000000-0000-7000-8000-000000000001")
    shopper.debit("k1", marker(later, 1))

    found = look(replace(asked(shopper), config={"delay_class": "none"}))

    assert (found.word, found.pages_complete) == (SightingWord.ABSENT, False)
    assert "wrote its marker over" in found.why


def test_what_a_409_named_is_retrieved_where_the_list_does_not_show_it(
    shopper: Shopper, provider: Provider
) -> None:
    made = shopper.debit("k1", "unmarked").json()["payments"]
    put_status(provider, "payments", made["id"], "confirmed")
    error = shopper.debit("k1", MARKER).json()["error"]["errors"][0]
    theirs = shopper.debit("k2", marker(OTHER_CLAIM, 1)).json()["payments"]["id"]
    probe = asked(shopper)
    unnamed = look(probe)

    named = look(replace(probe, named=("RF1", error["links"]["conflicting_resource_id"])))
    another = look(replace(probe, named=(theirs, "PMGONE")))

    assert (unnamed.word, another.word) == (SightingWord.ABSENT, SightingWord.ABSENT)
    assert (named.word, named.objects) == (SightingWord.FOUND, (made["id"],))
    assert named.route == "Retrieve what an answer named of the payments"
    assert theirs.encode() not in (another.raw or b"")


def test_the_interval_begins_earlier_where_their_clock_is_behind_ours() -> None:
    behind = datetime.now(UTC) - timedelta(hours=1)
    answer = '{"payments": [], "meta": {"cursors": {"after": null}}}'
    dated = f"Date: {behind:%a, %d %b %Y %H:%M:%S} GMT\r\n"
    with loopback(whole(answer, headers=dated)) as server:
        found = look(a_probe(server.url))

    assert found.interval_from is not None
    assert found.interval_from < behind
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    ['{"payments": []}', '{"payments": {}, "meta": {"cursors": {"after": null}}}', "[]", "{"],
)
def test_an_answer_that_does_not_say_whether_it_is_whole_says_nothing(answer: str) -> None:
    with loopback(whole(answer)) as server:
        found = look(a_probe(server.url))

    assert found.word is SightingWord.UNMAPPED
