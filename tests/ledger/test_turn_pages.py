"""One turn's page: what goes back for orphans, the drawing, large turns, and as it was received."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from effects.client.integrations.anthropic import _result as anthropic_result
from effects.client.integrations.openai import Chat, Responses
from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer
from effects.core.result_blocks import result_blocks
from effects.core.vocabulary import ClaimState, EffectClass, Role
from effects.models import Tool
from effects.pages.settings import ShownTimes
from ledger import queries
from ledger.models import Claim, IngestItem
from ledger.turn_parts import loading
from ledger.turn_parts.calls import Dispatched, calls_of
from ledger.turn_parts.drawing import drawn_of
from ledger.turn_parts.loading import load
from ledger.turn_parts.marks import attempts_of, no_return, picture_of
from tests.ledger.mirror import claim_made, ended, event, started, tell
from tests.support import desk
from tests.support.turns import (
    CHARGE_ID,
    CONVERSATION,
    a_cut_turn,
)

TURN = f"/turns/{CONVERSATION}/7"
QUERIES_MAX = 15


@pytest.fixture
def engineer(client: Client, shop: Any) -> Client:
    client.force_login(desk.a_person(shop, Role.ENGINEER))
    client.get("/settings/")  # Notes that the person was here: once in a minute.
    return client


def facts(shop: Any) -> loading.TurnFacts:
    return load(shop.pk, CONVERSATION, 7, now=queries.clock())


def words(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


# What goes back


def shown_block(page: str, number: int = 1) -> dict[str, Any]:
    found = re.search(rf'<pre id="block-{number}">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(html.unescape(found[1])))


def address_of(page: str, tool: str) -> str:
    found = re.search(rf'href="([^"]*orphan=\d+)#back"[^>]*>[^<]*<span[^>]*> for {tool} ', page)
    assert found is not None
    return html.unescape(found[1])


def test_the_block_of_an_orphan_is_what_the_status_question_answers(engineer, shop, hire):
    a_cut_turn(shop)
    charge = Claim.objects.get(call_id=CHARGE_ID)
    page = engineer.get(TURN).content.decode()
    told = hire(shop).get(f"claims/{charge.pk}").json["for_model"]
    anthropic, responses, chat = (shown_block(page, number) for number in (1, 2, 3))
    assert anthropic["tool_use_id"] == responses["call_id"] == chat["tool_call_id"] == CHARGE_ID
    for text in (anthropic["content"], responses["output"], chat["content"]):
        assert json.loads(text) == told
    assert told["status"] == "unknown"


def test_a_call_that_nobody_claimed_is_told_as_unknown_and_nothing_is_made_up(engineer, shop):
    a_cut_turn(shop)
    Claim.objects.filter(call_id=CHARGE_ID).update(call_id=None, position=9)
    page = engineer.get(TURN).content.decode()
    block = shown_block(engineer.get(address_of(page, "charge_card")).content.decode())
    assert json.loads(block["content"]) == for_model(ClaimAnswer(tool="charge_card"))


def test_a_call_that_was_cut_gets_no_result_and_a_read_is_made_again(engineer, shop):
    a_cut_turn(shop)
    page = engineer.get(TURN).content.decode()
    mail = engineer.get(address_of(page, "send_email")).content.decode()
    assert "Leave its block out of the history" in mail
    assert 'id="block-1"' not in mail
    read = engineer.get(address_of(page, "get_order")).content.decode()
    assert "It only reads" in read
    assert 'id="block-1"' not in read


def test_once_another_response_ended_well_nothing_is_an_orphan(engineer, shop):
    a_cut_turn(shop)
    good: dict[str, Any] = {
        "stream": "s9",
        "conversation": CONVERSATION,
        "turn_index": 7,
        "terminal": "success",
    }
    tell(shop.pk, event("s9", "stream.recorded", **good), streams=True)
    found = calls_of(facts(shop))
    assert not any(call.orphan or call.goes_back for call in found)
    assert "another response of this turn ended well" in engineer.get(TURN).content.decode()


@pytest.mark.parametrize("status", ["unknown", "completed", "not_executed"])
def test_the_forms_are_those_that_the_integrations_send(status):
    class TheEffect:
        text = json.dumps({"status": status, "detail": "…"}, ensure_ascii=False)
        nothing_sent = False

    class TheCall:
        call_id, free_text = "c1", False

    class Ran:
        call, effect = TheCall, TheEffect

    TheEffect.status = status  # type: ignore[attr-defined]  # as an effect has it
    made = result_blocks("c1", json.loads(TheEffect.text))
    assert made["Anthropic Messages"] == anthropic_result("c1", TheEffect)  # type: ignore[arg-type]  # see above
    assert [made["OpenAI Responses"]] == Responses.results([Ran])  # type: ignore[list-item]  # see above
    assert [made["OpenAI Chat Completions"]] == Chat.results([Ran])  # type: ignore[list-item]  # see above


# The point of no return, and the drawing


def test_the_point_of_no_return_is_the_first_moment_at_which_an_effect_may_have_left(shop):
    a_cut_turn(shop)
    drawn = drawn_of(facts(shop), ShownTimes(), idle=False, everything=False)
    assert drawn is not None
    assert (drawn.no_return_offset, drawn.by) == ("4.2 s", "charge_card, attempt 1")


@pytest.mark.parametrize(
    ("ends", "moment"),
    [
        pytest.param([ended("unknown")], "10:00:01", id="an answer that was lost"),
        pytest.param([ended("completed")], "10:00:01", id="it happened"),
        pytest.param([], "10:00:01", id="nobody said anything"),
        pytest.param([ended("failed", proof="not_sent")], None, id="proven: not sent"),
        pytest.param([ended("failed", proof="refused")], None, id="proven: refused"),
        pytest.param(
            [ended("failed", proof="not_sent"), started(attempt="a2", second=20),
             ended("unknown", attempt="a2", second=30)],
            "10:00:20",
            id="the first attempt that may have done something",
        ),
        pytest.param(
            [event("sent", "attempt.sent", time="2026-03-02T10:00:05Z", claim="k1", attempt="a1")],
            "10:00:05",
            id="sent later than it began",
        ),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("refund")
def test_an_attempt_that_provably_did_nothing_is_no_point_of_no_return(shop, ends, moment):
    tell(shop.pk, claim_made(), started(), *ends)
    found = load(shop.pk, "conversation-1", 3, now=queries.clock())
    tried = {claim.pk: attempts_of(found.events[claim.pk]) for claim in found.claims}
    at, _ = no_return(found, tried)
    assert (None if at is None else f"{at:%H:%M:%S}") == moment


def test_everything_that_is_drawn_is_a_link_with_a_name_into_the_table(engineer, shop):
    a_cut_turn(shop)
    page = engineer.get(TURN).content.decode()
    svg = page[page.index('<svg class="tl wide"') :]
    svg = svg[: svg.index("</svg>")]
    links = re.findall(r'<a href="#([^"]+)" aria-label="([^"]+)"', svg)
    assert len(links) == 6
    assert all(f'<tr id="{key}">' in page for key, _ in links)
    assert "style=" not in svg
    assert 'role="group"' in svg
    labels = dict(re.findall(r'aria-label="([^"]+)".*?<text[^>]*>([^<]+)</text>', svg, re.DOTALL))
    assert all(name.startswith(label) for name, label in labels.items())


def test_the_stream_is_torn_where_it_died_and_whole_where_it_ended(shop):
    a_cut_turn(shop)
    for terminal, torn in (("cut", True), ("error_event", True), ("success", False), (None, True)):
        found = facts(shop)
        found.streams[0].terminal = terminal
        picture = picture_of(found)
        assert picture is not None
        assert picture.marks[0].torn is torn


def test_more_than_is_drawn_is_offered_and_idle_time_can_be_shown(engineer, shop, monkeypatch):
    a_cut_turn(shop)
    monkeypatch.setattr("ledger.turn_parts.drawing.MARKS_MAX", 3)
    page = words(engineer.get(TURN).content.decode())
    assert "Show all (3 more)" in page
    assert "3 more are not drawn" in page
    assert "Show all" not in words(engineer.get(f"{TURN}?all=1").content.decode())
    assert "Leave idle time out" in words(engineer.get(f"{TURN}?idle=1").content.decode())


# Large turns


@pytest.mark.case("U06")
def test_a_turn_of_five_thousand_events_costs_no_more_questions_and_says_what_it_leaves_out(
    engineer, shop
):
    charge = a_cut_turn(shop)
    claim = Claim.objects.get(call_id=CHARGE_ID)
    with CaptureQueriesContext(connection) as few:
        engineer.get(TURN)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, data)"
            " SELECT %s, %s + n, ledger_clock(), 'sighting', 'absent', 1, 1, '{}'"
            " FROM generate_series(1, 5000) n",
            [claim.pk, claim.version],
        )
        cursor.execute("UPDATE ledger_claim SET version = version + 5000 WHERE id = %s", [claim.pk])
    for place in (7, 8):
        desk.a_call(charge, conversation=CONVERSATION, turn_index=7, position=place)
    with CaptureQueriesContext(connection) as many:
        answer = engineer.get(TURN)
    assert len(many) <= len(few) <= QUERIES_MAX, [q["sql"][:80] for q in many]
    page = words(answer.content.decode())
    assert "250 of 5016 lines, from number 1" in page
    assert len(answer.content) < 500_000
    later = words(engineer.get(f"{TURN}?from=5000").content.decode())
    assert "16 of 5016 lines, from number 5001" in later


def test_a_call_with_more_events_than_are_read_is_not_said_not_to_have_been_dispatched(
    shop, monkeypatch
):
    tool = desk.a_keyed_tool(shop)
    answer = desk.a_call(tool, conversation=CONVERSATION, turn_index=7)
    desk.not_sent(tool, answer)
    assert calls_of(facts(shop))[0].dispatched is Dispatched.NO
    monkeypatch.setattr(loading, "EVENTS_MAX", 1)
    monkeypatch.setattr(loading, "LEAST_OF_EACH", 2)
    Claim.objects.update(version=9)
    found = facts(shop)
    assert found.events_left_out == 7
    assert calls_of(found)[0].dispatched is Dispatched.CANNOT_TELL


def test_a_lease_that_is_over_is_unknown_without_a_question_for_each_call(shop, pass_time):
    tool = desk.a_keyed_tool(shop)
    for place in range(3):
        desk.a_call(tool, conversation=CONVERSATION, turn_index=7, position=place)
    pass_time(seconds=tool.lease_seconds + 1)
    now = queries.clock()
    with CaptureQueriesContext(connection) as asked:
        found = load(shop.pk, CONVERSATION, 7, now=now)
    assert set(found.states.values()) == {ClaimState.UNKNOWN}
    assert len(asked) <= 4


def test_large_arguments_are_on_no_page_of_turns(engineer, shop):
    tool = desk.a_keyed_tool(shop)
    desk.a_lost_call(
        tool, arguments={"note": "x" * 250_000}, conversation=CONVERSATION, turn_index=7
    )
    for address in ("/turns/", TURN, f"/turns/?conversation={CONVERSATION}"):
        assert len(engineer.get(address).content) < 60_000


# As received


def test_the_raw_items_are_fetched_one_by_one_and_say_how_large_they_are(engineer, shop):
    a_cut_turn(shop)
    item = IngestItem.objects.get(type="stream.recorded")
    page = engineer.get(f"{TURN}?tab=raw").content.decode()
    assert "connection reset" not in page
    assert f'hx-get="/events/{item.pk}/body"' in page
    assert "The bytes of the responses were not sent to this ledger" in words(page)
    body = engineer.get(f"/events/{item.pk}/body").content.decode()
    assert "connection reset" in body
    assert "<html" not in body


@pytest.mark.case("U05")
def test_texts_of_agents_are_text_on_every_page_of_turns(engineer, shop):
    evil = "<script>alert(1)</script>\u202e"
    Tool.objects.create(workspace=shop, name=evil, effect_class=EffectClass.UNKEYED_WRITE)
    tell(shop.pk, claim_made(tool=evil, conversation=evil, call_id=evil), started())
    said: dict[str, Any] = {
        "stream": evil,
        "conversation": evil,
        "turn_index": 3,
        "terminal": "cut",
        "error": evil,
    }
    call = {"position": 1, "tool": evil, "call_id": evil, "complete": True, "arguments": evil}
    tell(shop.pk, event("s", "stream.recorded", model=evil, calls=[call], **said), streams=True)
    again: dict[str, Any] = {**said, "stream": f"{evil}2"}
    tell(shop.pk, event("s2", "stream.recorded", calls=[call], **again), streams=True)
    asked = {"conversation": evil, "turn": 3}
    for more in ({}, {"tab": "responses"}, {"tab": "raw"}):
        page = engineer.get("/turns/", asked | more).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
        assert "\u202e" not in re.sub(r'(href|value)="[^"]*"', "", page)
    for more in ({}, {"conversation": evil}, {"show": "cut"}):
        page = engineer.get("/turns/", more).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


def test_a_trace_is_linked_where_the_workspace_says_where_traces_are_seen(engineer, shop):
    a_cut_turn(shop)
    assert "Its trace" not in engineer.get(TURN).content.decode()
    shop.trace_url = "https://t.example/{conversation}?turn={turn}"
    shop.save()
    page = engineer.get(TURN).content.decode()
    assert f'<a href="https://t.example/{CONVERSATION}?turn=7" rel="noopener noreferrer"' in page
    shop.trace_url = "https://t.example/{call_id}"
    shop.save()
    assert f'href="https://t.example/{CHARGE_ID}"' in engineer.get(TURN).content.decode()
