"""Messages over real connections: mail, chat and signed; tried again, too late, and never lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from effects.core.vocabulary import SightingWord
from ledger import queries
from reconcile.models import Notification, NotificationChannel, NotificationDelivery
from reconcile.notify import sending, tasks, telling
from reconcile.notify.sending import PAUSES
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.reconcile.notify.mail_server import mail_server, use
from tests.reconcile.outbox.receiver import SECRET
from tests.support import desk
from tests.support.stack import ROOT

# Nothing is posted inside a transaction; a test that posts nothing may be one.
pytestmark = pytest.mark.django_db(transaction=True)


def send(delivery_id: int) -> Any:
    return sending.send(delivery_id)


def a_message(halden: Any, charge: Any, lea: Any, *channels: Any) -> NotificationDelivery:
    a_rule(halden, lea, *channels)
    desk.a_lost_call(charge)
    telling.tell_everybody()
    return NotificationDelivery.objects.latest("pk")


@pytest.mark.django_db
def test_a_mail_goes_to_each_person_alone_and_can_be_recognised(halden, charge, lea, settings):
    channel = a_channel(halden, "email", lea, people=[lea.pk], address="team@example.com")
    first = a_message(halden, charge, lea, channel)
    with mail_server() as mailbox:
        use(settings, mailbox)
        sent = [send(one) for one in sending.take_due(10)]
        assert sending.take_due(10) == []
    assert [(one.state, one.last_status, one.begun_at) for one in sent if one] == [
        ("delivered", 250, None)
    ] * 2
    assert [one["To"] for one in mailbox.taken] == ["lea@example.com", "team@example.com"]
    mail = mailbox.taken[1]
    assert mail["Message-ID"].startswith(f"<{first.public_id}@")
    assert mail["Subject"].startswith("[Halden] 1 call closes within 2 d: 149.00 EUR, first at ")
    assert f"/notifications/{first.notification_id}/" in mail.get_payload()


@pytest.mark.django_db
def test_a_mail_server_that_refuses_is_tried_again_and_named(halden, charge, lea, settings):
    message = a_message(halden, charge, lea, a_channel(halden, "email", lea, people=[lea.pk]))
    assert "No mail server is set up here" in send(message.pk).last_said
    with mail_server() as mailbox:
        use(settings, mailbox)
        mailbox.answer = b"451 later"
        refused = send(message.pk)
        assert (refused.state, refused.last_status, refused.tries) == ("waiting", 451, 2)
        assert refused.due_at - queries.clock() > PAUSES[1] - timedelta(seconds=5)
    away = send(message.pk)
    assert "The mail server did not take it" in away.last_said
    channel = NotificationChannel.objects.get()
    assert channel.failing_since is not None
    assert channel.failing_why == away.last_said


@pytest.mark.django_db
def test_who_left_the_workspace_meanwhile_gets_no_mail(halden, charge, lea, settings):
    message = a_message(halden, charge, lea, a_channel(halden, "email", lea, people=[lea.pk]))
    lea.is_active = False
    lea.save()
    with mail_server() as mailbox:
        use(settings, mailbox)
        assert send(message.pk).state == "given_up"
    assert mailbox.taken == []


@pytest.mark.django_db
def test_a_message_that_cannot_be_composed_is_not_tried_for_ever(halden, charge, lea, room):
    message = a_message(halden, charge, lea, a_channel(halden, "slack", lea, url=room.url))
    Notification.objects.update(said={"headline": "broken"})
    sent = send(message.pk)
    assert (sent.state, sent.tries, sent.begun_at) == ("waiting", 1, None)
    assert "could not be composed: KeyError" in sent.last_said


def test_chat_gets_text_that_says_everything_and_no_secret_is_told(halden, charge, lea, room):
    channel = a_channel(halden, "slack", lea, url=room.url)
    message = a_message(halden, charge, lea, channel)
    room.statuses, room.says = [404, 200], f"no such hook: {room.url}"
    refused = send(message.pk)
    assert refused.state == "waiting"
    assert "very-secret" not in json.dumps(refused.log)
    assert "very-secret" not in NotificationChannel.objects.get().failing_why
    assert send(message.pk).state == "delivered"
    assert NotificationChannel.objects.get().failing_since is None
    said = json.loads(room.taken[-1][1])
    assert "1 call closes" in said["text"]
    assert b"very-secret" not in bytes(NotificationChannel.objects.get().sealed or b"")


def test_a_signed_message_is_verified_by_the_standards_own_library(halden, charge, lea, room):
    channel = a_channel(halden, "webhook", lea, url=room.url, secret=SECRET)
    message = a_message(halden, charge, lea, channel)
    assert send(message.pk).state == "delivered"
    headers, body = room.taken[0]
    said = Webhook(SECRET).verify(body, headers)
    assert (said["type"], said["data"]["count"]) == ("notification.closing", 1)
    assert headers["webhook-id"] == message.public_id


def test_an_address_inside_our_own_network_is_reached_only_by_leave(
    halden, charge, lea, room, settings
):
    channel = a_channel(halden, "slack", lea, url=room.url)
    message = a_message(halden, charge, lea, channel)
    settings.COUNTERFOIL_PRIVATE_ORIGINS = []
    assert send(message.pk).state == "waiting"
    assert room.taken == []


@pytest.mark.django_db
def test_a_secret_that_cannot_be_opened_any_more_is_asked_for_anew(
    halden, charge, lea, room, settings
):
    channel = a_channel(halden, "slack", lea, url=room.url)
    message = a_message(halden, charge, lea, channel)
    settings.COUNTERFOIL_SEALING_KEYS = ["another key of this installation" * 2]
    assert "enter it anew" in send(message.pk).last_said


def test_what_would_come_too_late_or_is_settled_meanwhile_is_not_sent(halden, charge, lea, room):
    channel = a_channel(halden, "slack", lea, url=room.url)
    message = a_message(halden, charge, lea, channel)
    room.statuses = [500]
    send(message.pk)
    Notification.objects.update(of_use_until=queries.clock())
    assert send(message.pk).state == "too_late"

    later = a_message_of_another_rule(halden, charge, lea, channel)
    send(later.pk)
    for item in later.notification.items.all():
        desk.see(charge, item.claim_id, SightingWord.FOUND, counts=True, objects=("pi_1",))
    assert send(later.pk).state == "settled"
    assert len(room.taken) == 2


def a_message_of_another_rule(halden: Any, charge: Any, lea: Any, channel: Any) -> Any:
    a_rule(halden, lea, channel, name="Another")
    telling.tell_everybody()
    return NotificationDelivery.objects.latest("pk")


def test_after_the_last_try_it_is_given_up_and_a_person_may_send_it_again(
    halden, charge, lea, room
):
    message = a_message(halden, charge, lea, a_channel(halden, "slack", lea, url=room.url))
    room.statuses = [500]
    for _ in PAUSES:
        send(message.pk)
    sent = send(message.pk)
    assert (sent.state, sent.due_at) == ("given_up", None)
    sending.send_again(sent)
    room.statuses = [200]
    assert [send(one).state for one in sending.take_due(10)] == ["delivered"]


@pytest.mark.django_db
def test_the_tick_decides_and_hands_out_each_message_once(halden, charge, lea, room, monkeypatch):
    handed: list[int] = []
    monkeypatch.setattr(tasks.send, "apply_async", lambda args, **_: handed.append(*args))
    a_rule(halden, lea, a_channel(halden, "slack", lea, url=room.url))
    desk.a_lost_call(charge)
    tasks.tick()
    tasks.tick()
    assert handed == [NotificationDelivery.objects.get().pk]


def test_a_sender_that_is_killed_in_the_middle_costs_at_most_one_copy_and_the_log_says_so(
    halden, charge, lea, room, process_env
):
    channel = a_channel(halden, "webhook", lea, url=room.url, secret=SECRET)
    message = a_message(halden, charge, lea, channel)
    room.go.clear()
    code = (
        "import django; django.setup(); from reconcile.notify import sending; "
        f"sending.send({message.pk})"
    )
    env = process_env | {"COUNTERFOIL_PRIVATE_ORIGINS": room.origin}
    sender = subprocess.Popen([sys.executable, "-c", code], env=env, cwd=ROOT)
    try:
        assert room.begun.wait(30), "the message has arrived, and its answer is still to come"
        assert send(message.pk) is None, "somebody is at it"
    finally:
        os.kill(sender.pid, signal.SIGKILL)
        sender.wait()
    room.go.set()
    kept = NotificationDelivery.objects.get()
    assert (kept.state, kept.log) == ("waiting", [])

    NotificationDelivery.objects.update(begun_at=queries.clock() - sending.LEASE)
    sent = send(message.pk)
    assert sent.state == "delivered"
    assert ["second copy" in line["said"] for line in sent.log] == [True, False]
    assert len({headers["webhook-id"] for headers, _ in room.taken}) == 1
    assert len(room.taken) == 2


def test_a_channel_is_tried_with_a_message_about_nothing(halden, lea, room):
    channel = a_channel(halden, "slack", lea, url=room.url)
    (trial,) = telling.trial(channel)
    assert send(trial.pk).state == "delivered"
    assert "This is about no call." in json.loads(room.taken[0][1])["text"]
