"""The outbox in a real browser: it fits, it is accessible, and an admin sets an address up."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, Verdict
from ledger import append, queries
from reconcile.outbox import composing
from reconcile.outbox.models import AgentAddress, OutboxDelivery
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.mark.usefixtures("live_desk")
def test_an_admin_sets_an_address_up_and_reads_what_was_told(page: Page, live_desk: str) -> None:
    shop = a_workspace()
    tool = a_keyed_tool(shop)
    tomas = a_person(shop, Role.ADMIN, "tomas")
    come_in(page, tomas, live_desk)
    page.goto(f"{live_desk}/outbox/")
    page.get_by_text("Add an address").click()
    page.get_by_label("Name").fill("Billing agent")
    page.get_by_label("Address", exact=True).fill(
        "https://agents.example.com/a/long/" + "way/" * 30
    )
    page.get_by_label("Variable with the signing secret").fill("whsec_inside")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("in capitals, not the secret itself")).to_be_visible()
    page.get_by_label("Variable with the signing secret").fill("BILLING_AGENT_SECRET")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("is told from now on")).to_be_visible()

    for state in OutboxDelivery.State.values:
        claim_id = a_lost_call(tool)
        version = queries.claim(shop.pk, claim_id).version
        append.decide(
            shop.pk,
            claim_id,
            append.NewDecision(
                verdict=Verdict.CLOSE,
                claim_version=version,
                reason="because",
                user_id=tomas.pk,
                hold_seconds=0,
            ),
        )
        composing.compose()
        line = {
            "at": queries.clock().isoformat(),
            "status": 500,
            "said": "Answered 500: " + "x" * 200,
        }
        OutboxDelivery.objects.filter(pk=OutboxDelivery.objects.latest("pk").pk).update(
            state=state, log=[line], tries=1, last_at=queries.clock(), last_said=line["said"]
        )
    AgentAddress.objects.update(failing_since=queries.clock())
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto(f"{live_desk}/outbox/")
        assert overflow_pixels(page) == 0
        assert not look_for_faults(page)
        keep_picture(page, f"outbox-{size['width']}")
    page.get_by_role("button", name="Send a test message").click()
    expect(page.get_by_text("address.test")).to_be_visible()
