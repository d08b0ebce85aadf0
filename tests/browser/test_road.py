"""The whole road on real parts: an agent loses an answer, support settles it, it hears of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role, TokenScope, Verdict
from effects.models import Connection, Tool, Workspace
from ledger import auth
from ledger.models import Claim, Decision
from tests.support.clock import ShiftedClock
from tests.support.desk import a_keyed_tool, a_person, a_workspace
from tests.support.looking import come_in
from tests.support.road import WORKER_MILLISECONDS, decide


@pytest.fixture
def shop(live_desk: str, live_api: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace, worker: str) -> Tool:
    tool = a_keyed_tool(shop)
    Connection.objects.filter(workspace=shop).update(
        base_url=worker, secret_name="SANDBOX_READ_KEY"
    )
    return tool


@pytest.fixture
def agent(
    shop: Workspace, charge: Tool, live_api: str, worker: str
) -> Iterator[subprocess.Popen[str]]:
    _, token = auth.issue(shop, "agent", [TokenScope.CLAIM], None)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.browser.agent", live_api, token, worker],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def clock(live_desk: str) -> Iterator[ShiftedClock]:
    shifted = ShiftedClock()
    yield shifted
    shifted.restore()


def test_support_settles_a_lost_charge_and_the_agents_own_process_prints_the_decision(
    page: Page,
    live_desk: str,
    shop: Workspace,
    agent: subprocess.Popen[str],
    clock: ShiftedClock,
) -> None:
    assert agent.stdout is not None
    told = json.loads(agent.stdout.readline())
    assert told["status"] == "unknown"

    come_in(page, a_person(shop, Role.SUPPORT, "ana"), live_desk)
    page.set_default_timeout(WORKER_MILLISECONDS)
    page.goto(f"{live_desk}/queue/?q=149.00")
    page.locator("tr[data-row]").get_by_role("link").click()
    page.get_by_role("button", name="Ask Stripe now").click()
    expect(page.get_by_text(re.compile("Stripe answered"))).to_be_visible(
        timeout=WORKER_MILLISECONDS
    )
    expect(page.get_by_role("heading", name="Safe actions now")).to_be_visible()

    decide(page, "Release with the same key", "The key still holds.")
    page.get_by_role("button", name="Undo").click()
    decide(page, "Stop: do not retry", "The customer wants no second try.")
    expect(page.get_by_role("heading", name="Held: stop: do not retry")).to_be_visible()
    assert agent.poll() is None, "in its minute nobody hears of a decision"

    clock.advance(timedelta(seconds=61).total_seconds())
    heard = json.loads(agent.stdout.readline())
    assert agent.wait(timeout=30) == 0
    assert heard["status"] == "unknown_do_not_retry"
    assert "do not" in json.dumps(heard).lower()
    verdicts = list(Decision.objects.order_by("chain_number").values_list("verdict", flat=True))
    assert verdicts == [Verdict.RELEASE_SAME, Verdict.WITHDRAW, Verdict.CLOSE]
    assert Claim.objects.count() == 1
