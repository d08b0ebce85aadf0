"""The call page in a real browser: asking, deciding, undoing, deciding again; keys; no script."""

import re
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from effects.core.vocabulary import ClaimState, Role, SightingWord, Verdict
from effects.models import Connection, Tool, Workspace
from ledger import append
from reconcile import queries
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace, see
from tests.support.looking import (
    DESK,
    PHONE,
    come_in,
    faults_in_every_look,
    keep_picture,
    overflow_pixels,
)
from tests.support.road import WORKER_MILLISECONDS, decide


@pytest.fixture
def shop(live_desk: str) -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return a_keyed_tool(shop)


@pytest.fixture
def ana(shop: Workspace) -> User:
    return a_person(shop, Role.SUPPORT, "ana")


@pytest.fixture
def lost(charge: Tool) -> UUID:
    """A lost charge of 149.00 EUR with three answers that prove nothing yet."""
    claim_id = a_lost_call(charge, arguments={"customer": "cus_Ab12345679X2", "order": "8841"})
    see(charge, claim_id, SightingWord.LOOKUP_FAILED, data={"strength": "says_nothing"})
    see(
        charge,
        claim_id,
        SightingWord.FOUND_DIFFERENT,
        objects=("pi_3QwLm",),
        data={
            "strength": "fair",
            "why": "Same customer, same amount, another order.",
            "requested": {"amount": "149.00 EUR", "metadata.order": "8841"},
            "found": {"amount": "149.00 EUR", "metadata.order": "8835", "id": "pi_3QwLm"},
        },
        raw=b'{"object": "list", "has_more": false, "data": [{"id": "pi_3QwLm"}]}',
    )
    see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak", "delay_class": "none"})
    return claim_id


@pytest.fixture
def desk(page: Page, live_desk: str, ana: User) -> Page:
    come_in(page, ana, live_desk)
    return page


def decisions(tool: Tool, claim_id: UUID) -> list[str]:
    made = queries.call(tool.workspace_id, claim_id).decisions
    return [str(decision.verdict) for decision in made]


def test_support_finds_asks_decides_undoes_and_decides_again(
    desk: Page, charge: Tool, lost: UUID, worker: str
) -> None:
    Connection.objects.filter(workspace_id=charge.workspace_id).update(
        base_url=worker, secret_name="SANDBOX_READ_KEY"
    )
    desk.set_default_timeout(WORKER_MILLISECONDS)
    desk.goto("/queue/?q=149.00")
    desk.locator("tr[data-row]").get_by_role("link").click()

    desk.get_by_role("button", name="Ask Stripe now").click()
    expect(desk.get_by_text("is being asked")).to_be_visible()
    expect(desk.get_by_text(re.compile("Stripe answered"))).to_be_visible(
        timeout=WORKER_MILLISECONDS
    )
    assert len(queries.call(charge.workspace_id, lost).sightings) == 4
    keep_picture(desk, "call-answered")

    decide(desk, "Release with the same key", "Nothing there, and the key still holds.")
    expect(desk.get_by_role("heading", name="Held: release with the same key")).to_be_visible()
    expect(desk.get_by_role("heading", name="What the agent will be told")).to_be_visible()
    keep_picture(desk, "call-held")
    assert faults_in_every_look(desk) == {}

    desk.get_by_role("button", name="Undo").click()
    expect(desk.get_by_role("heading", name="Safe actions now")).to_be_visible()

    decide(desk, "Stop: do not retry", "The customer wants no second try.")
    expect(desk.get_by_role("heading", name="Held: stop: do not retry")).to_be_visible()
    assert decisions(charge, lost) == [Verdict.RELEASE_SAME, Verdict.WITHDRAW, Verdict.CLOSE]
    assert queries.call(charge.workspace_id, lost).situation.state is ClaimState.UNKNOWN


