"""From open calls to a notification on record: once, in one transaction, whoever else looks."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from effects.core.vocabulary import SightingWord, Verdict
from effects.models import Tool
from ledger import append, queries
from reconcile import cards, takes
from reconcile.late import alerts
from reconcile.models import (
    AskingEnded,
    Notification,
    NotificationAck,
    NotificationDelivery,
    NotificationItem,
    NotificationRule,
)
from reconcile.notify import acks, telling
from reconcile.sandbox.seed import seed
from reconcile.sandbox.tools import DEMO_BOUNDS, ToolName
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.support import desk

pytestmark = pytest.mark.django_db


def told() -> list[Notification]:
    telling.tell_everybody()
    return list(Notification.objects.order_by("pk"))


def test_calls_of_one_rule_are_told_together_and_once(halden, charge, lea):
    rule = a_rule(halden, lea, a_channel(halden, "email", lea, people=[lea.pk]))
    first, second = desk.a_lost_call(charge), desk.a_lost_call(charge)
    desk.complete(charge, desk.a_call(charge))

    (made,) = told()

    items = list(made.items.order_by("place"))
    assert {one.claim_id for one in items} == {first, second}
    claim = queries.claim(halden.pk, first)
    assert items[0].deadline == queries.safe_retry_until(claim), "the window less the margin"
    assert made.of_use_until == max(one.deadline for one in items if one.deadline)
    assert (made.rule, made.why) == (rule, "true")
    assert made.said["headline"] == "2 calls close within 2 d: 298.00 EUR"
    assert [one.to for one in made.deliveries.all()] == ["lea@example.com"]
    assert told() == [made], "and not again"

    third = desk.a_lost_call(charge)
    assert [one.claim_id for one in told()[-1].items.all()] == [third]


def test_it_is_told_again_when_the_repeat_is_due_and_not_once_it_is_settled(halden, charge, lea):
    a_rule(halden, lea)
    kept, settled = desk.a_lost_call(charge), desk.a_lost_call(charge)
    assert len(told()) == 1
    desk.see(charge, settled, SightingWord.FOUND, counts=True, objects=("pi_1",))
    desk.move_clock(timedelta(hours=4, minutes=1))
    assert [one.claim_id for one in told()[-1].items.all()] == [kept]


def test_quiet_hours_hold_it_back_to_their_end(halden, charge, lea):
    now = queries.clock()
    quiet = {"quiet_from": (now - timedelta(hours=1)).time(), "zone": "UTC"}
    quiet["quiet_until"] = (now + timedelta(hours=2)).time()
    a_rule(halden, lea, condition="untaken", within_seconds=1, **quiet)
    desk.a_lost_call(charge)
    desk.move_clock(timedelta(minutes=5))
    assert told() == []
    desk.move_clock(timedelta(hours=2, minutes=1))
    assert len(told()) == 1


def test_a_window_that_closes_in_quiet_hours_is_told_at_once(halden, charge, lea):
    rule = a_rule(halden, lea, quiet_from=time(0), quiet_until=time(23, 59, 59), zone="UTC")
    desk.a_lost_call(charge)
    desk.move_clock(timedelta(hours=23, minutes=30))  # a quarter of an hour is left or less
    (made,) = told()
    assert made.why == "closes_first"
    assert made.said["quiet_until"]
    assert telling.state_of(halden.pk, [rule])[rule.pk].held == ()


def test_a_call_that_somebody_took_is_not_untaken_until_they_give_it_back(halden, charge, lea):
    rule = a_rule(halden, lea, condition="untaken", within_seconds=600)
    claim_id = desk.a_lost_call(charge)
    takes.take(halden.pk, claim_id, user_id=lea.pk)
    desk.move_clock(timedelta(minutes=9))
    assert told() == []
    desk.move_clock(timedelta(minutes=19))  # the take ran out after ten minutes
    assert told() == []
    desk.move_clock(timedelta(minutes=21))
    (made,) = told()
    assert [one.claim_id for one in made.items.all()] == [claim_id]
    assert len(telling.state_of(halden.pk, [rule])[rule.pk].true_of) == 1


def test_who_was_told_otherwise_is_told_until_somebody_marks_it(halden, charge, lea):
    rule = a_rule(halden, lea, condition="otherwise", within_seconds=None)
    claim_id = desk.a_lost_call(charge)
    claim = queries.claim(halden.pk, claim_id)
    decision = append.NewDecision(
        verdict=Verdict.CLOSE,
        claim_version=claim.version,
        reason="because",
        user_id=lea.pk,
        hold_seconds=0,
    )
    append.decide(halden.pk, claim_id, decision)
    assert told() == []
    desk.see(charge, claim_id, SightingWord.FOUND, counts=True, objects=("pi_7",))
    alerts.raise_due(10)
    (made,) = told()
    assert [one.claim_id for one in made.items.all()] == [claim_id]
    for alert in alerts.alerts_since(halden.pk):
        alerts.mark_seen(halden.pk, alert.pk, lea.pk)
    assert telling.state_of(halden.pk, [rule])[rule.pk].true_of == ()


def test_calls_about_which_asking_has_ended_are_told(halden, charge, lea):
    a_rule(halden, lea, condition="lookups", within_seconds=None)
    claim_id = desk.a_lost_call(charge)
    AskingEnded.objects.create(
        claim_id=claim_id, workspace=halden, ended_at=queries.clock(), why="the horizon"
    )
    (made,) = told()
    assert made.said["headline"] == "Asking has ended about 1 call"


def test_an_acknowledgement_silences_these_calls_ends_and_can_be_ended(halden, charge, lea):
    a_rule(halden, lea)
    claim_id = desk.a_lost_call(charge)
    (made,) = told()
    items = list(made.items.all())
    done = acks.acknowledge(made, items, user_id=lea.pk, wish=timedelta(hours=6))
    assert (done.made, done.too_late) == (1, 0)

    other = desk.a_lost_call(charge)
    assert [one.claim_id for one in told()[-1].items.all()] == [other], "it hides no other call"
    desk.move_clock(timedelta(hours=5))  # the repeat is due for the other one alone
    assert [one.claim_id for one in told()[-1].items.all()] == [other]
    desk.move_clock(timedelta(hours=6, minutes=1))
    assert [one.claim_id for one in told()[-1].items.all()] == [claim_id], "it ended"

    again = acks.acknowledge(told()[-1], items, user_id=lea.pk, wish=timedelta(hours=24))
    until = NotificationAck.objects.latest("pk").until
    assert items[0].deadline is not None
    assert again.until == until == items[0].deadline - timedelta(minutes=30)
    assert acks.end(halden.pk, NotificationAck.objects.latest("pk").pk, user_id=lea.pk)
    assert [one.claim_id for one in told()[-1].items.all()] == [claim_id]


def test_in_the_last_half_hour_nothing_is_acknowledged(halden, charge, lea):
    a_rule(halden, lea)
    desk.a_lost_call(charge)
    desk.move_clock(timedelta(hours=23, minutes=35))
    (made,) = told()
    done = acks.acknowledge(made, list(made.items.all()), user_id=lea.pk, wish=timedelta(hours=1))
    assert (done.made, done.too_late, NotificationAck.objects.count()) == (0, 1, 0)


def test_paused_and_retired_rules_and_retired_channels_tell_nobody(halden, charge, lea):
    now = queries.clock()
    for name, changes in {"p": {"paused_at": now}, "r": {"retired_at": now}}.items():
        rule = a_rule(halden, lea, name=name)
        type(rule).objects.filter(pk=rule.pk).update(**changes)
    gone = a_channel(halden, "email", lea, people=[lea.pk])
    type(gone).objects.update(retired_at=now)
    a_rule(halden, lea, gone, name="spoken")
    desk.a_lost_call(charge)
    (made,) = told()
    assert (made.said["rule"], made.deliveries.count()) == ("spoken", 0)


def test_a_look_takes_as_many_statements_for_many_calls_as_for_one(halden, charge, lea):
    channel = a_channel(halden, "email", lea, people=[lea.pk])
    for number in range(3):
        a_rule(halden, lea, channel, name=f"rule {number}")

    def asked() -> int:
        cards.fill()
        with CaptureQueriesContext(connection) as seen:
            telling.tell_everybody()
        return len(seen)

    desk.a_lost_call(charge)
    asked()
    desk.a_lost_call(charge)
    one = asked()
    for _ in range(12):
        desk.a_lost_call(charge)
    assert asked() == one
    quiet = asked()
    assert quiet <= 12, "and a look that finds nothing new is cheap"
    assert NotificationItem.objects.count() == 3 * 14


def test_old_notifications_are_forgotten_once_nothing_more_happens_to_them(halden, charge, lea):
    a_rule(halden, lea)
    desk.a_lost_call(charge)
    told()
    desk.move_clock(timedelta(days=91))
    telling.forget_old()
    assert not Notification.objects.exists()


def test_the_demos_rule_tells_on_the_desk_and_sends_nothing_out(db, tmp_path):
    seed(tmp_path, "http://127.0.0.1:1", DEMO_BOUNDS)
    shop = seed(tmp_path, "http://127.0.0.1:1", DEMO_BOUNDS).workspace
    rule = NotificationRule.objects.get(workspace=shop)
    assert list(rule.channels.all()) == []
    desk.a_lost_call(Tool.objects.get(workspace=shop, name=ToolName.CHARGE_CARD))
    rule.within_seconds = 48 * 3600
    rule.save()
    assert [made.deliveries.count() for made in told()] == [0]
    rule.retired_at = queries.clock()
    rule.save()
    seed(tmp_path, "http://127.0.0.1:1", DEMO_BOUNDS)
    assert NotificationRule.objects.count() == 1, "one that was retired does not come back"


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_look_at_once_tell_it_once(halden, charge, lea):
    """One holds the workspace: the other one does not wait for it, and tells nothing."""
    import threading  # noqa: PLC0415 - this test alone has a second worker

    a_rule(halden, lea, a_channel(halden, "email", lea, people=[lea.pk]))
    desk.a_lost_call(charge)
    cards.fill()  # so that neither waits for the other's
    counted: list[Any] = []

    def other() -> None:
        counted.append(telling.tell_everybody())
        connection.close()

    with transaction.atomic():
        assert telling.tell(halden.pk) == 1
        worker = threading.Thread(target=other)
        worker.start()
        worker.join(10)
    assert counted == [0]
    assert telling.tell_everybody() == 0
    assert NotificationDelivery.objects.count() == 1
