"""A call's page and its people, in a real browser: it keeps a take, it is assigned, notes name."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, SightingWord
from effects.models import Tool, Workspace
from reconcile.models import Assignment, Take
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see
from tests.support.looking import (
    PHONE,
    come_in,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)

WIDE = {"width": 1280, "height": 800}


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.ADMIN, "ana")


def test_a_page_in_use_keeps_its_take_and_its_call_is_given_to_who_is_named(
    page: Page, live_desk: str, charge: Tool, ana: User
) -> None:
    bo = a_person(charge.workspace, Role.SUPPORT, "bo")
    lost = a_lost_call(charge)
    see(charge, lost, SightingWord.ABSENT, data={"strength": "weak"})
    come_in(page, ana, live_desk)
    page.clock.install()
    page.goto(f"/calls/{lost}")
    page.get_by_role("button", name="Take", exact=True).click()
    expect(page.get_by_text("With you", exact=True)).to_be_visible()
    first = Take.objects.get().until
    page.keyboard.press("Shift")
    with page.expect_response(f"**/calls/{lost}/keep") as kept:
        page.clock.fast_forward("02:10")
    assert kept.value.status == 200
    assert first < Take.objects.get().until < first + timedelta(minutes=5)
    page.clock.fast_forward("07:20")  # the desk's own clock stands still meanwhile
    expect(page.get_by_text("free again in less than a minute")).to_be_visible()
    page.locator("summary", has_text="Assign").click()
    page.get_by_label("To", exact=True).select_option("bo")
    page.get_by_role("button", name="Assign", exact=True).click()
    expect(page.get_by_text("The call is assigned to bo.")).to_be_visible()
    assert Assignment.objects.get().assigned_to == bo
    page.get_by_label("Add a note").fill("**Not** ours, @bo:\n- `pi_1` is another's\n> I asked")
    page.get_by_role("button", name="Add note").click()
    expect(page.get_by_role("link", name="@bo")).to_be_visible()
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        assert overflow_pixels(page) == 0
        keep_picture(page, f"whose-call-{size['width']}")
    assert faults_in_every_look(page) == {}
    page.emulate_media(color_scheme="dark")
    keep_picture(page, "whose-call-dark")
