"""The pages about runs and ghosts in a real browser: they fit, are accessible, and move."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from effects.core.vocabulary import Role
from effects.models import Connection, Tool, Workspace
from ledger import queries
from reconcile.adapters.base import Stranger
from reconcile.ghosts import noting
from reconcile.models import AskingEnded, Backlog, Run, RunItem
from reconcile.runs import making
from reconcile.runs.making import NewRun, Scope
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

LONG = "The provider's list holds nothing that carries our marker, and it was read whole. " * 4


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


def a_full_run(shop: Workspace, charge: Tool, *, dry: bool = False) -> Run:
    """A run with one call for each result; half of it is done."""
    results = RunItem.Result.values
    lost = tuple(a_lost_call(charge) for _ in results)
    run = making.start(NewRun(workspace_id=shop.pk, scope=Scope(claim_ids=lost), dry=dry))
    for item, result in zip(run.items.order_by("pk"), results, strict=True):
        waiting = result == RunItem.Result.WAITING
        run.items.filter(pk=item.pk).update(
            result=result,
            word="" if waiting else "absent",
            meaning="" if waiting else "not_yet",
            strength="says_nothing" if waiting else "strong",
            route="List PaymentIntents",
            rule="strong_absence",
            evidence=None if waiting else 3,
            followed="" if waiting else LONG,
            next_at=queries.clock() + timedelta(hours=1),
        )
    Run.objects.filter(pk=run.pk).update(
        state="running", started_at=run.made_at, note="The provider is given time to recover."
    )
    return run


def test_the_pages_about_runs_are_accessible_and_fit(
    page: Page, live_desk: str, shop: Workspace, charge: Tool
) -> None:
    come_in(page, a_person(shop, Role.LEAD, "ana"), live_desk)
    run, now = a_full_run(shop, charge), queries.clock()
    a_full_run(shop, charge, dry=True)
    AskingEnded.objects.create(
        claim_id=run.items.all()[0].claim_id, workspace=shop, ended_at=now, why="30 days."
    )
    for hours in range(30):
        Backlog.objects.create(workspace=shop, at=now - timedelta(hours=hours), calls=hours % 7)
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        for name, address in (
            ("runs", "/runs/"),
            ("runs-start", "/runs/?dialog=run"),
            ("run", f"/runs/{run.pk}/"),
        ):
            page.goto(live_desk + address)
            assert overflow_pixels(page) == 0, address
            assert not look_for_faults(page), address
            keep_picture(page, f"{name}-{size['width']}")


def test_a_dry_run_is_started_by_keyboard_watched_and_ends_by_itself(
    page: Page, live_desk: str, shop: Workspace, charge: Tool
) -> None:
    lost = a_lost_call(charge)
    come_in(page, a_person(shop, Role.SUPPORT, "ana"), live_desk)
    page.goto(f"{live_desk}/runs/")
    page.get_by_role("link", name="Dry run", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Dry run: ask the provider")).to_be_checked()
    page.get_by_label("Which calls").select_option("ids")
    page.get_by_label("Ids").fill(str(lost))
    page.get_by_role("button", name="Start").press("Enter")
    expect(page.get_by_role("heading", name="0 of 1 checked")).to_be_visible()

    run = Run.objects.get()
    run.items.update(result="left", word="pending", followed="Left to more evidence.")
    expect(page.get_by_role("heading", name="1 of 1 checked")).to_be_visible()
    Run.objects.update(state="done", due_at=None, started_at=run.made_at, ended_at=run.made_at)

    expect(page.get_by_role("button", name="Re-run failed")).to_be_visible()
    expect(page.get_by_text("Left to more evidence.")).to_be_visible()


def test_the_page_about_ghosts_is_accessible_fits_and_keeps_a_reason(
    page: Page, live_desk: str, shop: Workspace, charge: Tool
) -> None:
    come_in(page, a_person(shop, Role.LEAD, "ana"), live_desk)
    account = Connection.objects.get(workspace=shop)
    marked = "cf_0197f0000000700080000000000000aa_1"
    strangers = [
        Stranger(
            id=f"pi_{number}_" + "x" * 40,
            noun="PaymentIntent <b>",
            created_at=queries.clock(),
            status="succeeded",
            marker=marked if number else "",
            amount="1,260.00 USD",
        )
        for number in range(3)
    ]
    noting.note_strangers(account, strangers, queries.clock())
    for size, look_for_faults in ((DESK, faults_in_every_look), (PHONE, faults)):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        page.goto(f"{live_desk}/ghosts/")
        assert overflow_pixels(page) == 0
        assert not look_for_faults(page)
        keep_picture(page, f"ghosts-{size['width']}")
    page.goto(f"{live_desk}/ghosts/?show=marked")
    page.locator("summary", has_text="Explain").first.click()
    page.get_by_label("What it is").first.fill("Paid by hand.")
    page.get_by_role("button", name="It is explained").first.click()

    expect(page.get_by_text("is explained.")).to_be_visible()
    expect(page.locator("tr[data-row]")).to_have_count(1)
