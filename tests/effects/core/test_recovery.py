"""What may be done after a turn broke off: tables of observations, of answers and of faults."""

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from effects.core.recovery import observations, recover
from effects.core.recovery_contracts import ENDPOINTS
from effects.core.recovery_messages import (
    Bar,
    Budget,
    CallAdvice,
    Concurrent,
    EndpointContract,
    Mechanism,
    Observation,
    Partial,
    Received,
    RecoveryReason,
    RecoveryRecord,
    RecoveryRequest,
    RecoveryStep,
    RefreshFailure,
    ReplayContract,
    RequestFailure,
)
from effects.core.recovery_words import ADVICE, BARS, MECHANISMS, OBSERVATIONS, REASONS, STEPS
from effects.core.streams import ArgumentsState, Dispatched, Protocol
from effects.core.vocabulary import EffectClass, Outcome, Terminal
from tests.effects.core.recovering import (
    A_DAY,
    KEYED,
    LIMITED,
    LOST,
    NOW,
    READABLE,
    REFRESHES,
    UNAUTHORISED,
    UNSENT,
    a_call,
    a_key,
    background,
    decided,
    lost_call,
)

M, Saw, Why, Step = Mechanism, Observation, RecoveryReason, RecoveryStep
ENDED_WELL = RecoveryRecord(
    terminal=Terminal.SUCCESS, received=Received.PARTIAL, result_recorded=True
)
CUT_TEXT = RecoveryRecord(terminal=Terminal.CUT, received=Received.PARTIAL)
SENT = RecoveryRecord()


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

EVERYTHING = EndpointContract(resume=READABLE.resume, replay=A_DAY, supports_refresh=True)


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


@pytest.mark.parametrize(
    ("protocol", "can"),
    [(Protocol.ANTHROPIC, False), (Protocol.OPENAI_CHAT, False), (Protocol.OPENAI_RESPONSES, True)],
)
def test_of_the_model_endpoints_one_can_resume_and_none_replays(protocol, can):
    contract = ENDPOINTS[protocol]
    decision = decided(background(keyed=a_key()), contract=contract)
    assert (decision.step is Step.RESUME) is can
    assert contract.replay is None


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


# Credentials


@pytest.mark.parametrize(
    ("changes", "failure", "step", "reason"),
    [
        ({}, UNAUTHORISED, Step.REFRESH, Why.CREDENTIALS_REJECTED),
        ({"refreshes_made": 1}, UNAUTHORISED, Step.SEND, Why.CREDENTIALS_REFRESHED),
        (
            {"refreshes_made": 1},
            UNAUTHORISED.model_copy(update={"refreshed": True}),
            Step.PRESERVE,
            Why.RECONNECTION_REQUIRED,
        ),
        (
            {"refresh_failed": RefreshFailure.REFUSED},
            UNAUTHORISED,
            Step.PRESERVE,
            Why.RECONNECTION_REQUIRED,
        ),
        (
            {"refresh_failed": RefreshFailure.UNAVAILABLE},
            UNAUTHORISED,
            Step.PRESERVE,
            Why.REFRESH_UNAVAILABLE,
        ),
        ({"refreshes_made": 1, "open_sends": 1}, UNAUTHORISED, Step.PRESERVE, Why.NO_ANSWER),
        (
            {"received": Received.HEADERS, "terminal": Terminal.ERROR_EVENT},
            RequestFailure(http_status=401, in_stream=True),
            Step.PRESERVE,
            Why.FAILED_IN_STREAM,
        ),
        ({}, RequestFailure(outcome=Outcome.REFUSED, http_status=403), Step.PRESERVE, Why.REFUSED),
    ],
)
def test_credentials_are_refreshed_once_and_then_everything_is_asked_again(
    changes, failure, step, reason
):
    decision = decided(RecoveryRecord(**changes), failure, REFRESHES)
    assert (decision.step, decision.reason) == (step, reason)


def test_a_rejected_resume_refreshes_and_then_resumes():
    contract = EndpointContract(resume=READABLE.resume, supports_refresh=True)
    before, after = background(), background(refreshes_made=1)
    assert decided(before, UNAUTHORISED, contract).step is Step.REFRESH
    assert decided(after, UNAUTHORISED, contract).step is Step.RESUME


def test_no_expiry_can_forbid_a_refresh():
    # The decision has no such input at all: what a cache believes is no evidence.
    messages = (RecoveryRecord, RequestFailure, EndpointContract)
    assert not [name for message in messages for name in message.model_fields if "expir" in name]


# What each call is told


