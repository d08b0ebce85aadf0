"""The decisions that undo, settle or repeat: a new key, settle, reopen, allow, hold longer."""

from datetime import timedelta

import pytest

from effects.core.messages import Complete
from effects.core.problems import NotOffered
from effects.core.vocabulary import AnswerCode, ClaimState, Outcome, Role, SightingWord, Verdict
from ledger import append
from ledger import queries as record
from ledger.append import NewDecision
from reconcile import decide as deciding
from reconcile import queries
from reconcile.actions import ActionName
from reconcile.decide import Form, Incomplete, Made, Overtaken, Unavailable
from tests.support import desk

pytestmark = pytest.mark.django_db

MINUTE = timedelta(seconds=61)


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def charge(halden):
    return desk.a_keyed_tool(halden)


@pytest.fixture
def lea(halden):
    """The only person of the workspace."""
    return desk.a_person(halden, Role.LEAD, "lea")


def form(tool, claim_id, user, action, **changes):
    call = queries.call(tool.workspace_id, claim_id)
    token = deciding.token_for(call, user.pk)
    usual = {
        "action": action,
        "screen": deciding.read_token(token, claim_id=claim_id, user_id=user.pk),
        "evidence": tuple(item.number for item in call.situation.standing),
        "reason": "Asked the bank.",
    }
    return Form(**(usual | changes))


def send(tool, claim_id, user, action, **changes):
    filled = form(tool, claim_id, user, action, **changes)
    return deciding.decide(tool.workspace_id, filled, role=Role.LEAD)


def call_of(tool, claim_id):
    return queries.call(tool.workspace_id, claim_id)


def state(tool, claim_id):
    return call_of(tool, claim_id).situation.state


def told(tool, claim_id):
    return record.answer(tool.workspace_id, claim_id)


def in_conflict(tool):
    """Two charges were found; the worker has reported the second one, with its result."""
    answer = desk.a_call(tool)
    claim_id = desk.complete(tool, answer, "pi_2")
    desk.see(tool, claim_id, SightingWord.FOUND_MANY, objects=("pi_1", "pi_2"), counts=True)
    return claim_id


SETTLE = {"provider_object": "pi_1", "about": "refunded", "link": "re_9"}


def test_settling_names_every_effect_what_stands_and_what_became_of_the_rest(charge, lea):
    claim_id = in_conflict(charge)
    made = send(charge, claim_id, lea, ActionName.SETTLE, **SETTLE)
    assert isinstance(made, Made), made
    (decision,) = call_of(charge, claim_id).decisions
    assert decision.objects_named == ["pi_1", "pi_2"]
    assert decision.object == "pi_1"
    assert decision.reason == "The rest: refunded or cancelled (re_9). Asked the bank."
    assert state(charge, claim_id) is ClaimState.CONFLICTED
    desk.move_clock(MINUTE)
    append.sweep(10)
    assert state(charge, claim_id) is ClaimState.COMPLETED
    # What is told is the effect that stands; the result belongs to the other one.
    answer = told(charge, claim_id)
    assert (answer.provider_object, answer.result) == ("pi_1", None)


def test_settling_on_the_effect_that_was_reported_keeps_its_result(charge, lea):
    claim_id = in_conflict(charge)
    send(charge, claim_id, lea, ActionName.SETTLE, **(SETTLE | {"provider_object": "pi_2"}))
    desk.move_clock(MINUTE)
    append.sweep(10)
    answer = told(charge, claim_id)
    assert (answer.provider_object, answer.result) == ("pi_2", '{"id": "pi_1"}')


def test_a_third_effect_opens_a_settled_conflict_again(charge, lea):
    claim_id = in_conflict(charge)
    send(charge, claim_id, lea, ActionName.SETTLE, **SETTLE)
    desk.move_clock(MINUTE)
    desk.see(charge, claim_id, SightingWord.FOUND, objects=("pi_3",), counts=True)
    assert state(charge, claim_id) is ClaimState.CONFLICTED


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"provider_object": ""}, "provider_object"),
        ({"provider_object": "pi_9"}, "provider_object"),
        ({"about": ""}, "about"),
        ({"about": "nonsense"}, "about"),
        ({"link": ""}, "link"),
    ],
)
def test_a_settling_that_leaves_something_out_is_put_right(charge, lea, changes, field):
    result = send(charge, in_conflict(charge), lea, ActionName.SETTLE, **(SETTLE | changes))
    assert isinstance(result, Incomplete)
    assert set(result.errors) == {field}


