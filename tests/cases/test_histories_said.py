"""What the ledger cases say to people: who is refused, what is kept, and what nobody may guess."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from effects.core.fold import fold
from effects.core.identity import RECIPES
from effects.core.vocabulary import AnswerCode, EventKind, Flag, Role
from effects.models import Workspace
from ledger import append, ingest, queries
from ledger.ingest_reading import STREAMS
from tests.cases import bank
from tests.cases.at_hand import record, the_case
from tests.cases.history import History
from tests.ledger.mirror import claim_made, ended, event, started, tell
from tests.support import desk

pytestmark = pytest.mark.django_db


def played(case_id: str, *, changes: dict[str, dict[str, Any]] | None = None) -> History:
    """The case's events, played; `changes` replaces members of an event by its id."""
    given = the_case(case_id).input
    hours = given.get("provider_key_retention_hours")
    history = History(policy=given.get("policy", {}), window_seconds=hours and hours * 3600)
    changed = [one | (changes or {}).get(one["event_id"], {}) for one in given["events"]]
    history.play([{n: s for n, s in one.items() if s is not None} for one in changed])
    return history


def codes(history: History) -> dict[str, AnswerCode | None]:
    return {name: told.code for name, told in history.answers.items()}


def state_of(history: History, name: str) -> str:
    told = history.answer_now(name)
    assert told is not None
    return str(told.state)


@pytest.mark.case("S11")
def test_what_is_reported_again_is_refused_and_what_is_not_is_not() -> None:
    told = codes(played("S11"))
    assert [told[name] for name in ("e1", "e3")] == [AnswerCode.GRANTED] * 2
    assert {told[name] for name in ("e2", "e4")} == {AnswerCode.IN_FLIGHT}


@pytest.mark.case("S12")
def test_a_call_under_the_tools_own_name_is_no_repeat_and_both_say_that_the_id_is_weak() -> None:
    history = played("S12")
    assert history.answers["e3"].code is AnswerCode.GRANTED
    assert history.answers["e3"].result is None
    for name in ("e1", "e3"):
        assert Flag.WEAK_TOOL_CALL_ID in flags(history, name)


def recorded(case_id: str, response_id: str, call_id: str) -> dict[str, Any]:
    """A response of the case's turn, as the agent's helper would report it."""
    given = the_case(case_id).input
    return event(
        f"stream-{response_id}",
        "stream.recorded",
        stream=response_id,
        response_id=response_id,
        conversation=given["conversation_id"],
        turn_index=given["turn_index"],
        calls=[{"position": 0, "tool": "send_payment", "call_id": call_id, "complete": True}],
    )


@pytest.mark.case("S23", "S24")
def test_a_turn_that_was_asked_twice_shows_both_ids(client: Client) -> None:
    shop = desk.a_workspace()
    first, again = str(record("S23").calls[0].call_id), "toolu_second"
    said = [recorded("S23", "msg_1", first), recorded("S23", "msg_2", again)]
    answer = ingest.ingest(shop.pk, None, STREAMS, [json.dumps(one).encode() for one in said])
    assert answer.counts == {"applied": 2}
    client.force_login(desk.a_person(shop, Role.SUPPORT))
    page = client.get("/turns/conv-S23/5").content.decode()
    assert first in page
    assert again in page


@pytest.mark.case("S23")
def test_the_second_claim_of_a_turn_hears_nothing_that_sounds_like_failed() -> None:
    claim = {
        "type": "claim",
        "conversation_id": "conv-S23",
        "turn_index": 5,
        "tool": "send_payment",
    }
    args = {"invoice": "I-3", "amount": 4200}
    history = History()
    history.play(
        [
            claim | {"event_id": "e1", "args": args, "tool_call_id": "toolu_first"},
            {"event_id": "e2", "type": "attempt", "ref": "e1", "attempt_id": "a1"},
            claim | {"event_id": "e3", "args": args, "tool_call_id": "toolu_second"},
        ]
    )
    assert history.answers["e3"].code is AnswerCode.IN_FLIGHT
    assert history.answers["e3"].claim_id == history.answers["e1"].claim_id
    history.clock.advance(3600)
    assert state_of(history, "e1") == "unknown"


