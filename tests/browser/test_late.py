"""The page of what was told otherwise, with something on it: at both widths, in both colours."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from ledger import queries
from reconcile.late import alerts
from reconcile.models import Alert, Contradiction
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    overflow_pixels,
)


@pytest.mark.usefixtures("live_desk")
def test_whoever_was_told_otherwise_is_listed_until_somebody_says_that_they_know(
    page: Page, live_desk: str
) -> None:
    shop = a_workspace()
    tool = a_keyed_tool(shop)
    tomas = a_person(shop, Role.SUPPORT, "tomas")
    for told, became in (("not_executed", "completed"), ("completed", "conflicted")):
        claim_id = a_lost_call(tool, arguments={"amount": 4200, "customer": "x" * 60})
        Contradiction.objects.create(
            workspace=shop, claim_id=claim_id, version=2, told=told, became=became,
            at=queries.clock() - timedelta(minutes=5),
        )  # fmt: skip
    alerts.tick()
    Alert.objects.filter(contradiction__told="completed").update(person=tomas, agent="")

    come_in(page, tomas, live_desk)
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto(f"{live_desk}/told-otherwise/")
        assert overflow_pixels(page) == 0
        assert not look_for_faults(page)
    expect(page.get_by_text("tomas, who decided it")).to_be_visible()
    page.set_viewport_size(DESK)  # type: ignore[arg-type]  # as above
    page.get_by_role("button", name="They know").first.press("Enter")
    expect(page.get_by_text("Marked as told")).to_be_visible()
    page.get_by_role("link", name="Told", exact=True).click()
    expect(page).to_have_url(f"{live_desk}/told-otherwise/?show=seen")
    assert not faults(page)
