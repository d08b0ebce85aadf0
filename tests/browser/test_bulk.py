"""Bulks in a real browser: selecting by mouse and keys, starting, following, without script."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from reconcile.bulk import running
from reconcile.models import Bulk, Snooze
from tests.support.desk import (
    a_keyed_tool,
    a_lost_call,
    a_person,
    a_workspace,
    an_unkeyed_tool,
)
from tests.support.looking import (
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)

WIDE = {"width": 1280, "height": 800}
FOCUS_IS_IN_SIGHT = """() => document.activeElement.matches("a.main")
  && document.activeElement.getBoundingClientRect().bottom
     <= document.querySelector(".bulk").getBoundingClientRect().top"""


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def lea(shop: Workspace) -> User:
    return a_person(shop, Role.LEAD, "lea")


@pytest.fixture
def desk(page: Page, live_desk: str, lea: User) -> Page:
    come_in(page, lea, live_desk)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]  # width and height
    return page


@pytest.fixture
def many(charge: Tool) -> list[UUID]:
    gift = an_unkeyed_tool(charge.workspace)
    return [a_lost_call(charge) for _ in range(18)] + [a_lost_call(gift)]


def checked(desk: Page) -> int:
    return desk.locator("tr[data-row] input:checked").count()


def test_rows_are_selected_by_keys_and_the_bar_covers_none_that_has_the_focus(
    desk: Page, many: list[UUID]
) -> None:
    desk.goto("/queue/")
    bar = desk.get_by_role("form", name="Bulk actions")
    expect(bar).to_be_hidden()
    for key in ("j", "x", "j", "j", "Shift+X"):
        desk.keyboard.press(key)
    assert checked(desk) == 3
    expect(bar).to_contain_text("3 selected")
    for _ in range(len(many)):
        desk.keyboard.press("j")
        desk.wait_for_function(FOCUS_IS_IN_SIGHT)
    assert faults_in_every_look(desk) == {}
    for size in (PHONE, WIDE):
        desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        assert overflow_pixels(desk) == 0
        keep_picture(desk, f"bulk-queue-{size['width']}")
    desk.get_by_label("Select this page").check()
    expect(bar).to_contain_text(f"{len(many)} selected")


def test_selected_calls_are_released_and_each_has_its_outcome(desk: Page, many: list[UUID]) -> None:
    desk.goto("/queue/")
    desk.get_by_label("Select this page").check()
    desk.get_by_role("button", name="Release with the same key").click()
    expect(desk.get_by_role("heading", level=1)).to_contain_text("19 calls")
    desk.get_by_label("Reason").fill("Asked the bank.")
    desk.get_by_label("Type 19").fill("18")
    desk.get_by_role("button", name="Release with the same key: 19 calls").click()
    expect(desk.get_by_role("alert")).to_contain_text("Type 19, the number of calls")
    for size in (PHONE, WIDE):
        desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        assert overflow_pixels(desk) == 0
        keep_picture(desk, f"bulk-draft-{size['width']}")
    assert faults(desk) == []
    desk.get_by_label("Type 19").fill("19")
    desk.get_by_role("button", name="Release with the same key: 19 calls").click()
    expect(desk.get_by_text("19 of 19 left")).to_be_visible()
    running.run(Bulk.objects.get().pk)  # as a worker does; the page finds out by itself
    expect(desk.get_by_text("All 19 have an outcome")).to_be_visible()
    expect(desk.get_by_text("This tool sends no key").first).to_be_visible()
    for size in (PHONE, WIDE):
        desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        assert overflow_pixels(desk) == 0
        keep_picture(desk, f"bulk-done-{size['width']}")
    assert faults_in_every_look(desk) == {}
    desk.emulate_media(color_scheme="dark")
    keep_picture(desk, "bulk-done-dark")
    desk.get_by_role("button", name="Take all back that is still held").click()
    expect(desk.get_by_text("18 decisions taken back.")).to_be_visible()


def test_without_script_calls_are_selected_and_snoozed(
    browser: Browser, live_desk: str, charge: Tool, lea: User
) -> None:
    lost = [a_lost_call(charge) for _ in range(2)]
    context = browser.new_context(base_url=live_desk, java_script_enabled=False)
    page = context.new_page()
    come_in(page, lea, live_desk)
    page.goto("/queue/")
    page.locator("tr[data-row] input[name=call]").first.check()
    page.get_by_role("button", name="Snooze").click()
    page.get_by_role("button", name="Snooze: 1 call").click()
    expect(page.get_by_text("1 of 1 left")).to_be_visible()
    running.run(Bulk.objects.get().pk)
    assert Snooze.objects.get().claim_id in lost
    context.close()