def test_the_page_is_accessible_in_every_look_and_fits_a_phone(desk: Page, lost: UUID) -> None:
    for size in (DESK, PHONE):
        desk.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        desk.goto(f"/calls/{lost}")
        keep_picture(desk, f"call-{size['width']}")
        assert overflow_pixels(desk) == 0
        assert faults_in_every_look(desk) == {}
        desk.goto(f"/calls/{lost}?dialog=happened&ev=4")
        keep_picture(desk, f"review-{size['width']}")
        assert overflow_pixels(desk) == 0
        assert faults_in_every_look(desk) == {}
    desk.set_viewport_size(DESK)  # type: ignore[arg-type]  # width and height
    desk.emulate_media(color_scheme="dark")
    desk.goto(f"/calls/{lost}")
    keep_picture(desk, "call-dark")


def test_everything_is_decided_by_keyboard_and_no_single_key_decides(
    desk: Page, charge: Tool, lost: UUID
) -> None:
    desk.goto(f"/calls/{lost}")
    desk.keyboard.press("3")
    expect(desk.get_by_role("radio", name=re.compile("^Stop"))).to_be_checked()
    assert decisions(charge, lost) == []
    desk.keyboard.press("Enter")
    dialog = desk.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Reason").press_sequentially("Asked the bank.")
    dialog.get_by_label("Reason").press("Tab")
    desk.keyboard.press("Tab")
    desk.keyboard.press("Tab")
    expect(desk.get_by_role("button", name="Stop: do not retry")).to_be_focused()
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("heading", name="Held: stop: do not retry")).to_be_focused()
    assert decisions(charge, lost) == [Verdict.CLOSE]


def test_a_dialog_is_closed_by_escape_and_its_address_goes_with_it(desk: Page, lost: UUID) -> None:
    desk.goto(f"/calls/{lost}?dialog=close")
    expect(desk.get_by_role("dialog")).to_be_visible()
    desk.keyboard.press("Escape")
    expect(desk).to_have_url(f"/calls/{lost}")


def test_a_case_file_is_black_on_white_on_paper_with_every_address_and_no_control(
    desk: Page, charge: Tool, lost: UUID, ana: User
) -> None:
    note = "See [ticket](https://tickets.example.com/77)."
    append.note(charge.workspace_id, lost, ana.pk, note)
    desk.emulate_media(color_scheme="dark")
    desk.goto(f"/calls/{lost}")
    desk.get_by_role("link", name="Case file").click()
    expect(desk.get_by_role("heading", name="Everything in its order")).to_be_visible()
    assert overflow_pixels(desk) == 0
    assert faults_in_every_look(desk) == {}
    keep_picture(desk, "case-file")

    desk.emulate_media(media="print", color_scheme="dark")
    looks = (
        "element => { const s = getComputedStyle(element); return [s.color, s.backgroundColor] }"
    )
    assert desk.locator("main").evaluate(looks) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    assert desk.locator("body").evaluate(looks)[1] == "rgb(255, 255, 255)"
    for control in ("button", "nav", "input", "form"):
        for found in desk.locator(control).all():
            expect(found).to_be_hidden()
    address = desk.locator(".note-text a").evaluate("a => getComputedStyle(a, '::after').content")
    assert "https://tickets.example.com/77" in address
    row = desk.locator("tbody tr").first
    assert row.evaluate("row => getComputedStyle(row).breakInside") == "avoid"
    desk.emulate_media(media="screen", color_scheme="light")


def test_a_reason_of_the_runbook_is_taken_over_and_two_keys_send_the_dialog(
    desk: Page, charge: Tool, lost: UUID
) -> None:
    charge.runbook = "Reasons:\n- Two complete reads, nothing there"
    charge.save()
    desk.goto(f"/calls/{lost}?dialog=close")
    desk.get_by_role("button", name="Two complete reads, nothing there").click()
    expect(desk.get_by_label("Reason")).to_have_value("Two complete reads, nothing there")
    desk.keyboard.press("Control+Enter")
    expect(desk.get_by_role("heading", name="Held: stop: do not retry")).to_be_visible()
    assert decisions(charge, lost) == [Verdict.CLOSE]


