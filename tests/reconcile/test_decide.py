"""A person decides: once, on what they saw, with a reason; and can take it back for a minute."""

from datetime import timedelta

import pytest
from django.db import connection

from effects.core.vocabulary import ClaimState, Role, SightingWord, Verdict
from ledger import append
from ledger import queries as record
from reconcile import decide as deciding
from reconcile import queries
from reconcile.actions import ActionName
from reconcile.decide import Form, Incomplete, Made, Overtaken, Unavailable
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def charge(halden):
    return desk.a_keyed_tool(halden)


@pytest.fixture
def ana(halden):
    return desk.a_person(halden, Role.SUPPORT, "ana")


@pytest.fixture
def lost(charge):
    """A lost call that the provider has no record of, although that proves nothing yet."""
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


def form(tool, claim_id, user, action=ActionName.CLOSE, **changes):
    """The form on the page as it is now, filled in."""
    call = queries.call(tool.workspace_id, claim_id)
    token = deciding.token_for(call, user.pk)
    screen = deciding.read_token(token, claim_id=claim_id, user_id=user.pk)
    evidence = tuple(item.number for item in call.situation.evidence)
    usual = {"action": action, "screen": screen, "evidence": evidence, "reason": "Asked the bank."}
    return Form(**(usual | changes))


def send(tool, filled, role=Role.SUPPORT):
    return deciding.decide(tool.workspace_id, filled, role=role)


def state_of(tool, claim_id):
    return queries.call(tool.workspace_id, claim_id).situation.state


@pytest.mark.case("U12")
def test_a_decision_is_held_then_in_force_with_everything_it_rests_on(charge, ana, lost):
    filled = form(charge, lost, ana, ActionName.RELEASE_SAME)
    made = send(charge, filled)
    (decision,) = queries.call(charge.workspace_id, lost).decisions
    assert made == Made(decision_id=decision.pk)
    assert decision.verdict == Verdict.RELEASE_SAME
    assert decision.decided_by == ana
    assert decision.reason == "Asked the bank."
    assert decision.evidence == list(filled.evidence)
    assert bytes(decision.screen_hash or b"") == filled.screen.digest
    assert decision.effective_at - decision.decided_at == timedelta(seconds=60)
    assert state_of(charge, lost) is ClaimState.UNKNOWN
    desk.move_clock(timedelta(seconds=61))
    assert state_of(charge, lost) is ClaimState.RELEASED


@pytest.mark.case("U02")
def test_the_same_form_twice_makes_one_decision_and_answers_the_same(charge, ana, lost):
    filled = form(charge, lost, ana)
    first, second = send(charge, filled), send(charge, filled)
    assert (first.again, second.again) == (False, True)
    assert first.decision_id == second.decision_id
    assert len(queries.call(charge.workspace_id, lost).decisions) == 1


def test_the_same_form_with_a_note_twice_writes_one_note(charge, ana, lost):
    filled = form(charge, lost, ana, note="The customer sees no debit.")
    first, second = send(charge, filled), send(charge, filled)
    assert first.decision_id == second.decision_id
    assert len(queries.call(charge.workspace_id, lost).notes) == 1


def test_a_form_that_broke_off_after_its_note_is_finished_by_its_copy(charge, ana, lost):
    filled = form(charge, lost, ana, note="The customer sees no debit.")
    number = append.note(charge.workspace_id, lost, ana.pk, filled.note)
    assert isinstance(send(charge, filled), Made)
    (decision,) = queries.call(charge.workspace_id, lost).decisions
    assert number in decision.evidence
    assert len(queries.call(charge.workspace_id, lost).notes) == 1


@pytest.mark.case("U02")
def test_going_back_to_decide_otherwise_flips_nothing(charge, ana, lost):
    filled = form(charge, lost, ana)
    send(charge, filled)
    otherwise = form(charge, lost, ana, ActionName.HAPPENED, screen=filled.screen, note="I saw it.")
    assert isinstance(send(charge, otherwise), Overtaken)
    assert len(queries.call(charge.workspace_id, lost).decisions) == 1
    assert queries.call(charge.workspace_id, lost).notes == ()


@pytest.mark.case("U03")
@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(
            lambda tool, claim_id: desk.see(tool, claim_id, SightingWord.PENDING), id="an answer"
        ),
        pytest.param(
            lambda tool, claim_id: append.note(tool.workspace_id, claim_id, 77, "Look here"),
            id="a colleague's note",
        ),
        pytest.param(
            lambda tool, claim_id: desk.see(
                tool, claim_id, SightingWord.FOUND, objects=("pi_1",), counts=True
            ),
            id="the effect itself",
        ),
    ],
)
def test_a_page_that_is_no_longer_true_decides_nothing(charge, ana, lost, happens):
    filled = form(charge, lost, ana, ActionName.RELEASE_SAME)
    happens(charge, lost)
    result = send(charge, filled)
    assert isinstance(result, Overtaken)
    assert result.call.claim.version > filled.screen.version
    assert queries.call(charge.workspace_id, lost).decisions == ()


def test_a_lease_that_the_page_showed_as_over_is_no_news_once_it_is_written(charge, ana):
    claim_id = desk.claim_id_of(desk.a_call(charge))
    desk.move_clock(timedelta(seconds=charge.lease_seconds + 1))
    filled = form(charge, claim_id, ana)
    assert filled.screen.state is ClaimState.UNKNOWN
    append.sweep(100)
    assert isinstance(send(charge, filled), Made)


def test_a_lease_that_ends_while_the_decision_is_written_costs_no_second_try(charge, ana):
    claim_id = desk.claim_id_of(desk.a_call(charge))
    desk.move_clock(timedelta(seconds=charge.lease_seconds + 1))
    assert isinstance(send(charge, form(charge, claim_id, ana, note="Nobody answers.")), Made)


