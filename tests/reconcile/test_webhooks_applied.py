"""What webhooks do to calls: by what they say, in any order, once, never against a fresh read."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from effects.core.messages import Complete
from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord
from effects.models import Tool, Workspace
from ledger import append, queries
from reconcile import webhook_apply
from reconcile.customer.kinds import Tell
from reconcile.models import Ghost, WebhookDelivery
from reconcile.queries import call
from reconcile.sandbox.provider.payouts import FAILS_LATE
from reconcile.verdict import verdict
from tests.reconcile.courier import Courier, hire
from tests.reconcile.finding_out import (
    CHARGE,
    LEASE_SECONDS,
    WORKING_SECONDS,
    Shop,
    id_of,
    open_shop,
)
from tests.reconcile.sandbox.customer import options

pytestmark = pytest.mark.django_db(transaction=True)

State = WebhookDelivery.State


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def courier(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Courier:
    return hire(shop, monkeypatch)


def dated(event: dict[str, Any], seconds: float, **changes: Any) -> dict[str, Any]:
    """The same event as one that was made so much later, under an id of its own."""
    usual = {"id": f"{event['id']}{seconds:+.0f}", "created": event["created"] + int(seconds)}
    return {**event, **usual, **changes}


def as_failed(event: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A declined try of the same payment."""
    item = {**event["data"]["object"], "status": "requires_payment_method", "amount_received": 0}
    return dated(event, seconds, type="payment_intent.payment_failed", data={"object": item})


def reads(shop: Shop) -> int:
    """How often the provider was asked by anybody, its events apart."""
    asked = shop.customer.control("GET", "/requests")["requests"]
    return sum(one["operation"] in {"payment_intents.list", "refunds.list"} for one in asked)


# Settling


def test_a_payment_whose_answer_was_lost_is_settled_by_its_webhook(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)

    delivery = courier.bring(courier.event("payment_intent.succeeded"))

    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert (delivery.state, delivery.claims) == (State.APPLIED, [claim_id])
    (sighting,) = shop.sightings(claim_id)
    assert (sighting.word, sighting.counts) == (SightingWord.FOUND, True)
    assert sighting.data["route"] == "Webhook payment_intent.succeeded"
    assert sighting.data["strength"] == "strong"
    assert sighting.data["trigger"] == "webhook"
    assert sighting.data["requested"] == sighting.data["found"]
    raw = queries.payload(queries.claim(shop.workspace.pk, claim_id), sighting.seq, "raw")
    assert raw is not None
    assert raw.body is not None
    assert b"client_secret" not in bytes(raw.body)
    assert reads(shop) == 0, "nobody had to ask"


def test_a_webhook_may_come_before_the_worker_reports(shop: Shop, courier: Courier) -> None:
    answer = shop.claim(shop.charge)
    payment = shop.pay(answer)
    courier.bring(courier.event("payment_intent.succeeded"))
    assert shop.state(id_of(answer)) is ClaimState.COMPLETED

    report = Complete(fence=answer.fence, provider_object=payment, result='{"id": "x"}')
    append.report(shop.workspace.pk, id_of(answer), Outcome.COMPLETED, report)

    assert shop.state(id_of(answer)) is ClaimState.COMPLETED


def test_what_differs_from_what_was_asked_for_waits_for_a_person(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, amount=4300, fault="drop_after_commit")
    claim_id = shop.unknown(answer)

    courier.bring(courier.event("payment_intent.succeeded"))

    (sighting,) = shop.sightings(claim_id)
    assert (sighting.word, sighting.counts) == (SightingWord.FOUND_DIFFERENT, False)
    assert shop.state(claim_id) is ClaimState.UNKNOWN


def test_two_payments_with_one_marker_are_a_conflict(shop: Shop, courier: Courier) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    shop.customer.pay("another key", metadata={"counterfoil": answer.marker})
    claim_id = shop.unknown(answer)

    for event in courier.events("payment_intent.succeeded"):
        courier.bring(event)
    assert shop.state(claim_id) is ClaimState.COMPLETED, "it is read a second time first"
    shop.clock.advance(11)
    courier.sweep()

    assert shop.state(claim_id) is ClaimState.CONFLICTED
    claim = queries.claim(shop.workspace.pk, claim_id)
    named = {o for e in queries.events(claim) for o in e.objects_seen or ()}
    assert len(named) == 2, "both objects are on the page"


