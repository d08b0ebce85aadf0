"""Finding out, from a lost answer to a settled claim: real ledger, real SDK, real provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import ClaimState, Reason, SightingWord, Verdict
from effects.models import Workspace
from ledger import append, queries
from ledger.append import NewDecision
from reconcile.investigate import Asking, investigate
from reconcile.judge import Meaning
from reconcile.pace import FAILURES_MAX
from tests.reconcile.finding_out import (
    LEASE_SECONDS,
    WINDOW_SECONDS,
    WORKING_SECONDS,
    Shop,
    id_of,
    open_shop,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


# An effect


def test_a_payment_whose_answer_was_lost_happened(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    (effect,) = shop.customer.truth()

    looked = shop.look(claim_id)

    claim = queries.claim(shop.workspace.pk, claim_id)
    assert looked.state is ClaimState.COMPLETED
    assert claim.object == effect["object_id"]
    (sighting,) = shop.sightings(claim_id)
    assert (sighting.word, sighting.counts) == (SightingWord.FOUND, True)
    assert sighting.objects_seen == [effect["object_id"]]
    assert sighting.data["strength"] == "strong"
    assert sighting.data["requested"] == sighting.data["found"]
    raw = queries.payload(claim, sighting.seq, "raw")
    assert raw is not None
    assert raw.body is not None
    assert json.loads(bytes(raw.body))[0]["id"] == effect["object_id"]


def test_a_payment_that_waited_in_a_killed_workers_hands_happened(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    shop.clock.advance(LEASE_SECONDS + 1)

    assert shop.look(id_of(answer)).state is ClaimState.COMPLETED


def test_a_transfer_whose_answer_was_lost_happened(shop: Shop) -> None:
    answer = shop.claim(shop.transfer, arguments='{"amount": 900}')
    shop.send_transfer(answer, fault="drop_after_commit")

    assert shop.look(shop.unknown(answer)).state is ClaimState.COMPLETED


def test_two_transfers_for_one_claim_are_a_conflict(shop: Shop) -> None:
    answer = shop.claim(shop.transfer, arguments='{"amount": 900}')
    shop.send_transfer(answer, fault="gateway_duplicate")

    looked = shop.look(shop.unknown(answer))

    assert looked.state is ClaimState.CONFLICTED
    assert looked.judgement is not None
    assert looked.judgement.meaning is Meaning.DUPLICATED


def test_a_payment_of_another_amount_waits_for_a_person(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, amount=4300)

    looked = shop.look(shop.unknown(answer))

    assert (looked.word, looked.state) == (SightingWord.FOUND_DIFFERENT, ClaimState.UNKNOWN)


# No effect


def test_a_payment_that_never_arrived_did_not_happen_once_that_can_be_known(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_before")
    claim_id = shop.unknown(answer)

    early = shop.look(claim_id)
    shop.past(WORKING_SECONDS - 10)
    still_early = shop.look(claim_id)
    shop.past(11)
    late = shop.look(claim_id)

    assert (early.word, early.state) == (SightingWord.ABSENT, ClaimState.UNKNOWN)
    assert still_early.state is ClaimState.UNKNOWN
    assert late.state is ClaimState.NOT_EXECUTED
    claim = queries.claim(shop.workspace.pk, claim_id)
    assert claim.grant_until is None, "the absence is firm"
    assert not claim.open_truth


def test_an_early_absence_is_asked_for_again_when_it_counts(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    for _ in range(6):
        shop.look(claim_id)
    shop.past(WORKING_SECONDS - 20)

    looked = shop.look(claim_id)

    assert looked.next_at is not None
    assert looked.next_at - queries.clock() < timedelta(seconds=25)


def test_the_providers_own_figure_replaces_ours(shop: Shop) -> None:
    shop.charge.server_working_seconds_max = 5
    shop.charge.save()
    claim_id = shop.unknown(shop.claim(shop.charge))
    shop.past(6)

    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED


def test_a_silent_worker_leaves_a_conditional_absence(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 1)

    looked = shop.look(id_of(answer))

    claim = queries.claim(shop.workspace.pk, id_of(answer))
    assert looked.state is ClaimState.NOT_EXECUTED
    assert claim.grant_until is not None
    assert claim.window_until is not None
    assert claim.grant_until < claim.window_until
    assert claim.open_truth


def test_a_silent_worker_of_a_tool_without_a_key_waits_for_a_person(shop: Shop) -> None:
    answer = shop.claim(shop.transfer)
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 1)

    assert shop.look(id_of(answer)).state is ClaimState.UNKNOWN


def test_a_transfer_that_never_arrived_did_not_happen(shop: Shop) -> None:
    answer = shop.claim(shop.transfer)
    shop.send_transfer(answer, fault="drop_before")
    claim_id = shop.unknown(answer)
    shop.past(WORKING_SECONDS + 1)

    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED


def test_after_a_server_error_no_absence_counts_and_the_late_effect_is_found(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault=f"error_500_then_late_commit={WORKING_SECONDS + 100}")
    claim_id = shop.unknown(answer, http_status=500)
    shop.past(WORKING_SECONDS + 1)
    absent = shop.look(claim_id)
    shop.past(100)
    found = shop.look(claim_id)

    assert (absent.word, absent.state) == (SightingWord.ABSENT, ClaimState.UNKNOWN)
    assert found.state is ClaimState.COMPLETED


def test_a_request_without_a_marker_is_no_absence_and_is_found_by_its_key(shop: Shop) -> None:
    lost = shop.claim(shop.charge)
    paid = shop.claim(shop.charge)
    shop.pay(paid, metadata={})
    lost_id = shop.unknown(lost, marker_sent=False)
    paid_id = shop.unknown(paid, marker_sent=False)
    shop.past(WORKING_SECONDS + 1)

    assert shop.look(lost_id).state is ClaimState.UNKNOWN
    assert shop.look(paid_id).state is ClaimState.COMPLETED


def test_the_other_world_is_never_taken_for_an_absence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    shop.past(WORKING_SECONDS + 1)
    monkeypatch.setenv("TEST_STRIPE_KEY", "rk_live_halden")

    looked = shop.look(claim_id)

    assert (looked.word, looked.state) == (SightingWord.MISCONFIGURED, ClaimState.UNKNOWN)


# Late truth


def test_an_effect_after_did_not_happen_is_read_twice_before_it_counts(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    claim_id = id_of(answer)
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 1)
    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED
    shop.pay(answer)  # The worker was frozen, and wakes.

    first = shop.look(claim_id)
    second = shop.look(claim_id)

    assert (first.word, first.state) == (SightingWord.FOUND, ClaimState.NOT_EXECUTED)
    assert first.next_at is not None
    assert first.next_at - queries.clock() < timedelta(seconds=3)
    assert second.state is ClaimState.COMPLETED
    claim = queries.claim(shop.workspace.pk, claim_id)
    assert claim.reason == Reason.TOLD_OTHERWISE


def test_a_second_effect_after_happened_is_a_conflict(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    shop.past(LEASE_SECONDS + 1)
    claim_id = id_of(answer)
    assert shop.look(claim_id).state is ClaimState.COMPLETED
    shop.customer.pay("a key of nobody", metadata={"counterfoil": answer.marker})

    first = shop.look(claim_id)
    second = shop.look(claim_id)

    assert first.word is SightingWord.FOUND_MANY
    assert first.state is ClaimState.COMPLETED
    assert second.state is ClaimState.CONFLICTED


# Not asked


def test_a_waiting_decision_is_not_cancelled_by_a_look_up(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    claim = queries.claim(shop.workspace.pk, claim_id)
    append.decide(
        shop.workspace.pk,
        claim_id,
        NewDecision(
            verdict=Verdict.CLOSE, claim_version=claim.version, reason="Enough.", rule="test"
        ),
    )

    looked = shop.look(claim_id)

    assert looked.word is None
    assert shop.sightings(claim_id) == []
    assert looked.next_at is not None
    assert looked.next_at > queries.clock() + timedelta(seconds=50)
    shop.past(61)
    assert shop.look(claim_id).state is ClaimState.CLOSED


def test_a_tool_without_a_look_up_is_not_asked_about_again(shop: Shop) -> None:
    shop.charge.lookup_kind = ""
    shop.charge.save()
    claim_id = shop.unknown(shop.claim(shop.charge))

    looked = shop.look(claim_id)

    assert (looked.word, looked.next_at, looked.state) == (None, None, ClaimState.UNKNOWN)
    assert append.take_due_lookups(10, 60) == []


def test_an_account_that_does_not_answer_is_left_alone_but_not_by_a_person(shop: Shop) -> None:
    rule = {"fault": "drop_before", "operation": "payment_intents.list", "sends_max": None}
    shop.customer.control("POST", "/faults", {"rules": [rule]})
    claim_id = shop.unknown(shop.claim(shop.charge))

    words = [shop.look(claim_id).word for _ in range(FAILURES_MAX)]
    alone = shop.look(claim_id)
    shop.customer.control("DELETE", "/faults")
    by_a_person = shop.look(claim_id, trigger="person", user_id=1)
    again = shop.look(claim_id)

    assert set(words) == {SightingWord.LOOKUP_FAILED}
    assert alone.word is None
    assert alone.next_at is not None
    assert alone.next_at > queries.clock() + timedelta(seconds=20)
    assert by_a_person.word is SightingWord.ABSENT
    assert again.word is SightingWord.ABSENT, "an answer ends the pause for everybody"
    assert shop.sightings(claim_id)[-2].data["trigger"] == "person"


def test_another_workspaces_claim_is_not_found(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    stranger = Workspace.objects.create(
        name="Other", slug="other", mode="test", created_at=queries.clock()
    )

    with pytest.raises(ClaimNotFound):
        investigate(stranger.pk, claim_id, Asking())


def test_an_address_that_is_not_allowed_is_not_asked(
    shop: Shop, settings: pytest.FixtureRequest
) -> None:
    settings.COUNTERFOIL_PRIVATE_ORIGINS = []  # type: ignore[attr-defined] # pytest-django's own
    claim_id = shop.unknown(shop.claim(shop.charge))

    looked = shop.look(claim_id)

    assert looked.word is SightingWord.MISCONFIGURED
    assert looked.state is ClaimState.UNKNOWN


# The plan


def test_an_attempt_that_has_just_ended_is_asked_about_soon_whatever_was_planned(
    shop: Shop,
) -> None:
    asked = {"conversation": "one", "call_id": "call_of_one_conversation", "arguments": "{}"}
    first = shop.claim(shop.charge, **asked)
    claim_id = shop.unknown(first)
    append.take_due_lookups(10, 60)
    append.schedule_lookup(claim_id, None, known_at=queries.clock())
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 1)
    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED

    second = shop.claim(shop.charge, **asked)
    assert (second.claim_id, second.fence) == (claim_id, 2)
    shop.unknown(second)

    (due,) = append.take_due_lookups(10, 60)
    assert (due.claim_id, due.tries) == (claim_id, 1)


def test_giving_up_on_one_attempt_does_not_give_up_on_the_next(shop: Shop) -> None:
    asked = {"conversation": "one", "call_id": "call_of_one_conversation", "arguments": "{}"}
    answer = shop.claim(shop.charge, **asked)
    claim_id = id_of(answer)
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 1)
    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED
    append.schedule_lookup(claim_id, None, known_at=queries.clock())
    again = shop.claim(shop.charge, **asked)

    shop.unknown(again)

    (due,) = append.take_due_lookups(10, 60)
    assert (due.claim_id, due.tries) == (claim_id, 1)


def test_a_claim_that_nobody_can_settle_is_asked_about_until_the_horizon_and_stays_unknown(
    shop: Shop,
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, amount=4300)
    claim_id = shop.unknown(answer)
    looks = 0
    while True:
        due = append.take_due_lookups(10, 60)
        if due:
            looked = shop.look(claim_id)
            looks += 1
            if looked.next_at is None:
                break
            shop.past((looked.next_at - queries.clock()).total_seconds() + 0.1)

    assert 40 <= looks <= 56
    assert shop.state(claim_id) is ClaimState.UNKNOWN
    times = [sighting.at for sighting in shop.sightings(claim_id)]
    claim = queries.claim(shop.workspace.pk, claim_id)
    assert claim.window_until is not None
    for before in (timedelta(hours=2), timedelta(minutes=15)):
        near = claim.window_until - before
        assert any(near <= at < near + timedelta(seconds=5) for at in times)
    assert times[-1] - claim.granted_at > timedelta(seconds=20 * WINDOW_SECONDS)