@pytest.mark.case("S24")
def test_a_run_that_is_played_again_is_answered_with_the_stored_result() -> None:
    told = played("S24").answers["e4"]
    assert (told.code, json.loads(told.result or "")) == (AnswerCode.REPLAYED, {"charge": "ch_1"})


@pytest.mark.case("S27")
def test_a_cancellation_is_recorded_beside_the_state() -> None:
    history = played("S27")
    row = history.row("e1")
    assert row is not None
    (reported,) = [one for one in queries.events(row) if one.kind == EventKind.REPORTED]
    assert (reported.word, "cancelled" in str(reported.data)) == ("unknown", True)
    assert history.answers["e5"].code is AnswerCode.UNKNOWN
    assert state_of(history, "e1") == "unknown"


# Repeats


@pytest.fixture
def shop() -> Workspace:
    workspace = desk.a_workspace()
    desk.a_keyed_tool(workspace, name="refund")
    return workspace


@pytest.mark.case("D01")
def test_operations_attempts_and_requests_are_three_numbers(shop: Workspace) -> None:
    told = tell(
        shop.pk,
        claim_made(),
        started(attempt="a1", retry_count=2),
        started(attempt="a2", second=21, retry_count=1),
        ended("unknown", attempt="a1"),
        ended("unknown", attempt="a2"),
    )
    assert len({item.claim_id for item in told}) == 1
    claim = queries.claim_by_key(shop.pk, str(told[0].claim_id))
    counted = [
        (one.data or {}).get("retry_count")
        for one in queries.events(claim)
        if one.kind in {EventKind.STARTED, EventKind.GRANTED}
    ]
    requests = sum(1 + count for count in counted if count is not None)
    assert (len(queries.attempts(claim)), requests) == (2, 5)
    status = queries.status(claim, now=queries.clock())
    assert status.safe_retry_until is None, "nobody said that a key was sent"


@pytest.mark.case("D04")
def test_a_task_that_is_handed_out_again_learns_that_its_first_copy_runs() -> None:
    history = played("D04")
    assert [codes(history)[name] for name in ("e3", "e4")] == [AnswerCode.IN_FLIGHT] * 2
    row = history.row("e1")
    assert row is not None
    assert (queries.events(row)[0].data or {})["delivery_count"] == 1


@pytest.mark.case("D05")
def test_a_call_that_was_swept_is_asked_about_and_not_made_again() -> None:
    history = played("D05")
    assert history.answers["e3"].code is AnswerCode.UNKNOWN
    assert history.allowed_attempts == ["a1"]
    row = history.row("e1")
    assert row is not None
    assert [due.claim_id for due in append.take_due_lookups(10, 60)] == [row.pk]


@pytest.mark.case("D06")
def test_the_ledger_remembers_longer_than_the_provider_and_says_so() -> None:
    history = played("D06")
    for name in ("e4", "e5"):
        told = history.answers[name]
        assert (told.code, told.result) == (AnswerCode.REPLAYED, '{"hold":"h_1"}')
        assert told.safe_retry_until is not None
        assert told.safe_retry_until < history.clock.now


@pytest.mark.case("D08")
def test_equal_calls_of_one_message_run_and_say_that_they_are_equal() -> None:
    history = played("D08")
    assert set(codes(history).values()) == {AnswerCode.GRANTED}
    flagged = [name for name in history.answers if Flag.IDENTICAL_IN_TURN in flags(history, name)]
    assert flagged == ["e1", "e2", "e4"]


def flags(history: History, name: str) -> tuple[Flag, ...]:
    told = history.answer_now(name)
    assert told is not None
    return told.flags


