"""After a turn broke off: credentials, endpoints, single calls, and the acceptance matrix."""

import pytest

from effects.core.recovery_contracts import ENDPOINTS
from effects.core.recovery_messages import (
    Bar,
    Budget,
    EndpointContract,
    Mechanism,
    Observation,
    Partial,
    Received,
    RecoveryReason,
    RecoveryRecord,
    RecoveryStep,
    RefreshFailure,
    RequestFailure,
)
from effects.core.streams import ArgumentsState, Dispatched, Protocol
from effects.core.vocabulary import EffectClass, Outcome, Terminal
from tests.effects.core.recovering import (
    CUT_TEXT,
    ENDED_WELL,
    EVERYTHING,
    KEYED,
    LIMITED,
    LOST,
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


@pytest.mark.parametrize(
    ("protocol", "can"),
    [(Protocol.ANTHROPIC, False), (Protocol.OPENAI_CHAT, False), (Protocol.OPENAI_RESPONSES, True)],
)
def test_of_the_model_endpoints_one_can_resume_and_none_replays(protocol, can):
    contract = ENDPOINTS[protocol]
    decision = decided(background(keyed=a_key()), contract=contract)
    assert (decision.step is Step.RESUME) is can
    assert contract.replay is None


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
