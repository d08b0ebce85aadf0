"""What may be done after a turn broke off: tables of observations, of answers and of faults."""

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from effects.core.recovery import observations, recover
from effects.core.recovery_messages import (
    Bar,
    Budget,
    CallAdvice,
    Concurrent,
    EndpointContract,
    Mechanism,
    Observation,
    Received,
    RecoveryReason,
    RecoveryRecord,
    RecoveryRequest,
    RecoveryStep,
    ReplayContract,
    RequestFailure,
)
from effects.core.recovery_words import ADVICE, BARS, MECHANISMS, OBSERVATIONS, REASONS, STEPS
from effects.core.streams import Dispatched
from effects.core.vocabulary import Outcome, Terminal
from tests.effects.core.recovering import (
    A_DAY,
    CUT_TEXT,
    ENDED_WELL,
    EVERYTHING,
    LIMITED,
    LOST,
    NOW,
    READABLE,
    SENT,
    UNAUTHORISED,
    UNSENT,
    a_call,
    a_key,
    background,
    decided,
    lost_call,
)

M, Saw, Why, Step = Mechanism, Observation, RecoveryReason, RecoveryStep


# The table of observations: what was seen, and what is decided


@pytest.mark.parametrize(
    ("record", "failure", "seen", "step", "mechanism"),
    [
        pytest.param(
            SENT, UNSENT, {Saw.NEVER_TRANSMITTED}, Step.SEND, M.RECONNECT, id="never transmitted"
        ),
        pytest.param(SENT, LOST, {Saw.MAYBE_SENT}, Step.PRESERVE, M.NONE, id="maybe sent"),
        pytest.param(
            RecoveryRecord(received=Received.HEADERS),
            LOST,
            {Saw.HEADERS_RECEIVED, Saw.NO_SUCCESSFUL_END},
            Step.PRESERVE,
            M.NONE,
            id="200 and headers",
        ),
        pytest.param(
            CUT_TEXT,
            LOST,
            {Saw.HEADERS_RECEIVED, Saw.PARTIAL_RECEIVED, Saw.NO_SUCCESSFUL_END},
            Step.PRESERVE,
            M.CONTINUE,
            id="partial text",
        ),
        pytest.param(
            CUT_TEXT.model_copy(update={"calls": (a_call(dispatched=Dispatched.IN_FLIGHT),)}),
            LOST,
            {
                *(Saw.HEADERS_RECEIVED, Saw.PARTIAL_RECEIVED),
                *(Saw.NO_SUCCESSFUL_END, Saw.TOOL_DISPATCHED),
            },
            Step.RECONCILE,
            M.NONE,
            id="a call was dispatched",
        ),
        pytest.param(
            ENDED_WELL,
            LOST,
            {Saw.HEADERS_RECEIVED, Saw.PARTIAL_RECEIVED, Saw.SUCCESSFUL_END},
            Step.SETTLE,
            M.NONE,
            id="the successful end",
        ),
        pytest.param(
            RecoveryRecord(terminal=Terminal.CUT),
            LOST,
            {Saw.MAYBE_SENT, Saw.NO_SUCCESSFUL_END},
            Step.PRESERVE,
            M.NONE,
            id="the end of a connection and nothing else",
        ),
        pytest.param(
            RecoveryRecord(terminal=Terminal.ERROR_EVENT),
            LOST,
            {Saw.HEADERS_RECEIVED, Saw.NO_SUCCESSFUL_END},
            Step.PRESERVE,
            M.CONTINUE,
            id="an error event and nothing else",
        ),
        pytest.param(
            SENT,
            UNAUTHORISED,
            {Saw.REFUSED, Saw.CREDENTIALS_REJECTED},
            Step.PRESERVE,
            M.NONE,
            id="401, and nothing can refresh",
        ),
        pytest.param(
            CUT_TEXT.model_copy(update={"cancelled": True}),
            LOST,
            {
                *(Saw.HEADERS_RECEIVED, Saw.PARTIAL_RECEIVED),
                *(Saw.NO_SUCCESSFUL_END, Saw.CANCELLED),
            },
            Step.PRESERVE,
            M.NONE,
            id="cancelled",
        ),
    ],
)
def test_each_observation_is_seen_and_answered(record, failure, seen, step, mechanism):
    assert observations(record, failure) == seen
    decision = decided(record, failure)
    assert (decision.step, decision.mechanism) == (step, mechanism)
    assert set(decision.observations) <= seen


