"""Notifications in a real browser: a rule is made, a channel tried, a call acknowledged."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from reconcile.models import NotificationDelivery
from reconcile.notify import sending, telling
from tests.reconcile.notify.chat import chat
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, an_unkeyed_tool
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


def make_a_rule(page: Page) -> None:
    page.get_by_role("link", name="Add a rule").first.click()
    page.get_by_label("Name").fill("Closing soon")
    page.get_by_label("Length of time (optional)").fill("soon")
    page.get_by_label("Payments room").check()
    page.get_by_role("button", name="Put this rule in force").click()
    expect(page.get_by_text("with its unit").first).to_be_visible()
    assert not faults(page)
    keep_picture(page, "notification-rule-refused")
    page.get_by_label("Length of time (optional)").fill("30 h")
    page.get_by_label("Quiet from").fill("22:00")
    page.get_by_label("Quiet until").fill("22:01")
    page.get_by_role("button", name="Put this rule in force").click()
    expect(page.get_by_text("Would tell of 2 now")).to_be_visible()


def look_at(page: Page, desk: str, own: str) -> None:
    """No page is too wide; the plain addresses are judged by the test of every page."""
    addresses = {
        "notifications": "/notifications/",
        "notification-rule": "/notifications/rules/new/",
        "notification-channel": "/notifications/channels/new/?kind=email",
        "notification": own,
    }
    for size in (DESK, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        for name, address in addresses.items():
            page.goto(f"{desk}{address}")
            assert overflow_pixels(page) == 0, address
            keep_picture(page, f"{name}-{size['width']}")
    assert not faults_in_every_look(page)


@pytest.mark.usefixtures("live_desk")
def test_a_lead_makes_a_rule_tries_a_channel_and_acknowledges(page: Page, live_desk: str) -> None:
    shop = a_workspace()
    tool, gift = a_keyed_tool(shop), an_unkeyed_tool(shop)
    lea = a_person(shop, Role.LEAD, "lea")
    User.objects.filter(pk=lea.pk).update(email="lea@example.com")
    come_in(page, lea, live_desk)
    a_lost_call(tool, arguments={"customer": "cus_" + "long" * 20})
    a_lost_call(tool)
    a_lost_call(gift, arguments={"amount": 250})
    with chat() as room, override_settings(COUNTERFOIL_PRIVATE_ORIGINS=[room.origin]):
        a_channel(shop, "slack", lea, name="Payments room", url=room.url)
        page.goto(f"{live_desk}/notifications/")
        make_a_rule(page)
        page.get_by_role("button", name="Send a test").click()
        sending.send(NotificationDelivery.objects.get().pk)
        page.get_by_role("link", name="Look again").click()
        expect(page.get_by_text("Taken.")).to_be_visible()
        assert len(room.taken) == 1

        room.statuses, room.says = [500], "internal error " + "x" * 150
        a_rule(shop, lea, condition="untaken", within_seconds=1, name="Nobody has it")
        telling.tell(shop.pk)
        for waiting in NotificationDelivery.objects.filter(state="waiting"):
            sending.send(waiting.pk)

    page.goto(f"{live_desk}/notifications/")
    expect(page.get_by_text("Failing")).to_be_visible()
    page.get_by_role("link", name="2 calls close within").click()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("2 calls acknowledged")).to_be_visible()
    look_at(page, live_desk, page.url.removeprefix(live_desk))
