"""A provider's secret: sealed in the database, never shown, sent only where it was meant for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Connection, ConnectionChange, Workspace
from reconcile.adapters.door import NotAllowed
from reconcile.connecting import secrets_seen
from reconcile.facts import place_of
from tests.support.desk import a_person, a_workspace

pytestmark = pytest.mark.django_db

SECRET = "rk_live_51Hx_of_the_bank"
FORM: dict[str, Any] = {
    "name": "Bank",
    "kind": "http",
    "base_url": "https://api.bank.example",
    "secret": SECRET,
    "reason": "a second bank",
}


@pytest.fixture
def shop() -> Workspace:
    return a_workspace()


@pytest.fixture
def admin(shop: Workspace) -> Client:
    client = Client()
    client.force_login(a_person(shop, Role.ADMIN))
    return client


@pytest.fixture
def bank(admin: Client, shop: Workspace) -> Connection:
    assert admin.post("/connections/new/", FORM).status_code == 302
    return Connection.objects.get(workspace=shop)


def change(admin: Client, bank: Connection, **changes: str) -> Any:
    bank.refresh_from_db()
    form = {**FORM, "secret": "", "version": str(bank.version)} | changes
    return admin.post(f"/connections/{bank.pk}/", form)


def test_a_secret_that_is_entered_is_used_and_is_in_no_table_and_on_no_page(
    admin: Client, bank: Connection
) -> None:
    assert place_of(bank).secret == SECRET
    assert secrets_seen.is_set(bank)
    with connection.cursor() as cursor:
        cursor.execute("SELECT c::text FROM effects_connection c")
        rows = cursor.fetchall()
    kept = json.dumps([one.after for one in ConnectionChange.objects.all()])
    pages = [admin.get(at).content.decode() for at in ("/connections/", f"/connections/{bank.pk}/")]
    log = admin.get("/audit-log/").content.decode()
    assert not [text for text in (str(rows), kept, *pages, log) if SECRET in text]
    assert SECRET.encode().hex() not in str(rows)
    assert "sealed, entered" in pages[1]


def test_what_was_typed_does_not_come_back_when_another_field_is_wrong(admin: Client) -> None:
    again = admin.post("/connections/new/", {**FORM, "base_url": "http://api.bank.example"})
    assert again.status_code == 422
    assert SECRET not in again.content.decode()


def test_an_empty_field_keeps_the_secret_and_a_new_one_replaces_it(
    admin: Client, bank: Connection
) -> None:
    assert change(admin, bank, account="acct_8").status_code == 302
    bank.refresh_from_db()
    assert place_of(bank).secret == SECRET
    assert change(admin, bank, secret="rk_live_the_next_one").status_code == 302
    bank.refresh_from_db()
    assert place_of(bank).secret == "rk_live_the_next_one"
    assert "Secret entered" in admin.get(f"/connections/{bank.pk}/").content.decode()


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example", "https://api.bank.example:444", "https://api.bank.example.evil.test"],
)
def test_a_kept_secret_is_never_sent_to_another_address_than_it_was_entered_for(
    admin: Client, bank: Connection, elsewhere: str
) -> None:
    refused = change(admin, bank, base_url=elsewhere)
    assert refused.status_code == 422
    assert "meant for another address" in refused.content.decode()
    assert change(admin, bank, base_url=elsewhere, secret="rk_of_that_place").status_code == 302
    assert change(admin, bank, base_url=f"{elsewhere}/v2").status_code == 302  # the same host


def test_another_kind_of_provider_is_another_address(admin: Client, bank: Connection) -> None:
    assert change(admin, bank, kind="graphql").status_code == 422


def test_a_secret_stands_in_one_place(admin: Client, bank: Connection, shop: Workspace) -> None:
    both = {**FORM, "name": "Other", "secret_name": "BANK_TOKEN"}
    assert "not both" in admin.post("/connections/new/", both).content.decode()
    neither = {**FORM, "name": "Other", "secret": ""}
    assert "Enter the secret, or name" in admin.post("/connections/new/", neither).content.decode()

    assert change(admin, bank, secret_name="BANK_TOKEN").status_code == 302
    bank.refresh_from_db()
    assert (bank.secret_sealed, bank.secret_entered_at) == (None, None)
    with pytest.raises(IntegrityError, match="connection_one_secret"), transaction.atomic():
        Connection.objects.filter(pk=bank.pk).update(secret_sealed=b"x")


def test_a_row_that_holds_another_s_secret_and_a_lost_key_say_so_and_ask_nobody(
    admin: Client, bank: Connection, settings: Any
) -> None:
    admin.post("/connections/new/", {**FORM, "name": "Other", "secret": "rk_other"})
    other = Connection.objects.get(name="Other")
    Connection.objects.filter(pk=other.pk).update(secret_sealed=bank.secret_sealed)
    other.refresh_from_db()
    with pytest.raises(NotAllowed, match="sealed for another place"):
        place_of(other)

    settings.COUNTERFOIL_SEALING_KEYS = ["another key of this installation, long enough for it"]
    with pytest.raises(NotAllowed, match="does not have"):
        place_of(bank)
    page = admin.get(f"/connections/{bank.pk}/").content.decode()
    assert "a key that is not here" in page
