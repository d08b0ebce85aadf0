"""Pages that stay true while they are open, against a real desk and its socket."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, WebSocketRoute, expect

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


def rows_of(desk: Page) -> list[str]:
    """What the rows say, without what passes with every second."""
    found: list[str] = desk.locator("tr[data-row]").evaluate_all(
        r"""rows => rows.map((row) => { const copy = row.cloneNode(true);
          for (const one of copy.querySelectorAll('time, .c-age')) one.remove();
          return copy.textContent.replace(/\s+/g, ' '); })"""
    )
    return found


@pytest.mark.case("U08", "U10")
def test_a_queue_that_lost_its_connection_ends_up_as_a_fresh_page(
    desk: Page, charge: Tool, shop: Workspace
) -> None:
    lines: list[WebSocketRoute] = []

    def through(line: WebSocketRoute) -> None:
        lines.append(line)
        line.connect_to_server()

    desk.route_web_socket("**/live/queue", through)
    stays, ends = a_lost_call(charge), a_lost_call(charge)
    desk.goto("/queue/")
    expect_state(desk, "Live")
    icon = desk.locator("link[rel=icon]")
    quiet = icon.get_attribute("href")

    lines[0].close(code=1006)
    expect_state(desk, "Reconnecting")
    see(charge, ends, SightingWord.FOUND, objects=("pi_1",), counts=True)
    soon = a_keyed_tool(shop, name="soon", window_seconds=3600)
    a_lost_call(soon, arguments='{"amount": 1970670598291982290, "currency": "eur"}')
    expect_state(desk, "Live")
    show = desk.get_by_role("button", name="2 changes: show")
    expect(show).to_be_visible()
    # What is over is still shown until somebody looks, and the page says that it is not all true.
    expect(desk.locator(f"tr[data-row='{ends}']")).to_be_visible()
    expect(icon).not_to_have_attribute("href", quiet or "")
    show.click()
    expect(desk.locator(f"tr[data-row='{stays}']")).to_be_visible()
    expect(desk.locator(f"tr[data-row='{ends}']")).to_have_count(0)
    expect(desk.get_by_text("19,706,705,982,919,822.90").first).to_be_visible()
    kept = rows_of(desk)
    desk.reload()
    assert rows_of(desk) == kept


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