def test_an_object_without_our_marker_is_known_by_the_key_that_made_it(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, metadata={})
    claim_id = shop.unknown(answer, marker_sent=False)

    courier.bring(courier.event("payment_intent.succeeded"))

    assert shop.state(claim_id) is ClaimState.COMPLETED


def test_an_event_that_no_request_caused_is_known_by_the_events_before_it_and_is_asked_about(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, metadata={})
    claim_id = shop.unknown(answer, marker_sent=False)
    courier.bring(courier.event("payment_intent.created"))
    automatic = courier.event("payment_intent.succeeded") | {"request": None}

    delivery = courier.bring(automatic)

    assert delivery.claims == [claim_id]
    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert reads(shop) == 1, "the event alone did not settle it"


# Order


def test_the_order_of_arrival_makes_no_difference(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("payment_intent.created", "charge.succeeded", "payment_intent.succeeded")
    for order in itertools.permutations(kinds):
        answer = shop.claim(shop.charge)
        shop.pay(answer, fault="drop_after_commit")
        claim_id = shop.unknown(answer)
        for kind in (*order, *order):
            courier.bring(courier.event(kind))
        assert shop.state(claim_id) is ClaimState.COMPLETED, order
        counted = [e for e in shop.sightings(claim_id) if e.counts]
        assert len(counted) == 1, order


def test_an_old_failure_after_the_success_flips_nothing_and_a_doubtful_one_is_read_afresh(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    succeeded = courier.event("payment_intent.succeeded")

    courier.bring(succeeded)
    courier.bring(as_failed(succeeded, -60))
    assert reads(shop) == 0, "what is older is history"
    courier.bring(succeeded)
    same_second = courier.bring(as_failed(succeeded, 0))

    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert same_second.reads == []
    assert reads(shop) == 1, "two events of one second have no order"
    found = [e for e in shop.sightings(claim_id) if e.word == SightingWord.FOUND]
    assert len(found) == 2, "the event once, and the fresh read"


def test_what_contradicts_a_settled_call_is_read_afresh_and_only_that_read_moves_it(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    claim_id = shop.unknown(answer)
    shop.past(WORKING_SECONDS + 10)
    assert shop.look(claim_id).state is ClaimState.NOT_EXECUTED
    # The payment comes long after everybody was told that there is none.
    shop.pay(answer)
    event = courier.event("payment_intent.succeeded")
    delivery_id = courier.deliver(event).json()["delivery"]

    webhook_apply.apply(delivery_id)
    assert shop.state(claim_id) is ClaimState.NOT_EXECUTED
    assert shop.sightings(claim_id)[-1].counts is False
    courier.deliver({**event, "id": "evt_copy"})
    for due in webhook_apply.due(10):
        webhook_apply.apply(due)
    assert shop.state(claim_id) is ClaimState.NOT_EXECUTED, "a copy confirms nothing"

    courier.sweep()

    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert queries.claim(shop.workspace.pk, claim_id).reason == "told_otherwise"


def test_a_read_that_could_not_be_made_is_made_later(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, metadata={})
    claim_id = shop.unknown(answer, marker_sent=False)
    courier.bring(courier.event("payment_intent.created"))
    automatic = courier.event("payment_intent.succeeded") | {"request": None}
    with monkeypatch.context() as patched:
        patched.setattr(webhook_apply, "_asked", lambda *_: False)
        delivery = courier.bring(automatic)
    assert delivery.reads == [claim_id]

    shop.clock.advance(11)
    courier.sweep()

    delivery.refresh_from_db()
    assert (delivery.reads, delivery.due_at) == ([], None)
    assert shop.state(claim_id) is ClaimState.COMPLETED


def test_one_event_is_one_sighting_however_often_it_is_applied_and_however_it_is_wrapped(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    event = courier.event("payment_intent.succeeded")

    delivery = courier.bring(event)
    other = courier.bring({**event, "pending_webhooks": 7})
    webhook_apply.apply_again(delivery.pk)
    courier.sweep()

    assert (other.state, other.pk != delivery.pk) == (State.APPLIED, True)
    assert len(shop.sightings(claim_id)) == 1


# Late truth


def test_a_payout_that_fails_after_it_was_paid_is_late_truth_that_the_page_says_first(
    shop: Shop, courier: Courier
) -> None:
    tool = Tool.objects.create(
        workspace=shop.workspace,
        connection=shop.charge.connection,
        **{**CHARGE, "name": "pay_out", "lookup_kind": "stripe.payouts"},
    )
    answer = shop.claim(tool)
    params: Any = {
        "amount": 4200,
        "currency": "eur",
        "metadata": {"counterfoil": answer.marker},
        "destination": FAILS_LATE,
    }
    made = shop.customer.stripe.v1.payouts.create(params, options=options(str(answer.key)))
    report = Complete(fence=answer.fence, provider_object=made.id, result="{}", marker_sent=True)
    append.report(shop.workspace.pk, id_of(answer), Outcome.COMPLETED, report)
    for status in ("paid", "failed"):
        until = time.monotonic() + 10
        while shop.customer.stripe.v1.payouts.retrieve(made.id).status != status:
            assert time.monotonic() < until
            shop.customer.advance(seconds=1)
        courier.bring(courier.event(f"payout.{status}") | {"created": int(until)})

    claim = queries.claim(shop.workspace.pk, id_of(answer))
    assert (claim.state, claim.reason) == (ClaimState.CONFLICTED, "told_otherwise")
    sightings = shop.sightings(id_of(answer))
    assert [e.word for e in sightings] == [
        SightingWord.FOUND,
        SightingWord.FOUND,
        SightingWord.FOUND_DIFFERENT,
        SightingWord.FOUND_DIFFERENT,
    ], "each as an event, and as it was read afresh"
    assert [e.counts for e in sightings] == [False, True, False, True], "a fresh read moves it"
    assert sightings[-1].data["rule"] == "no_longer_so"
    box = verdict(call(shop.workspace.pk, id_of(answer)).situation)
    assert "it did not last" in box.says
    assert box.kind is Tell.UNDONE
    assert box.cites == (sightings[-1].seq,)


def test_that_an_object_was_made_says_nothing_once_more_is_known(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, amount=4300, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    courier.bring(courier.event("payment_intent.succeeded"))

    courier.bring(courier.event("payment_intent.created"))

    assert [e.word for e in shop.sightings(claim_id)] == [SightingWord.FOUND_DIFFERENT]


# Whose event it is


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"livemode": True}, "live mode", id="the other mode"),
        pytest.param({"account": "acct_other"}, "acct_other", id="another account"),
    ],
)
def test_an_event_of_another_mode_or_account_proves_nothing(
    shop: Shop, courier: Courier, changes: dict[str, Any], says: str
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)

    delivery = courier.bring(courier.event("payment_intent.succeeded") | changes)

    assert delivery.state == State.MISPLACED
    assert says in delivery.note
    assert shop.state(claim_id) is ClaimState.UNKNOWN
    assert not shop.sightings(claim_id)


def test_a_call_of_another_workspace_is_not_reached(shop: Shop, courier: Courier) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    event = courier.event("payment_intent.succeeded")
    elsewhere = Workspace.objects.create(
        name="Else", slug="elsewhere", mode="test", created_at=queries.clock()
    )
    connection = courier.address.connection
    connection.workspace = elsewhere
    connection.save()

    delivery = courier.bring(event)

    assert delivery.state == State.UNMATCHED
    assert not shop.sightings(id_of(answer))


def test_a_call_that_is_asked_at_another_connection_is_not_settled_here(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    shop.charge.connection = shop.transfer.connection
    shop.charge.save()

    delivery = courier.bring(courier.event("payment_intent.succeeded"))

    assert delivery.state == State.MISPLACED
    assert not shop.sightings(id_of(answer))


def test_an_event_of_nobodys_is_tried_for_a_while_and_stays_to_be_seen(
    shop: Shop, courier: Courier
) -> None:
    shop.customer.pay("the till's own", metadata={})
    courier.bring(courier.event("payment_intent.succeeded"))
    for _ in range(10):
        shop.clock.advance(7 * 3600)
        courier.sweep()

    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.due_at) == (State.UNMATCHED, None)
    assert delivery.tries == len(webhook_apply.UNMATCHED_PAUSES) + 1
    (ghost,) = Ghost.objects.all()
    assert (ghost.object_id, ghost.status) == (delivery.object_id, "succeeded")


def test_an_event_of_a_kind_that_no_tool_makes_is_nobodys_ghost(
    shop: Shop, courier: Courier
) -> None:
    shop.customer.pay("the till's own", metadata={})
    event = courier.event("payment_intent.succeeded")
    event["data"]["object"]["object"] = "charge"
    courier.bring(event)
    for _ in range(6):
        shop.clock.advance(7 * 3600)
        courier.sweep()

    assert WebhookDelivery.objects.get().due_at is None
    assert not Ghost.objects.exists()


def test_an_event_may_come_before_its_call_is_known(shop: Shop, courier: Courier) -> None:
    marker = f"cf_{'0' * 32}_1"
    shop.customer.pay("mirrored", metadata={"counterfoil": marker})
    assert courier.bring(courier.event("payment_intent.succeeded")).state == State.UNMATCHED
    answer = shop.claim(shop.charge)
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE reconcile_webhookdelivery SET body = %s", [_named(courier, answer)])

    shop.clock.advance(6)
    courier.sweep()

    assert WebhookDelivery.objects.get().claims == [id_of(answer)]


def _named(courier: Courier, answer: Any) -> bytes:
    body = bytes(WebhookDelivery.objects.get().body)
    return body.replace(b"cf_" + b"0" * 32, b"cf_" + id_of(answer).hex.encode())


def test_an_event_of_another_kind_of_object_only_makes_it_time_to_ask(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    now = queries.clock()
    append.schedule_lookup(claim_id, None, known_at=now)
    assert not append.take_due_lookups(10, 60)

    courier.bring(courier.event("charge.succeeded"))

    assert [due.claim_id for due in append.take_due_lookups(10, 60)] == [claim_id]
    assert not shop.sightings(claim_id)


# At the same time


def together(*acts: Callable[[], Any]) -> list[BaseException]:
    """Lets all begin at once, each on a connection of its own; answers what went wrong."""
    gate = threading.Barrier(len(acts))
    faults: list[BaseException] = []

    def run(act: Callable[[], Any]) -> None:
        try:
            gate.wait(10)
            act()
        except BaseException as error:  # noqa: BLE001 - the test asks for it.
            faults.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


@pytest.mark.case("P13")
def test_webhook_and_worker_finish_at_the_same_time_and_there_is_one_effect(
    shop: Shop, courier: Courier
) -> None:
    for _ in range(6):
        answer = shop.claim(shop.charge)
        payment = shop.pay(answer)
        delivery_id = courier.deliver(courier.event("payment_intent.succeeded")).json()["delivery"]
        report = Complete(fence=answer.fence, provider_object=payment, result='{"id": "x"}')
        hear = partial(webhook_apply.apply, delivery_id)
        tell = partial(append.report, shop.workspace.pk, id_of(answer), Outcome.COMPLETED, report)

        assert together(hear, tell, hear, tell) == []

        claim = queries.claim(shop.workspace.pk, id_of(answer))
        kinds = [event.kind for event in queries.events(claim)]
        assert (claim.state, claim.object) == (ClaimState.COMPLETED, payment)
        assert kinds.count(EventKind.SIGHTING) == 1
        assert kinds.count(EventKind.REPORTED) == 1


def test_a_silent_workers_call_is_settled_by_a_webhook(shop: Shop, courier: Courier) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    shop.past(LEASE_SECONDS + 1)

    courier.bring(courier.event("payment_intent.succeeded"))

    assert shop.state(id_of(answer)) is ClaimState.COMPLETED


def test_applied_deliveries_are_forgotten_and_others_are_not(shop: Shop, courier: Courier) -> None:
    shop.pay(shop.claim(shop.charge))
    courier.bring(courier.event("payment_intent.succeeded"))
    shop.customer.pay("nobody's", metadata={})
    courier.bring(courier.event("payment_intent.succeeded"))
    assert webhook_apply.forget_old() == 0

    shop.clock.advance(webhook_apply.KEPT_DAYS * 86_400 + 10)

    assert webhook_apply.forget_old() == 1
    assert WebhookDelivery.objects.get().state == State.UNMATCHED
