"""A tool's own rows reach the sorting, and what a library repeated reaches the ledger."""

from __future__ import annotations

import anthropic
import httpx2
import pytest

from effects.client import (
    Call,
    ErrorProof,
    ErrorRow,
    ErrorRules,
    Ledger,
    ToolCall,
    effect,
)
from effects.core.messages import Complete, Fail, Unknown
from effects.core.vocabulary import Outcome
from tests.effects.client.scripted_ledger import ScriptedLedger
from tests.effects.faulty_server import answers, close_after_reading, closed_port, faulty, in_turn

TURN = ToolCall(conversation="c-1", turn_index=3, call_id="toolu_01WkP9QmXyZ01234")


class PaymentFailed(Exception):
    pass


WRAPPED = ErrorRules(
    contract="stripe.v1",  # type: ignore[arg-type]  # as users write it
    rows=(ErrorRow(exception=PaymentFailed, proof=ErrorProof.ITS_CAUSE, why="it only wraps"),),
)


def pay(url: str) -> object:
    try:
        return httpx2.post(url).raise_for_status().json()
    except httpx2.HTTPError as error:
        raise PaymentFailed from error


def test_rows_given_to_a_tool_decide_what_is_reported(ledger: Ledger, scripted: ScriptedLedger):
    @effect(ledger, effect_class="keyed_write", tool="send_payment", contract=WRAPPED)
    def send_payment(call: Call) -> object:
        return pay(f"http://127.0.0.1:{closed_port()}")

    done = send_payment(TURN)
    assert scripted.told(Fail)[0].proof is Outcome.NOT_SENT
    assert done.failure
    assert done.failure.why.startswith("builtins.ConnectionRefusedError was raised before")


def test_rows_given_to_a_block_decide_what_is_reported(ledger: Ledger, scripted: ScriptedLedger):
    with (
        faulty(answers(402, b'{"error": {"code": "card_declined"}}')) as server,
        pytest.raises(PaymentFailed),
        ledger.attempt("send_payment", {}, TURN, contract=WRAPPED) as call,
    ):
        call.complete(pay(server.url))
    assert scripted.told(Fail)[0].proof is Outcome.REFUSED_STORED


def test_the_contract_alone_is_still_enough(ledger: Ledger, scripted: ScriptedLedger):
    @effect(ledger, effect_class="keyed_write", tool="send_payment", contract="stripe.v1")
    def send_payment(call: Call) -> object:
        with faulty(answers(402)) as server:
            return httpx2.post(server.url).raise_for_status()

    send_payment(TURN)
    assert scripted.told(Fail)[0].proof is Outcome.REFUSED_STORED


@pytest.fixture
def upload(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.01)

    def run(url: str):
        @effect(ledger, effect_class="unkeyed_write", tool="send_payment")
        def send_payment(call: Call) -> object:
            with anthropic.Anthropic(api_key="sk-not-real", base_url=url) as client:
                return client.post("/v1/files", cast_to=object)

        return send_payment(TURN)

    return run


def test_what_an_sdk_repeated_is_reported_as_repeats_of_one_call(upload, scripted: ScriptedLedger):
    with faulty(in_turn(close_after_reading, answers(400))) as server:
        done = upload(server.url)
        assert len(server.requests) == 2
    (told,) = scripted.told(Unknown)
    assert (told.http_status, told.retry_count) == (400, 1)
    assert done.failure.sends_seen == 2
    assert scripted.words == ["claims", "unknown"]


def test_a_result_after_repeats_says_so_too(ledger: Ledger, scripted: ScriptedLedger):
    @effect(ledger, effect_class="keyed_write", tool="send_payment")
    def send_payment(call: Call) -> object:
        return {"MessageId": "m-1", "ResponseMetadata": {"RetryAttempts": 2}}

    assert send_payment(TURN).happened
    assert scripted.told(Complete)[0].retry_count == 2


def test_a_tool_whose_library_says_nothing_reports_nothing(ledger: Ledger, scripted):
    @effect(ledger, effect_class="keyed_write", tool="send_payment")
    def send_payment(call: Call) -> object:
        return {"id": "pi_1"}

    assert send_payment(TURN).happened
    assert scripted.told(Complete)[0].retry_count is None