def test_each_word_is_explained():
    for words, kind in (
        *((OBSERVATIONS, Observation), (STEPS, RecoveryStep), (MECHANISMS, Mechanism)),
        *((REASONS, RecoveryReason), (BARS, Bar), (ADVICE, CallAdvice)),
    ):
        assert set(words) == set(kind)


# The seven answers, in their order: each wins over every one after it


def a_turn(**changes):
    return background(keyed=a_key(), **changes)


@pytest.mark.parametrize(
    ("record", "failure", "step", "reason", "mechanism"),
    [
        pytest.param(
            a_turn(terminal=Terminal.SUCCESS, result_recorded=True, calls=(lost_call(),)),
            UNAUTHORISED,
            Step.SETTLE,
            Why.SUCCESS_RECORDED,
            M.NONE,
            id="1 a recorded success",
        ),
        pytest.param(
            a_turn(calls=(lost_call(),)),
            UNAUTHORISED,
            Step.RECONCILE,
            Why.EFFECT_UNKNOWN,
            M.NONE,
            id="2 an unknown effect",
        ),
        pytest.param(
            RecoveryRecord(keyed=a_key()),
            UNSENT,
            Step.SEND,
            Why.NEVER_TRANSMITTED,
            M.RECONNECT,
            id="3 never transmitted",
        ),
        pytest.param(
            a_turn(), UNAUTHORISED, Step.REFRESH, Why.CREDENTIALS_REJECTED, M.RECONNECT, id="4 401"
        ),
        pytest.param(a_turn(), LOST, Step.RESUME, Why.RESUMABLE, M.RESUME, id="5 resumable"),
        pytest.param(
            a_turn(operation_id=None),
            LOST,
            Step.REPLAY,
            Why.REPLAY_GUARANTEED,
            M.REPLAY,
            id="6 a key",
        ),
        pytest.param(
            RecoveryRecord(), LOST, Step.PRESERVE, Why.NO_ANSWER, M.NONE, id="7 nothing promised"
        ),
    ],
)
def test_the_first_rule_that_applies_answers(record, failure, step, reason, mechanism):
    decision = decided(record, failure, EVERYTHING)
    assert (decision.step, decision.reason) == (step, reason)
    assert decision.mechanism is mechanism


def test_a_resume_reads_on_after_what_was_applied_and_not_after_what_was_seen():
    decision = decided(background(cursor=8), contract=READABLE)
    assert (decision.operation_id, decision.cursor) == ("resp_1", 8)
    assert decision.until == NOW + timedelta(seconds=570)
    assert decided(background(cursor=None), contract=READABLE).cursor is None


@pytest.mark.parametrize(
    ("changes", "failure", "bar"),
    [
        ({"operation_id": None, "client_operation_id": "mine"}, LOST, Bar.NO_OPERATION_ID),
        ({"background": False}, LOST, Bar.NOT_BACKGROUND),
        ({"stored": False}, LOST, Bar.NOT_STORED),
        ({"terminal": Terminal.INCOMPLETE}, LOST, Bar.ENDED),
        ({"terminal": Terminal.ERROR_EVENT}, LOST, Bar.ENDED),
        ({"resumes": Budget(made=5, limit=5)}, LOST, Bar.RESUMES_SPENT),
        ({"last_event_at": None}, LOST, Bar.NOT_DATED),
        ({"last_event_at": NOW - timedelta(seconds=600)}, LOST, Bar.NO_LONGER_KEPT),
        (
            {"resumes": Budget(made=1, limit=5)},
            RequestFailure(outcome=Outcome.REFUSED, http_status=404),
            Bar.NO_LONGER_KEPT,
        ),
    ],
)
def test_only_what_the_endpoint_documents_is_read_on(changes, failure, bar):
    decision = decided(background(**changes), failure, READABLE)
    assert (decision.step, decision.not_resumed) == (Step.PRESERVE, bar)


