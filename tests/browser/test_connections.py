"""The pages about connections and about a look-up that is tried: accessible, and they fit."""

from __future__ import annotations

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from effects.models import Connection, LookupTrial, Tool, Workspace
from reconcile.connecting import tasks
from reconcile.connecting.trial import order, settings_of
from tests.reconcile.adapters.loopback import loopback, whole
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, an_unkeyed_tool
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)

LONG = "x" * 60
ENTRY = {"url": "/payments/{key}", "map": {"done": "found"}, "amount": "amount"}


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


def test_the_pages_about_connections_are_accessible_and_fit(
    page: Page, live_desk: str, shop: Workspace
) -> None:
    a_keyed_tool(shop)
    kept = Connection.objects.get(workspace=shop)
    Connection.objects.create(
        workspace=shop, name=f"Bank <b> {LONG}", kind="sql", base_url=f"postgresql://{LONG}.eu/pay"
    )
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        for name, where in (("list", ""), ("one", f"{kept.pk}/"), ("new", "new/")):
            page.goto(f"{live_desk}/connections/{where}")
            assert overflow_pixels(page) == 0, name
            assert not look_for_faults(page), name
            keep_picture(page, f"connection-{name}-{size['width']}")


def test_an_admin_adds_a_connection_and_is_told_what_is_wrong_beside_the_field(
    page: Page, live_desk: str, shop: Workspace
) -> None:
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    page.goto(f"{live_desk}/connections/")
    page.locator("#main").get_by_role("link", name="Add a connection").first.click()
    page.get_by_label("Name", exact=True).fill("Bank")
    page.get_by_label("Kind").select_option("http")
    page.get_by_label("Address").fill("http://api.bank.example")
    page.locator("[name=secret]").fill("rk_of_the_bank")
    page.get_by_label("Reason").fill("a second bank")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("unencrypted")
    page.get_by_label("Address").fill("https://api.bank.example")
    # A password field never comes back with what was typed into it.
    expect(page.locator("[name=secret]")).to_have_value("")
    page.locator("[name=secret]").fill("rk_of_the_bank")
    page.get_by_role("button", name="Add").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Bank")
    expect(page.get_by_role("main")).to_contain_text("sealed, entered")
    assert Connection.objects.get(workspace=shop).version == 1


def test_a_look_up_is_tried_from_the_tools_page_with_what_was_typed(
    page: Page, live_desk: str, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = '{"id": "pay_1", "status": "done", "amount": 14900}'
    monkeypatch.setenv("BANK_READ_TOKEN", "a token of the bank")
    with loopback(whole(body)) as bank:
        monkeypatch.setattr(settings, "COUNTERFOIL_PRIVATE_ORIGINS", [bank.url])
        tool = a_tool_at(shop, bank.url)
        claim_id = a_lost_call(tool, arguments={"amount": "149.00"})
        ilse = a_person(shop, Role.ADMIN, "ilse")
        trial = order(tool, claim_id, settings_of(tool), user=ilse)
        tasks.perform(trial.pk)
    come_in(page, ilse, live_desk)
    result = f"{live_desk}/tools/{tool.pk}/look-up/?trial={trial.pk}"
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto(result)
        expect(page.get_by_text("pay_1", exact=True)).to_be_visible()
        assert overflow_pixels(page) == 0
        assert not look_for_faults(page)
        keep_picture(page, f"look-up-{size['width']}")

    page.set_viewport_size(DESK)  # type: ignore[arg-type]  # width and height
    page.goto(f"{live_desk}/tools/{tool.pk}/")
    page.get_by_label("Settings of the look-up").fill('{"url": "/typed/{key}"}')
    page.get_by_role("button", name="Test this look-up on a past call").click()
    expect(page.get_by_text("edited, not saved")).to_be_visible()
    page.get_by_role("button", name="Test look-up").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose a past call")
    assert LookupTrial.objects.count() == 1


def a_tool_at(shop: Workspace, url: str) -> Tool:
    bank = Connection.objects.create(
        workspace=shop, name="Bank", kind="http", base_url=url, secret_name="BANK_READ_TOKEN"
    )
    return an_unkeyed_tool(shop, connection=bank, lookup_kind="http", lookup=ENTRY)
