"""The grammar of every page beyond `test_every_page`: the system's own colours, text as large as
people need it, the keyboard alone, and no script at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver
from playwright.sync_api import Browser, Page

from effects.core.vocabulary import Role
from tests.browser.conftest import STEP_MILLISECONDS
from tests.browser.test_every_page import NOT_PAGES, ONLY_TAKE_A_FORM, a_full_desk, plain_addresses
from tests.support.desk import a_person
from tests.support.looking import come_in, overflow_pixels

ZOOMED = {"width": 640, "height": 450}
"""A window of 1280 by 900 at 200 %: half as many pixels of CSS, each twice as large."""

# Not from a style sheet of the page: constructed ones are no breach of the content policy.
SPACED = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { letter-spacing: .12em !important; word-spacing: .16em !important;
    line-height: 1.5 !important } p { margin-bottom: 2em !important }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
"""The text spacing that WCAG 2.2 SC 1.4.12 asks a page to bear."""

WORDS = (
    """one => (one.ariaLabel || one.innerText || one.name || one.outerHTML.slice(0, 90)).trim()"""
)
CUT_OFF = f"""() => [...document.querySelectorAll("button, .btn, h1, h2, label, .tabs a, .rail a")]
  .filter(one => one.checkVisibility() && getComputedStyle(one).overflow !== "visible"
    && !one.matches(".visually-hidden, .visually-hidden *")
    && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map({WORDS})"""

# What can have the focus, in the order of the document; a group of radio buttons is one stop.
FOCUSABLE = """[...document.querySelectorAll("a[href], button, input, select, textarea, summary, "
    + "[tabindex='0']")].filter(one => one.checkVisibility({visibilityProperty: true})
  && !one.disabled && one.type !== "hidden" && one.tabIndex >= 0)"""
UNSEEN_FOCUS = f"""() => {{
  const wrong = [], words = {WORDS};
  // A drawing shows the focus on the shapes inside the link.
  const drawn = one => [...one.querySelectorAll("*")].map(getComputedStyle)
    .map(style => style.stroke + style.strokeWidth + style.filter + style.outline).join();
  const look = one => {{
    const style = getComputedStyle(one);
    return style.boxShadow + style.borderColor + (one.ownerSVGElement ? drawn(one) : "");
  }};
  for (const one of {FOCUSABLE}) {{
    if (one.tabIndex > 0) wrong.push("has a place of its own in the order: " + words(one));
    one.blur();
    const before = look(one);
    one.focus();
    if (document.activeElement !== one) {{
      wrong.push("cannot have the focus: " + words(one));
      continue;
    }}
    const now = getComputedStyle(one);
    const ring = now.outlineStyle !== "none" && parseFloat(now.outlineWidth) >= 1;
    if (!ring && look(one) === before) wrong.push("shows no focus: " + words(one));
    const box = one.getBoundingClientRect();
    const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const covers = there && !one.contains(there) && !there.contains(one)
      && !(one.labels && [...one.labels].some(label => label.contains(there)));
    if (covers && box.width > 1 && getComputedStyle(there).position !== "static")
      wrong.push("lies under something with the focus: " + words(one));
  }}
  return wrong;
}}"""

# With the system's colours a control is known by its border or its text alone.
CONTROLS = "button, .btn, input, select, textarea, .badge-s, .tag"
VANISHED = f"""() => [...document.querySelectorAll("{CONTROLS}")]
  .filter(one => one.checkVisibility() && one.type !== "hidden")
  .filter(one => {{
    const style = getComputedStyle(one);
    const bordered = parseFloat(style.borderTopWidth) > 0 && style.borderTopStyle !== "none"
      && style.borderTopColor !== style.backgroundColor;
    const drawn = one.innerText?.trim() || one.querySelector("svg") || one.type === "checkbox"
      || one.type === "radio" || one.type === "file";
    return !bordered && !drawn;
  }}).map({WORDS})"""

DEAD = f"""() => {{
  const seen = one => one.checkVisibility({{visibilityProperty: true}}), wrong = [];
  const words = {WORDS}, all = (what) => [...document.querySelectorAll(what)].filter(seen);
  const headings = all("h1").length;
  if (headings !== 1) wrong.push(headings + " first headings are shown");
  // One field that is a search sends itself by the enter key: the browser's own way.
  for (const one of all("form:not([role=search])"))
    if (![...one.elements].some(part => part.type === "submit" || part.type === "image"))
      wrong.push("a form has no button: " + (one.action || one.id));
  for (const one of all("button[type=button]:not([disabled], [popovertarget], [commandfor])"))
    wrong.push("a button does nothing: " + words(one));
  for (const one of all("input:not([type=button]), select, textarea"))
    if (!one.form && !one.disabled) wrong.push("a field belongs to no form: " + words(one));
  for (const one of all("a:not([href]), a[href='#'], a[href^='javascript']"))
    wrong.push("a link leads nowhere: " + words(one));
  return wrong;
}}"""


@pytest.fixture
def addresses(live_desk: str) -> list[str]:
    """Every page that a plain address leads to, and those of a workspace with something on each.
    Whoever opens them is ada."""
    charge, with_ids = a_full_desk()
    a_person(charge.workspace, Role.ADMIN, "ada")
    plain = set(plain_addresses(get_resolver().url_patterns)) - NOT_PAGES - ONLY_TAKE_A_FORM
    return [*sorted(plain - {"/login/", "/"}), *with_ids]


@pytest.fixture
def open_page(browser: Browser, live_desk: str) -> Iterator[Any]:
    """Opens a page in a browser of another kind, signed in as ada."""
    contexts = []

    def opened(**kind: Any) -> Page:
        context = browser.new_context(base_url=live_desk, reduced_motion="reduce", **kind)
        contexts.append(context)
        context.set_default_timeout(STEP_MILLISECONDS)
        page = context.new_page()
        from django.contrib.auth.models import User  # noqa: PLC0415 - the database is open only now

        come_in(page, User.objects.get(username="ada"), live_desk)
        return page

    yield opened
    for context in contexts:
        context.close()


def test_every_page_bears_200_percent_wide_text_the_systems_colours_and_the_keyboard_alone(
    addresses: list[str], open_page: Any
) -> None:
    page = open_page(viewport=ZOOMED, device_scale_factor=2)
    breaches: list[str] = []
    page.on("console", lambda said: breaches.append(said.text) if "Policy" in said.text else None)
    wrong: list[str] = []
    for address in addresses:
        page.emulate_media(forced_colors="none")
        page.goto(address)
        page.keyboard.press("Tab")  # From here on the browser shows where the focus is.
        wrong += [f"{address}: {said}" for said in page.evaluate(UNSEEN_FOCUS)]
        page.emulate_media(forced_colors="active")
        wrong += [f"{address}, system's colours: {said}" for said in page.evaluate(UNSEEN_FOCUS)]
        wrong += [
            f"{address}, system's colours: not seen: {said}" for said in page.evaluate(VANISHED)
        ]
        page.emulate_media(forced_colors="none")
        page.evaluate(SPACED)
        wrong += [f"{address}: cut off: {said}" for said in page.evaluate(CUT_OFF)]
        if wider := overflow_pixels(page):
            wrong.append(f"{address}: {wider} px too wide at 200 % with wide text")
    assert wrong == []
    assert breaches == []


def test_the_queue_is_walked_through_by_tab_alone_and_nothing_traps_the_focus(
    addresses: list[str], open_page: Any
) -> None:
    page = open_page(viewport={"width": 1280, "height": 900})
    page.goto("/queue/")
    stops = page.evaluate(f"() => {FOCUSABLE}.filter(one => one.type !== 'radio').length")
    page.evaluate("() => { window.met = new Set() }")
    for _ in range(stops + 1):
        page.keyboard.press("Tab")
        page.evaluate("() => { window.met.add(document.activeElement) }")
    not_met = "one => one.type !== 'radio' && !window.met.has(one)"
    missed = f"() => {FOCUSABLE}.filter({not_met}).map({WORDS})"
    assert stops > 20
    assert page.evaluate(missed) == []


def test_every_page_works_without_script(addresses: list[str], open_page: Any) -> None:
    page = open_page(java_script_enabled=False)
    wrong = []
    for address in addresses:
        response = page.goto(address)
        if response is None or response.status != 200:
            wrong.append(f"{address}: answered {response.status if response else 'nothing'}")
            continue
        wrong += [f"{address}: {said}" for said in page.evaluate(DEAD)]
    assert wrong == []
