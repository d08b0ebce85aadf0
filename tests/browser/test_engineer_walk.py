"""An engineer, by keyboard alone: from a turn that was cut to the tool result that is safe to write
back; and the pages on that way in every look, on a phone, and without script."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, expect

from effects.core.vocabulary import Role
from effects.models import Workspace
from ledger import queries
from ledger.models import Claim
from tests.support.desk import a_person, a_workspace
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)
from tests.support.turns import CHARGE_ID, POINTS_ID, a_cut_turn, a_retry

TURN = "/turns/conv_8fe2/7"
TABS_MAX = 120


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    shop = a_workspace()
    a_cut_turn(shop)
    return shop


@pytest.fixture
def eva(shop: Workspace) -> User:
    return a_person(shop, Role.ENGINEER, "eva")


@pytest.fixture
def desk(page: Page, live_desk: str, eva: User) -> Page:
    come_in(page, eva, live_desk)
    return page


def tab_to(page: Page, wanted: Locator) -> None:
    """Presses Tab until it is there: whatever needs a pointer is never reached."""
    for _ in range(TABS_MAX):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by {TABS_MAX} times Tab")


def follow(page: Page, wanted: Locator) -> None:
    tab_to(page, wanted)
    page.keyboard.press("Enter")


def test_an_engineer_comes_from_a_cut_turn_to_the_safe_tool_result_by_keyboard(
    desk: Page, shop: Workspace
) -> None:
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.goto("/queue/")
    desk.keyboard.press("g")
    desk.keyboard.press("u")
    expect(desk.get_by_role("heading", name="Turns", exact=True)).to_be_visible()

    follow(desk, desk.get_by_role("link", name="Cut", exact=True))
    expect(desk).to_have_url("/turns/?show=cut")
    desk.keyboard.press("j")
    desk.keyboard.press("Enter")
    expect(desk).to_have_url(TURN)

    expect(desk.get_by_text("point of no return, +4.2 s")).to_be_visible()
    bar = desk.get_by_role("link", name="charge_card: unknown; charge_card 1, attempt 1, sent")
    follow(desk, bar)
    row = desk.locator("tr:target")
    expect(row).to_contain_text("attempt a1: outcome unknown")

    desk.goto(TURN)
    recovery = desk.get_by_role("complementary", name="Recovery")
    expect(recovery).to_contain_text("Find out what became of a tool call first")
    follow(desk, desk.get_by_role("link", name="Tool result for add_points 2"))
    expect(recovery).to_contain_text("What goes back for add_points 2")

    follow(desk, recovery.get_by_role("button", name="Copy tool result"))
    expect(desk.locator("#live")).to_have_text("Copied")
    block = json.loads(desk.evaluate("navigator.clipboard.readText()"))
    claim = Claim.objects.get(workspace=shop, call_id=POINTS_ID)
    told = queries.answer(shop.pk, claim.pk).for_model
    assert block["type"] == "tool_result"
    assert block["tool_use_id"] == POINTS_ID
    assert json.loads(block["content"]) == told
    assert told is not None
    assert told["status"] == "unknown"


def test_the_pages_on_that_way_are_accessible_in_every_look_and_fit_a_phone(
    desk: Page, shop: Workspace
) -> None:
    a_retry(shop)
    for address in (TURN, f"{TURN}?tab=responses", f"{TURN}?tab=raw"):
        desk.set_viewport_size(DESK)  # type: ignore[arg-type]  # width and height
        desk.goto(address)
        assert faults_in_every_look(desk) == {}, address
        keep_picture(desk, f"turn{address.removeprefix(TURN).replace('?', '-')}")
        desk.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
        assert overflow_pixels(desk) == 0, address
    desk.get_by_text("Show its bytes").first.click()
    expect(desk.get_by_role("region", name="Bytes of item")).to_contain_text("connection reset")


def test_everything_is_there_without_script(
    browser: Browser, live_desk: str, shop: Workspace, eva: User
) -> None:
    context = browser.new_context(base_url=live_desk, java_script_enabled=False)
    page = context.new_page()
    come_in(page, eva, live_desk)
    page.goto(TURN)
    expect(page.locator("#block-1")).to_contain_text(CHARGE_ID)
    page.goto(f"{TURN}?tab=raw")
    page.get_by_text("Show its bytes").first.click()
    page.get_by_role("link", name="on its own page").first.click()
    expect(page.locator("pre").first).to_contain_text("connection reset")
    context.close()