REPLAYS = [
    pytest.param(a_key(), {}, None, id="the contract holds"),
    pytest.param(None, {}, Bar.NO_KEY, id="no key"),
    pytest.param(a_key(digest="d2"), {}, Bar.OTHER_PARAMETERS, id="other parameters"),
    pytest.param(a_key(scope="live"), {"scope": "test"}, Bar.OTHER_SCOPE, id="other scope"),
    pytest.param(a_key(86_339), {}, None, id="a second before the margin"),
    pytest.param(a_key(86_340), {}, Bar.WINDOW_CLOSED, id="the margin counts as closed"),
    pytest.param(a_key(-61), {}, Bar.CLOCKS_DISAGREE, id="first sent in the future"),
    pytest.param(a_key(-59), {}, None, id="clocks that differ by less than the margin"),
    pytest.param(a_key(), {"concurrent": Concurrent.JOINED}, None, id="a second one joins"),
    pytest.param(
        a_key(),
        {"concurrent": Concurrent.UNDOCUMENTED},
        Bar.CONCURRENCY_NOT_SAFE,
        id="undocumented",
    ),
    pytest.param(
        a_key(), {"concurrent": Concurrent.RUNS_BOTH}, Bar.CONCURRENCY_NOT_SAFE, id="runs both"
    ),
]


@pytest.mark.parametrize(("keyed", "changes", "bar"), REPLAYS)
def test_a_replay_needs_the_whole_contract(keyed, changes, bar):
    contract = A_DAY.model_copy(update=changes)
    decision = decided(RecoveryRecord(keyed=keyed), contract=EndpointContract(replay=contract))
    assert (decision.step is Step.REPLAY) is (bar is None)
    assert decision.not_replayed == bar
    assert decision.key == (None if bar else "op-1")


@pytest.mark.parametrize(("keyed", "changes", "bar"), REPLAYS)
def test_a_lost_tool_call_is_sent_again_only_by_the_same_rule(keyed, changes, bar):
    contract = A_DAY.model_copy(update=changes)
    record = RecoveryRecord(calls=(lost_call(keyed=keyed, contract=contract),))
    decision = decided(record, UNSENT, EVERYTHING)
    (call,) = decision.calls
    assert decision.step is Step.RECONCILE
    assert call.advice is (CallAdvice.RECONCILE if bar else CallAdvice.SAME_KEY)
    assert (call.not_replayed, call.key) == (bar, None if bar else "op-1")
    assert decision.mechanism is (M.NONE if bar else M.REPLAY)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"sends": Budget(made=3, limit=3)}, id="its own budget is spent"),
        pytest.param({"outcome": None, "dispatched": Dispatched.IN_FLIGHT}, id="may still run"),
        pytest.param({"contract": None}, id="its provider promises nothing"),
    ],
)
def test_a_lost_tool_call_is_otherwise_only_looked_up(changes):
    call = lost_call(**({"keyed": a_key(), "contract": A_DAY} | changes))
    decision = decided(RecoveryRecord(calls=(call,)), UNSENT)
    assert decision.calls[0].advice is CallAdvice.RECONCILE
    assert decision.mechanism is M.NONE


