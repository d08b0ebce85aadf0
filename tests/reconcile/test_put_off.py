"""Calls that are put off, calls that wait for a second person, and where the queue shows them."""

from datetime import timedelta

import pytest
from django.test import Client

from effects.core.vocabulary import Role, SightingWord
from ledger import append
from reconcile import decide as deciding
from reconcile import listing, queries, snoozes
from reconcile.actions import ActionName
from reconcile.decide import Asked, Form
from reconcile.models import Snooze
from reconcile.views.filters import Filters, View
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def charge(halden):
    return desk.a_keyed_tool(halden)


@pytest.fixture
def ana(halden):
    return desk.a_person(halden, Role.SUPPORT, "ana")


@pytest.fixture
def lost(charge):
    return desk.a_lost_call(charge)


def put_off(tool, claim_id, user, role=Role.SUPPORT):
    return snoozes.snooze(
        tool.workspace_id, claim_id, user_id=user.pk, role=role, reason="Tomorrow."
    )


def listed(tool, view):
    page = listing.queue_page(tool.workspace_id, Filters(view=view))
    assert page.figures.counts[view] == len(page.rows)
    return [row.claim_id for row in page.rows]


def test_a_snoozed_call_stands_under_its_own_tab_and_its_money_stays_at_risk(charge, ana, lost):
    put_off(charge, lost, ana)
    assert (listed(charge, View.OPEN), listed(charge, View.SNOOZED)) == ([], [lost])
    figures = listing.queue_page(charge.workspace_id, Filters()).figures
    assert [str(sum_) for sum_ in figures.at_risk] == ["149.00 EUR"]


@pytest.mark.parametrize(
    ("word", "back"),
    [
        pytest.param(SightingWord.ABSENT, True, id="an answer"),
        pytest.param(SightingWord.PENDING, True, id="pending"),
        pytest.param(SightingWord.LOOKUP_FAILED, False, id="no answer"),
        pytest.param(SightingWord.RATE_LIMITED, False, id="asked to wait"),
    ],
)
def test_an_answer_brings_it_back_at_once_and_a_failed_look_up_does_not(
    charge, ana, lost, word, back
):
    put_off(charge, lost, ana)
    desk.see(charge, lost, word)
    assert listed(charge, View.OPEN) == ([lost] if back else [])
    asleep = snoozes.current(queries.call(charge.workspace_id, lost))
    assert (asleep is None) is back


def test_it_comes_back_by_itself_and_by_hand(charge, ana, lost):
    put_off(charge, lost, ana)
    assert snoozes.wake(charge.workspace_id, lost, user_id=ana.pk)
    assert not snoozes.wake(charge.workspace_id, lost, user_id=ana.pk)
    assert listed(charge, View.OPEN) == [lost]
    put_off(charge, lost, ana)
    put_off(charge, lost, ana)
    assert Snooze.objects.filter(ended_at=None).count() == 1
    desk.move_clock(timedelta(hours=24))
    assert listed(charge, View.OPEN) == [lost]


def test_who_may_not_snooze_snoozes_nothing(charge, halden, lost):
    viewer = desk.a_person(halden, Role.VIEWER)
    assert put_off(charge, lost, viewer, Role.VIEWER).reason.startswith("Needs the role")
    assert not Snooze.objects.exists()


@pytest.mark.parametrize("settled", [False, True], ids=["undecided", "to be reopened"])
def test_a_request_waits_under_its_tab_even_where_the_call_is_settled(
    halden, charge, ana, lost, settled
):
    desk.a_person(halden, Role.LEAD)
    if settled:
        desk.see(charge, lost, SightingWord.FOUND, objects=("pi_1",), counts=True)
    call = queries.call(charge.workspace_id, lost)
    token = deciding.token_for(call, ana.pk)
    screen = deciding.read_token(token, claim_id=lost, user_id=ana.pk)
    assert screen is not None
    form = Form(
        action=ActionName.REOPEN if settled else ActionName.CLOSE,
        screen=screen,
        reason="Wrong account.",
        ask_second=True,
    )
    assert listed(charge, View.WAITING) == []
    result = deciding.decide(charge.workspace_id, form, role=Role.SUPPORT)
    assert isinstance(result, Asked), result
    assert listed(charge, View.WAITING) == [lost]
    append.note(charge.workspace_id, lost, ana.pk, "It stays listed although it is out of date.")
    assert listed(charge, View.WAITING) == [lost]
    desk.move_clock(timedelta(hours=25))
    assert listed(charge, View.WAITING) == []


def test_the_tabs_are_on_the_page(charge, ana, lost):
    put_off(charge, lost, ana)
    client = Client()
    client.force_login(ana)
    page = client.get("/queue/?view=snoozed").content.decode()
    assert "Snoozed" in page
    assert "Waiting for second person" in page
    assert str(lost)[-8:] in page
