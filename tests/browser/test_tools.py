"""The registry's pages in a real browser: registering, changing after a look, faults, phones."""

import pytest
from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from tests.support.desk import (
    a_call,
    a_keyed_tool,
    a_person,
    a_workspace,
    an_unkeyed_tool,
    lose,
)
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def admin(page: Page, live_desk: str, shop: Workspace) -> Page:
    """The page, with an admin signed in."""
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    return page


def test_a_tool_is_registered_after_its_faults_are_put_right(admin: Page) -> None:
    admin.goto("/tools/")
    admin.get_by_role("link", name="Register a tool").click()
    admin.get_by_label("Name", exact=True).fill("refund_payment")
    admin.get_by_role("radio", name="Changes something, with a key").check()
    admin.get_by_label("Safe-retry window").fill("24")
    admin.get_by_label("Reason").fill("Support refunds by chat now")
    admin.get_by_role("button", name="Register").click()

    summary = admin.get_by_role("alert")
    expect(summary).to_contain_text("One thing has to be put right")
    expect(summary).to_be_focused()
    keep_picture(admin, "tool-faults")
    assert faults_in_every_look(admin) == {}
    summary.get_by_role("link").click()
    expect(admin.get_by_label("Safe-retry window")).to_be_focused()
    expect(admin.get_by_role("radio", name="Changes something, with a key")).to_be_checked()

    admin.get_by_label("Safe-retry window").fill("24 h")
    admin.get_by_role("button", name="Register").click()
    expect(admin.get_by_role("heading", name="refund_payment", level=1)).to_be_visible()
    expect(admin.locator(".toast-s")).to_contain_text("refund_payment is registered.")
    keep_picture(admin, "tool-registered")
    assert Tool.objects.get().window_seconds == 86_400


def test_a_new_class_shows_what_it_does_before_it_is_saved(admin: Page, shop: Workspace) -> None:
    tool = an_unkeyed_tool(shop)
    for _ in range(3):
        lose(tool, a_call(tool, arguments={"amount": 25}))
    admin.goto(f"/tools/{tool.pk}/")
    keep_picture(admin, "tool")
    admin.get_by_role("radio", name="Changes something, with a key").check()
    admin.get_by_label("Reason").fill("The provider honours keys since May")
    admin.get_by_role("button", name="Review version 2").click()

    expect(admin.get_by_role("heading", name="Save version 2 of issue_gift_card?")).to_be_visible()
    expect(admin.locator(".conseq li").first).to_contain_text("3")
    keep_picture(admin, "tool-review")
    assert faults_in_every_look(admin) == {}
    admin.get_by_role("button", name="Back to the form").click()
    expect(admin.get_by_label("Reason")).to_have_value("The provider honours keys since May")
    admin.get_by_role("button", name="Review version 2").click()
    admin.get_by_role("button", name="Save version 2").click()
    expect(admin.locator(".toast-s")).to_contain_text("Version 2 of issue_gift_card is saved.")
    expect(admin.get_by_role("table", name="Versions")).to_contain_text("keyed write, was unkeyed")
    tool.refresh_from_db()
    assert tool.effect_class == "keyed_write"


def test_a_stale_form_says_what_changed(admin: Page, shop: Workspace) -> None:
    tool = a_keyed_tool(shop)
    admin.goto(f"/tools/{tool.pk}/")
    Tool.objects.filter(pk=tool.pk).update(version=2)
    admin.get_by_label("Reason").fill("Too late")
    admin.get_by_role("button", name="Review version 2").click()
    expect(admin.get_by_role("heading", name="Changed since you opened it")).to_be_visible()
    keep_picture(admin, "stale")
    assert faults(admin) == []
    admin.get_by_role("link", name="Open the fresh page").click()
    expect(admin.get_by_role("button", name="Review version 3")).to_be_visible()


def test_the_pages_are_accessible_and_fit(admin: Page, shop: Workspace) -> None:
    charge = a_keyed_tool(shop, owner="Payments")
    an_unkeyed_tool(shop, owner="Retail")
    Tool.objects.create(workspace=shop, name="notify_store_" + "x" * 200, registered=False)
    Tool.objects.create(workspace=shop, name="search", effect_class="read")
    # Colours do not depend on the width, so they are looked at once.
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        admin.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        for name, address in (
            ("tools", "/tools/"),
            ("tool-form", f"/tools/{charge.pk}/"),
            ("contracts", "/contracts/"),
            ("contract", "/contracts/stripe.v1/"),
        ):
            admin.goto(address)
            assert overflow_pixels(admin) == 0
            assert not look_for_faults(admin)
            keep_picture(admin, f"{name}-{size['width']}")


def test_a_tool_leads_to_its_contract_and_a_wider_window_is_refused_with_its_source(
    admin: Page, shop: Workspace
) -> None:
    charge = a_keyed_tool(shop)
    admin.goto(f"/tools/{charge.pk}/")
    admin.get_by_label("Contract", exact=True).select_option("zendesk")
    admin.get_by_label("Safe-retry window").fill("24 h")
    admin.get_by_label("Reason").fill("Tickets now")
    admin.get_by_role("button", name="Review version 2").click()
    expect(admin.locator("#id_window_seconds_error")).to_contain_text("2 h and no longer")

    admin.goto(f"/tools/{charge.pk}/")
    admin.get_by_role("link", name="All of Stripe API v1").click()
    expect(admin.get_by_role("heading", name="Stripe API v1", level=1)).to_be_visible()
    link = admin.get_by_role("link", name="Stripe API reference, Idempotent requests").first
    expect(link).to_have_attribute("href", "https://docs.stripe.com/api/idempotent_requests")
    crumbs = admin.get_by_role("navigation", name="Where you are")
    crumbs.get_by_role("link", name="Contracts").click()
    expect(admin.get_by_role("heading", name="Contracts", level=1)).to_be_visible()


def test_support_reads_a_tool_and_sees_who_may_change_it(
    page: Page, live_desk: str, shop: Workspace
) -> None:
    tool = a_keyed_tool(shop)
    come_in(page, a_person(shop, Role.SUPPORT), live_desk)
    page.goto(f"/tools/{tool.pk}/")
    expect(page.get_by_text("Needs the role Admin.")).to_be_visible()
    expect(page.get_by_label("Margin")).to_be_disabled()
    expect(page.get_by_role("button", name="Review")).to_have_count(0)
    keep_picture(page, "tool-support")
    assert faults(page) == []


def test_without_script_a_tool_is_changed_all_the_same(
    browser: Browser, live_desk: str, shop: Workspace
) -> None:
    tool = an_unkeyed_tool(shop)
    lose(tool, a_call(tool, arguments={"amount": 25}))
    context = browser.new_context(base_url=live_desk, java_script_enabled=False)
    page = context.new_page()
    come_in(page, a_person(shop, Role.ADMIN), live_desk)
    page.goto(f"/tools/{tool.pk}/")
    page.get_by_role("radio", name="Changes something, with a key").check()
    page.get_by_label("Reason").fill("It has keys")
    page.get_by_role("button", name="Review version 2").click()
    page.get_by_role("button", name="Save version 2").click()
    expect(page.get_by_text("Version 2 of issue_gift_card is saved.")).to_be_visible()
    context.close()
