"""Taking a call: a lease of ten minutes that warns others and locks nothing."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger.queries import clock
from reconcile import takes
from reconcile.models import Take
from tests.support.desk import (
    a_keyed_tool,
    a_lost_call,
    a_person,
    a_workspace,
    move_clock,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.SUPPORT, "ana")


@pytest.fixture
def bob(shop: Workspace) -> User:
    return a_person(shop, Role.LEAD, "bob")


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_opening_a_call_does_not_take_it(charge: Tool, ana: User) -> None:
    claim = a_lost_call(charge)
    assert "Nobody has this call" in desk_of(ana).get(f"/calls/{claim}").text
    assert not Take.objects.exists()


def test_a_take_is_seen_by_others_and_warns_who_decides(charge: Tool, ana: User, bob: User) -> None:
    claim = a_lost_call(charge)
    assert "With you" in desk_of(ana).post(f"/calls/{claim}/take", follow=True).text
    his = desk_of(bob)
    assert "With ana" in his.get("/queue/").text
    assert "ana has this call" in his.get(f"/calls/{claim}").text
    assert "ana has taken this call" in his.get(f"/calls/{claim}?dialog=happened").text
    hers = desk_of(ana).get(f"/calls/{claim}?dialog=happened").text
    assert "has taken this call" not in hers


def test_a_take_over_needs_a_reason_and_ends_the_first(charge: Tool, ana: User, bob: User) -> None:
    claim = a_lost_call(charge)
    desk_of(ana).post(f"/calls/{claim}/take")
    his = desk_of(bob)
    assert "needs a reason" in his.post(f"/calls/{claim}/take", follow=True).text
    page = his.post(f"/calls/{claim}/take", {"reason": "The window closes."}, follow=True)
    assert "With you" in page.text
    first = Take.objects.get(taken_by=ana)
    assert (first.ended_how, first.reason, first.ended_by) == (
        "taken_over",
        "The window closes.",
        bob,
    )
    given = desk_of(ana).post(f"/calls/{claim}/give-back", follow=True)
    assert "not with you any more" in given.text


def test_a_take_runs_out_by_the_databases_clock_unless_it_is_kept(
    charge: Tool, ana: User, bob: User
) -> None:
    claim, workspace_id = a_lost_call(charge), charge.workspace_id
    takes.take(workspace_id, claim, user_id=ana.pk)
    move_clock(timedelta(minutes=9))
    takes.take(workspace_id, claim, user_id=ana.pk)
    move_clock(timedelta(minutes=18))
    with pytest.raises(takes.TakenBy):
        takes.take(workspace_id, claim, user_id=bob.pk)
    move_clock(timedelta(minutes=20))
    assert takes.current(workspace_id, claim, clock()) is None
    takes.take(workspace_id, claim, user_id=bob.pk)
    assert Take.objects.get(taken_by=ana).ended_how == "ran_out"


def test_the_tabs_mine_and_untaken_split_the_queue(charge: Tool, ana: User, bob: User) -> None:
    taken, free = a_lost_call(charge), a_lost_call(charge)
    desk = desk_of(ana)
    desk.post(f"/calls/{taken}/take")
    mine, untaken = desk.get("/queue/?view=mine").text, desk.get("/queue/?view=untaken").text
    assert (str(taken) in mine, str(free) in mine) == (True, False)
    assert (str(taken) in untaken, str(free) in untaken) == (False, True)
    assert str(taken) not in desk_of(bob).get("/queue/?view=mine").text


def test_a_viewer_takes_nothing_and_is_told_whom_to_ask(charge: Tool, shop: Workspace) -> None:
    claim = a_lost_call(charge)
    eve = desk_of(a_person(shop, Role.VIEWER, "eve"))
    assert "Needs the role Support" in eve.get(f"/calls/{claim}").text
    assert eve.post(f"/calls/{claim}/take").status_code == 403


def test_another_workspaces_call_cannot_be_taken(charge: Tool) -> None:
    claim = a_lost_call(charge)
    stranger = desk_of(a_person(a_workspace("second"), Role.ADMIN))
    assert stranger.post(f"/calls/{claim}/take").status_code == 404
    assert stranger.post(f"/calls/{claim}/give-back").status_code == 404


def test_an_open_page_keeps_ones_own_take_and_never_takes_by_itself(
    charge: Tool, ana: User, bob: User
) -> None:
    claim = a_lost_call(charge)
    hers, his = desk_of(ana), desk_of(bob)
    assert hers.post(f"/calls/{claim}/keep").status_code == 409
    assert not Take.objects.exists()
    hers.post(f"/calls/{claim}/take")
    first = Take.objects.get().until
    for _ in range(12):  # ten times ten minutes and more: no end is set to it
        move_clock(timedelta(minutes=9) + (Take.objects.get().until - first))
        assert hers.post(f"/calls/{claim}/keep").status_code == 200
    assert Take.objects.get().until - first > timedelta(minutes=100)
    assert his.post(f"/calls/{claim}/keep").status_code == 409
    his.post(f"/calls/{claim}/take", {"reason": "She is ill."})
    assert hers.post(f"/calls/{claim}/keep").status_code == 409
    assert Take.objects.get(ended_at=None).taken_by == bob