@pytest.mark.case("U02")
def test_a_double_click_decides_once(desk: Page, charge: Tool, lost: UUID) -> None:
    desk.goto(f"/calls/{lost}?dialog=close")
    desk.get_by_label("Reason").fill("Asked the bank.")
    desk.get_by_role("dialog").get_by_role("button", name="Stop: do not retry").dblclick()
    expect(desk.get_by_role("heading", name="Held: stop: do not retry")).to_be_visible()
    assert decisions(charge, lost) == [Verdict.CLOSE]


@pytest.mark.case("U03")
def test_a_stale_page_shows_both_sides_and_a_way_on(desk: Page, charge: Tool, lost: UUID) -> None:
    desk.goto(f"/calls/{lost}?dialog=close")
    see(charge, lost, SightingWord.FOUND, objects=("pi_1",), counts=True)
    desk.get_by_label("Reason").fill("Asked the bank.")
    desk.get_by_role("dialog").get_by_role("button", name="Stop: do not retry").click()
    expect(desk.get_by_role("heading", name="Changed since you opened it")).to_be_visible()
    keep_picture(desk, "stale")
    assert faults_in_every_look(desk) == {}
    desk.get_by_role("link", name="Look at it as it is now").click()
    expect(desk.get_by_text("Stripe shows it").first).to_be_visible()


@pytest.mark.case("U05")
def test_text_of_a_model_runs_nothing(desk: Page, shop: Workspace) -> None:
    tool = a_keyed_tool(shop, name='"><script>alert(2)</script>', summary="{md}")
    claim_id = a_lost_call(
        tool,
        arguments={"md": '<img src=x onerror=alert(1)><div hx-get="/logout/" hx-trigger="load">'},
        conversation="<script>alert(3)</script>",
    )
    see(tool, claim_id, SightingWord.PENDING, data={"why": "<svg onload=alert(4)>"})
    said: list[str] = []
    desk.on("dialog", lambda dialog: said.append(dialog.message))
    addresses = ("/queue/", f"/calls/{claim_id}/print", f"/calls/{claim_id}?dialog=close")
    for address in (*addresses, f"/calls/{claim_id}"):
        desk.goto(address)
        expect(desk.get_by_text("<img src=x").first).to_be_attached()
    # What arrives while the page is open is read by the same eyes.
    expect(desk.get_by_text("Live", exact=True)).to_be_visible()
    see(tool, claim_id, SightingWord.PENDING, data={"why": "\u202e<script>alert(5)</script>new"})
    expect(desk.get_by_text("\u27e6U+202E\u27e7<script>alert(5)</script>new")).to_be_visible()
    assert "\u202e" not in desk.content()
    assert said == []


def test_without_script_the_whole_path_is_walked(
    browser: Browser, live_desk: str, charge: Tool, lost: UUID, ana: User
) -> None:
    context = browser.new_context(
        base_url=live_desk, java_script_enabled=False, viewport={"width": 320, "height": 720}
    )
    page = context.new_page()
    come_in(page, ana, live_desk)
    page.goto("/queue/?q=149.00")
    page.locator("tr[data-row]").get_by_role("link").click()
    decide(page, "Release with the same key", "Nothing there.")
    expect(page.get_by_role("heading", name="Held: release with the same key")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("radio", name=re.compile("^It happened")).check()
    page.get_by_role("button", name="Review the decision").click()
    keep_picture(page, "review-without-script")
    page.get_by_label("Reason").fill("The customer sent the receipt.")
    page.get_by_role("dialog").get_by_label("Note").fill("Receipt of 21:40, kept in the ticket.")
    page.get_by_role("button", name="It happened").click()
    expect(page.get_by_role("heading", name="Held: it happened")).to_be_visible()
    assert decisions(charge, lost) == [Verdict.RELEASE_SAME, Verdict.WITHDRAW, Verdict.HAPPENED]
    context.close()


def test_a_viewer_sees_which_role_decides(
    page: Page, live_desk: str, shop: Workspace, lost: UUID
) -> None:
    come_in(page, a_person(shop, Role.VIEWER, "vera"), live_desk)
    page.goto(f"/calls/{lost}")
    expect(page.get_by_role("radio")).to_have_count(0)
    expect(page.get_by_text("Needs the role Support").first).to_be_visible()
    keep_picture(page, "call-viewer")
    assert faults_in_every_look(page) == {}
