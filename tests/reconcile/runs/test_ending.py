"""A status that never settles: asking ends once, says so, and a person can have it begin anew."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core import mail

from effects.core.vocabulary import ClaimState, Role
from ledger import append, queries
from reconcile.models import AskingEnded, WebhookDelivery
from reconcile.runs import ending
from tests.reconcile.finding_out import Shop
from tests.reconcile.runs.conftest import Runs
from tests.support.desk import a_person

pytestmark = pytest.mark.django_db(transaction=True)

DAY_SECONDS = 24 * 3600


def never_settles(shop: Shop) -> UUID:
    """A call about which the provider never says anything new, asked about for three days."""
    shop.charge.horizon_days = 3
    shop.charge.lookup = {}  # an absence proves nothing without the marker in every request
    shop.charge.save()
    claim_id = shop.unknown(shop.claim(shop.charge), marker_sent=False)
    shop.past(4 * DAY_SECONDS)
    shop.look(claim_id)
    return claim_id


@pytest.mark.case("P18")
def test_a_status_that_never_settles_is_asked_about_no_more_and_stays_unknown(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "reconcile.runs.ending"):
        claim_id = never_settles(shop)
        shop.look(claim_id, trigger="person", user_id=1)
    shop.past(30 * DAY_SECONDS)

    assert shop.state(claim_id) is ClaimState.UNKNOWN
    assert append.take_due_lookups(10, 30) == [], "nobody keeps polling"
    ended = ending.of_call(shop.workspace.pk, claim_id)
    assert ended is not None
    assert (ended.open, ended.why) == (
        True,
        "It was asked about for 3 days, the tool's horizon.",
    )
    assert [one.claim_id for one in ending.listed(shop.workspace.pk)] == [claim_id]
    said = [one for one in caplog.records if one.name == "reconcile.runs.ending"]
    assert len(said) == 1, "one alert"


@pytest.mark.case("P18")
def test_a_person_restarts_it_with_a_new_horizon_and_a_new_budget(shop: Shop) -> None:
    claim_id = never_settles(shop)
    person = a_person(shop.workspace)

    assert ending.restart(shop.workspace.pk, claim_id, user_id=person.pk)
    assert not ending.restart(shop.workspace.pk, claim_id, user_id=person.pk), "it goes on already"
    assert [one.claim_id for one in append.take_due_lookups(10, 30)] == [claim_id]
    looked = shop.look(claim_id)

    assert looked.next_at is not None
    assert looked.next_at - queries.clock() < timedelta(seconds=10), "soon, as at the beginning"
    assert ending.listed(shop.workspace.pk) == []
    shop.past(2 * DAY_SECONDS)
    assert shop.look(claim_id).next_at is not None
    shop.past(2 * DAY_SECONDS)
    assert shop.look(claim_id).next_at is None
    assert len(ending.listed(shop.workspace.pk)) == 1


# Where mail is set up, the product's settings name its server; here Django's own box takes it.
@pytest.mark.filterwarnings("ignore::django.utils.deprecation.RemovedInDjango2028Warning")
@pytest.mark.case("P18")
def test_people_who_may_decide_are_mailed_once_whatever_the_number_of_calls(
    shop: Shop, settings: LazySettings
) -> None:
    settings.COUNTERFOIL_MAIL = True
    person, viewer = a_person(shop.workspace), a_person(shop.workspace, Role.VIEWER)
    User.objects.filter(pk=person.pk).update(email="ana@example.org")
    User.objects.filter(pk=viewer.pk).update(email="ben@example.org")
    claim_id = never_settles(shop)
    never_settles(shop)

    sent = [ending.tell(), ending.tell()]
    (one,) = mail.outbox
    ending.restart(shop.workspace.pk, claim_id, user_id=person.pk)
    shop.past(4 * DAY_SECONDS)
    shop.look(claim_id)

    assert (sent, ending.tell()) == ([True, False], True), "a new end is told anew"
    assert (one.to, one.bcc) == ([], ["ana@example.org"])
    assert "2 calls of Halden" in one.body
    assert str(claim_id) not in one.body


def test_a_spent_budget_ends_it_too_and_says_so(shop: Shop) -> None:
    shop.charge.lookups_max, shop.charge.window_seconds, shop.charge.lookup = 2, None, {}
    shop.charge.save()
    claim_id = shop.unknown(shop.claim(shop.charge), marker_sent=False)
    shop.past(1000)

    first, second = shop.look(claim_id), shop.look(claim_id)

    assert first.next_at is not None
    assert second.next_at is None
    ended = ending.of_call(shop.workspace.pk, claim_id)
    assert ended is not None
    assert "2 times" in ended.why


def test_what_is_settled_has_not_ended(shop: Shop, runs: Runs) -> None:
    shop.look(runs.paid())

    assert not AskingEnded.objects.exists()


def test_a_new_attempt_has_the_call_asked_about_again(shop: Shop) -> None:
    claim_id = never_settles(shop)
    row = queries.claim(shop.workspace.pk, claim_id)
    AskingEnded.objects.filter(claim_id=claim_id).update(ended_at=row.granted_at)
    shop.charge.horizon_days = 30
    shop.charge.save()

    shop.look(claim_id)

    assert ending.listed(shop.workspace.pk) == []


@pytest.mark.parametrize(
    ("state", "hours", "arrive"),
    [("applied", 1, True), ("applied", 25, False), ("unreadable", 1, False)],
)
def test_webhooks_first_and_polling_second(
    shop: Shop, runs: Runs, state: str, hours: int, *, arrive: bool
) -> None:
    claim_id, now = runs.lost(), queries.clock()
    WebhookDelivery.objects.create(
        connection_id=shop.charge.connection_id or 0,
        event_id="evt_1",
        type="charge.succeeded",
        body=b"{}",
        digest=b"1",
        received_at=now - timedelta(hours=hours),
        last_received_at=now,
        state=state,
    )

    looked = shop.look(claim_id)

    assert looked.next_at is not None
    pause = (looked.next_at - queries.clock()).total_seconds()
    assert (10 < pause <= 15) is arrive
    assert (pause <= 5) is not arrive
