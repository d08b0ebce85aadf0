"""Laws of recovery, tried on random turns: what no decision may ever do."""

from datetime import timedelta

from hypothesis import event, given, settings
from hypothesis import strategies as st

from effects.core.recovery import observations
from effects.core.recovery_contracts import replay_bar
from effects.core.recovery_messages import (
    Budget,
    CallAdvice,
    CallFacts,
    Concurrent,
    EndpointContract,
    KeyedSend,
    Mechanism,
    Observation,
    Received,
    RecoveryRecord,
    RecoveryRequest,
    RecoveryStep,
    RefreshFailure,
    ReplayContract,
    RequestFailure,
    ResumeContract,
)
from effects.core.streams import ArgumentsState, Dispatched
from effects.core.vocabulary import EffectClass, Outcome, Terminal
from tests.effects.core.recovering import NOW, decided

unhurried = settings(deadline=None, max_examples=120)
STARTS_A_GENERATION = {RecoveryStep.SEND, RecoveryStep.REPLAY}
SAFE_BESIDE = {Concurrent.REFUSED, Concurrent.JOINED}

few = st.integers(0, 3)
flag = st.booleans()
instants = st.sampled_from([-90_000, -3_600, -601, -30, 0, 59, 61, 10_000]).map(
    lambda seconds: NOW + timedelta(seconds=seconds)
)
budgets = st.builds(Budget, made=few, limit=few)
replays = st.builds(
    ReplayContract,
    window_seconds=st.sampled_from([0, 60, 7_200, 86_400]),
    margin_seconds=st.sampled_from([0, 60, 7_300]),
    scope=st.sampled_from([None, "live"]),
    concurrent=st.sampled_from(Concurrent),
)
keys = st.builds(
    KeyedSend,
    key=st.just("op-1"),
    sent_digest=st.just("d1"),
    digest=st.sampled_from(["d1", "d1", "d2"]),
    first_sent_at=instants,
    scope=st.sampled_from([None, "live"]),
)
calls = st.builds(
    CallFacts,
    position=few,
    tool=st.sampled_from(["pay", None]),
    effect_class=st.sampled_from(EffectClass),
    arguments=st.sampled_from(ArgumentsState),
    dispatched=st.sampled_from(Dispatched),
    outcome=st.none() | st.sampled_from(Outcome),
    keyed=st.none() | keys,
    contract=st.none() | replays,
    sends=budgets,
)
records = st.builds(
    RecoveryRecord,
    terminal=st.none() | st.sampled_from(Terminal),
    result_recorded=flag,
    received=st.sampled_from(Received),
    last_event_at=st.none() | instants,
    operation_id=st.sampled_from([None, "resp_1"]),
    client_operation_id=st.sampled_from([None, "mine"]),
    background=flag,
    stored=flag,
    cursor=st.none() | few,
    keyed=st.none() | keys,
    calls=st.lists(calls, max_size=3).map(tuple),
    sends=budgets,
    open_sends=st.sampled_from([0, 0, 1]),
    resumes=budgets,
    refreshes_made=few,
    refresh_failed=st.none() | st.sampled_from(RefreshFailure),
    cancelled=st.sampled_from([False, False, True]),
)
# Random turns seldom meet all that a read, a replay or a dispatch needs; these are close to it.
good_keys = st.builds(
    KeyedSend,
    key=st.just("op-1"),
    sent_digest=st.just("d1"),
    digest=st.just("d1"),
    first_sent_at=st.sampled_from([NOW - timedelta(hours=hours) for hours in (0, 1, 25)]),
)
near_budgets = st.builds(Budget, made=st.integers(0, 2), limit=st.integers(1, 3))
good_contract = ReplayContract(window_seconds=86_400, concurrent=Concurrent.REFUSED)
near_calls = st.builds(
    CallFacts,
    position=few,
    tool=st.just("pay"),
    arguments=st.just(ArgumentsState.COMPLETE),
    dispatched=st.sampled_from(Dispatched),
    outcome=st.sampled_from([Outcome.UNKNOWN, Outcome.UNKNOWN, Outcome.NOT_SENT, None]),
    keyed=good_keys,
    contract=st.just(good_contract),
    sends=near_budgets,
)
near_records = st.builds(
    RecoveryRecord,
    terminal=st.sampled_from([None, *Terminal]),
    result_recorded=flag,
    received=st.sampled_from(Received),
    last_event_at=instants,
    operation_id=st.sampled_from([None, "resp_1"]),
    background=st.sampled_from([True, True, False]),
    stored=st.sampled_from([True, True, False]),
    cursor=few,
    keyed=good_keys,
    calls=st.lists(near_calls, max_size=1).map(tuple),
    sends=near_budgets,
    resumes=near_budgets,
    refreshes_made=few,
)
records = near_records | records

