"""A call is given to a person: it stays theirs, everybody sees it, and it locks nothing."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Membership, Tool, Workspace
from reconcile import listing
from reconcile.assign import assignments, tasks
from reconcile.assign.assignments import NobodyToAssign
from reconcile.models import Assignment, Take
from reconcile.views.filters import Filters, View
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def lost(charge: Tool) -> UUID:
    return a_lost_call(charge)


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


def ids(shop: Workspace, view: View, user: User) -> set[UUID]:
    page = listing.queue_page(shop.pk, Filters(view=view, user_id=user.pk))
    return {row.claim_id for row in page.rows}


def test_who_is_given_a_call_finds_it_under_mine_without_having_taken_it(
    shop: Workspace, lost: UUID, ana: User, bob: User
) -> None:
    said = desk_of(bob).post(
        f"/calls/{lost}/assign", {"to": ana.pk, "note": "You know this shop."}, follow=True
    )
    assert "The call is assigned to ana." in said.text
    assert ids(shop, View.MINE, ana) == {lost}
    assert ids(shop, View.MINE, bob) == ids(shop, View.UNTAKEN, bob) == set()
    assert not Take.objects.exists()
    page = desk_of(ana).get(f"/calls/{lost}").text
    assert "You know this shop." in page
    assert "Nobody has this call" in page
    assert "ana" in desk_of(bob).get("/queue/").text


def test_giving_it_to_another_or_to_nobody_keeps_who_had_it_before(
    shop: Workspace, lost: UUID, ana: User, bob: User
) -> None:
    for to, by in ((ana, bob), (bob, bob)):
        assignments.assign(shop.pk, lost, to_id=to.pk, by_id=by.pk)
    assert assignments.unassign(shop.pk, lost, by_id=ana.pk)
    assert not assignments.unassign(shop.pk, lost, by_id=ana.pk)
    assert assignments.current(shop.pk, lost) is None
    kept = [(one.assigned_to, one.ended_by) for one in assignments.earlier(shop.pk, lost)]
    assert kept == [(bob, ana), (ana, bob)]


def test_the_same_again_is_one_assignment(shop: Workspace, lost: UUID, ana: User) -> None:
    first = assignments.assign(shop.pk, lost, to_id=ana.pk, by_id=ana.pk)
    second = assignments.assign(shop.pk, lost, to_id=ana.pk, by_id=ana.pk)
    assert (first.again, second.again) == (False, True)
    assert Assignment.objects.count() == 1


@pytest.mark.parametrize("who", ["a viewer", "somebody else's", "inactive"])
def test_a_call_is_given_to_active_people_here_who_may_take_one(
    shop: Workspace, lost: UUID, ana: User, who: str
) -> None:
    to = {
        "a viewer": lambda: a_person(shop, Role.VIEWER, "vic"),
        "somebody else's": lambda: a_person(a_workspace("other"), Role.LEAD, "ole"),
        "inactive": lambda: a_person(shop, Role.LEAD, "ina"),
    }[who]()
    User.objects.filter(username="ina").update(is_active=False)
    with pytest.raises(NobodyToAssign):
        assignments.assign(shop.pk, lost, to_id=to.pk, by_id=ana.pk)
    said = desk_of(ana).post(f"/calls/{lost}/assign", {"to": to.pk}, follow=True)
    assert "Not assigned" in said.text
    assert not Assignment.objects.exists()


def test_a_viewer_assigns_nothing_and_another_workspaces_call_is_not_found(
    shop: Workspace, lost: UUID, ana: User
) -> None:
    vic = a_person(shop, Role.VIEWER, "vic")
    assert desk_of(vic).post(f"/calls/{lost}/assign", {"to": ana.pk}).status_code == 403
    foreign = a_lost_call(a_keyed_tool(a_workspace("other")))
    assert desk_of(ana).post(f"/calls/{foreign}/assign", {"to": ana.pk}).status_code == 404


def test_the_mail_holds_a_link_and_nothing_of_the_call(
    shop: Workspace, lost: UUID, ana: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(
        tasks, "send_mail", lambda _subject, text, _sender, to: outbox.append((text, to))
    )
    User.objects.filter(pk=ana.pk).update(email="ana@example.org")
    tasks.send(shop.pk, str(lost), ana.pk, bob.pk, "assigned")
    ((text, to),) = outbox
    assert to == ["ana@example.org"]
    assert f"/calls/{lost}" in text
    assert "149" not in text
    assert "cus_" not in text
    Membership.objects.filter(user=ana).delete()
    tasks.send(shop.pk, str(lost), ana.pk, bob.pk, "assigned")
    assert len(outbox) == 1  # who is gone is told nothing any more
