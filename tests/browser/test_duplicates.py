"""The pages about duplicates in a real browser: they fit, are accessible, and settle a group."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from effects.models import Workspace
from reconcile.duplicates import finding
from reconcile.models import DuplicateGroup
from tests.support.desk import a_person, a_workspace, an_unkeyed_tool, ask, complete
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "LAG_SECONDS", -1.0)


def a_group(shop: Workspace) -> DuplicateGroup:
    """One gift card that was made twice, in two turns, by two agents."""
    tool = an_unkeyed_tool(shop)
    said = {"amount": 200, "customer": "cus_" + "long" * 20, "order": "1"}
    for turn, agent in ((1, "billing"), (4, "support")):
        answer = ask(
            tool,
            arguments=said,
            conversation="talk",
            turn_index=turn,
            response_id=f"response-{turn}",
            call_id=f"call_{turn}" + "a" * 16,
            agent=agent,
            nonce=uuid4().hex,
        )
        complete(tool, answer, f"gift_{turn}")
    finding.search(shop.pk)
    return DuplicateGroup.objects.get(rule="same_thing")


def test_the_pages_are_accessible_and_fit_and_a_person_settles_a_group(
    page: Page, live_desk: str
) -> None:
    shop = a_workspace()
    group = a_group(shop)
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        for address in ("", f"{group.pk}/", "constants/"):
            page.goto(f"{live_desk}/duplicates/{address}")
            assert overflow_pixels(page) == 0
            assert not look_for_faults(page)
            keep_picture(page, f"duplicates-{address.replace('/', '')}-{size['width']}")
    page.goto(f"{live_desk}/duplicates/")
    page.get_by_role("link", name="compare side by side").click()
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible()
    page.get_by_label("Why").fill("The customer has two gift cards.")
    page.get_by_role("button", name="Confirmed as a duplicate").click()
    expect(page.get_by_text("The group is now: confirmed.")).to_be_visible()
    assert DuplicateGroup.objects.get(pk=group.pk).state == "confirmed"
