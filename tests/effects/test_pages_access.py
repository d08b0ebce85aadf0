"""Coming in, going out, changing workspace, and settings; all with plain forms."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import SuspiciousOperation
from django.db import connection
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from effects.core.vocabulary import Role
from effects.models import Membership, Workspace
from effects.pages import tries

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 21, 40, 3, tzinfo=UTC)
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _no_tries_yet() -> None:
    cache.clear()


@pytest.fixture
def shop() -> Workspace:
    return Workspace.objects.create(name="Halden", slug="halden", mode="test", created_at=NOW)


@pytest.fixture
def ana(shop: Workspace) -> User:
    user = User.objects.create_user("ana@example.org", password=PASSWORD, first_name="Ana")
    Membership.objects.create(workspace=shop, user=user, role=Role.SUPPORT)
    return user


@pytest.fixture
def desk(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


def sign_in(client: Client, password: str = PASSWORD, **more: str) -> int:
    data = {"username": "ana@example.org", "password": password, **more}
    return client.post("/login/", data).status_code


def test_a_stranger_is_sent_to_sign_in_and_comes_back_to_where_they_went() -> None:
    answer = Client().get("/settings/?a=1")
    assert answer.status_code == 302
    assert answer["Location"] == "/login/?next=/settings/%3Fa%3D1"


def test_signing_in_leads_onward_but_never_to_another_site(ana: User) -> None:
    data = {"username": "ana@example.org", "password": PASSWORD}
    onward = Client().post("/login/", {**data, "next": "/settings/"})
    assert onward["Location"] == "/settings/"
    astray = Client().post("/login/", {**data, "next": "https://evil.example/"})
    assert astray["Location"] == "/"


def test_a_wrong_password_is_told_on_the_form_without_saying_which_part_was_wrong(
    ana: User,
) -> None:
    wrong = Client().post("/login/", {"username": "ana@example.org", "password": "x"})
    nobody = Client().post("/login/", {"username": "bob@example.org", "password": "x"})
    sentence = "This name and password do not belong together."
    assert wrong.status_code == nobody.status_code == 422
    assert sentence in wrong.content.decode()
    assert sentence in nobody.content.decode()


def test_after_five_wrong_tries_even_the_right_password_waits(ana: User) -> None:
    client = Client()
    tried = [sign_in(client, "wrong") for _ in range(tries.TRIES_MAX["name and address"])]
    assert set(tried) == {422}
    assert sign_in(client) == 429
    assert "Too many wrong tries" in client.post("/login/", {"username": "ana@example.org"}).text


def test_a_colleague_at_another_address_is_not_locked_out(ana: User) -> None:
    for _ in range(10):
        sign_in(Client(REMOTE_ADDR="192.0.2.1"), "wrong")
    assert sign_in(Client(REMOTE_ADDR="192.0.2.2")) == 302


def test_many_names_from_one_address_are_stopped(ana: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    for number in range(tries.TRIES_MAX["address"]):
        client.post("/login/", {"username": f"name{number}", "password": "x"})
    assert sign_in(client) == 429


def test_one_name_from_many_addresses_is_stopped(ana: User) -> None:
    for number in range(tries.TRIES_MAX["name"]):
        sign_in(Client(REMOTE_ADDR=f"192.0.2.{number}"), "wrong")
    assert sign_in(Client(REMOTE_ADDR="198.51.100.1")) == 429


def test_signing_out_needs_a_form(desk: Client) -> None:
    assert desk.get("/logout/").status_code == 405
    assert desk.post("/logout/").status_code == 302
    assert desk.get("/settings/").status_code == 302


def test_a_person_without_a_workspace_is_told_whom_to_ask(ana: User) -> None:
    client = Client()
    client.force_login(User.objects.create_user("new@example.org"))
    answer = client.get("/settings/")
    assert answer.status_code == 403
    assert "not a member of any workspace" in answer.text
    assert "Sign out" in answer.text


def test_the_workspace_changes_only_to_one_of_ones_own(desk: Client, ana: User) -> None:
    second = Workspace.objects.create(name="Second", slug="second", mode="live", created_at=NOW)
    foreign = Workspace.objects.create(name="Foreign", slug="foreign", created_at=NOW)
    Membership.objects.create(workspace=second, user=ana, role=Role.VIEWER)
    page = desk.get("/settings/").text
    assert "Second" in page
    assert "Foreign" not in page
    assert desk.post("/workspace/", {"workspace": foreign.slug}).status_code == 404
    assert desk.post("/workspace/", {"workspace": second.slug}).status_code == 302
    assert desk.session["workspace_id"] == second.pk
    assert '<span class="ws">Second</span>' in desk.get("/settings/").text


def test_a_session_that_names_a_foreign_workspace_stays_in_ones_own(
    desk: Client, ana: User, shop: Workspace
) -> None:
    foreign = Workspace.objects.create(name="A foreign one", slug="foreign", created_at=NOW)
    bob = User.objects.create_user("bob@example.org")
    Membership.objects.create(workspace=foreign, user=bob, role=Role.ADMIN)
    session = desk.session
    session["workspace_id"] = foreign.pk
    session.save()
    page = desk.get("/settings/").text
    assert '<span class="ws">Halden</span>' in page
    assert "A foreign one" not in page


def test_losing_a_membership_is_noticed_at_the_next_page(desk: Client, ana: User) -> None:
    assert desk.get("/settings/").status_code == 200
    Membership.objects.filter(user=ana).delete()
    assert desk.get("/settings/").status_code == 403


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chosen_theme_is_on_the_page(desk: Client, theme: str) -> None:
    desk.post("/settings/", {"theme": theme, "next": "/settings/"})
    assert f'data-bs-theme="{theme}"' in desk.get("/settings/").text


def test_the_system_theme_leaves_the_choice_to_the_system(desk: Client) -> None:
    desk.post("/settings/", {"theme": "dark"})
    desk.post("/settings/", {"theme": "system"})
    assert "data-bs-theme" not in desk.get("/settings/").text


def test_local_times_without_a_zone_ask_for_one(desk: Client) -> None:
    answer = desk.post("/settings/", {"times": "local", "zone": "", "next": "/elsewhere/"})
    assert answer["Location"] == "/settings/"
    assert "Choose it here" in desk.get("/settings/").text


def test_the_browsers_zone_never_replaces_a_chosen_one(desk: Client) -> None:
    desk.post("/settings/", {"zone": "Asia/Tokyo", "chosen": "1"})
    desk.post("/settings/", {"times": "local", "zone": "Europe/Berlin"})
    assert desk.session["zone"] == "Asia/Tokyo"


def test_nonsense_changes_no_setting(desk: Client) -> None:
    desk.post("/settings/", {"theme": "neon", "times": "never", "zone": "Mars/Base", "chosen": "1"})
    assert not {"theme", "times", "zone"} & set(desk.session.keys())


def test_a_form_without_its_token_is_answered_in_plain_words(ana: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ana)
    answer = client.post("/settings/", {"theme": "dark"})
    assert answer.status_code == 403
    assert "This form is no longer valid" in answer.text


def test_what_does_not_exist_is_not_found_in_plain_words(desk: Client) -> None:
    answer = desk.get("/nowhere/")
    assert answer.status_code == 404
    assert "belongs to another workspace" in answer.text
    assert "Halden" in answer.text
    assert 'aria-label="Main"' in answer.text


def test_what_does_not_exist_tells_a_stranger_nothing() -> None:
    answer = Client().get("/nowhere/")
    assert answer.status_code == 404
    assert "Your menu" not in answer.text


def test_a_page_that_breaks_says_so_without_asking_anything(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("effects.pages.access._settings_context", lambda _: 1 / 0)
    desk.raise_request_exception = False
    answer = desk.get("/settings/")
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.text
    assert "ZeroDivisionError" not in answer.text
    with CaptureQueriesContext(connection) as asked:
        render_to_string("500.html")
    assert len(asked) == 0


def test_a_request_that_nobody_can_read_is_told_so(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: HttpRequest) -> None:
        raise SuspiciousOperation

    monkeypatch.setattr("effects.pages.access._settings_context", refuse)
    answer = desk.get("/settings/")
    assert answer.status_code == 400
    assert "This request cannot be read" in answer.text


def test_every_page_forbids_inline_code_and_holds_none(desk: Client) -> None:
    answer = desk.get("/settings/")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert " style=" not in answer.text
    assert "<style" not in answer.text
    assert "onclick" not in answer.text
    assert answer.text.count("<script") == answer.text.count("<script src=")
