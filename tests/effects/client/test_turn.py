"""The calls of one response: their places, one request for all, and leases that are kept."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from effects.client import (
    ArgumentsRefused,
    Call,
    Ledger,
    Patience,
    SendTooLate,
    ToolCall,
    TurnCall,
    effect,
)
from effects.client.pulse import Pulse
from effects.core.vocabulary import ClaimState, EffectClass, TokenScope, Verdict
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import append, auth, queries
from ledger.append import NewDecision
from ledger.models import Claim
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.faulty_server import closed_port

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = Workspace.objects.create(name="Shop", slug="shop", created_at=BEGINNING)
    RegisteredTool.objects.create(
        workspace=made,
        name="pay",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
        lease_seconds=2,
        attempt_seconds_max=60,
    )
    return made


@pytest.fixture
def ledger(live_api: str, shop: Workspace) -> Any:
    _, token = auth.issue(shop, "an agent", (TokenScope.CLAIM,), user=None)
    with Ledger(live_api, token, patience=QUICK) as client:
        yield client


def a_tool(ledger: Ledger, runs: list[int], *, wait: Any = None) -> Any:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    def pay(call: Call, *, amount: int) -> dict[str, str]:
        if wait is not None:
            wait(call)
        call.check_send()
        runs.append(amount)
        return {"id": f"pi_{amount}_{len(runs)}"}

    return pay


def test_places_are_counted_over_all_calls_and_equal_calls_one_by_one() -> None:
    turn = Ledger("http://127.0.0.1:1", "t").turn("c", 4, response_id="resp_1", worker="w")
    said = [
        ("pay", '{"amount":1}', "call_1"),
        ("look", "{}", "call_2"),
        ("pay", '{"amount": 1.0}', "call_3"),
        ("pay", '{"amount":2}', None),
        ("pay", "not json", None),
        ("pay", "not json", None),
    ]
    placed = [turn.place(*one) for one in said]
    assert [(at.position, at.ordinal) for at in placed] == [
        *((0, 0), (1, 0), (2, 1)),
        *((3, 0), (4, 0), (5, 1)),
    ]
    assert placed[2] == ToolCall(
        conversation="c",
        turn_index=4,
        position=2,
        ordinal=1,
        response_id="resp_1",
        call_id="call_3",
        worker="w",
    )


@pytest.mark.parametrize("threads", [1, 4])
def test_the_calls_of_a_response_are_claimed_at_once_and_each_runs_once(
    ledger: Ledger, shop: Workspace, threads: int
) -> None:
    runs: list[int] = []
    pay = a_tool(ledger, runs)

    @effect(ledger, effect_class="read")
    def balance(*, account: str) -> dict[str, str]:
        return {"account": account}

    def respond(response_id: str) -> list[Any]:
        turn = ledger.turn("c", 0, response_id=response_id)
        calls = [
            TurnCall(tool=pay, arguments='{"amount":1}'),
            TurnCall(tool=balance, arguments={"account": "x"}),
            TurnCall(tool=pay, arguments='{"amount":1}'),
            TurnCall(tool=pay, arguments={"amount": 2}),
        ]
        return turn.run_all(calls, threads=threads)

    first = respond("resp_1")
    assert [told.status for told in first] == ["completed"] * 4
    assert sorted(runs) == [1, 1, 2]
    again = respond("resp_2")
    assert [told.status for told in again] == ["completed"] * 4
    assert [told.result for told in again] == [told.result for told in first]
    assert sorted(runs) == [1, 1, 2], "the turn was asked for again, and nothing ran again"
    assert Claim.objects.filter(workspace=shop).count() == 3


def test_a_call_that_the_ledger_refuses_costs_the_others_nothing(ledger: Ledger) -> None:
    runs: list[int] = []
    pay = a_tool(ledger, runs)
    turn = ledger.turn("c", 0)
    first, second = turn.run_all(
        [
            TurnCall(tool=pay, arguments={"amount": 1}, call_id="x\x00"),
            TurnCall(tool=pay, arguments={"amount": 2}),
        ]
    )
    assert (first.status, second.status, runs) == ("refused", "completed", [2])
    with pytest.raises(ArgumentsRefused):
        turn.run_all([TurnCall(tool=pay, arguments='{"amount":NaN}')])


def test_while_the_ledger_is_away_no_call_of_the_response_is_sent() -> None:
    runs: list[int] = []
    with Ledger(f"http://127.0.0.1:{closed_port()}", "t", patience=QUICK) as ledger:
        pay = a_tool(ledger, runs)
        told = ledger.turn("c", 0).run_all([TurnCall(tool=pay, arguments={"amount": 1})] * 2)
    assert [one.status for one in told] == ["ledger_unavailable"] * 2
    assert runs == []


def test_the_lease_of_a_long_call_is_kept(ledger: Ledger) -> None:
    runs: list[int] = []
    pay = a_tool(ledger, runs, wait=lambda _: time.sleep(3))

    @effect(ledger, effect_class="keyed_write", tool="pay")
    def slow(call: Call, *, amount: int) -> dict[str, int]:
        call.check_send()
        time.sleep(3)
        return {"amount": amount}

    told = ledger.turn("c", 0).run(slow, {"amount": 1})
    assert told.status == "completed"
    assert told.claim_id
    claim = queries.claim(Workspace.objects.get().pk, told.claim_id)
    assert [event.kind for event in queries.events(claim)] == ["granted", "reported"]
    late = ledger.turn("c", 1).run(pay, {"amount": 2})
    assert isinstance(late.error, SendTooLate), "a kept lease is no longer time to send"


def test_a_call_that_no_longer_counts_is_told_to_stop_before_it_sends(
    ledger: Ledger, shop: Workspace, django_user_model: Any
) -> None:
    person = django_user_model.objects.create_user(username="ana")
    runs: list[int] = []

    def stopped_meanwhile(call: Call) -> None:
        claim = queries.claim(shop.pk, call.claim_id)
        decision = NewDecision(
            verdict=Verdict.CLOSE,
            claim_version=claim.version,
            reason="The customer withdrew.",
            user_id=person.pk,
            hold_seconds=0,
        )
        append.decide(shop.pk, call.claim_id, decision)
        deadline = time.monotonic() + 5
        while not call.told_to_stop and time.monotonic() < deadline:
            time.sleep(0.02)

    RegisteredTool.objects.filter(name="pay").update(lease_seconds=5)
    pay = a_tool(ledger, runs, wait=stopped_meanwhile)
    told = ledger.turn("c", 0).run(pay, {"amount": 1})
    assert isinstance(told.error, SendTooLate)
    assert told.claim_id
    assert queries.claim(shop.pk, told.claim_id).state is ClaimState.CLOSED
    assert runs == []


def test_heartbeats_can_be_switched_off(ledger: Ledger, shop: Workspace, live_api: str) -> None:
    _, token = auth.issue(shop, "another", (TokenScope.CLAIM,), user=None)
    quiet = Patience(claim_tries_max=1, report_tries_max=1, beats_per_lease=0)
    with Ledger(live_api, token, patience=quiet) as silent:

        @effect(silent, effect_class="keyed_write", tool="pay")
        def slow(call: Call, *, amount: int) -> dict[str, int]:
            call.check_send()
            time.sleep(2.2)
            return {"amount": amount}

        told = silent.turn("c", 0).run(slow, {"amount": 1})
    assert told.claim_id
    claim = queries.claim(shop.pk, told.claim_id)
    assert [event.kind for event in queries.events(claim)] == ["granted", "lapsed", "reported"]


# The pulse itself


def test_each_call_is_beaten_for_until_it_is_over_or_told_to_stop() -> None:
    pulse, beats, done = Pulse(), {"a": 0, "b": 0}, threading.Event()

    def beat_a() -> bool:
        beats["a"] += 1
        return beats["a"] < 2

    def beat_b() -> bool:
        beats["b"] += 1
        if beats["b"] == 4:
            done.set()
        return True

    pulse.begin(0, beat_a)
    beating = pulse.begin(0, beat_b)
    assert done.wait(5)
    pulse.end(beating)
    time.sleep(0.5)
    assert beats["a"] == 2
    assert beats["b"] in {4, 5}


def test_a_forked_child_has_a_pulse_of_its_own() -> None:
    pulse, beaten = Pulse(), threading.Event()
    pulse.begin(0, lambda: True)
    child = os.fork()
    if not child:

        def beat() -> bool:
            beaten.set()
            return False

        pulse.begin(0, beat)
        os._exit(0 if beaten.wait(5) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