def test_budgets_of_generation_and_of_effects_are_apart():
    spent = Budget(made=3, limit=3)
    replay = decided(RecoveryRecord(keyed=a_key(), sends=spent), contract=EVERYTHING)
    assert replay.not_replayed is Bar.SENDS_SPENT
    assert decided(RecoveryRecord(sends=spent), UNSENT).reason is Why.SENDS_SPENT
    call = lost_call(keyed=a_key(), contract=A_DAY)
    decision = decided(RecoveryRecord(sends=spent, calls=(call,)), UNSENT)
    assert decision.calls[0].advice is CallAdvice.SAME_KEY, "the model's budget is not the tool's"

    settled = a_call(outcome=Outcome.COMPLETED, sends=spent)
    assert decided(RecoveryRecord(calls=(settled,)), UNSENT).step is Step.SEND


# A proof about the last send is not always one about the operation


@pytest.mark.parametrize("failure", [UNSENT, LIMITED])
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"open_sends": 1}, id="an earlier send is open"),
        pytest.param({"operation_id": "resp_1"}, id="the provider named the operation"),
        pytest.param({"received": Received.HEADERS}, id="the response had begun"),
        pytest.param({"terminal": Terminal.ERROR_EVENT}, id="the provider answered"),
    ],
)
def test_a_later_failure_proves_nothing_about_an_earlier_send(failure, changes):
    assert decided(RecoveryRecord(), failure).step is Step.SEND
    assert decided(RecoveryRecord(**changes), failure).step is Step.PRESERVE


@pytest.mark.parametrize(
    ("failure", "step", "reason"),
    [
        pytest.param(LIMITED, Step.SEND, Why.TURNED_AWAY, id="429"),
        pytest.param(
            RequestFailure(outcome=Outcome.REFUSED, http_status=400),
            Step.PRESERVE,
            Why.REFUSED,
            id="400",
        ),
        pytest.param(
            RequestFailure(outcome=Outcome.REFUSED_STORED, http_status=429),
            Step.PRESERVE,
            Why.REFUSED,
            id="a stored refusal comes again",
        ),
        pytest.param(
            RequestFailure(http_status=529), Step.PRESERVE, Why.NO_ANSWER, id="overloaded is a 5xx"
        ),
    ],
)
def test_a_refusal_is_sent_again_only_if_it_was_for_now(failure, step, reason):
    decision = decided(RecoveryRecord(), failure)
    assert (decision.step, decision.reason) == (step, reason)
    assert decision.wait_seconds == (7 if failure is LIMITED else None)


# As it travels


def test_the_question_and_the_answer_travel_as_json():
    asked = RecoveryRequest(
        record=background(calls=(lost_call(keyed=a_key(), contract=A_DAY),)),
        failure=UNAUTHORISED,
        contract=EVERYTHING,
    )
    assert RecoveryRequest.model_validate_json(asked.model_dump_json()) == asked
    decision = recover(asked.record, asked.failure, asked.contract, NOW)
    assert type(decision).model_validate_json(decision.model_dump_json()) == decision


@pytest.mark.parametrize(
    "body",
    [
        '{"record": {"cursor": -1}}',
        '{"record": {"terminal": "done"}}',
        '{"record": {"last_event_at": "2026-11-29T12:00:00"}}',
        '{"record": {"last_event_at": "0001-01-01T00:00:00Z"}}',
        '{"record": {}, "failure": {"outcome": "completed"}}',
        '{"record": {"sends": {"made": 1}}}',
        '{"record": {"model_success": true}}',
        "{}",
    ],
)
def test_a_question_that_is_not_well_formed_is_refused(body):
    with pytest.raises(ValidationError):
        RecoveryRequest.model_validate_json(body)


def test_a_moment_without_a_time_zone_is_refused():
    naive = datetime(2026, 11, 29)  # noqa: DTZ001 - that is the point
    with pytest.raises(ValueError, match="no time zone"):
        recover(RecoveryRecord(), LOST, EndpointContract(), naive)


def test_a_contract_promises_nothing_that_it_does_not_say():
    assert ReplayContract(window_seconds=1).concurrent is Concurrent.UNDOCUMENTED
    assert EndpointContract() == EndpointContract(resume=None, replay=None, supports_refresh=False)
