"""The page about webhooks in a real browser: it fits, it is accessible, and an admin sets it up."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from effects.models import Connection, Workspace
from ledger import queries
from reconcile.models import WebhookAddress, WebhookDelivery
from reconcile.webhooks import facts_of, store
from tests.support.desk import a_keyed_tool, a_person, a_workspace
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def account(shop: Workspace) -> Connection:
    a_keyed_tool(shop)
    return Connection.objects.get(workspace=shop, kind="stripe")


def event(number: int) -> bytes:
    item = {"id": f"pi_{number}", "object": "payment_intent", "status": "succeeded"}
    return json.dumps(
        {
            "id": f"evt_{number}_" + "x" * 40,
            "object": "event",
            "type": "payment_intent.succeeded <b>",
            "data": {"object": item},
        }
    ).encode()


def test_the_page_is_accessible_and_fits(
    page: Page, live_desk: str, shop: Workspace, account: Connection
) -> None:
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    WebhookAddress.objects.create(
        connection=account,
        public_id="a" * 32,
        secret_name="STRIPE_WEBHOOK_SECRET",
        refused_count=2,
        refused_at=queries.clock(),
        refused_why="It was signed 900 s ago.",
    )
    for number, state in enumerate(WebhookDelivery.State.values):
        body = event(number)
        delivery_id, _ = store(account, body, facts_of("stripe", body, {}), now=queries.clock())
        WebhookDelivery.objects.filter(pk=delivery_id).update(state=state, note="why " * 60)
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto(f"{live_desk}/webhooks/")
        assert overflow_pixels(page) == 0
        assert not look_for_faults(page)
        keep_picture(page, f"webhooks-{size['width']}")
    page.get_by_role("button", name="Apply again").first.click()
    expect(page.get_by_text("is applied again.")).to_be_visible()


def test_an_admin_makes_an_address(
    page: Page, live_desk: str, shop: Workspace, account: Connection
) -> None:
    come_in(page, a_person(shop, Role.ADMIN, "tomas"), live_desk)
    page.goto(f"{live_desk}/notifications/")
    page.get_by_role("navigation", name="Messages").get_by_role("link", name="Webhooks").click()
    page.get_by_label("Variable with the signing secret").fill("STRIPE_WEBHOOK_SECRET")
    page.get_by_role("button", name="Make an address").click()

    address = WebhookAddress.objects.get(connection=account)
    expect(page.get_by_text(address.public_id)).to_be_visible()
    expect(page.get_by_text("is not set where this desk runs")).to_be_visible()