def test_a_conflict_that_was_meant_needs_no_refund(charge, lea):
    changes = SETTLE | {"about": "not_a_duplicate", "link": ""}
    assert isinstance(send(charge, in_conflict(charge), lea, ActionName.SETTLE, **changes), Made)


@pytest.mark.parametrize("objects", [(), ("pi_1",), ("pi_1", "pi_9")])
def test_the_record_settles_only_what_names_every_effect(charge, lea, objects):
    claim_id = in_conflict(charge)
    decision = NewDecision(
        verdict=Verdict.SETTLE,
        claim_version=call_of(charge, claim_id).claim.version,
        reason="x",
        user_id=lea.pk,
        objects=objects,
    )
    with pytest.raises(NotOffered, match="effects_not_named"):
        append.decide(charge.workspace_id, claim_id, decision)


def completed(tool):
    return desk.complete(tool, desk.a_call(tool))


def stopped(tool, user):
    claim_id = desk.a_lost_call(tool)
    send(tool, claim_id, user, ActionName.CLOSE)
    desk.move_clock(MINUTE)
    return claim_id


def test_reopening_withdraws_what_was_told_and_a_fact_must_be_seen_anew(charge, lea):
    claim_id = completed(charge)
    assert told(charge, claim_id).result == '{"id": "pi_1"}'
    made = send(charge, claim_id, lea, ActionName.REOPEN, reason="Wrong account.")
    assert isinstance(made, Made), made
    desk.move_clock(MINUTE)
    append.sweep(10)
    assert state(charge, claim_id) is ClaimState.UNKNOWN
    answer = told(charge, claim_id)
    assert (answer.provider_object, answer.result, answer.result_stored) == (None, None, None)
    assert "withdrawn" in answer.for_model["detail"]
    desk.see(charge, claim_id, SightingWord.FOUND, objects=("pi_7",), counts=True)
    answer = told(charge, claim_id)
    # Neither the object nor the result of what was withdrawn comes back.
    assert (answer.state, answer.provider_object) == (ClaimState.COMPLETED, "pi_7")
    assert answer.result is None


def test_a_large_result_that_was_withdrawn_is_nobodys_result_any_more(charge, lea):
    answer = desk.a_call(charge)
    claim_id = desk.claim_id_of(answer)
    large = '{"id": "' + "x" * 5000 + '"}'
    report = Complete(fence=1, provider_object="pi_1", result=large)
    append.report(charge.workspace_id, claim_id, Outcome.COMPLETED, report)
    assert told(charge, claim_id).result == large
    send(charge, claim_id, lea, ActionName.REOPEN)
    desk.move_clock(MINUTE)
    desk.see(charge, claim_id, SightingWord.FOUND, objects=("pi_7",), counts=True)
    assert told(charge, claim_id).result is None


def test_a_stopped_call_is_reopened(charge, lea):
    claim_id = stopped(charge, lea)
    assert isinstance(send(charge, claim_id, lea, ActionName.REOPEN), Made)
    desk.move_clock(2 * MINUTE)
    assert state(charge, claim_id) is ClaimState.UNKNOWN


def test_a_call_that_still_runs_is_not_reopened_by_the_record_either(charge, lea):
    claim_id = desk.a_lost_call(charge)
    send(charge, claim_id, lea, ActionName.RELEASE_SAME, note="The bank sees nothing.")
    desk.move_clock(MINUTE)
    again = desk.ask(charge, **same_call(charge, claim_id))
    assert again.code is AnswerCode.GRANTED
    desk.see(charge, claim_id, SightingWord.FOUND, objects=("pi_1",), counts=True)
    call = call_of(charge, claim_id)
    assert call.situation.state is ClaimState.COMPLETED
    assert call.situation.attempt_running
    assert isinstance(send(charge, claim_id, lea, ActionName.REOPEN), Unavailable)
    decision = NewDecision(
        verdict=Verdict.REOPEN, claim_version=call.claim.version, reason="x", user_id=lea.pk
    )
    with pytest.raises(NotOffered, match="running"):
        append.decide(charge.workspace_id, claim_id, decision)


def same_call(tool, claim_id):
    claim = record.claim(tool.workspace_id, claim_id)
    return {
        "arguments": claim.arguments,
        "conversation": claim.conversation,
        "turn_index": claim.turn_index,
        "call_id": claim.call_id,
        "response_id": claim.response_id,
    }


