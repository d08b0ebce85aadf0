"""Who is let in, who changes roles, who is let go; and what a link to set a password opens."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import DatabaseError, transaction
from django.test import Client

from effects import people
from effects.access import ABILITIES, ABILITY_WORDS, Ability, whom
from effects.core.vocabulary import Role
from effects.models import DeskSession, MemberChange, Membership, Workspace
from effects.people import Act, refusal
from tests.support.desk import a_person, a_workspace

pytestmark = pytest.mark.django_db

NEW_PASSWORD = "a quite long new password"


@pytest.fixture(autouse=True)
def _no_tries_yet() -> None:
    cache.clear()


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def ilse(shop: Workspace) -> User:
    return a_person(shop, Role.ADMIN, "ilse")


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.SUPPORT, "ana")


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def member(workspace: Workspace, user: User) -> Membership:
    return Membership.objects.get(workspace=workspace, user=user)


def link_in(page: str) -> str:
    found = re.search(r'id="join-link"[^>]*>http://testserver([^<]+)<', page)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("is_own", "before", "after", "admins", "says"),
    [
        pytest.param(False, Role.SUPPORT, Role.LEAD, 1, "", id="an admin promotes a colleague"),
        pytest.param(False, Role.ADMIN, Role.VIEWER, 2, "", id="one admin of two is demoted"),
        pytest.param(False, Role.ADMIN, Role.VIEWER, 1, "last admin", id="the last admin stays"),
        pytest.param(False, Role.ADMIN, None, 1, "last admin", id="the last admin is not let go"),
        pytest.param(True, Role.ADMIN, Role.VIEWER, 1, "last admin", id="nor gives it up"),
        pytest.param(True, Role.ADMIN, Role.VIEWER, 2, "", id="one of two may give it up"),
        pytest.param(True, Role.SUPPORT, Role.ADMIN, 1, "raises", id="nobody raises themselves"),
        pytest.param(True, Role.ADMIN, None, 2, "themselves", id="nobody lets themselves go"),
    ],
)
def test_who_may_be_changed(
    *, is_own: bool, before: Role, after: Role | None, admins: int, says: str
) -> None:
    said = refusal(is_own=is_own, before=before, after=after, admins=admins)
    assert (says in said) if says else not said


def test_every_ability_has_words_on_the_page() -> None:
    assert set(ABILITY_WORDS) == set(ABILITIES) == set(Ability)


def test_somebody_new_sets_a_password_by_a_link_that_works_once(
    shop: Workspace, ilse: User
) -> None:
    data = {"login": "bob@example.org", "name": "Bob", "role": "lead"}
    page = desk_of(ilse).post("/people/add/", data).text
    link = link_in(page)
    assert "no-store" in desk_of(ilse).post("/people/add/", data)["Cache-Control"]
    bob = Client()
    form = bob.get(link, follow=True)
    address = form.redirect_chain[-1][0]
    assert link not in address
    sent = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert bob.post(address, {**sent, "new_password2": "other"}).status_code == 422
    assert bob.post(address, sent).status_code == 302
    assert "Payments lead" in bob.get("/people/").text
    assert "opens nothing" in Client().get(link, follow=True).text
    kinds = [change.kind for change in people.changes(shop)]
    assert kinds == ["password", "added"]


def test_a_newer_link_makes_the_older_one_void(shop: Workspace, ilse: User) -> None:
    desk = desk_of(ilse)
    first = link_in(desk.post("/people/add/", {"login": "bob", "role": "viewer"}).text)
    bob = member(shop, User.objects.get(username="bob"))
    second = link_in(desk.post(f"/people/{bob.pk}/link/").text)
    assert "opens nothing" in Client().get(first, follow=True).text
    assert "You sign in as bob" in Client().get(second, follow=True).text


def test_an_account_of_another_workspace_is_let_in_and_no_link_opens_it(
    shop: Workspace, ilse: User
) -> None:
    other = a_workspace("second")
    bob = a_person(other, Role.ADMIN, "bob")
    desk = desk_of(ilse)
    answer = desk.post("/people/add/", {"login": "BOB", "role": "viewer"}, follow=True)
    assert "existed already" in answer.text
    assert "other workspaces too" in answer.text
    refused = desk.post(f"/people/{member(shop, bob).pk}/link/", follow=True)
    assert "No link was made" in refused.text
    assert "join-link" not in refused.text


def test_who_is_deactivated_is_out_at_once_and_can_be_let_in_again(
    shop: Workspace, ilse: User, ana: User
) -> None:
    her_desk, his = desk_of(ana), member(shop, ana)
    assert her_desk.get("/people/").status_code == 200
    desk_of(ilse).post(f"/people/{his.pk}/deactivate/", {"reason": "left"})
    assert her_desk.get("/people/").status_code == 302
    assert not DeskSession.objects.filter(user_id=ana.pk).exists()
    assert not Client().login(username="ana", password="a long test password")
    page = desk_of(ilse).get("/people/").text
    assert "ana was deactivated, was Support" in page
    desk_of(ilse).post("/people/add/", {"login": "ana", "role": "viewer"})
    assert Client().login(username="ana", password="a long test password")
    assert people.changes(shop)[0].kind == "activated"


def test_who_is_in_another_workspace_too_stays_there(
    shop: Workspace, ilse: User, ana: User
) -> None:
    other = a_workspace("second")
    Membership.objects.create(workspace=other, user=ana, role=Role.LEAD)
    people.deactivate(shop, member(shop, ana).pk, Act(by=ilse, now=datetime.now(UTC)))
    again = desk_of(User.objects.get(pk=ana.pk))
    assert '<span class="ws">Second</span>' in again.get("/people/").text


def test_a_role_changes_from_the_next_page_and_is_recorded(
    shop: Workspace, ilse: User, ana: User
) -> None:
    hers = member(shop, ana)
    data = {"role": "admin", "seen": "support", "reason": "Ilse is away"}
    desk_of(ilse).post(f"/people/{hers.pk}/role/", data)
    assert desk_of(ana).get("/people/add/").status_code == 200
    change = people.changes(shop)[0]
    assert (change.role_before, change.role_after, change.reason) == (
        "support",
        "admin",
        "Ilse is away",
    )
    stale = desk_of(ilse).post(f"/people/{hers.pk}/role/", data, follow=True)
    assert "Somebody else made this person Admin meanwhile" in stale.text


def test_an_admin_who_was_demoted_meanwhile_changes_nothing(
    shop: Workspace, ilse: User, ana: User
) -> None:
    Membership.objects.filter(user=ilse).update(role=Role.VIEWER)
    with pytest.raises(people.Refused, match="Needs the role Admin"):
        people.deactivate(shop, member(shop, ana).pk, Act(by=ilse, now=datetime.now(UTC)))


def test_an_admin_without_a_password_does_not_count_as_an_admin(
    shop: Workspace, ilse: User
) -> None:
    bob = User.objects.create_user("bob")
    Membership.objects.create(workspace=shop, user=bob, role=Role.ADMIN)
    act = Act(by=ilse, now=datetime.now(UTC))
    with pytest.raises(people.Refused, match="last admin"):
        people.change_role(shop, member(shop, ilse).pk, act, role=Role.VIEWER, seen=Role.ADMIN)
    people.deactivate(shop, member(shop, bob).pk, act)


def test_the_database_refuses_to_change_what_was_recorded(shop: Workspace, ilse: User) -> None:
    people.add(shop, Act(by=ilse, now=datetime.now(UTC)), login="bob", name="", role=Role.VIEWER)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        MemberChange.objects.update(reason="another")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        MemberChange.objects.all().delete()


def test_another_workspaces_members_do_not_exist(shop: Workspace, ilse: User) -> None:
    other = a_workspace("second")
    bob = member(other, a_person(other, Role.ADMIN, "bob"))
    desk = desk_of(ilse)
    assert desk.get(f"/people/{bob.pk}/").status_code == 404
    for act in ("role", "deactivate", "link"):
        assert desk.post(f"/people/{bob.pk}/{act}/", {"role": "viewer"}).status_code == 404
    assert "bob" not in desk.get("/people/").text


def test_what_is_disabled_names_the_role_and_the_people_who_have_it(
    shop: Workspace, ilse: User, ana: User
) -> None:
    page = desk_of(ana).get("/people/").text
    assert "Needs the role Admin. Ask: ilse." in page
    assert "/people/add/" not in page
    refused = desk_of(ana).get("/people/add/")
    assert refused.status_code == 403
    assert "Ask: ilse." in refused.text
    assert whom(shop.pk, Ability.EDIT_PEOPLE) == "Ask: ilse."


def test_changing_ones_password_signs_out_everywhere_else(ana: User) -> None:
    here, there = desk_of(ana), desk_of(ana)
    new = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    wrong = here.post("/settings/password/", {"old_password": "x", **new})
    assert wrong.status_code == 422
    here.post("/settings/password/", {"old_password": "a long test password", **new})
    assert here.get("/settings/").status_code == 200
    assert there.get("/settings/").status_code == 302


def test_signing_out_everywhere_else_leaves_this_session(ana: User) -> None:
    here, there = desk_of(ana), desk_of(ana)
    assert "Where you are signed in" in here.get("/settings/").text
    here.post("/settings/sessions/end/")
    assert here.get("/settings/").status_code == 200
    assert there.get("/settings/").status_code == 302
