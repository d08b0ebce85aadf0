"""The shell in a real browser: signing in, the menu, settings, narrow screens, no script."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import Role
from effects.models import Membership, Workspace
from tests.support.desk import a_keyed_tool, a_person, a_workspace
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    give_password,
    keep_picture,
    overflow_pixels,
)

PASSWORD = "a long test password"


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def ana(shop: Workspace) -> User:
    user = a_person(shop, Role.SUPPORT, "ana")
    give_password(user, PASSWORD)
    return user


@pytest.fixture
def desk(page: Page, live_desk: str, ana: User) -> Page:
    """The page, with Ana signed in."""
    come_in(page, ana, live_desk)
    return page


def sign_in(page: Page, password: str = PASSWORD) -> None:
    page.goto("/login/")
    page.get_by_label("E-mail or user name").fill("ana")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_signing_in_and_out(page: Page, ana: User) -> None:
    page.goto("/settings/")
    expect(page).to_have_url("/login/?next=/settings/")
    keep_picture(page, "login")
    sign_in(page, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("do not belong together")
    keep_picture(page, "login-wrong")
    assert faults_in_every_look(page) == {}
    sign_in(page)
    page.get_by_role("button", name="your menu").click()
    keep_picture(page, "menu")
    assert faults_in_every_look(page) == {}
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url("/login/")


def test_password_managers_find_their_fields(page: Page, ana: User) -> None:
    page.goto("/login/")
    assert page.get_by_label("Password").get_attribute("autocomplete") == "current-password"
    assert page.locator("#id_username").get_attribute("autocomplete") == "username"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_theme_is_chosen_in_the_menu_and_stays(desk: Page, theme: str) -> None:
    desk.goto("/settings/")
    desk.get_by_role("button", name="your menu").click()
    desk.get_by_role("button", name=theme, exact=True).click()
    expect(desk).to_have_url("/settings/")
    expect(desk.locator("html")).to_have_attribute("data-bs-theme", theme.lower())
    desk.reload()
    expect(desk.locator("html")).to_have_attribute("data-bs-theme", theme.lower())


def test_local_times_take_the_browsers_zone(browser: Browser, live_desk: str, ana: User) -> None:
    context = browser.new_context(base_url=live_desk, timezone_id="Asia/Tokyo")
    page = context.new_page()
    come_in(page, ana, live_desk)
    page.goto("/settings/")
    page.get_by_role("button", name="your menu").click()
    page.get_by_role("button", name="Local").click()
    page.goto("/settings/")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    context.close()


def test_the_workspace_is_changed_in_the_menu(desk: Page, shop: Workspace) -> None:
    second = a_workspace("second")
    member = Membership.objects.get(workspace=shop)
    Membership.objects.create(workspace=second, user=member.user, role=Role.VIEWER)
    a_keyed_tool(second, name="only_there")
    desk.goto("/tools/")
    expect(desk.get_by_text("only_there")).to_have_count(0)
    desk.get_by_role("button", name="Workspace: Halden").click()
    keep_picture(desk, "workspaces")
    desk.get_by_role("button", name="Second").click()
    desk.goto("/tools/")
    expect(desk.get_by_role("link", name="only_there")).to_be_visible()


@pytest.mark.parametrize("address", ["/settings/", "/nowhere/", "/tools/"])
def test_pages_are_accessible_and_fit_a_phone(desk: Page, address: str) -> None:
    # Colours do not depend on the width, so they are looked at once.
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        desk.goto(address)
        assert overflow_pixels(desk) == 0
        assert not look_for_faults(desk)
        keep_picture(desk, f"{address.strip('/')}-{size['width']}")


def test_the_phone_has_its_own_menu(desk: Page) -> None:
    desk.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    desk.goto("/settings/")
    desk.get_by_role("button", name="Menu", exact=True).click()
    keep_picture(desk, "phone-menu")
    desk.get_by_role("navigation", name="Pages").get_by_role("link", name="Tools").click()
    expect(desk).to_have_url("/tools/")


def test_everything_can_be_reached_by_keyboard(desk: Page) -> None:
    desk.goto("/tools/")
    desk.keyboard.press("Tab")
    expect(desk.get_by_role("link", name="Skip to content")).to_be_focused()
    desk.keyboard.press("Enter")
    expect(desk.locator("#main")).to_be_focused()
    desk.keyboard.press("?")
    expect(desk.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert faults(desk) == []
    keep_picture(desk, "keys")
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("dialog", name="Keyboard")).to_be_hidden()


def test_single_keys_can_be_switched_off(desk: Page) -> None:
    desk.goto("/settings/")
    desk.keyboard.press("?")
    desk.get_by_label("Single-letter keys on").uncheck()
    desk.keyboard.press("Escape")
    desk.keyboard.press("g")
    desk.keyboard.press("t")
    expect(desk).to_have_url("/settings/")
    desk.keyboard.press("?")
    expect(desk.get_by_role("dialog", name="Keyboard")).to_be_hidden()


def test_keys_rest_while_somebody_types(page: Page, ana: User) -> None:
    page.goto("/login/")
    page.get_by_label("E-mail or user name").press_sequentially("g?q")
    expect(page.get_by_label("E-mail or user name")).to_have_value("g?q")


def test_without_script_one_can_sign_in_choose_a_theme_and_go_on(
    browser: Browser, live_desk: str, ana: User
) -> None:
    context = browser.new_context(base_url=live_desk, java_script_enabled=False)
    page = context.new_page()
    sign_in(page)
    page.get_by_role("button", name="your menu").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Tools").click()
    expect(page.get_by_role("heading", name="Tools", exact=True)).to_be_visible()
    context.close()


def test_relative_times_go_on_by_the_servers_clock(desk: Page) -> None:
    desk.goto("/tools/")
    desk.evaluate(
        """() => {
            const made = Date.parse(document.querySelector("meta[name=desk-now]").content);
            const time = document.createElement("time");
            time.dateTime = new Date(made + 72 * 60_000 + 30_000).toISOString();
            time.dataset.relative = "";
            document.querySelector("main").append(time);
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    expect(desk.locator("main > time")).to_have_text("in 1 h 12 m")