def test_a_new_key_is_a_new_key_and_only_once(charge, lea):
    claim_id = desk.a_lost_call(charge)
    desk.move_clock(timedelta(hours=25))
    filled = {"typed": "149.00", "note": "The bank sees nothing."}
    assert isinstance(send(charge, claim_id, lea, ActionName.RELEASE_NEW, **filled), Made)
    desk.move_clock(timedelta(hours=25) + MINUTE)
    before = record.claim(charge.workspace_id, claim_id)
    again = desk.ask(charge, **same_call(charge, claim_id))
    assert (again.code, again.generation) == (AnswerCode.GRANTED, 2)
    assert again.key == f"{before.key}-2"
    assert desk.ask(charge, **same_call(charge, claim_id)).code is AnswerCode.IN_FLIGHT


def held_beside(tool, claim_id, **changes):
    """The model asks for the same again, one turn later, and is held back."""
    said = same_call(tool, claim_id) | {"turn_index": 4, "call_id": "call_" + "b" * 20}
    said |= {"response_id": "response-later"} | changes
    answer = desk.ask(tool, **said)
    assert answer.code in {AnswerCode.HELD, AnswerCode.ALREADY_DONE}, answer
    (other,) = [one for one in call_of(tool, claim_id).others if one.may_be_allowed]
    return said, other


def test_a_held_request_is_allowed_once_beside_its_blocker(charge, lea):
    claim_id = desk.a_lost_call(charge)
    said, other = held_beside(charge, claim_id)
    allow = {"held_request": other.held_id, "typed": "149.00"}
    made = send(charge, claim_id, lea, ActionName.ALLOW, **allow)
    assert isinstance(made, Made), made
    assert state(charge, claim_id) is ClaimState.UNKNOWN
    assert desk.ask(charge, **said).code is AnswerCode.GRANTED
    (seen,) = [one for one in call_of(charge, claim_id).others if one.held_id == other.held_id]
    assert (seen.allowed, seen.used) == (True, True)
    again = send(charge, claim_id, lea, ActionName.ALLOW, **allow)
    assert again == Made(decision_id=made.decision_id, again=True)


@pytest.mark.parametrize(
    ("changes", "field"), [({"typed": ""}, "typed"), ({"reason": ""}, "reason")]
)
def test_allowing_has_the_guards_of_a_release_beside_a_sibling(charge, lea, changes, field):
    claim_id = desk.a_lost_call(charge)
    _, other = held_beside(charge, claim_id)
    allow = {"held_request": other.held_id, "typed": "149.00"} | changes
    result = send(charge, claim_id, lea, ActionName.ALLOW, **allow)
    assert isinstance(result, Incomplete)
    assert set(result.errors) == {field}


def test_the_same_allowance_twice_is_one_and_another_request_is_not_it(charge, lea):
    claim_id = desk.a_lost_call(charge)
    _, other = held_beside(charge, claim_id)
    allow = {"held_request": other.held_id, "typed": "149.00"}
    filled = form(charge, claim_id, lea, ActionName.ALLOW, **allow)
    first = deciding.decide(charge.workspace_id, filled, role=Role.LEAD)
    second = deciding.decide(charge.workspace_id, filled, role=Role.LEAD)
    assert isinstance(first, Made)
    assert isinstance(second, Made)
    assert (first.decision_id, second.again) == (second.decision_id, True)
    strange = allow | {"held_request": 987654}
    assert isinstance(send(charge, claim_id, lea, ActionName.ALLOW, **strange), Unavailable)


def test_an_allowance_on_a_page_that_is_no_longer_true_lets_nothing_through(charge, lea):
    claim_id = desk.a_lost_call(charge)
    said, other = held_beside(charge, claim_id)
    allow = {"held_request": other.held_id, "typed": "149.00"}
    filled = form(charge, claim_id, lea, ActionName.ALLOW, **allow)
    desk.see(charge, claim_id, SightingWord.PENDING)
    assert isinstance(deciding.decide(charge.workspace_id, filled, role=Role.LEAD), Overtaken)
    assert desk.ask(charge, **said).code is AnswerCode.HELD


