"""The sandbox's page in a real browser: both counts, every look, a phone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.reading import PROVIDER_FOLDER
from reconcile.sandbox.seed import WORKSPACE_SLUG
from tests import settings as test_settings
from tests.reconcile.sandbox.customer import Customer
from tests.support.desk import a_call, a_keyed_tool, a_lost_call, a_person, a_workspace, complete
from tests.support.looking import (
    PHONE,
    come_in,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)


@pytest.fixture
def demo(live_desk: str) -> Workspace:
    return a_workspace(WORKSPACE_SLUG)


@pytest.fixture
def charge(demo: Workspace) -> Tool:
    return a_keyed_tool(demo)


@pytest.fixture
def shopper(live_desk: str) -> Iterator[Customer]:
    with Provider(test_settings.TEST_VAR / PROVIDER_FOLDER) as provider:
        customer = Customer(provider.url)
        yield customer
        customer.close()


def test_both_counts_stand_side_by_side_in_every_look_and_on_a_phone(
    page: Page, live_desk: str, demo: Workspace, charge: Tool, shopper: Customer
) -> None:
    answer = a_call(charge, arguments={"order": "8841"})
    shopper.pay(answer.key or "", metadata={"counterfoil": answer.marker or ""})
    complete(charge, answer)
    a_lost_call(charge, arguments={"order": "8842"})
    come_in(page, a_person(demo, Role.SUPPORT, "ana"), live_desk)
    page.goto("/sandbox/")
    expect(page.locator("#effects")).to_have_text("1")
    expect(page.locator("#operations")).to_have_text("2")
    expect(page.get_by_text("They agree")).to_be_visible()
    keep_picture(page, "sandbox")
    assert faults_in_every_look(page) == {}
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    assert overflow_pixels(page) == 0
    page.get_by_role("link", name="Unknown", exact=False).first.click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