failures = st.builds(
    RequestFailure,
    outcome=st.sampled_from(
        [Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED, Outcome.UNKNOWN]
    ),
    http_status=st.sampled_from([None, 200, 400, 401, 404, 429, 500]),
    in_stream=flag,
    refreshed=flag,
    retry_after_seconds=st.none() | few,
)
contracts = st.builds(
    EndpointContract,
    resume=st.none()
    | st.builds(ResumeContract, kept_seconds=st.just(600), only_background=flag, only_stored=flag),
    replay=st.none() | replays | st.just(good_contract),
    supports_refresh=flag,
)


@unhurried
@given(records, failures, contracts)
def test_every_turn_gets_a_decision_that_rests_on_something_seen(record, failure, contract):
    seen = observations(record, failure)
    decision = decided(record, failure, contract)
    assert decision.observations
    assert set(decision.observations) <= seen
    assert len(decision.calls) == len(record.calls)
    asked = RecoveryRequest(record=record, failure=failure, contract=contract)
    told = RecoveryRequest.model_validate_json(asked.model_dump_json())
    assert decided(told.record, told.failure, told.contract) == decision, "as it travels, too"
    event(f"{decision.step} by {decision.mechanism}")  # shown with --hypothesis-show-statistics


@unhurried
@given(records, failures, contracts)
def test_nothing_is_sent_beside_a_tool_whose_effect_is_unknown(record, failure, contract):
    decision = decided(record, failure, contract)
    for call, step in zip(record.calls, decision.calls, strict=True):
        if not call.effect_unknown:
            assert step.advice not in {CallAdvice.RECONCILE, CallAdvice.SAME_KEY}
            continue
        assert decision.step in {RecoveryStep.SETTLE, RecoveryStep.RECONCILE}
        assert decision.mechanism in {Mechanism.NONE, Mechanism.REPLAY}
        if step.advice is CallAdvice.SAME_KEY:
            assert_contract_holds(call.keyed, call.contract)
            assert call.outcome is Outcome.UNKNOWN
            assert call.sends.made < call.sends.limit
        else:
            assert step.advice is CallAdvice.RECONCILE


@unhurried
@given(records, failures, contracts)
def test_a_generation_is_sent_again_only_on_a_proof_or_a_contract(record, failure, contract):
    decision = decided(record, failure, contract)
    match decision.step:
        case RecoveryStep.SEND:
            assert failure.outcome in {Outcome.NOT_SENT, Outcome.REFUSED}
            assert record.received is Received.NOTHING
            assert record.operation_id is None
            assert record.open_sends == 0
        case RecoveryStep.REPLAY:
            assert_contract_holds(record.keyed, contract.replay)
        case RecoveryStep.RESUME:
            assert contract.resume is not None
            assert record.operation_id is not None
            assert record.background or not contract.resume.only_background
            assert record.stored or not contract.resume.only_stored
            assert (decision.operation_id, decision.cursor) == (record.operation_id, record.cursor)
        case _:
            pass


