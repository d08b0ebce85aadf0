"""The queue in a real browser: finding a call, the tabs, keys, narrow screens, no script."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import Role, SightingWord
from effects.models import Tool, Workspace
from reconcile import cards
from tests.support.clock import ShiftedClock
from tests.support.desk import (
    a_call,
    a_keyed_tool,
    a_lost_call,
    a_person,
    a_workspace,
    an_unkeyed_tool,
    complete,
    see,
)
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.SUPPORT, "ana")


@pytest.fixture
def desk(page: Page, live_desk: str, ana: User) -> Page:
    come_in(page, ana, live_desk)
    return page


@pytest.fixture
def full(shop: Workspace, charge: Tool) -> Workspace:
    """One call of every kind that the queue shows."""
    gift = an_unkeyed_tool(shop)
    a_lost_call(gift, arguments={"amount": 250, "customer": "cus_Ab123456K41"})
    a_lost_call(gift, arguments={"amount": None, "customer": "cus_Ab123456K42"})
    a_lost_call(a_keyed_tool(shop, name="soon", window_seconds=3600))
    a_lost_call(a_keyed_tool(shop, name="late", window_seconds=200))
    a_lost_call(a_keyed_tool(shop, name="unpublished", window_seconds=None))
    weak = a_lost_call(charge, arguments={"amount": 6450})
    see(charge, weak, SightingWord.ABSENT, data={"strength": "weak"})
    failed = a_lost_call(charge, arguments={"amount": 18400, "currency": "jpy"})
    see(charge, failed, SightingWord.LOOKUP_FAILED, data={"strength": "says_nothing"})
    twice = a_lost_call(charge, arguments={"amount": 8900})
    see(charge, twice, SightingWord.FOUND_MANY, objects=("pi_1", "pi_2"), counts=True)
    complete(charge, a_call(charge))
    return shop


def test_support_finds_a_call_by_its_amount(desk: Page, full: Workspace) -> None:
    desk.goto("/")
    expect(desk).to_have_url("/queue/")
    desk.get_by_role("search").get_by_label("Search by id, key, customer or amount").first.fill(
        "64.50"
    )
    desk.keyboard.press("Enter")
    rows = desk.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").click()
    expect(desk.get_by_role("heading", level=1)).to_contain_text("Charge 64.50 EUR")


def test_the_queue_shows_every_kind_and_is_accessible_in_every_look(
    desk: Page, full: Workspace
) -> None:
    clock = ShiftedClock()
    try:
        clock.advance(timedelta(minutes=5).total_seconds())
        for size in (DESK, PHONE):
            desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
            desk.goto("/queue/")
            expect(desk.locator("tr[data-row]")).to_have_count(8)
            keep_picture(desk, f"queue-{size['width']}")
            assert overflow_pixels(desk) == 0
            assert faults_in_every_look(desk) == {}
        desk.set_viewport_size(DESK)  # type: ignore[arg-type]  # width and height
        desk.emulate_media(color_scheme="dark")
        keep_picture(desk, "queue-dark")
    finally:
        clock.restore()


def test_tabs_figures_and_filters_are_addresses(desk: Page, full: Workspace) -> None:
    desk.goto("/queue/")
    desk.get_by_role("navigation", name="Views").get_by_role("link", name="Unkeyed writes").click()
    expect(desk).to_have_url("/queue/?view=unkeyed")
    expect(desk.locator("tr[data-row]")).to_have_count(2)
    desk.goto("/queue/")
    desk.get_by_label("Tool", exact=True).select_option("charge_card")
    desk.get_by_role("button", name="Filter", exact=True).click()
    expect(desk.locator("tr[data-row]")).to_have_count(3)
    desk.get_by_role("link", name="Remove filter Tool").click()
    expect(desk.locator("tr[data-row]")).to_have_count(8)
    desk.get_by_role("navigation", name="Figures").get_by_role("link", name="Unknown now").click()
    expect(desk.locator("tr[data-row]")).to_have_count(7)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        pytest.param("/queue/", "No agent has asked yet", id="nothing at all"),
        pytest.param("/queue/?q=nothing", "0 of 0 calls match", id="too narrow"),
        pytest.param("/queue/?view=closed", "Nothing here", id="an empty tab"),
    ],
)
def test_an_empty_list_says_what_that_means(desk: Page, address: str, says: str) -> None:
    desk.goto(address)
    expect(desk.get_by_role("heading", name=says)).to_be_visible()
    keep_picture(desk, f"empty-{says.replace(' ', '-')}")
    assert faults_in_every_look(desk) == {}


def test_a_search_that_finds_nothing_here_leads_to_where_it_does(desk: Page, charge: Tool) -> None:
    settled = a_lost_call(charge, arguments={"amount": 4711})
    cards.fill()  # as the worker's next tick would, while the call is undecided
    see(charge, settled, SightingWord.FOUND, objects=("pi_1",), counts=True)
    desk.goto("/queue/?q=47.11")
    desk.get_by_role("link", name="Show them among all calls").click()
    expect(desk.locator("tr[data-row]")).to_have_count(1)


def test_rows_are_walked_and_opened_by_keys(desk: Page, full: Workspace) -> None:
    desk.goto("/queue/")
    desk.keyboard.press("j")
    desk.keyboard.press("j")
    focused = desk.locator("a.main:focus")
    expect(focused).to_have_count(1)
    address = focused.get_attribute("href")
    desk.keyboard.press("Enter")
    expect(desk).to_have_url(address or "")


def test_without_script_the_list_is_searched_sorted_and_paged(
    browser: Browser, live_desk: str, charge: Tool, ana: User
) -> None:
    for _ in range(51):
        a_lost_call(charge)
    context = browser.new_context(base_url=live_desk, java_script_enabled=False)
    page = context.new_page()
    come_in(page, ana, live_desk)
    page.goto("/queue/")
    expect(page.get_by_text("50 of 51 shown")).to_be_visible()
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.goto("/queue/")
    page.get_by_role("link", name="Amount").click()
    expect(page.get_by_role("columnheader", name="Amount")).to_have_attribute(
        "aria-sort", "descending"
    )
    context.close()
