"""What else was asked beside a call stands on its page: held repeats, mismatches, rewordings."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from effects.core.vocabulary import AnswerCode, Role
from effects.models import Tool
from ledger import queries
from ledger.others import other_requests
from tests.support import desk

pytestmark = pytest.mark.django_db

CALL_ID = "call_aaaaaaaaaaaaaaaaaaaa"


@pytest.fixture
def charge() -> Tool:
    return desk.a_keyed_tool(desk.a_workspace())


def asked(tool: Tool, **changes: Any) -> Any:
    usual = {"conversation": "c-1", "turn_index": 3, "call_id": CALL_ID, "response_id": "r-1"}
    arguments = {"amount": changes.pop("amount", 14_900), "order": "8841", "customer": "cus_1"}
    return desk.ask(tool, arguments=arguments, **(usual | changes))


def page_of(tool: Tool, claim_id: Any) -> str:
    client = Client()
    client.force_login(desk.a_person(tool.workspace, Role.SUPPORT, "ana"))
    return client.get(f"/calls/{claim_id}").content.decode()


def test_a_call_that_nobody_asked_beside_says_nothing_of_it(charge: Tool) -> None:
    first = asked(charge)
    assert "Other requests" not in page_of(charge, first.claim_id)


def test_held_refused_and_reworded_requests_are_shown_with_their_own_arguments(
    charge: Tool,
) -> None:
    first = asked(charge)
    for _ in range(2):
        asked(charge, amount=99_900)
    asked(charge, turn_index=4, call_id=None, response_id="r-2")
    asked(charge, call_id=None, response_id="r-3", amount=15_000)
    page = page_of(charge, first.claim_id)
    assert "Refused: the same call, with other arguments" in page
    assert "asked 2 times" in page
    assert "99900" in page
    assert "Held back: it asks for the same thing" in page
    assert "says something else here" in page
    claim = queries.claim(charge.workspace_id, first.claim_id)
    codes = sorted(request.code for request in other_requests(claim))
    assert codes == [AnswerCode.HELD, AnswerCode.MISMATCH, AnswerCode.REISSUED_DIFFERENTLY]


def test_text_of_a_request_is_shown_inert(charge: Tool) -> None:
    first = asked(charge)
    asked(charge, amount="<script>alert(1)</script>")
    page = page_of(charge, first.claim_id)
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
