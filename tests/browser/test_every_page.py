"""Every page of the desk that an address leads to: does it keep the rules that all pages have.

The list is not written down: it is read from the addresses themselves, so a page that is added
tomorrow is judged tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page

from effects.core.vocabulary import Role, SightingWord
from effects.models import Membership, Tool
from ledger import queries
from tests.ledger.mirror import event, tell
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
from tests.support.looking import PHONE, come_in, faults, faults_of_colour, overflow_pixels

WIDE = {"width": 1280, "height": 900}

NOT_PAGES = frozenset(
    {
        *("/healthz", "/readyz", "/api/openapi.json", "/logout/", "/workspace/", "/v1/traces"),
        *("/queue/export", "/duplicates/export.csv"),
        *("/exposure/export.csv", "/trends/export.csv", "/weekly-report/export.csv"),
        *("/tools/double-fire/export.csv", "/tools/file/export.toml"),
        *("/audit-log/export.csv", "/audit-log/export.jsonl"),
    }
)
"""Answers to programs, and addresses that only take a form."""
ONLY_TAKE_A_FORM = frozenset(
    {
        "/bulk/new/",
        "/chain/verify/",
        "/outbox/addresses",
        "/queue/views/new",
        "/runs/start/",
        "/settings/sessions/end/",
        "/second-person/retire/",
        *("/redaction/secrets/", "/retention/count/"),
        *("/tools/file/import/", "/tools/file/tools-list/"),
    }
)


def plain_addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    """The addresses that are complete as they stand: no id, no name, and not of the API."""
    for one in patterns:
        address = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from plain_addresses(one.url_patterns, address)
        elif not set("<>^(") & set(address) and not address.startswith("/api/v"):
            yield address


def a_full_desk() -> tuple[Tool, list[str]]:
    """A workspace with something on every page, and the addresses that need an id from it."""
    shop = a_workspace()
    charge, gift = a_keyed_tool(shop), an_unkeyed_tool(shop)
    weak = a_lost_call(charge)
    a_lost_call(gift, arguments={"amount": 250})
    see(charge, weak, SightingWord.ABSENT, data={"strength": "weak"})
    see(charge, weak, SightingWord.PENDING, data={"strength": "fair"})
    done = complete(charge, a_call(charge))
    ben = a_person(shop, Role.VIEWER, "ben")
    claim = queries.claim(shop.pk, weak)
    place: dict[str, Any] = {"conversation": claim.conversation, "turn_index": claim.turn_index}
    cut = event("s1", "stream.recorded", stream="s1", terminal="cut", **place)
    tell(shop.pk, cut, streams=True)
    turn = reverse("turns") + f"?conversation={claim.conversation}"
    return charge, [
        *(reverse("call", args=[claim_id]) for claim_id in (weak, done)),
        reverse("tool", args=[charge.pk]),
        reverse("tool-simulation", args=[charge.pk]),
        reverse("person", args=[Membership.objects.get(user=ben).pk]),
        turn,
        f"{turn}&turn={claim.turn_index}",
        reverse("queue") + "?view=all",
    ]


def complaints(page: Page, address: str) -> list[str]:
    """What is wrong with the page at this address, in words."""
    found: list[str] = []
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]  # width and height
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    response = page.goto(address)
    if response is None or response.status >= 500:
        return [f"{address}: answered {response.status if response else 'nothing'}"]
    if response.status == 405:
        return [f"{address}: takes no GET: is it a page?"]
    if len(page.locator("h1").all()) != 1:
        found.append(f"{address}: has {page.locator('h1').count()} first headings")
    if page.title() in {"", "Counterfoil - Counterfoil"}:
        found.append(f"{address}: has no title of its own")
    found += [f"{address}: {fault}" for fault in faults(page)]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += [f"{address}, dark: {fault}" for fault in faults_of_colour(page)]
    page.emulate_media(color_scheme="light", forced_colors="active")
    found += [f"{address}, forced colours: {fault}" for fault in faults_of_colour(page)]
    page.emulate_media(forced_colors="none")
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        if wider := overflow_pixels(page):
            found.append(f"{address}: {wider} px too wide at {size['width']} px")
    return found


def test_every_page_has_a_title_fits_a_phone_and_is_accessible_in_light_and_dark(
    page: Page, live_desk: str
) -> None:
    # That no page breaks the content policy or fails in script is asked by the `page` itself.
    charge, with_ids = a_full_desk()
    plain = set(plain_addresses(get_resolver().url_patterns)) - NOT_PAGES - ONLY_TAKE_A_FORM
    assert {"/queue/", "/tools/", "/people/", "/settings/"} <= plain
    before = [f"{one} signed out" for one in complaints(page, "/login/")]
    come_in(page, a_person(charge.workspace, Role.ADMIN, "ada"), live_desk)
    addresses = sorted(plain - {"/login/"}) + with_ids
    found = [wrong for address in addresses for wrong in complaints(page, address)]

    assert before + found == []