@pytest.mark.case("D08")
def test_a_tool_may_hold_the_second_of_two_equal_calls() -> None:
    holding = History(policy={"hold_in_turn": True})
    holding.play(list(the_case("D08").input["events"]))
    assert [codes(holding)[name] for name in ("e1", "e2", "e3")] == [
        AnswerCode.GRANTED,
        AnswerCode.HELD,
        AnswerCode.GRANTED,
    ]


@pytest.mark.case("D09")
@pytest.mark.parametrize("hints", [None, {}, {"readOnlyHint": False}])
def test_a_hint_that_is_missing_is_no_promise(hints: dict[str, bool] | None) -> None:
    history = played("D09", changes={"e1": {"annotations": hints}})
    assert history.words == {"a2": "unknown"}
    assert history.allowed_attempts == ["a1"]


@pytest.mark.case("D10")
def test_another_agents_repeat_is_held_and_not_merged() -> None:
    history = played("D10")
    told = history.answers["e4"]
    assert told.code is AnswerCode.HELD
    assert told.blocker == history.answers["e1"].claim_id
    assert told.claim_id != history.answers["e1"].claim_id
    assert history.duplicates() == {}


@pytest.mark.case("D11")
def test_a_second_payment_after_a_settled_first_one_runs() -> None:
    told = played("D11").answers["e4"]
    assert told.code is AnswerCode.GRANTED
    assert Flag.SAME_AS_EARLIER in told.flags


@pytest.mark.case("D13")
def test_a_failure_that_does_not_say_whether_it_was_sent_is_unknown() -> None:
    assert codes(played("D13"))["e3"] is AnswerCode.GRANTED
    silent = played("D13", changes={"e2": {"dispatched": None}})
    assert codes(silent)["e3"] is AnswerCode.UNKNOWN


@pytest.mark.case("D14")
def test_a_third_attempts_success_hides_the_first_two_from_nobody() -> None:
    history = played("D14")
    row = history.row("e1")
    assert row is not None
    folded = fold(queries.event_log(row))
    assert (str(folded.state), set(folded.open_attempts)) == ("completed", {1, 2})
    assert [one.fence for one in queries.attempts(row)] == [1, 2, 3]


@pytest.mark.case("D15")
def test_an_approval_allows_what_was_shown_and_nothing_else() -> None:
    assert played("D15").answers == {}
    as_shown = played("D15", changes={"e1": {"args": {"amount": bank.Digits("100.0")}}})
    assert codes(as_shown) == {"e1": AnswerCode.GRANTED}


@pytest.mark.case("D15")
def test_a_place_that_asks_for_something_else_is_no_second_claim() -> None:
    """What the ledger itself says once the first call was claimed."""
    claim = {"type": "claim", "conversation_id": "c", "turn_index": 1, "tool": "transfer"}
    approved, other = {"amount": 100}, {"amount": 50}
    history = History()
    history.play(
        [
            claim | {"event_id": "e1", "args": approved, "response_id": "r1"},
            claim | {"event_id": "e2", "args": other, "response_id": "r1"},
            claim | {"event_id": "e3", "args": other, "response_id": "r2"},
        ]
    )
    assert codes(history) == {
        "e1": AnswerCode.GRANTED,
        "e2": AnswerCode.MISMATCH,
        "e3": AnswerCode.REISSUED_DIFFERENTLY,
    }


@pytest.mark.case("J13")
def test_a_text_is_decoded_once_and_one_call_has_one_key() -> None:
    history = played("J13")
    facts = {history.answers[name].claim_id for name in ("e1", "e2")}
    assert len(facts) == 1
    assert set(history.rejected) == {"e3", "e6", "e7"}


@pytest.mark.case("J14")
def test_a_key_says_by_which_recipe_it_was_made() -> None:
    assert all(recipe.endswith(".v1") for recipe in RECIPES.values())
    assert codes(played("J14"))["e3"] is AnswerCode.UNKNOWN
