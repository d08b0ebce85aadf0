"""A call on paper and as exact JSON: everything in its order, who printed it, nothing rounded."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role, SightingWord
from effects.models import AuditEntry, Tool, Workspace
from ledger import append
from ledger.models import Decision
from reconcile.audit import chain
from reconcile.calls import exporting
from reconcile.calls.runbook import reasons_in, runbook_of
from reconcile.reading import is_json
from tests.support import desk

pytestmark = pytest.mark.django_db

EXACT = '{"id": 1970670598291982290, "f": 1.10, "e": 1e2, "amount": 14900, "currency": "eur"}'


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    runbook = "Ask **payments** first.\n\nReasons:\n- Two complete reads\n- No debit\n\n- Not one"
    return desk.a_keyed_tool(shop, runbook=runbook)


@pytest.fixture
def ana(shop: Workspace) -> User:
    user = desk.a_person(shop, Role.SUPPORT, "ana")
    user.first_name, user.last_name = "Ana", "Berg"
    user.save()
    return user


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


@pytest.fixture
def lost(charge: Tool) -> UUID:
    claim_id = desk.a_lost_call(charge, arguments=EXACT)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"}, raw=b'{"n": 1.10}')
    return claim_id


def decided(browser: Client, claim_id: UUID) -> Decision:
    token = browser.get(f"/calls/{claim_id}?dialog=close").context["review"]["token"]
    form = {"token": token, "action": "close", "ev": [3], "reason": "The customer wants no more."}
    assert browser.post(f"/calls/{claim_id}/decide", form).status_code == 302
    return Decision.objects.get()


@pytest.mark.case("U12")
def test_the_case_file_says_who_decided_on_what_and_who_printed_it_in_which_zone(
    browser: Client, charge: Tool, ana: User, lost: UUID
) -> None:
    append.note(charge.workspace_id, lost, ana.pk, "See [ticket](https://t.example.com/77).")
    made = decided(browser, lost)
    desk.move_clock(timedelta(seconds=61))
    chain.verify(charge.workspace_id)
    session = browser.session
    session["zone"] = "Europe/Berlin"
    session.save()
    page = browser.get(f"/calls/{lost}/print").content.decode()
    assert "by Ana Berg (ana) (Support)" in page
    assert "Times are in Europe/Berlin" in page
    assert " CET" in page
    assert f"http://127.0.0.1:8000/calls/{lost}" in page or f"/calls/{lost}</p>" in page
    assert f"dec_{made.pk}: stop: do not retry" in page
    assert "evidence 3; version 4 of the record" in page
    assert bytes(made.hash).hex() in page
    assert bytes(made.screen_hash or b"").hex() in page
    assert "The chain of 1 decision was verified" in page
    assert hashlib.sha256(b'{"n": 1.10}').hexdigest() in page
    assert "<form" not in page
    parts = ("The call", "What is known", "What the agent asked", "Attempts", "Provider evidence")
    order = [page.index(f">{name}</h2>") for name in (*parts, "Decisions", "Notes")]
    assert order == sorted(order)


@pytest.mark.case("U05")
def test_a_models_text_is_text_on_paper_and_in_the_file(shop: Workspace, browser: Client) -> None:
    tool = desk.a_keyed_tool(shop, name='"><script>alert(2)</script>', summary="{md} {u}")
    hostile = {"md": "<img src=x onerror=alert(1)>", "u": "\u202egpj.exe"}
    claim_id = desk.a_lost_call(tool, arguments=json.dumps(hostile), conversation="<b>c</b>")
    desk.see(tool, claim_id, SightingWord.PENDING, data={"why": "<svg onload=alert(4)>"})
    page = browser.get(f"/calls/{claim_id}/print").content.decode()
    for markup in ("<script>alert", "<img src=x", "<svg onload", "<b>c</b>", "\u202e"):
        assert markup not in page
    assert "U+202E" in page
    exported = browser.get(f"/calls/{claim_id}/export.json")
    assert exported["Content-Type"] == "application/json"
    assert exported["Content-Disposition"].startswith("attachment")
    assert exported["X-Content-Type-Options"] == "nosniff"


@pytest.mark.case("U08")
def test_every_digit_leaves_as_it_came_and_that_it_left_is_kept(
    browser: Client, shop: Workspace, ana: User, lost: UUID
) -> None:
    text = browser.get(f"/calls/{lost}/export.json").content.decode()
    assert f'"arguments": {EXACT},' in text
    read = json.loads(text, parse_float=str, parse_int=str)
    assert read["format"] == exporting.FORMAT
    assert read["arguments"]["id"] == "1970670598291982290"
    assert read["arguments"]["f"] == "1.10"
    assert read["arguments"]["e"] == "1e2"
    assert read["amount"] == {"figure": "149.00", "currency": "EUR"}
    assert [event["kind"] for event in read["events"]] == ["granted", "reported", "sighting"]
    assert read["bodies"][0]["sha256"] == hashlib.sha256(b'{"n": 1.10}').hexdigest()
    (entry,) = AuditEntry.objects.filter(workspace=shop)
    assert (entry.act, entry.user_id) == ("call.exported", ana.pk)
    assert str(lost) in entry.target


def test_numbers_in_what_a_provider_showed_are_not_rounded_in_the_file(
    browser: Client, charge: Tool, lost: UUID
) -> None:
    found = {"found": {"balance": 9007199254740993, "rate": 1e-7}}
    desk.see(charge, lost, SightingWord.PENDING, data=found)
    text = browser.get(f"/calls/{lost}/export.json").content.decode()
    assert "9007199254740993" in text
    assert "0.0000001" in text


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', '{"a"', ""])
def test_what_is_no_json_is_no_part_of_a_json_document(text: str) -> None:
    assert not is_json(text)


def test_a_viewer_prints_and_exports_nothing(shop: Workspace, lost: UUID) -> None:
    client = Client()
    client.force_login(desk.a_person(shop, Role.VIEWER))
    assert client.get(f"/calls/{lost}/print").status_code == 200
    assert client.get(f"/calls/{lost}/export.json").status_code == 403
    assert "export.json" not in client.get(f"/calls/{lost}").content.decode()
    assert not AuditEntry.objects.exists()


# The runbook


def test_a_tools_runbook_stands_beside_the_actions_and_suggests_reasons(
    browser: Client, charge: Tool, lost: UUID
) -> None:
    page = browser.get(f"/calls/{lost}?dialog=close").content.decode()
    assert "Runbook of charge_card" in page
    assert "Ask <strong>payments</strong> first." in page
    assert 'data-fill="r-reason" hidden>Two complete reads</button>' in page
    assert reasons_in(charge.runbook) == ["Two complete reads", "No debit"]
    charge.runbook = ""
    charge.save()
    assert runbook_of(charge) is None
    assert "Runbook of" not in browser.get(f"/calls/{lost}").content.decode()


@pytest.mark.parametrize("runbook", ["", "Reasons:", "- a\n- b", "Reasons:\nnone\n- a"])
def test_reasons_are_only_the_list_under_their_own_line(runbook: str) -> None:
    assert reasons_in(runbook) == []


# What support needs without JSON


def test_the_head_names_amount_customer_and_what_the_tools_summary_names(
    browser: Client, charge: Tool
) -> None:
    claim_id = desk.a_lost_call(charge, arguments={"customer": "cus_A1", "order": "8841"})
    page = browser.get(f"/calls/{claim_id}").content.decode()
    head = page[page.index('data-live-part="head"') : page.index("</header>", page.index("stub"))]
    assert "149.00 EUR" in head
    assert "cus_A1" in head
    assert 'order <span class="mono">8841</span>' in head
    rows = page[page.index('id="asked"') :]
    assert '14900 <b class="strong means">149.00 EUR</b>' in rows


@pytest.mark.case("U05")
def test_the_trace_opens_without_opener_and_only_where_a_template_leads_there(
    browser: Client, shop: Workspace, charge: Tool
) -> None:
    claim_id = desk.a_lost_call(charge, conversation='a b"><script>')
    assert "opens in a new tab" not in browser.get(f"/calls/{claim_id}").content.decode()
    shop.trace_url = "https://traces.example.com/find?c={conversation}"
    shop.save()
    page = browser.get(f"/calls/{claim_id}").content.decode()
    link = "https://traces.example.com/find?c=a%20b%22%3E%3Cscript%3E"
    assert f'href="{link}" rel="noopener noreferrer" target="_blank"' in page
    shop.trace_url = "https://traces.example.com/trace/{trace_id}"
    shop.save()
    assert "opens in a new tab" not in browser.get(f"/calls/{claim_id}").content.decode()