def test_an_allowance_is_for_the_arguments_that_somebody_saw(charge, lea):
    """A caller's own key names the request; what it is asked to do with it may have changed."""
    charge.argument_rules = {"business": ["order"]}
    charge.save()
    first = desk.a_call(charge, arguments={"order": "1", "amount": 14900})
    claim_id = desk.lose(charge, first)
    said = {
        "conversation": None,
        "turn_index": None,
        "call_id": None,
        "response_id": None,
        "caller_key": "job-7",
    }
    small = {"order": "1", "amount": 14900}
    assert desk.ask(charge, arguments=small, **said).code is AnswerCode.HELD
    (other,) = [one for one in call_of(charge, claim_id).others if one.may_be_allowed]
    allow = {"held_request": other.held_id, "typed": "149.00"}
    assert isinstance(send(charge, claim_id, lea, ActionName.ALLOW, **allow), Made)
    large = desk.ask(charge, arguments=small | {"amount": 990000}, **said)
    assert large.code is not AnswerCode.GRANTED


def test_a_held_decision_is_held_longer_within_bounds(charge, lea):
    claim_id = desk.a_lost_call(charge)
    made = send(charge, claim_id, lea, ActionName.CLOSE)

    def longer():
        return deciding.hold_longer(charge.workspace_id, claim_id, made.decision_id, lea.pk)

    (decision,) = call_of(charge, claim_id).decisions
    until = [longer() - decision.decided_at for _ in range(7)]
    assert until[0] == timedelta(seconds=180)
    assert until[-1] == timedelta(seconds=deciding.HOLD_SECONDS_MAX)
    desk.move_clock(timedelta(seconds=500))
    assert state(charge, claim_id) is ClaimState.UNKNOWN
    assert told(charge, claim_id).decision_pending
    assert told(charge, claim_id).retry_after_seconds in range(90, 101)
    desk.move_clock(timedelta(seconds=601))
    assert state(charge, claim_id) is ClaimState.CLOSED
    append.sweep(10)
    assert longer() is None
    assert record.claim(charge.workspace_id, claim_id).decided_at == decision.decided_at + until[-1]


def test_a_release_is_not_held_until_its_window_is_gone(halden, lea):
    tool = desk.a_keyed_tool(halden, window_seconds=600)
    claim_id = desk.a_lost_call(tool)
    made = send(tool, claim_id, lea, ActionName.RELEASE_SAME, note="The bank sees nothing.")
    until = [
        deciding.hold_longer(tool.workspace_id, claim_id, made.decision_id, lea.pk)
        for _ in range(3)
    ]
    claim = record.claim(tool.workspace_id, claim_id)
    safe_until = record.safe_retry_until(claim)
    assert safe_until is not None
    assert until[-1] is not None
    assert until[-1] <= safe_until - timedelta(minutes=5) + timedelta(seconds=60)
    assert isinstance(
        deciding.hold_longer(tool.workspace_id, claim_id, made.decision_id, lea.pk),
        type(until[-1]),
    )


def test_a_fact_cancels_a_decision_that_is_held_longer(charge, lea):
    claim_id = desk.a_lost_call(charge)
    made = send(charge, claim_id, lea, ActionName.CLOSE)
    deciding.hold_longer(charge.workspace_id, claim_id, made.decision_id, lea.pk)
    desk.see(charge, claim_id, SightingWord.PENDING)
    assert call_of(charge, claim_id).fates[made.decision_id] is record.Fate.CANCELLED


def test_a_case_is_closed_with_a_note_and_is_open_again_when_it_is_asked_again(charge, lea):
    claim_id = completed(charge)
    other = same_call(charge, claim_id) | {"arguments": '{"amount": 1}'}
    assert desk.ask(charge, **other).code is AnswerCode.MISMATCH
    (case,) = call_of(charge, claim_id).others
    assert append.close_case(charge.workspace_id, case.case_id, lea.pk, "A bug in agent 4.")
    assert not append.close_case(charge.workspace_id, case.case_id, lea.pk, "Again.")
    (closed,) = call_of(charge, claim_id).others
    assert (closed.answered, closed.closed_note) == (True, "A bug in agent 4.")
    assert desk.ask(charge, **other).code is AnswerCode.MISMATCH
    (again,) = call_of(charge, claim_id).others
    assert (again.answered, again.seen) == (False, 2)


def test_another_workspace_closes_no_case_of_ours(charge, lea):
    claim_id = completed(charge)
    desk.ask(charge, **(same_call(charge, claim_id) | {"arguments": '{"amount": 1}'}))
    (case,) = call_of(charge, claim_id).others
    other = desk.a_workspace("other")
    assert not append.close_case(other.pk, case.case_id, lea.pk, "Ours?")