def test_a_lease_that_ended_behind_an_in_flight_page_is_news(charge, ana):
    claim_id = desk.claim_id_of(desk.a_call(charge))
    filled = form(charge, claim_id, ana)
    desk.move_clock(timedelta(seconds=charge.lease_seconds + 1))
    assert isinstance(send(charge, filled), Overtaken)


@pytest.mark.case("U13")
def test_a_window_that_closed_behind_the_page_refuses_the_release(charge, ana, lost):
    filled = form(charge, lost, ana, ActionName.RELEASE_SAME)
    desk.move_clock(timedelta(hours=24))
    result = send(charge, filled)
    assert isinstance(result, Unavailable)
    assert "closed" in result.action.reason


def test_near_the_deadline_a_decision_is_in_force_at_once(halden, ana):
    tool = desk.a_keyed_tool(halden, window_seconds=400)
    claim_id = desk.a_lost_call(tool)
    send(tool, form(tool, claim_id, ana, ActionName.RELEASE_SAME, note="Now or never."))
    assert state_of(tool, claim_id) is ClaimState.RELEASED


@pytest.mark.parametrize(
    ("action", "changes", "field"),
    [
        pytest.param(ActionName.CLOSE, {"reason": ""}, "reason", id="no reason"),
        pytest.param(ActionName.CLOSE, {"reason": "x" * 2001}, "reason", id="too long a reason"),
        pytest.param(ActionName.RELEASE_SAME, {"evidence": ()}, "evidence", id="rests on nothing"),
        pytest.param(ActionName.CLOSE, {"evidence": (999,)}, "evidence", id="no such evidence"),
        pytest.param(ActionName.HAPPENED, {}, "note", id="against silence, without a note"),
        pytest.param(
            ActionName.HAPPENED,
            {"note": "x", "provider_object": "p" * 256},
            "provider_object",
            id="too long an object id",
        ),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_recorded(charge, ana, lost, action, changes, field):
    result = send(charge, form(charge, lost, ana, action, **changes))
    assert isinstance(result, Incomplete)
    assert set(result.errors) == {field}
    call = queries.call(charge.workspace_id, lost)
    assert (call.decisions, call.notes) == ((), ())


@pytest.mark.case("U12")
def test_it_did_not_happen_rests_on_the_strong_absence_itself(charge, ana, lost):
    weak = queries.call(charge.workspace_id, lost).situation.evidence[0].number
    desk.see(charge, lost, SightingWord.ABSENT)
    filled = form(charge, lost, ana, ActionName.NOT_HAPPENED)
    assert "evidence" in send(charge, _with(filled, evidence=(weak,))).errors
    assert isinstance(send(charge, filled), Made)


def _with(filled, **changes):
    kept = {name: getattr(filled, name) for name in Form.__dataclass_fields__}
    return Form(**(kept | changes))


def test_stopping_needs_a_reason_and_nothing_else(charge, ana):
    claim_id = desk.a_lost_call(charge)
    assert isinstance(send(charge, form(charge, claim_id, ana)), Made)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER])
def test_a_role_without_the_ability_decides_nothing(charge, ana, lost, role):
    result = send(charge, form(charge, lost, ana), role=role)
    assert isinstance(result, Unavailable)
    assert "Needs the role" in result.action.reason


def test_undoing_leaves_both_acts_in_the_record_and_the_call_open(charge, ana, lost):
    made = send(charge, form(charge, lost, ana))
    assert deciding.undo(charge.workspace_id, lost, made.decision_id, ana.pk)
    call = queries.call(charge.workspace_id, lost)
    assert [decision.verdict for decision in call.decisions] == [Verdict.CLOSE, Verdict.WITHDRAW]
    assert call.fates[made.decision_id] is record.Fate.WITHDRAWN
    assert call.situation.state is ClaimState.UNKNOWN
    again = send(charge, form(charge, lost, ana, ActionName.RELEASE_SAME))
    assert isinstance(again, Made)
    assert again.decision_id != made.decision_id


def test_undoing_too_late_changes_nothing(charge, ana, lost):
    made = send(charge, form(charge, lost, ana))
    desk.move_clock(timedelta(seconds=61))
    assert not deciding.undo(charge.workspace_id, lost, made.decision_id, ana.pk)
    assert state_of(charge, lost) is ClaimState.CLOSED


def test_an_answer_in_the_minute_cancels_the_decision(charge, ana, lost):
    made = send(charge, form(charge, lost, ana))
    desk.see(charge, lost, SightingWord.PENDING)
    call = queries.call(charge.workspace_id, lost)
    assert call.fates[made.decision_id] is record.Fate.CANCELLED
    assert call.held is None


@pytest.mark.parametrize(
    "token", ["", "nonsense", "eyJhIjoxfQ:1abcde:xyz"], ids=["empty", "no token", "forged"]
)
def test_a_token_that_is_not_ours_is_no_screen(charge, ana, lost, token):
    assert deciding.read_token(token, claim_id=lost, user_id=ana.pk) is None


def test_a_token_is_good_for_one_person_and_one_call(charge, ana, lost):
    token = deciding.token_for(queries.call(charge.workspace_id, lost), ana.pk)
    other = desk.a_lost_call(charge)
    assert deciding.read_token(token, claim_id=other, user_id=ana.pk) is None
    assert deciding.read_token(token, claim_id=lost, user_id=ana.pk + 1) is None


def test_the_chain_of_decisions_holds(charge, ana, lost):
    for _ in range(3):
        made = send(charge, form(charge, lost, ana))
        deciding.undo(charge.workspace_id, lost, made.decision_id, ana.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM ledger_verify_chain_v1(%s)", [charge.workspace_id])
        assert cursor.fetchall() == []