@pytest.mark.parametrize(
    ("call", "recorded", "cut"),
    [
        (a_call(), "dispatch", "not_run"),
        (a_call(arguments=ArgumentsState.PARTIAL), "not_run", "not_run"),
        (a_call(arguments=ArgumentsState.UNCONFIRMED), "not_run", "not_run"),
        (a_call(tool=None), "not_run", "not_run"),
        (a_call(sends=Budget(made=3, limit=3)), "not_run", "not_run"),
        (a_call(dispatched=Dispatched.RETURNED), "settled", "settled"),
        (a_call(outcome=Outcome.COMPLETED), "settled", "settled"),
        (a_call(outcome=Outcome.REFUSED), "settled", "settled"),
        (a_call(outcome=Outcome.NOT_SENT), "dispatch", "not_run"),
        (a_call(dispatched=Dispatched.IN_FLIGHT), "reconcile", "reconcile"),
        (a_call(outcome=Outcome.UNKNOWN), "reconcile", "reconcile"),
        (
            a_call(dispatched=Dispatched.IN_FLIGHT, effect_class=EffectClass.READ),
            "dispatch",
            "not_run",
        ),
    ],
)
def test_each_call_is_settled_by_itself(call, recorded, cut):
    assert decided(ENDED_WELL.model_copy(update={"calls": (call,)})).calls[0].advice == recorded
    assert decided(CUT_TEXT.model_copy(update={"calls": (call,)})).calls[0].advice == cut


def test_a_continuation_is_offered_after_reconciliation_and_says_what_it_leaves_out():
    done = CUT_TEXT.model_copy(update={"calls": (a_call(outcome=Outcome.COMPLETED),)})
    decision = decided(done)
    assert (decision.mechanism, decision.exclude) == (M.CONTINUE, tuple(Partial))
    assert "leaves out tool-use and thinking blocks" in decision.says

    open_call = CUT_TEXT.model_copy(update={"calls": (lost_call(),)})
    assert decided(open_call).exclude == ()
    spent = CUT_TEXT.model_copy(update={"sends": Budget(made=3, limit=3)})
    assert decided(spent).mechanism is M.NONE


# The acceptance matrix: the faults that this function answers


def test_a_refused_connection_may_be_sent_again_although_the_turn_has_tools():
    settled = RecoveryRecord(calls=(a_call(outcome=Outcome.COMPLETED),))
    assert decided(settled, UNSENT).step is Step.SEND


def test_a_connection_closed_after_acceptance_and_before_headers_stays_ambiguous():
    decision = decided(RecoveryRecord(), LOST, READABLE)
    assert (decision.step, decision.mechanism) == (Step.PRESERVE, M.NONE)
    assert decision.observations == (Saw.MAYBE_SENT,)


def test_an_error_event_after_200_is_no_success():
    record = RecoveryRecord(
        terminal=Terminal.ERROR_EVENT, received=Received.PARTIAL, result_recorded=True
    )
    decision = decided(record, RequestFailure(http_status=200, in_stream=True))
    assert (decision.step, decision.reason) == (Step.PRESERVE, Why.FAILED_IN_STREAM)


def test_a_stream_that_ends_after_some_text_is_kept_and_no_success():
    record = CUT_TEXT.model_copy(update={"result_recorded": True})
    decision = decided(record)
    assert (decision.step, decision.reason) == (Step.PRESERVE, Why.INTERRUPTED)
    assert Saw.PARTIAL_RECEIVED in decision.observations


def test_the_clients_own_id_opens_no_resume():
    record = background(operation_id=None, client_operation_id="mine", received=Received.NOTHING)
    decision = decided(record, contract=READABLE)
    assert (decision.step, decision.not_resumed) == (Step.PRESERVE, Bar.NO_OPERATION_ID)


def test_a_key_with_other_parameters_is_not_replayed():
    decision = decided(RecoveryRecord(keyed=a_key(digest="other")), contract=KEYED)
    assert (decision.step, decision.not_replayed) == (Step.PRESERVE, Bar.OTHER_PARAMETERS)


@pytest.mark.parametrize("failure", [UNSENT, LOST, UNAUTHORISED, LIMITED])
def test_a_cancelled_turn_is_not_started_again_by_its_timer(failure):
    for record in (
        RecoveryRecord(cancelled=True, keyed=a_key()),
        background(cancelled=True, keyed=a_key()),
        background(terminal=Terminal.CANCELLED),
    ):
        decision = decided(record, failure, EVERYTHING)
        assert (decision.step, decision.reason) == (Step.PRESERVE, Why.CANCELLED)
        assert decision.mechanism is M.NONE


def test_a_success_that_was_seen_and_not_kept_is_read_again_or_kept_and_never_sent_again():
    seen = background(terminal=Terminal.SUCCESS, keyed=a_key())
    assert decided(seen, contract=EVERYTHING).step is Step.RESUME
    decision = decided(seen, contract=KEYED)
    assert (decision.reason, decision.mechanism) == (Why.SUCCESS_NOT_RECORDED, M.NONE)
    assert decision.not_replayed is Bar.ENDED


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
