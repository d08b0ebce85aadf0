"""An admin, with nothing but the keyboard: from a tool that was seen in traffic to one that is
registered, over the consequences."""

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from effects.core.vocabulary import EffectClass, Role
from effects.models import Tool, ToolChange
from ledger import queries
from reconcile.registry.measuring import measure
from tests.support.desk import (
    a_call,
    a_keyed_tool,
    a_lost_call,
    a_person,
    a_workspace,
    complete,
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

TABS_MAX = 150


def tab_to(page: Page, there: Locator) -> None:
    """Presses Tab until the focus is there, as somebody without a mouse has to."""
    there.wait_for(state="attached")
    for _ in range(TABS_MAX):
        if there.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"No way leads to {there} by the keyboard.")


def type_into(page: Page, there: Locator, text: str) -> None:
    """Goes to a field by Tab, and writes over what is in it."""
    tab_to(page, there)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)


def press(page: Page, there: Locator) -> None:
    """Goes to a link or a button by Tab, and presses Enter."""
    tab_to(page, there)
    page.keyboard.press("Enter")


@pytest.fixture
def walk(page: Page, live_desk: str) -> Page:
    """An admin's page; a tool that nobody entered was called three times and lost two answers."""
    shop = a_workspace()
    stranger = Tool(workspace=shop, name="notify_store", effect_class=EffectClass.UNKEYED_WRITE)
    a_lost_call(stranger)
    a_lost_call(stranger)
    complete(stranger, a_call(stranger))
    measure(queries.clock())
    come_in(page, a_person(shop, Role.ADMIN), live_desk)
    return page


def test_an_admin_registers_a_tool_that_was_seen_in_traffic_by_the_keyboard_alone(
    walk: Page,
) -> None:
    walk.goto("/tools/")
    press(walk, walk.get_by_role("link", name="Register them"))
    expect(walk.get_by_role("row", name="notify_store")).to_contain_text("no request shown")
    keep_picture(walk, "tools-unregistered")
    assert faults(walk) == []
    press(walk, walk.get_by_role("link", name="Register notify_store"))

    expect(walk.get_by_text("Seen in traffic, entered by nobody.")).to_be_visible()
    fill_in(walk)
    press(walk, walk.get_by_role("button", name="Register"))

    expect(walk.get_by_role("heading", name="Save version 2 of notify_store?")).to_be_visible()
    does = walk.get_by_role("region", name="What this change does")
    expect(does).to_contain_text("2undecided calls of this tool")
    expect(does).to_contain_text("2of them stay unkeyed writes")
    expect(does).to_contain_text("0actions become available or unavailable on them")
    link = does.get_by_role("link", name="See them")
    expect(link).to_have_attribute("href", "/queue/?tool=notify_store")
    following = walk.get_by_role("region", name="A timeout of the next call")
    expect(following).to_contain_text("Release with the same key becomes available")
    keep_picture(walk, "tool-consequences")
    assert faults_in_every_look(walk) == {}
    assert not Tool.objects.get(name="notify_store").registered
    press(walk, walk.get_by_role("button", name="Save version 2"))

    expect(walk.locator(".toast-s")).to_contain_text("Version 2 of notify_store is saved.")
    tool = Tool.objects.get(name="notify_store")
    assert (tool.registered, tool.effect_class, tool.owner) == (True, "keyed_write", "Stores")
    assert ToolChange.objects.get(tool=tool).reason == "It takes keys since May"
    walk.goto("/tools/")
    expect(walk.get_by_text("that nobody registered")).to_have_count(0)


def fill_in(page: Page) -> None:
    """The form, field by field; what people will read is shown on the newest call meanwhile."""
    type_into(page, page.get_by_label("Owner"), "Stores")
    tab_to(page, page.get_by_role("radio", name="Changes something, no key"))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("radio", name="Changes something, with a key")).to_be_checked()
    type_into(page, page.get_by_label("Safe-retry window"), "24 h")
    type_into(page, page.get_by_label("Summary"), "Notify about {order} for {amount}")
    seen = page.locator("#seen")
    expect(seen).to_contain_text("for 149.00 EUR")
    expect(seen).to_contain_text("Every field was found")
    type_into(page, page.get_by_label("Customer field"), "buyer")
    expect(seen).to_contain_text("buyer matches nothing in the last 3 calls.")
    keep_picture(page, "tool-stranger")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("customer")
    type_into(page, page.get_by_label("Reason"), "It takes keys since May")


def test_tools_of_an_mcp_server_are_looked_at_chosen_and_looked_at_again(
    page: Page, live_desk: str
) -> None:
    shop = a_workspace()
    a_keyed_tool(shop, name="pay")
    come_in(page, a_person(shop, Role.ADMIN), live_desk)
    said = {"tools": [{"name": "pay"}, {"name": "send_" + "x" * 200, "description": "Sends " * 30}]}
    for size in (DESK, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto("/tools/file/")
        page.get_by_label("Or its text").last.fill(json.dumps(said))
        page.get_by_role("button", name="Look at the tools").click()
        expect(page.get_by_role("row", name="pay").first).to_contain_text("there already")
        keep_picture(page, f"offers-{size['width']}")
        assert faults(page) == []
        assert overflow_pixels(page) == 0
        page.get_by_role("button", name="Look at what this would do").click()
        expect(page.get_by_role("heading", name="Added")).to_be_visible()
        keep_picture(page, f"plan-{size['width']}")
        assert faults(page) == []
        assert overflow_pixels(page) == 0
    page.get_by_role("button", name="Save 1 tool").click()
    expect(page.locator(".toast-s")).to_contain_text("1 tool is saved by the import of pasted")