def assert_contract_holds(keyed, contract):
    """By hand, beside the code that decides it."""
    assert keyed is not None
    assert contract is not None
    assert keyed.digest == keyed.sent_digest
    assert keyed.scope == contract.scope
    assert contract.concurrent in SAFE_BESIDE
    age_seconds = (NOW - keyed.first_sent_at).total_seconds()
    assert -contract.margin_seconds <= age_seconds
    assert age_seconds < contract.window_seconds - contract.margin_seconds


@unhurried
@given(records, failures, contracts, flag)
def test_a_cancelled_turn_starts_nothing(record, failure, contract, by_reader):
    change = {"terminal": Terminal.CANCELLED} if by_reader else {"cancelled": True}
    decision = decided(record.model_copy(update=change), failure, contract)
    assert decision.mechanism is Mechanism.NONE
    assert decision.step in {RecoveryStep.SETTLE, RecoveryStep.RECONCILE, RecoveryStep.PRESERVE}
    advice = {call.advice for call in decision.calls}
    assert not advice & {CallAdvice.DISPATCH, CallAdvice.SAME_KEY}


@unhurried
@given(records, failures, contracts)
def test_budgets_hold(record, failure, contract):
    decision = decided(record, failure, contract)
    starts = decision.step in STARTS_A_GENERATION or decision.mechanism is Mechanism.CONTINUE
    assert not starts or record.sends.made < record.sends.limit
    if decision.step is RecoveryStep.RESUME:
        assert record.resumes.made < record.resumes.limit
    if decision.step is RecoveryStep.REFRESH:
        assert record.refreshes_made == 0
        assert not failure.refreshed
        assert contract.supports_refresh
    for call, step in zip(record.calls, decision.calls, strict=True):
        sends = step.advice in {CallAdvice.DISPATCH, CallAdvice.SAME_KEY}
        assert not sends or call.sends.made < call.sends.limit


@unhurried
@given(records, failures, contracts, flag)
def test_evidence_of_success_never_becomes_a_send(record, failure, contract, kept):
    change = {"terminal": Terminal.SUCCESS, "result_recorded": kept}
    decision = decided(record.model_copy(update=change), failure, contract)
    assert decision.step not in STARTS_A_GENERATION
    assert decision.mechanism is not Mechanism.CONTINUE
    if kept:
        assert decision.step is RecoveryStep.SETTLE
    else:
        assert decision.step is not RecoveryStep.SETTLE


@unhurried
@given(records, failures, contracts)
def test_only_the_providers_own_end_that_is_kept_settles_a_turn(record, failure, contract):
    decision = decided(record, failure, contract)
    settled = decision.step is RecoveryStep.SETTLE
    assert settled is (record.terminal is Terminal.SUCCESS and record.result_recorded)
    dispatches = any(call.advice is CallAdvice.DISPATCH for call in decision.calls)
    assert settled or not dispatches


@unhurried
@given(records, failures, contracts)
def test_what_is_unknown_about_a_tool_never_permits_more(record, failure, contract):
    """One more call whose effect is unknown takes every send of the model's request away."""
    lost = CallFacts(position=9, arguments=ArgumentsState.COMPLETE, dispatched=Dispatched.IN_FLIGHT)
    decision = decided(
        record.model_copy(update={"calls": (*record.calls, lost)}), failure, contract
    )
    assert decision.step in {RecoveryStep.SETTLE, RecoveryStep.RECONCILE}
    assert Observation.TOOL_DISPATCHED in decision.observations
    assert decision.calls[-1].advice is CallAdvice.RECONCILE


@unhurried
@given(keys, replays)
def test_a_replay_once_unsafe_by_time_never_becomes_safe_again(keyed, contract):
    later = [replay_bar(keyed, contract, NOW + timedelta(hours=hour)) for hour in range(30)]
    closed = [bar is not None and bar.value == "window_closed" for bar in later]
    assert closed == sorted(closed)
