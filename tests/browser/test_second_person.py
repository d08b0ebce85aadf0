"""Ana proposes in one browser, Lea approves in another, and it is in force."""

from datetime import timedelta

from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import ClaimState, Role, SightingWord
from reconcile import queries
from tests.support.clock import ShiftedClock
from tests.support.desk import a_lost_call, a_person, a_workspace, an_unkeyed_tool, see
from tests.support.looking import come_in, faults_in_every_look


def test_one_proposes_another_approves_and_the_call_is_released(
    page: Page, browser: Browser, live_desk: str
) -> None:
    shop = a_workspace()
    gift = an_unkeyed_tool(shop)
    ana, lea = a_person(shop, Role.SUPPORT, "ana"), a_person(shop, Role.LEAD, "lea")
    claim_id = a_lost_call(gift, arguments={"amount": 149})
    see(gift, claim_id, SightingWord.ABSENT, data={"strength": "weak"})

    come_in(page, ana, live_desk)
    page.goto(f"/calls/{claim_id}")
    page.locator('input[name="dialog"][value="release_new"]').check()
    page.get_by_role("button", name="Review the decision").click()
    page.get_by_label("Type 149.00 to continue").fill("149.00")
    page.locator("#r-reason").fill("The customer got nothing.")
    page.locator("#r-note").fill("I asked the customer by telephone.")
    page.get_by_role("button", name="Ask a second person").click()
    expect(page.get_by_role("heading", name="Waiting for a second person")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)

    context = browser.new_context(base_url=live_desk)
    other = context.new_page()
    come_in(other, lea, live_desk)
    other.goto("/queue/?view=waiting")
    other.locator(f'a[href*="{claim_id}"]').first.click()
    expect(other.get_by_text("The customer got nothing.").first).to_be_visible()
    assert faults_in_every_look(other) == {}
    other.get_by_label("Why yes").fill("I called the customer as well.")
    other.get_by_role("button", name="Approve: release with a new key").click()
    expect(other.get_by_role("heading", name="Held: release with a new key")).to_be_visible()
    expect(other.get_by_text("approved by you").first).to_be_visible()
    context.close()

    clock = ShiftedClock()
    try:
        clock.advance(timedelta(seconds=61).total_seconds())
        call = queries.call(gift.workspace_id, claim_id)
        assert call.situation.state is ClaimState.RELEASED
        assert [made.approved_by for made in call.decisions] == [lea]
    finally:
        clock.restore()
