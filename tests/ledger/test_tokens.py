"""The page about API tokens: issued once, revoked for ever, each in its own workspace."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role, TokenScope
from effects.models import Membership, Workspace
from ledger import auth
from tests.support.desk import a_person, a_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def ilse(shop: Workspace) -> User:
    return a_person(shop, Role.ADMIN, "ilse")


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_token_is_shown_once_and_opens_its_own_workspace(shop: Workspace, ilse: User) -> None:
    desk = desk_of(ilse)
    page = desk.post("/tokens/", {"name": "refund bot", "scopes": ["claim", "read"]})
    found = re.search(r"cf_[0-9a-f]{8}_[0-9a-f]{64}", page.text)
    assert found is not None
    assert "no-store" in page["Cache-Control"]
    bearer = auth.bearer(found[0], TokenScope.CLAIM)
    assert (bearer.workspace_id, bearer.name) == (shop.pk, "refund bot")
    again = desk.get("/tokens/").text
    assert found[0] not in again
    assert found[0][:12] in again


def test_the_same_form_sent_twice_issues_one_token(shop: Workspace, ilse: User) -> None:
    desk, data = desk_of(ilse), {"name": "bot", "scopes": ["claim"]}
    assert desk.post("/tokens/", data).status_code == 200
    assert desk.post("/tokens/", data).status_code == 422
    assert len(auth.tokens(shop)) == 1


@pytest.mark.parametrize(
    "data", [{"name": "bot"}, {"scopes": ["claim"]}, {"name": "b", "scopes": ["all"]}]
)
def test_a_token_needs_a_name_and_a_scope(
    shop: Workspace, ilse: User, data: dict[str, str]
) -> None:
    assert desk_of(ilse).post("/tokens/", data).status_code == 422
    assert auth.tokens(shop) == []


def test_a_revoked_token_is_refused_from_the_next_request_on(shop: Workspace, ilse: User) -> None:
    token, plain = auth.issue(shop, "bot", [TokenScope.CLAIM], ilse)
    desk = desk_of(ilse)
    assert "Revoke this token?" in desk.get(f"/tokens/?revoke={token.pk}").text
    assert desk.post(f"/tokens/{token.pk}/revoke/", follow=True).status_code == 200
    with pytest.raises(auth.TokenRefused):
        auth.bearer(plain, TokenScope.CLAIM)
    assert "revoked already" in desk.post(f"/tokens/{token.pk}/revoke/", follow=True).text


def test_another_workspaces_token_does_not_exist(shop: Workspace, ilse: User) -> None:
    token, plain = auth.issue(a_workspace("second"), "theirs", [TokenScope.CLAIM], None)
    desk = desk_of(ilse)
    assert desk.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    assert "theirs" not in desk.get("/tokens/").text
    assert auth.bearer(plain, TokenScope.CLAIM).name == "theirs"


@pytest.mark.parametrize(
    ("role", "sees", "issues"),
    [
        (Role.VIEWER, 403, 403),
        (Role.SUPPORT, 403, 403),
        (Role.LEAD, 403, 403),
        (Role.ENGINEER, 200, 403),
        (Role.ADMIN, 200, 200),
    ],
)
def test_admins_issue_and_engineers_look(
    shop: Workspace, role: Role, sees: int, issues: int
) -> None:
    token, _ = auth.issue(shop, "bot", [TokenScope.CLAIM], None)
    desk = desk_of(a_person(shop, role))
    assert desk.get("/tokens/").status_code == sees
    assert desk.post("/tokens/", {"name": "x", "scopes": ["read"]}).status_code == issues
    revoked = desk.post(f"/tokens/{token.pk}/revoke/").status_code
    assert revoked == (302 if role is Role.ADMIN else 403)


def test_a_token_of_somebody_who_left_keeps_working_and_says_so(
    shop: Workspace, ilse: User
) -> None:
    bob = a_person(shop, Role.ADMIN, "bob")
    _, plain = auth.issue(shop, "bot", [TokenScope.CLAIM], bob)
    Membership.objects.filter(user=bob).delete()
    assert auth.bearer(plain, TokenScope.CLAIM).name == "bot"
    assert "no member any more; the token keeps working" in desk_of(ilse).get("/tokens/").text
