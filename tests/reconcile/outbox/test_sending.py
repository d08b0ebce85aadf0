"""Deliveries over HTTP: signed, tried again, superseded, given up, and every try on record."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from effects.core.vocabulary import SightingWord, Verdict
from ledger import queries
from reconcile.outbox import composing, sending, tasks
from reconcile.outbox.models import AgentAddress, OutboxDelivery
from tests.effects.faulty_server import closed_port
from tests.reconcile.outbox.conftest import SECRET_NAME
from tests.reconcile.outbox.receiver import OTHER_SECRET, SECRET
from tests.reconcile.outbox.test_composing import decide
from tests.support import desk

pytestmark = pytest.mark.django_db(transaction=True)


def send(delivery_id: int) -> Any:
    return sending.send(delivery_id)


@pytest.fixture
def delivery(address, charge, ana):
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    composing.compose()
    return OutboxDelivery.objects.get()


def test_a_message_arrives_signed_and_its_delivery_is_on_record(agent, delivery):
    sent = send(delivery.pk)

    (message_id, body), *others = agent.taken
    assert (others, agent.refused) == ([], 0)
    assert message_id == delivery.message.public_id
    assert body["type"] == "call.closed"
    assert (sent.state, sent.tries, sent.last_status, sent.due_at) == ("delivered", 1, 204, None)
    assert [line["status"] for line in sent.log] == [204]
    assert send(delivery.pk).tries == 1, "what was taken is not sent again"


def test_the_tick_makes_messages_and_hands_out_each_delivery_once(
    agent, address, charge, ana, monkeypatch
):
    handed: list[int] = []
    monkeypatch.setattr(tasks.send, "apply_async", lambda args, **_: handed.append(*args))
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    tasks.tick()
    tasks.tick()
    assert handed == [OutboxDelivery.objects.get().pk]


def test_a_message_that_is_not_taken_is_tried_again_later_and_with_the_same_id(agent, delivery):
    agent.statuses = [500, 302, 204]
    before = queries.clock()

    for number, pause in enumerate(sending.PAUSES[:2], start=1):
        sent = send(delivery.pk)
        assert (sent.state, sent.tries) == ("waiting", number)
        assert pause <= sent.due_at - before <= pause * 1.2 + timedelta(seconds=5)
        assert AgentAddress.objects.get().failing_since is not None
    sent = send(delivery.pk)

    assert (sent.state, [line["status"] for line in sent.log]) == ("delivered", [500, 302, 204])
    assert len({message_id for message_id, _ in agent.taken}) == 1
    assert AgentAddress.objects.get().failing_since is None


def test_a_receiver_may_ask_for_more_time(agent, delivery):
    agent.statuses, agent.headers = [503], {"Retry-After": "900"}
    sent = send(delivery.pk)
    assert sent.due_at - queries.clock() > timedelta(seconds=890)


def test_after_the_last_try_it_is_given_up_and_a_person_may_send_it_again(agent, delivery):
    agent.statuses = [500]
    for _ in range(len(sending.PAUSES)):
        send(delivery.pk)
    sent = send(delivery.pk)
    assert (sent.state, sent.due_at) == ("given_up", None)
    assert sent.tries == len(sending.PAUSES) + 1

    agent.statuses = [204]
    sending.send_again(sent)
    assert sending.take_due(10, 60) == [delivery.pk]
    assert sending.take_due(10, 60) == [], "each is handed to one sender"
    assert send(delivery.pk).state == "delivered"


def test_an_address_that_is_gone_gets_nothing_more(agent, delivery, charge, ana):
    agent.statuses = [410]
    assert send(delivery.pk).state == "given_up"
    assert AgentAddress.objects.get().gone_at is not None
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    composing.compose()
    assert OutboxDelivery.objects.count() == 1


def test_old_news_is_not_sent_after_newer_news_of_the_same_call(agent, address, charge, ana):
    claim_id = desk.a_lost_call(charge)
    decide(charge, claim_id, Verdict.CLOSE, ana)
    composing.compose()
    desk.see(charge, claim_id, SightingWord.FOUND, counts=True, objects=("pi_7",))
    composing.compose()
    old, new = OutboxDelivery.objects.order_by("pk")

    assert send(old.pk).state == "superseded"
    assert send(new.pk).state == "delivered"
    assert [body["type"] for _, body in agent.taken] == ["call.completed"]


def test_two_secrets_sign_while_one_replaces_the_other(agent, delivery, monkeypatch):
    monkeypatch.setenv(SECRET_NAME, f"{OTHER_SECRET} {SECRET}")
    assert send(delivery.pk).state == "delivered"
    assert agent.refused == 0


@pytest.mark.parametrize(
    ("secret", "says"),
    [("", "is not set"), ("whsec_", "no signing secret"), ("whsec_%%%", "no signing secret")],
)
def test_without_a_usable_secret_nothing_leaves(agent, delivery, monkeypatch, secret, says):
    monkeypatch.setenv(SECRET_NAME, secret)
    sent = send(delivery.pk)
    assert (sent.state, sent.last_status, agent.taken, agent.refused) == ("waiting", None, [], 0)
    assert says in sent.last_said


def test_an_address_inside_our_own_network_is_reached_only_by_leave(agent, delivery, settings):
    settings.COUNTERFOIL_PRIVATE_ORIGINS = []
    sent = send(delivery.pk)
    assert (sent.state, agent.taken) == ("waiting", [])
    assert "https://" in sent.last_said


def test_a_server_that_is_away_is_no_answer_and_tried_again(delivery, settings):
    away = f"http://127.0.0.1:{closed_port()}"
    settings.COUNTERFOIL_PRIVATE_ORIGINS = [away]
    AgentAddress.objects.update(url=f"{away}/news")
    sent = send(delivery.pk)
    assert (sent.state, sent.last_status) == ("waiting", None)
    assert "The connection to" in sent.last_said
    assert sent.due_at is not None


def test_a_retired_address_gets_nothing_more(agent, delivery):
    AgentAddress.objects.update(retired_at=queries.clock())
    assert send(delivery.pk).state == "given_up"
    assert agent.taken == []


def test_somebody_may_try_an_address_with_a_message_about_nothing(agent, address):
    delivery = composing.trial_message(address)
    assert send(delivery.pk).state == "delivered"
    ((_, body),) = agent.taken
    assert body["type"] == "address.test"
    assert body["data"] == {"workspace": "halden", "mode": "test"}
