"""Events for a ledger that is there, away, or of another opinion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effects.client.integrations import events as module
from effects.client.integrations.events import Events
from effects.core.events import AttemptCompleted, AttemptUnknown
from tests.effects.faulty_server import FaultyServer, answers, closed_port, faulty, in_turn

TAKEN = answers(200, b'{"items": []}')


def told(server: FaultyServer) -> list[list[str]]:
    """The ids of the events of each request."""
    bodies = [request.partition(b"\r\n\r\n")[2] for request in server.requests]
    return [[event["id"] for event in json.loads(body)] for body in bodies]


def tell(events: Events, *ids: str) -> None:
    for event_id in ids:
        unknown = AttemptUnknown(claim="c", attempt="a", error="timeout")
        events.tell(event_id, "attempt.unknown", unknown)
        events.send()


def test_an_event_says_who_sent_it_when_and_what() -> None:
    with faulty(TAKEN) as ledger, Events(ledger.url, lambda: "cf_token", "urn:agent") as events:
        tell(events, "1")
    head, _, body = ledger.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/events ")
    assert b"authorization: Bearer cf_token" in head
    (event,) = json.loads(body)
    assert event.pop("time").endswith("Z")
    assert event == {
        "id": "1",
        "source": "urn:agent",
        "type": "attempt.unknown",
        "data": {"claim": "c", "attempt": "a", "error": "timeout"},
    }
    assert (events.waiting, events.dropped) == (0, 0)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_what_was_not_taken_is_kept_and_told_with_what_comes_later(status: int) -> None:
    with (
        faulty(in_turn(answers(status), TAKEN)) as ledger,
        Events(ledger.url, "cf_token", "urn:agent") as events,
    ):
        tell(events, "1", "2")
        assert events.waiting == 2, "the ledger is left alone for a moment"
        assert events.flush() == 0
    assert told(ledger) == [["1"], ["1", "2"]]


@pytest.mark.parametrize("status", sorted(module.NEVER))
def test_what_can_never_be_taken_does_not_stand_in_the_way(status: int) -> None:
    with (
        faulty(in_turn(answers(status), TAKEN)) as ledger,
        Events(ledger.url, "cf_token", "urn:agent") as events,
    ):
        tell(events, "1", "2")
    assert told(ledger) == [["1"], ["2"]]
    assert (events.waiting, events.dropped) == (0, 1)


def test_a_ledger_that_is_away_never_raises_and_the_limit_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "KEPT_MAX", 2)
    with Events(f"http://127.0.0.1:{closed_port()}", "cf_token", "urn:agent") as events:
        tell(events, "1", "2", "3")
        assert (events.waiting, events.dropped) == (2, 1)
    assert "KEPT_MAX" in caplog.text
    assert "2 events were not told" in caplog.text


def test_many_events_go_in_several_requests_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BATCH_MAX", 2)
    with faulty(TAKEN) as ledger, Events(ledger.url, "cf_token", "urn:agent") as events:
        for event_id in "12345":
            unknown = AttemptUnknown(claim="c", attempt="a")
            events.tell(event_id, "attempt.unknown", unknown)
    assert told(ledger) == [["1", "2"], ["3", "4"], ["5"]]


def test_an_event_above_the_ledgers_limit_is_told_without_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ITEM_BYTES_MAX", 400)
    with faulty(TAKEN) as ledger, Events(ledger.url, "cf_token", "urn:agent") as events:
        done = AttemptCompleted(claim="c", attempt="a", result=json.dumps("x" * 500))
        events.tell("1", "attempt.completed", done)
        lost = AttemptUnknown(claim="c", attempt="a", error="x" * 500)
        events.tell("2", "attempt.unknown", lost)
    assert told(ledger) == [["1"]]
    assert b"xxx" not in ledger.requests[0]
    assert events.dropped == 1


def test_what_the_ledger_could_not_read_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    item: Any = {"index": 0, "id": "1", "word": "unreadable", "state": "unreadable", "says": "No."}
    answer = json.dumps({"items": [item]}).encode()
    with (
        faulty(answers(200, answer)) as ledger,
        Events(ledger.url, "cf_token", "urn:agent") as events,
    ):
        tell(events, "1")
    assert "Event 1: unreadable. No." in caplog.text
