"""What a browser test asks of any page: is it accessible, does it fit, what does it look like."""

import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page

PHONE = {"width": 320, "height": 720}
DESK = {"width": 1440, "height": 900}

_RULES = {
    "resultTypes": ["violations"],  # What passes need not be described node by node.
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
}
_COLOUR = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast"]},
}
_LOOKS = (
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "light", "forced_colors": "active"},
)


def faults(page: Page) -> list[str]:
    """What axe-core finds on the page as it is now, in words."""
    found = Axe().run(page, options=_RULES).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for fault in found
        for node in fault["nodes"]
    ]


def faults_of_colour(page: Page) -> list[str]:
    """As much of it as another colour scheme can change: what is too pale to be read. Asked after
    `faults`, which brings axe-core to the page."""
    found = page.evaluate("options => axe.run(document, options)", _COLOUR)["violations"]
    return [f"{fault['id']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]


def faults_in_every_look(page: Page) -> dict[str, list[str]]:
    """The same in light, in dark and with the system's own colours, where there are any faults."""
    found: dict[str, list[str]] = {}
    for look in _LOOKS:
        # A colour that is still on its way to another theme would be measured half-way.
        how = {"forced_colors": "none", "reduced_motion": "reduce", **look}
        page.emulate_media(**how)  # type: ignore[arg-type]  # words
        if bad := faults(page):
            found[" ".join(look.values())] = bad
    page.emulate_media(color_scheme="light", forced_colors="none", reduced_motion="no-preference")
    return found


def come_in(page: Page, user: User, desk: str) -> None:
    """Signs a person in at the desk without the form, which has tests of its own."""
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": session.key, "value": session.value, "url": desk}])


def give_password(user: User, password: str) -> None:
    """A password that the real desk can check: the fast hash of the tests is not known there."""
    hasher = PBKDF2PasswordHasher()
    user.password = hasher.encode(password, hasher.salt(), iterations=1000)
    user.save(update_fields=["password"])


def overflow_pixels(page: Page) -> int:
    """By how much the page itself is wider than its window; a region inside may scroll."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


def keep_picture(page: Page, name: str) -> None:
    """A screenshot for people, only where somebody asked for one by SHOTS."""
    folder = os.environ.get("SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
