"""Lists of turns: each filter, each page once, by indexes and in a fixed number of questions."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.vocabulary import Role
from ledger import queries
from ledger.turn_parts.id_times import first_id, made_at
from ledger.turn_parts.listing import Filter, newest
from tests.ledger.mirror import event, tell
from tests.support import desk
from tests.support.turns import (
    CONVERSATION,
    EMAIL_ID,
    ORDER_ID,
    POINTS_ID,
    a_cut_turn,
    a_retry,
)

TURN = f"/turns/{CONVERSATION}/7"
QUERIES_MAX = 15


@pytest.fixture
def engineer(client: Client, shop: Any) -> Client:
    client.force_login(desk.a_person(shop, Role.ENGINEER))
    client.get("/settings/")  # Notes that the person was here: once in a minute.
    return client


def words(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def listed(shop: Any, kind: Filter, **more: Any) -> list[tuple[str, int]]:
    page = newest(shop.pk, kind, before=more.get("before"), now=queries.clock())
    return [(row.conversation, row.index) for row in page.rows]


def test_each_filter_lists_its_own_turns(shop):
    charge = a_cut_turn(shop)
    desk.complete(charge, desk.a_call(charge, conversation="fine", turn_index=0))
    desk.a_lost_call(charge, conversation="lost", turn_index=1)
    cut: dict[str, Any] = {
        "conversation": "early",
        "turn_index": 2,
        "terminal": "cut",
        "stream": "early",
    }
    tell(shop.pk, event("early", "stream.recorded", **cut), streams=True)
    mended: dict[str, Any] = {"conversation": "mended", "turn_index": 3}
    whole = {"position": 0, "tool": "get_order", "call_id": ORDER_ID, "complete": True}
    for name, terminal in (("m1", "cut"), ("m2", "success")):
        said: dict[str, Any] = {**mended, "stream": name, "terminal": terminal, "calls": [whole]}
        tell(shop.pk, event(name, "stream.recorded", **said), streams=True)
    everything = {(CONVERSATION, 7), ("fine", 0), ("lost", 1), ("early", 2), ("mended", 3)}
    assert set(listed(shop, Filter.ALL)) == everything
    assert set(listed(shop, Filter.CUT)) == {(CONVERSATION, 7), ("early", 2), ("mended", 3)}
    assert set(listed(shop, Filter.ORPHAN)) == {(CONVERSATION, 7)}
    assert set(listed(shop, Filter.UNKNOWN)) == {(CONVERSATION, 7), ("lost", 1)}


def test_a_row_says_how_the_turn_ended_and_what_became_of_its_calls(engineer, shop):
    a_cut_turn(shop)
    a_retry(shop)
    page = words(engineer.get("/turns/").content.decode())
    row = page[page.index("Turn 7") :]
    for said in (
        "the connection ended without a last event the provider sent an error",
        "Unknown \N{MULTIPLICATION SIGN} 2",
        "3 without a claim",
    ):
        assert said in row


@pytest.mark.case("U09")
def test_every_turn_stands_on_exactly_one_page_whatever_happens_meanwhile(shop, monkeypatch):
    monkeypatch.setattr("ledger.turn_parts.listing.TURNS_PER_PAGE", 3)
    monkeypatch.setattr("ledger.turn_parts.listing.LOOKED_AT_MAX", 5)
    tool = desk.a_keyed_tool(shop)
    for number in range(10):
        for place in range(2):
            desk.a_call(tool, conversation=f"c{number}", turn_index=0, position=place)
    # One that is old, and came up again: it stands where its newest sign does.
    desk.a_call(tool, conversation="c0", turn_index=0, position=5)
    seen, before = [], None
    for _ in range(20):
        page = newest(shop.pk, Filter.ALL, before=before, now=queries.clock())
        seen += [row.conversation for row in page.rows]
        before = page.older
        if before is None:
            break
        desk.a_call(tool, conversation=f"new{len(seen)}", turn_index=0)
    assert seen[0] == "c0"
    assert sorted(seen) == sorted(f"c{number}" for number in range(10))


@given(st.integers(0, 253_402_300_799_999_999))
@settings(deadline=None)
def test_the_first_id_of_an_instant_is_made_at_it_and_the_one_before_it_earlier(microseconds):
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    first = first_id(instant)
    assert made_at(first) == instant
    if (first.int >> 64) & 0xFFF:
        assert made_at(UUID(int=first.int - (1 << 64))) < instant


def test_lists_of_turns_ask_a_fixed_number_of_questions(engineer, shop):
    charge = a_cut_turn(shop)
    asked: dict[Filter, int] = {}
    for round_ in range(2):
        for show in Filter:
            with CaptureQueriesContext(connection) as questions:
                engineer.get("/turns/", {"show": str(show), "before": "2999-01-01T00:00:00+00:00"})
            assert len(questions) <= asked.setdefault(show, len(questions)) <= QUERIES_MAX
        if not round_:
            for number in range(12):
                desk.a_lost_call(charge, conversation=f"more{number}", turn_index=number)


def test_the_newest_turns_are_found_by_indexes(shop):
    a_cut_turn(shop)
    before = queries.clock() + timedelta(hours=1)
    with connection.cursor() as cursor:
        # So few rows would be read whole, whatever indexes there are.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    with CaptureQueriesContext(connection) as questions:
        for kind in Filter:
            newest(shop.pk, kind, before=before, now=before)
    plans = []
    for question in questions.captured_queries:
        if "LIMIT 400" in question["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {question['sql']}")
                plans.append("\n".join(line for (line,) in cursor.fetchall()))
    found = {name for plan in plans for name in re.findall(r"using (\w+)", plan)}
    assert {"claim_newest", "due_newest", "stream_newest", "stream_broken"} <= found
    assert not any("Seq Scan" in plan for plan in plans)


def test_another_workspace_sees_none_of_them(client, shop, neighbour):
    a_cut_turn(shop)
    client.force_login(desk.a_person(neighbour, Role.ADMIN))
    for address in ("/turns/", "/turns/?show=cut", "/turns/?show=unknown", TURN):
        page = client.get(address).content.decode()
        assert EMAIL_ID not in page
        assert POINTS_ID not in page
        assert "resp_7a" not in page


@pytest.mark.parametrize("asked", ["x", "2026-13-01", "2026-01-01T00:00:00", "\x00"])
def test_an_address_that_names_no_instant_shows_the_newest(engineer, shop, asked):
    a_cut_turn(shop)
    answer = engineer.get("/turns/", {"before": asked, "show": asked})
    assert CONVERSATION in answer.content.decode()
