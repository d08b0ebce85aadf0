"""The recovery decision over the API: the same function, the database's clock, nothing recorded."""

import json

import pytest

from effects.core.recovery import recover
from effects.core.recovery_messages import (
    Concurrent,
    EndpointContract,
    KeyedSend,
    RecoveryDecision,
    RecoveryRecord,
    RecoveryRequest,
    ReplayContract,
    RequestFailure,
)
from effects.core.vocabulary import Outcome, TokenScope
from ledger import queries
from ledger.models import Claim, IngestItem
from ledger.reading import RECOVERY_BODY_BYTES_MAX
from tests.effects.core.recovering import LOST, READABLE, UNAUTHORISED, background, lost_call


def asked(record, failure=LOST, contract=None):
    question = RecoveryRequest(
        record=record, failure=failure, contract=contract or EndpointContract()
    )
    return json.loads(question.model_dump_json())


@pytest.mark.parametrize("scope", [TokenScope.READ, TokenScope.CLAIM])
def test_the_answer_is_what_the_function_says(hire, shop, scope):
    now = queries.clock()
    record = background(calls=(lost_call(),), last_event_at=now)
    answer = hire(shop, scope).post("recover", asked(record, UNAUTHORISED, READABLE))
    assert answer.status == 200, answer.body
    assert answer.headers["Cache-Control"] == "no-store"
    told = RecoveryDecision.model_validate_json(answer.body)
    assert told == recover(record, UNAUTHORISED, READABLE, now)
    assert told.step == "reconcile_tool_operation"


def test_a_short_question_is_enough(agent):
    answer = agent.post("recover", {"record": {}})
    assert (answer.json["step"], answer.json["mechanism"]) == (
        "preserve_partial_result_and_report",
        "none",
    )
    sent = agent.post("recover", {"record": {}, "failure": {"outcome": "not_sent"}})
    assert sent.json["step"] == "bounded_send"


def test_the_databases_clock_judges_the_window(agent, pass_time):
    keyed = KeyedSend(key="k", sent_digest="d", digest="d", first_sent_at=queries.clock())
    contract = EndpointContract(
        replay=ReplayContract(window_seconds=3_600, concurrent=Concurrent.REFUSED)
    )
    question = asked(RecoveryRecord(keyed=keyed), contract=contract)
    assert agent.post("recover", question).json["step"] == "bounded_replay_with_same_key"
    pass_time(seconds=3_600 - 60)
    assert agent.post("recover", question).json["not_replayed"] == "window_closed"


def test_asking_records_nothing(agent):
    agent.post("recover", asked(background(), RequestFailure(outcome=Outcome.NOT_SENT)))
    assert not Claim.objects.exists()
    assert not IngestItem.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{}", 422, "input_invalid"),
        (b'{"record": {"terminal": "finished"}}', 422, "input_invalid"),
        (b'{"record": {}, "now": "2026-01-01T00:00:00Z"}', 422, "input_invalid"),
        (b'{"record": ', 422, "input_invalid"),
        (b" " * (RECOVERY_BODY_BYTES_MAX + 1), 413, "limit_exceeded"),
    ],
)
def test_a_wrong_question_is_refused_with_its_place(agent, body, status, code):
    answer = agent.post("recover", body)
    assert (answer.status, answer.code) == (status, code)
    if status == 413:
        assert answer.json["limit"] == "RECOVERY_BODY_BYTES_MAX"


def test_only_a_token_that_may_read_or_claim_is_answered(hire, shop):
    assert hire(shop, TokenScope.INGEST).post("recover", {"record": {}}).status == 403
