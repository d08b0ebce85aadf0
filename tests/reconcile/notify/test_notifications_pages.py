"""The page of notifications: rules and channels are made there, and nothing secret comes back."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from effects.core.vocabulary import Role, SightingWord
from effects.models import AuditEntry
from reconcile import cards
from reconcile.models import (
    Notification,
    NotificationAck,
    NotificationChannel,
    NotificationDelivery,
    NotificationRule,
)
from reconcile.notify import limits, saving, sending, tasks, telling
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.reconcile.outbox.receiver import SECRET
from tests.support import desk

pytestmark = pytest.mark.django_db

RULE = {
    "name": "Closing soon",
    "condition": "closing",
    "within": "2 h",
    "repeat": "4 h",
    "zone": "Europe/Berlin",
    "quiet_from": "22:00",
    "quiet_until": "07:00",
    "wake": "1 h",
}
HOOK = "https://hooks.example.com/services/T0/very-secret"


@pytest.fixture
def client(lea: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(tasks, "soon", lambda: None)  # the broker has tests of its own
    client = Client()
    client.force_login(lea)
    return client


def text(response: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_a_lead_makes_a_rule_and_it_is_in_the_audit_log(client, halden, lea):
    channel = a_channel(halden, "email", lea, people=[lea.pk])
    made = client.post("/notifications/rules/new/", RULE | {"channels": [channel.pk]}, follow=True)
    shown = text(made)
    assert "The window closes in less than 2 h" in shown
    assert "22:00 to 07:00 Europe/Berlin; wakes below 1 h" in shown
    rule = NotificationRule.objects.get()
    assert (rule.within_seconds, rule.wake_seconds, rule.version) == (7200, 3600, 1)
    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.user_id) == ("notification_rule.saved", lea.pk)
    assert (entry.after or {})["channels"] == ["By email"]

    address = f"/notifications/rules/{rule.pk}/"
    assert 'value="2 h"' in client.get(address).content.decode()
    client.post(address, RULE | {"within": "1 h", "version": 1})
    assert client.post(address, RULE | {"version": 1}).status_code == 409, "it was saved meanwhile"
    assert (AuditEntry.objects.latest("pk").before or {})["within"] == "2 h"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"within": "2"}, "with its unit"),
        ({"within": ""}, "This condition needs a length of time."),
        ({"within": "31 d"}, "Between 5 m and 30 d."),
        ({"repeat": "1 m"}, "Between 15 m and 7 d."),
        ({"condition": "exposure", "currency": "EUR"}, "Say above which sum"),
        ({"condition": "exposure", "amount": "10"}, "say which"),
        ({"currency": "euro"}, "at most 3 characters"),
        ({"amount_from": "ten"}, "Enter a number."),
        ({"quiet_until": ""}, "a beginning and an end"),
        ({"quiet_until": "22:00"}, "nothing would be quiet"),
        ({"zone": "Mars/Base"}, "Select a valid choice"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(client, wrong, says):
    answer = client.post("/notifications/rules/new/", RULE | wrong)
    assert answer.status_code == 422
    assert says in text(answer)
    assert 'value="22:00"' in answer.content.decode()
    assert not NotificationRule.objects.exists()


def test_the_list_says_what_a_rule_would_tell_now_by_the_deciding_function(
    client, halden, charge, lea
):
    rule = a_rule(halden, lea)
    for _ in range(3):
        desk.a_lost_call(charge)
    assert "Would tell of 3 now" in text(client.get("/notifications/"))
    telling.tell(halden.pk)
    assert "True of 3, all told or acknowledged" in text(client.get("/notifications/"))
    client.post(f"/notifications/rules/{rule.pk}/pause")
    assert "Paused" in text(client.get("/notifications/"))
    assert AuditEntry.objects.latest("pk").act == "notification_rule.paused"


def test_a_secret_goes_in_and_never_comes_out(client, halden):
    made = client.post(
        "/notifications/channels/new/?kind=slack",
        {"name": "Payments room", "url": HOOK, "names_calls": "on"},
        follow=True,
    )
    channel = NotificationChannel.objects.get()
    assert sending.unsealed(channel) == (HOOK, "")
    pages = [made, client.get(f"/notifications/channels/{channel.pk}/")]
    assert all("very-secret" not in page.content.decode() for page in pages)
    assert "https://hooks.example.com:443" in text(made)
    assert "very-secret" not in str(AuditEntry.objects.latest("pk").after)
    address = f"/notifications/channels/{channel.pk}/"
    client.post(address, {"name": "Another name"})
    channel.refresh_from_db()
    assert (channel.name, sending.unsealed(channel)) == ("Another name", (HOOK, ""))
    client.post(f"{address}retire")
    channel.refresh_from_db()
    assert channel.sealed is None, "a secret that is of no use any more is forgotten"


@pytest.mark.parametrize(
    ("kind", "said", "says"),
    [
        ("slack", {"url": "hooks.example.com/very-secret"}, "no web address"),
        ("slack", {"url": "http://hooks.example.com/very-secret"}, "unencrypted"),
        ("slack", {"url": "https://user:very-secret@example.com/"}, "no web address"),
        ("slack", {}, "This field is required"),
        ("webhook", {"url": HOOK, "secret": "very-secret"}, "starts with whsec_"),
        ("webhook", {"url": HOOK, "secret": SECRET.removeprefix("whsec_")}, "starts with whsec_"),
        ("email", {}, "Choose somebody, or give a mailbox."),
        ("email", {"people": ["999999"]}, "Select a valid choice"),
    ],
)
def test_a_channel_that_could_not_work_is_refused_without_telling_a_secret(
    client, lea, kind, said, says
):
    answer = client.post(f"/notifications/channels/new/?kind={kind}", {"name": "x"} | said)
    assert answer.status_code == 422
    assert says in text(answer)
    assert "very-secret" not in answer.content.decode()
    assert not NotificationChannel.objects.exists()


def test_every_limit_is_named(client, halden, lea, monkeypatch):
    monkeypatch.setattr(saving, "RULES_MAX", 1)
    monkeypatch.setattr(saving, "CHANNELS_MAX", 1)
    a_rule(halden, lea)
    a_channel(halden, "email", lea, people=[lea.pk])
    rule = client.post("/notifications/rules/new/", RULE | {"name": "one more"})
    assert "RULES_MAX is 1" in text(rule)
    channel = client.post("/notifications/channels/new/", {"name": "x", "address": "a@example.com"})
    assert "CHANNELS_MAX is 1" in text(channel)
    assert limits.RULES_MAX == 50


def test_a_notification_is_acknowledged_for_what_still_stands(client, halden, charge, lea):
    a_rule(halden, lea)
    claim_id = desk.a_lost_call(charge)
    settled = desk.a_lost_call(charge)
    telling.tell(halden.pk)
    told = Notification.objects.get()
    address = f"/notifications/{told.pk}/"
    assert "2 of 2 still stand as told" in text(client.get(address))
    desk.see(charge, settled, SightingWord.FOUND, counts=True, objects=("pi_1",))
    assert "1 of 2 still stands as told" in text(client.get(address))
    assert client.post(f"{address}acknowledge", {"hours": "9"}).status_code == 422
    done = client.post(f"{address}acknowledge", {"hours": "4"}, follow=True)
    assert "1 call acknowledged; told again in" in text(done)
    (ack,) = NotificationAck.objects.all()
    assert (ack.claim_id, ack.until - ack.at) == (claim_id, timedelta(hours=4))
    assert "End now" in text(client.get("/notifications/"))
    client.post(f"/notifications/acknowledged/{ack.pk}/end")
    assert "Would tell of 1 now" in text(client.get("/notifications/"))


def test_a_viewer_sees_none_of_it_and_support_may_acknowledge_but_not_change(halden, charge, lea):
    a_rule(halden, lea)
    desk.a_lost_call(charge)
    telling.tell(halden.pk)
    told = Notification.objects.get()
    one = Client()
    for role, status in {Role.VIEWER: 403, Role.SUPPORT: 302}.items():
        one.force_login(desk.a_person(halden, role))
        answer = one.post(f"/notifications/{told.pk}/acknowledge", {"hours": "1"})
        assert answer.status_code == status
    shown = text(one.get("/notifications/"))
    assert "not change it. Needs the role Payments lead or Admin." in shown


def test_the_log_is_filtered_and_a_message_that_was_given_up_can_be_sent_again(
    client, halden, charge, lea
):
    channel = a_channel(halden, "email", lea, people=[lea.pk])
    rule = a_rule(halden, lea, channel)
    a_rule(halden, lea, name="Spoken on the page")
    desk.a_lost_call(charge)
    telling.tell(halden.pk)
    NotificationDelivery.objects.update(state="given_up", due_at=None, last_said="No mail server")
    shown = text(client.get("/notifications/?show=given_up"))
    assert "Given up: By email, lea@example.com" in shown
    assert "No mail server is set up here" in shown
    assert "Nothing was told" in text(client.get("/notifications/?show=delivered"))
    assert "Given up" in text(client.get(f"/notifications/?rule={rule.pk}&channel={channel.pk}"))
    kept = NotificationDelivery.objects.get()
    client.post(f"/notifications/messages/{kept.pk}/again")
    kept.refresh_from_db()
    assert (kept.state, kept.tries) == ("waiting", 0)


def test_the_page_asks_as_many_statements_for_many_as_for_few(client, halden, charge, lea):
    def fill(name: str) -> None:
        a_rule(halden, lea, a_channel(halden, "email", lea, name=name, people=[lea.pk]), name=name)
        for _ in range(4):
            desk.a_lost_call(charge)
        cards.fill()
        telling.tell(halden.pk)

    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            client.get("/notifications/")
        return len(seen)

    fill("a")
    asked()
    few = asked()
    for name in "bcd":
        fill(name)
    assert asked() == few
    assert few <= 22
