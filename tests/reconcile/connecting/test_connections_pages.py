"""The pages about connections: who may see them, what they refuse, and what a save does."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from effects.core.vocabulary import Role
from effects.environment import read_environment
from effects.models import Connection, ConnectionChange, Workspace
from effects.settings import BASE_DIR
from ledger import queries
from reconcile import pace
from reconcile.connecting import tasks
from reconcile.connecting.form import address_fault
from tests.support.desk import a_keyed_tool, a_person, a_workspace

pytestmark = pytest.mark.django_db

FORM: dict[str, Any] = {
    "name": "Bank",
    "kind": "http",
    "base_url": "https://api.bank.example",
    "account": "acct_7",
    "secret_name": "BANK_READ_TOKEN",
    "reason": "a second bank",
}


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def admin(shop: Workspace) -> Client:
    return signed_in(shop, Role.ADMIN)


def signed_in(workspace: Workspace, role: Role) -> Client:
    client = Client()
    client.force_login(a_person(workspace, role))
    return client


@pytest.mark.parametrize("role", list(Role))
def test_only_admins_see_and_change_connections(shop: Workspace, role: Role) -> None:
    a_keyed_tool(shop)
    kept = Connection.objects.get(workspace=shop)
    client, allowed = signed_in(shop, role), role is Role.ADMIN

    for address in ("/connections/", "/connections/new/", f"/connections/{kept.pk}/"):
        assert client.get(address).status_code == (200 if allowed else 403)
    assert client.post("/connections/new/", FORM).status_code == (302 if allowed else 403)
    assert Connection.objects.filter(name="Bank").exists() == allowed


def test_an_empty_workspace_says_what_is_missing_and_leads_on(admin: Client) -> None:
    page = admin.get("/connections/").content.decode()

    assert "No connection yet" in page
    assert 'href="/connections/new/"' in page


def test_a_line_says_who_uses_it_how_often_it_was_read_and_whether_its_secret_is_there(
    admin: Client, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_keyed_tool(shop)
    kept = Connection.objects.get(workspace=shop)
    Connection.objects.filter(pk=kept.pk).update(secret_name="SHOP_READ_KEY")
    pace.count_reads(kept.pk, 4321, queries.clock())

    tasks.tick()
    before = admin.get("/connections/").content.decode()
    monkeypatch.setenv("SHOP_READ_KEY", "rk_live_of_the_shop")
    tasks.tick()
    after = admin.get(f"/connections/{kept.pk}/").content.decode()

    assert "4321 of 10000" in before
    assert "no worker has it" in before
    assert "seen by a worker" in after
    assert "SHOP_READ_KEY" in after
    assert "rk_live_of_the_shop" not in after
    assert "charge_card" in after


def test_a_connection_is_added_with_its_first_version(admin: Client, shop: Workspace) -> None:
    admin.post("/connections/new/", FORM)

    kept = Connection.objects.get(workspace=shop, name="Bank")
    change = ConnectionChange.objects.get(connection=kept)
    assert (kept.version, change.version, change.before) == (1, 1, None)
    assert change.reason == "a second bank"
    assert change.after["base_url"] == "https://api.bank.example"


def test_a_change_is_a_new_version_and_an_older_page_cannot_undo_it(
    admin: Client, shop: Workspace
) -> None:
    admin.post("/connections/new/", FORM)
    kept = Connection.objects.get(workspace=shop, name="Bank")
    address = f"/connections/{kept.pk}/"

    admin.post(address, {**FORM, "account": "acct_8", "version": "1"})
    late = admin.post(address, {**FORM, "account": "acct_9", "version": "1"})

    kept.refresh_from_db()
    assert (kept.version, kept.account) == (2, "acct_8")
    assert late.status_code == 409
    assert "Account acct_8, was acct_7" in late.content.decode()
    assert "Account: acct_8, was acct_7" in admin.get(address).content.decode()


def test_the_kind_stays_what_it_is_while_a_tool_uses_it(admin: Client, shop: Workspace) -> None:
    a_keyed_tool(shop)
    kept = Connection.objects.get(workspace=shop)

    admin.post(
        f"/connections/{kept.pk}/",
        {**FORM, "kind": "http", "base_url": "https://api.stripe.com", "version": "1"},
    )

    kept.refresh_from_db()
    assert (kept.kind, kept.version) == ("stripe", 2)


def test_another_workspaces_connection_is_not_there(admin: Client) -> None:
    a_keyed_tool(a_workspace("other"))
    kept = Connection.objects.get(workspace__slug="other")

    assert admin.get(f"/connections/{kept.pk}/").status_code == 404
    assert "Stripe" not in admin.get("/connections/").content.decode().split("<main")[1]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        pytest.param({"name": ""}, "name", "required", id="no name"),
        pytest.param({"reason": ""}, "reason", "required", id="no reason"),
        pytest.param({"secret_name": "sk_live_abc"}, "secret_name", "variable", id="the secret"),
        pytest.param(
            {"secret_name": "DATABASE_URL"}, "secret_name", "itself", id="what opens our database"
        ),
        pytest.param(
            {"secret_name": "COUNTERFOIL_SECRET_KEY"}, "secret_name", "itself", id="our own key"
        ),
        pytest.param({"base_url": "ftp://x"}, "base_url", "web address", id="no web address"),
        pytest.param(
            {"kind": "sql", "base_url": "postgresql://db.example.com/pay", "account": ""},
            "account",
            "role",
            id="a database without a role",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_beside_its_field(
    admin: Client, changes: dict[str, Any], field: str, said: str
) -> None:
    answer = admin.post("/connections/new/", {**FORM, **changes})

    assert answer.status_code == 422
    assert said in " ".join(answer.context["form"].errors[field])
    assert not Connection.objects.filter(name="Bank").exists()


def test_two_of_one_name_cannot_be_told_apart(admin: Client) -> None:
    admin.post("/connections/new/", FORM)

    assert admin.post("/connections/new/", FORM).status_code == 422


# Addresses


@pytest.mark.parametrize(
    ("kind", "url", "said"),
    [
        ("http", "https://api.example.com", None),
        ("http", "https://api.example.com/v2", None),
        ("http", "http://10.0.0.5:8080", None),
        ("sql", "postgresql://db.example.com/payments", None),
        ("sql", "postgresql://10.0.0.6:5432/payments", None),
        ("http", "http://api.example.com", "unencrypted"),
        ("http", "https://10.0.0.9", "not a public address"),
        ("http", "https://169.254.169.254/latest", "not a public address"),
        ("http", "https://[::1]", "not a public address"),
        ("http", "https://localhost", "not a public address"),
        ("http", "https://api.example.com?key=1", "question mark"),
        ("http", "https://me:pw@api.example.com", "password"),
        ("http", "postgresql://db.example.com/payments", "starts with https://"),
        ("sql", "https://db.example.com", "starts with postgresql://"),
        ("sql", "postgresql://db.example.com", "address of a database"),
        ("sql", "postgresql://db.example.com/a/b", "address of a database"),
        ("sql", "postgresql://10.0.0.9/payments", "COUNTERFOIL_PRIVATE_ORIGINS"),
    ],
)
def test_an_address_keeps_the_rules_of_the_door(
    settings: LazySettings, kind: str, url: str, said: str | None
) -> None:
    settings.COUNTERFOIL_PRIVATE_ORIGINS = ["http://10.0.0.5:8080", "postgresql://10.0.0.6:5432"]

    fault = address_fault(kind, url)

    assert (fault is None) == (said is None), fault
    assert said is None or said in (fault or "")


def test_an_operator_may_allow_a_private_database_by_name() -> None:
    said = {"COUNTERFOIL_PRIVATE_ORIGINS": "postgresql://10.0.0.6:5432 http://10.0.0.5:8080"}

    assert len(read_environment(said, base=BASE_DIR).private_origins) == 2
