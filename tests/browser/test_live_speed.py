"""What is live is quick, and nothing moves under the eyes of who reads."""

from __future__ import annotations

import random
import statistics
import time
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, SightingWord
from effects.models import Tool
from ledger import queries
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see
from tests.support.looking import come_in

SHIFT_MAX = 0.01
"""Of the browser's own measure: the share of the window that moved, times how far it moved."""
SECONDS_AT_P95_MAX = 1.5
CHANGES = 60

WATCH_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) {
      const what = one.sources.map(source => source.node?.nodeName + "." + source.node?.className);
      window.shifts.push([one.value, what.join(" ")]);
    }
  }).observe({type: "layout-shift", buffered: false});
}"""

# Not Playwright's own waiting: it looks ten times a second, and evaluates a text, which the content
# policy of our pages does not allow.
ONCE = """([what, wanted]) => new Promise((done, never) => {
  const there = () => what === "title" ? document.title.startsWith(wanted)
    : document.getElementById(`ev${wanted}`) !== null;
  const began = performance.now();
  const look = setInterval(() => {
    if (there()) { clearInterval(look); done(); }
    else if (performance.now() - began > 8000) { clearInterval(look); never(`no ${what}`); }
  }, 10);
})"""


@pytest.fixture
def charge(live_desk: str) -> Tool:
    return a_keyed_tool(a_workspace())


@pytest.fixture
def desk(page: Page, live_desk: str, charge: Tool) -> Page:
    ana: User = a_person(charge.workspace, Role.SUPPORT, "ana")
    come_in(page, ana, live_desk)
    return page


def is_live(desk: Page) -> None:
    expect(desk.locator("[data-live-word]")).to_have_text("Live")


def titled(desk: Page, undecided: int) -> None:
    desk.evaluate(ONCE, ["title", f"({undecided})"])


def newest_shown(desk: Page, charge: Tool, claim_id: UUID) -> None:
    """The newest event of the call, which is evidence, is a card of the page."""
    claim = queries.claim(charge.workspace_id, claim_id)
    desk.evaluate(ONCE, ["evidence", claim.version])


def shifted(desk: Page) -> list[tuple[float, str]]:
    desk.wait_for_timeout(100)  # The browser tells of a frame after it was drawn.
    return [(value, what) for value, what in desk.evaluate("window.shifts")]


def test_nothing_moves_on_the_queue_while_changes_arrive(desk: Page, charge: Tool) -> None:
    for _ in range(3):
        a_lost_call(charge)
    desk.goto("/queue/")
    is_live(desk)
    desk.evaluate(WATCH_SHIFTS)
    for undecided in (4, 5):
        a_lost_call(charge)
        titled(desk, undecided)
    expect(desk.get_by_role("button", name="2 changes: show")).to_be_visible()
    assert sum(value for value, _ in shifted(desk)) < SHIFT_MAX, shifted(desk)


def test_nothing_above_what_is_new_moves_on_the_page_of_a_call(desk: Page, charge: Tool) -> None:
    claim_id = a_lost_call(charge)
    see(charge, claim_id, SightingWord.PENDING, data={"strength": "fair"})
    desk.goto(f"/calls/{claim_id}")
    is_live(desk)
    desk.evaluate(WATCH_SHIFTS)
    see(charge, claim_id, SightingWord.PENDING, data={"strength": "fair"})
    newest_shown(desk, charge, claim_id)
    assert sum(value for value, _ in shifted(desk)) < SHIFT_MAX, shifted(desk)


def change_queue(desk: Page, charge: Tool, number: int, _: UUID) -> float:
    a_lost_call(charge)
    began = time.monotonic()
    titled(desk, number + 2)
    return time.monotonic() - began


def change_call(desk: Page, charge: Tool, _: int, claim_id: UUID) -> float:
    see(charge, claim_id, SightingWord.PENDING, data={"strength": "fair"})
    began = time.monotonic()
    newest_shown(desk, charge, claim_id)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("what", [change_queue, change_call], ids=["queue", "call"])
def test_a_change_is_on_an_open_page_within_one_and_a_half_seconds(
    desk: Page, charge: Tool, what: object
) -> None:
    """Half of the changes come at once after the one before, half after a while."""
    assert callable(what)
    claim_id = a_lost_call(charge)
    desk.goto("/queue/" if what is change_queue else f"/calls/{claim_id}")
    is_live(desk)
    chance = random.Random(7)
    taken = []
    for number in range(CHANGES):
        taken.append(what(desk, charge, number, claim_id))
        time.sleep(chance.choice((0.0, 3 * chance.random())))
    deciles = statistics.quantiles(taken, n=20)
    print(f"seconds: median {deciles[9]:.2f}, p95 {deciles[18]:.2f}, most {max(taken):.2f}")
    assert deciles[18] <= SECONDS_AT_P95_MAX
