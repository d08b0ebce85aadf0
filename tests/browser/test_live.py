"""Pages that stay true while they are open, against a real desk and its socket."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, SightingWord
from effects.models import Membership, Tool, Workspace
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see
from tests.support.looking import come_in, faults_in_every_look


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


def expect_state(desk: Page, word: str) -> None:
    expect(desk.locator("[data-live-word]")).to_have_text(word)


@pytest.mark.case("U10")
def test_the_queue_says_what_changed_and_moves_nothing_until_asked(
    desk: Page, charge: Tool
) -> None:
    a_lost_call(charge)
    desk.goto("/queue/")
    expect_state(desk, "Live")
    shown = desk.locator("tr[data-row]")
    expect(shown).to_have_count(1)

    a_lost_call(charge, arguments={"amount": 200})
    show = desk.get_by_role("button", name="1 change: show")
    expect(show).to_be_visible()
    expect(shown).to_have_count(1)
    expect(desk).to_have_title("(2) Unknown outcomes - Counterfoil")
    assert faults_in_every_look(desk) == {}
    show.click()
    expect(shown).to_have_count(2)
    expect(show).to_have_count(0)

    desk.keyboard.press("r")
    expect_state(desk, "Paused")
    a_lost_call(charge, arguments={"amount": 300})
    desk.wait_for_timeout(2500)
    expect(desk).to_have_title("(2) Unknown outcomes - Counterfoil")
    desk.keyboard.press("r")
    expect_state(desk, "Live")
    expect(show).to_be_visible()


def test_a_call_page_follows_its_call_but_not_under_the_hands_of_who_writes(
    desk: Page, charge: Tool
) -> None:
    claim_id = a_lost_call(charge)
    desk.goto(f"/calls/{claim_id}")
    expect_state(desk, "Live")
    see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    expect(desk.locator("[id^=ev]").first).to_be_visible()

    note = desk.locator("textarea[name=note]")
    note.fill("The customer wrote")
    see(charge, claim_id, SightingWord.PENDING, data={"strength": "fair"})
    show = desk.get_by_role("button", name="This call changed: show")
    expect(show).to_be_visible()
    expect(note).to_have_value("The customer wrote")


@pytest.mark.case("U10")
def test_who_loses_the_role_loses_the_socket(desk: Page, ana: User, charge: Tool) -> None:
    desk.goto("/queue/")
    expect_state(desk, "Live")
    Membership.objects.filter(user=ana).delete()
    expect(desk.locator("[data-live-word]")).to_contain_text("Off.")
