"""Trends in a real browser: charts are drawn from the tables beside them, and read with keys."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from tests.reconcile.exposure.a_month import a_month
from tests.support.desk import a_keyed_tool, a_person, a_workspace, an_unkeyed_tool
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)

# Whether each canvas is painted, how high the boxes are, and how much of the first one is as bright
# as the lines of a light grid.
PAINTED = """() => [...document.querySelectorAll(".chart canvas")].map(canvas =>
  canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
    .some(byte => byte > 0))"""
HEIGHTS = '() => [...document.querySelectorAll(".chart")].map(box => box.offsetHeight)'
BRIGHT = """() => { const canvas = document.querySelector(".chart canvas");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let bright = 0; for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && data[at] > 200 && data[at + 1] > 200) bright += 1;
  return bright; }"""
SHIFTS = """() => new Promise(done => { let sum = 0;
  new PerformanceObserver(list => { for (const one of list.getEntries()) sum += one.value; })
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 100); })"""


def until(page: Page, holds: Callable[[], bool]) -> None:
    """The policy of the page forbids what a wait inside of it would need."""
    for _ in range(40):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("It did not come to hold within two seconds.")


def test_charts_are_drawn_from_their_tables_and_read_with_the_arrow_keys(
    page: Page, live_desk: str
) -> None:
    shop = a_workspace()
    a_month(shop, a_keyed_tool(shop, name="<b>charge</b>"), an_unkeyed_tool(shop))
    come_in(page, a_person(shop, Role.VIEWER, "vera"), live_desk)
    page.goto(f"{live_desk}/trends/")
    expect(page.locator(".chart canvas")).to_have_count(5)
    assert page.evaluate(PAINTED) == [True] * 5
    assert page.evaluate(HEIGHTS) == [240, 200, 200, 200, 200]
    in_light = page.evaluate(BRIGHT)
    assert page.evaluate(SHIFTS) < 0.01
    # A name that a model wrote is text in the key, and nothing else.
    expect(page.locator(".chart-key").first).to_contain_text("<b>charge</b>")

    chart = page.get_by_role("group", name="Unknown rate, chart")
    chart.focus()
    page.keyboard.press("ArrowRight")
    hint = page.locator(".chart-hint").first
    last = page.locator("#d-unknown-rate tbody tr").last
    day = last.locator("th").text_content() or ""
    expect(hint).to_contain_text(f"{day}: All tools")
    page.keyboard.press("ArrowLeft")
    expect(hint).not_to_contain_text(day)
    page.keyboard.press("Home")
    expect(hint).to_contain_text("All tools 0 %")

    page.get_by_text("The same as a table").first.click()
    expect(last).to_be_visible()
    assert not faults_in_every_look(page)
    # A chart is drawn anew in another scheme, and again in the first.
    page.emulate_media(color_scheme="dark")
    until(page, lambda: page.evaluate(BRIGHT) < in_light / 2)
    page.emulate_media(color_scheme="light")
    until(page, lambda: page.evaluate(BRIGHT) > in_light / 2)
    keep_picture(page, "trends")

    page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    canvas = page.locator(".chart canvas").first
    until(page, lambda: (canvas.bounding_box() or {"width": 999})["width"] < 320)
    assert overflow_pixels(page) == 0
    assert not faults(page)

    for address in ("exposure", "weekly-report"):
        page.goto(f"{live_desk}/{address}/")
        assert overflow_pixels(page) == 0
        page.set_viewport_size(DESK)  # type: ignore[arg-type]  # width and height
        assert not faults_in_every_look(page)
        keep_picture(page, address)
