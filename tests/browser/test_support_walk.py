"""Support's whole way with nothing but a keyboard: find, take, ask, decide, undo, decide, next."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, Verdict
from effects.models import Connection, Membership, Tool, Workspace
from ledger.models import Decision
from reconcile.models import Take
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace
from tests.support.looking import come_in, faults_in_every_look
from tests.support.road import WORKER_MILLISECONDS

TABS_MAX = 60
"""Longest way to anything on a page; a person would have given up by then."""


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace, worker: str) -> Tool:
    """A tool whose provider is the sandbox, which a real worker asks."""
    tool = a_keyed_tool(shop)
    Connection.objects.filter(workspace=shop).update(
        base_url=worker, secret_name="SANDBOX_READ_KEY"
    )
    return tool


@pytest.fixture
def desk(page: Page, live_desk: str, shop: Workspace) -> Page:
    """A page whose mouse is taken away: a click that a test makes fails it."""
    come_in(page, a_person(shop, Role.SUPPORT, "ana"), live_desk)
    page.add_init_script(
        "addEventListener('pointerdown', () => { throw new Error('a pointer was used'); }, true)"
    )
    return page


def tab_to(page: Page, words: str, *, back: bool = False) -> None:
    """Tabs on until what has the focus is called so. Fails where the way is too long."""
    wanted = re.compile(words)
    for _ in range(TABS_MAX):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        named = page.evaluate(
            """() => { const one = document.activeElement;
               return one.labels?.[0]?.textContent ?? one.getAttribute('aria-label')
                 ?? one.textContent; }"""
        )
        if wanted.search(" ".join(named.split())):
            return
    raise AssertionError(f"no way to {words!r} by the Tab key")


def choose(page: Page, label: str) -> None:
    """Picks a decision by the number that stands beside it, which decides nothing, and opens its
    review."""
    before = Decision.objects.count()
    card = page.locator("label.act", has_text=label)
    page.keyboard.press(card.locator("kbd").inner_text())
    expect(card.get_by_role("radio")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert Decision.objects.count() == before


def record(page: Page, reason: str) -> None:
    """Gives the reason and sends the review by two keys at once."""
    tab_to(page, "^Reason")
    page.keyboard.type(reason)
    before = Decision.objects.count()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert Decision.objects.count() == before + 1


def test_support_settles_a_call_without_a_mouse(desk: Page, shop: Workspace, charge: Tool) -> None:
    first = a_lost_call(charge, arguments={"amount": 14900})
    following = a_lost_call(charge, arguments={"amount": 14900})
    a_lost_call(charge, arguments={"amount": 777})

    # Find by the amount, as a customer says it.
    desk.goto("/queue/")
    desk.keyboard.press("/")
    desk.keyboard.type("149,00 EUR")
    desk.keyboard.press("Enter")
    expect(desk.locator("tr[data-row]")).to_have_count(2)
    desk.keyboard.press("j")
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("heading", level=1)).to_contain_text("149.00 EUR")
    assert str(first) in desk.url
    expect(desk.get_by_role("navigation", name="In this view")).to_contain_text("1 of 2")

    # Take it, and ask.
    desk.keyboard.press("t")
    expect(desk.get_by_text("With you", exact=True)).to_be_visible()
    assert Take.objects.get(claim_id=first, ended_at=None).taken_by.username == "ana"
    desk.keyboard.press("a")
    expect(desk.get_by_text(re.compile("Stripe answered"))).to_be_visible(
        timeout=WORKER_MILLISECONDS
    )

    # Decide, take it back, decide otherwise.
    choose(desk, "Release with the same key")
    record(desk, "The key still holds.")
    expect(desk.get_by_role("heading", name=re.compile("^Held: release"))).to_be_visible()
    tab_to(desk, "^Undo")
    desk.keyboard.press("Enter")
    expect(desk.get_by_text("is taken back")).to_be_visible()
    choose(desk, "Stop: do not retry")
    record(desk, "The customer wants no second try.")
    expect(desk.get_by_role("heading", name=re.compile("^Held: stop"))).to_be_visible()
    verdicts = list(Decision.objects.order_by("chain_number").values_list("verdict", flat=True))
    assert verdicts == [Verdict.RELEASE_SAME, Verdict.WITHDRAW, Verdict.CLOSE]

    # The next call is that of the same list: the one of 7.77 is none of it.
    tab_to(desk, "^Next in this view")
    desk.keyboard.press("Enter")
    desk.wait_for_url(f"**/calls/{following}**")
    expect(desk.get_by_role("navigation", name="In this view")).to_contain_text("2 of 2")
    expect(desk.get_by_role("link", name="Back to the view")).to_be_visible()
    assert faults_in_every_look(desk) == {}


def test_keys_are_ones_own_and_can_be_turned_off(
    desk: Page, live_desk: str, shop: Workspace
) -> None:
    desk.goto("/settings/keys/")
    desk.get_by_label("Next row").fill("d")
    desk.get_by_label("Search", exact=True).fill("q")
    desk.keyboard.press("Enter")
    expect(desk.get_by_text("Your keys are kept.")).to_be_visible()
    tool = a_keyed_tool(shop)
    call = a_lost_call(tool)
    desk.goto("/queue/")
    desk.keyboard.press("j")
    expect(desk.locator("tr.cursor")).to_have_count(0)
    desk.keyboard.press("d")
    expect(desk.locator("tr.cursor a.main")).to_be_focused()
    # A button of the bar means the row that one stands on; what is taken there is no decision.
    desk.keyboard.press("t")
    expect(desk.get_by_text("1 of 1 call is with you for 10 minutes.")).to_be_visible()
    assert Take.objects.get().claim_id == call
    expect(desk.get_by_role("link", name=re.compile("^With me"))).to_contain_text("1")

    desk.keyboard.press("?")
    sheet = desk.get_by_role("dialog", name="Keyboard")
    expect(sheet.locator("div", has_text=re.compile("^Next row")).locator("kbd")).to_have_text("d")
    with desk.expect_response("**/settings/keys/"):
        tab_to(desk, "Single-letter keys on")
        desk.keyboard.press("Space")
    desk.keyboard.press("Escape")
    desk.keyboard.press("q")
    expect(desk.locator("input[type=search]:focus")).to_have_count(0)
    desk.reload()
    desk.keyboard.press("?")
    expect(sheet).not_to_be_visible()
    # Beyond this session, too.
    desk.context.clear_cookies()
    come_in(desk, a_person_again(shop), live_desk)
    desk.goto("/settings/keys/")
    expect(desk.get_by_text("Keys are off")).to_be_visible()
    expect(desk.get_by_label("Next row")).to_have_value("d")


def a_person_again(shop: Workspace) -> User:
    return Membership.objects.get(workspace=shop, user__username="ana").user
