"""Two people decide: one asks, on what they saw; another approves, on the very same."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from effects.core.problems import NotOffered
from effects.core.vocabulary import AnswerCode, ClaimState, Role, SightingWord, Verdict
from effects.models import Membership
from ledger import append
from ledger import queries as record
from ledger.append import Consent, NewDecision
from ledger.management.invariants.base import rows_of
from ledger.management.invariants.decisions import ONE_PERSON_WHERE_TWO_WERE_NEEDED
from reconcile import approve, asking, queries
from reconcile import decide as deciding
from reconcile.actions import ActionName
from reconcile.approve import Answer, AnsweredBefore, Rejected
from reconcile.asking import Fate
from reconcile.decide import Asked, Form, Incomplete, Made, Overtaken, Unavailable
from reconcile.models import Proposal
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def gift(halden):
    """A gift card, by an interface without keys: 149.00 EUR."""
    return desk.an_unkeyed_tool(halden)


@pytest.fixture
def ana(halden):
    return desk.a_person(halden, Role.SUPPORT, "ana")


@pytest.fixture
def lea(halden):
    return desk.a_person(halden, Role.LEAD, "lea")


@pytest.fixture
def mo(halden):
    return desk.a_person(halden, Role.ADMIN, "mo")


@pytest.fixture
def lost(gift):
    claim_id = desk.a_lost_call(gift, arguments={"amount": 149})
    desk.see(gift, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


def form(tool, claim_id, user, action=ActionName.RELEASE_NEW, **changes):
    call = queries.call(tool.workspace_id, claim_id)
    token = deciding.token_for(call, user.pk)
    usual = {
        "action": action,
        "screen": deciding.read_token(token, claim_id=claim_id, user_id=user.pk),
        "evidence": tuple(item.number for item in call.situation.evidence),
        "reason": "The customer got nothing.",
        "typed": "149.00",
    }
    return Form(**(usual | changes))


def send(tool, filled, role=Role.SUPPORT):
    return deciding.decide(tool.workspace_id, filled, role=role)


def ask(tool, claim_id, user, role=Role.SUPPORT, **changes):
    asked = send(tool, form(tool, claim_id, user, **changes), role)
    assert isinstance(asked, Asked), asked
    return Proposal.objects.get(pk=asked.proposal_id)


def answer(proposal, user, *, yes=True, reason="I called the customer."):
    said = Answer(
        proposal_id=proposal.pk,
        claim_id=proposal.claim_id,
        user_id=user.pk,
        approve=yes,
        reason=reason,
    )
    return approve.answer(proposal.workspace_id, said)


def fate(tool, proposal):
    proposal.refresh_from_db()
    return asking.request_of(queries.call(tool.workspace_id, proposal.claim_id), proposal).fate


def state(tool, claim_id):
    return queries.call(tool.workspace_id, claim_id).situation.state


def decisions(tool, claim_id):
    return queries.call(tool.workspace_id, claim_id).decisions


def test_asking_decides_nothing_and_keeps_what_was_relied_on(gift, ana, lea, lost):
    filled = form(gift, lost, ana)
    proposal = ask(gift, lost, ana)
    assert decisions(gift, lost) == ()
    assert state(gift, lost) is ClaimState.UNKNOWN
    assert (proposal.figure, proposal.currency, proposal.typed) == ("149.00", "EUR", "149.00")
    assert proposal.evidence == list(filled.evidence)
    assert bytes(proposal.screen_hash) == filled.screen.digest
    assert proposal.claim_version == filled.screen.version
    assert fate(gift, proposal) is Fate.WAITING


def test_the_minute_starts_with_the_second_yes_and_both_names_stand(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    desk.move_clock(timedelta(minutes=20))
    made = answer(proposal, lea)
    assert isinstance(made, Made)
    (decision,) = decisions(gift, lost)
    assert (decision.decided_by, decision.approved_by) == (ana, lea)
    assert decision.approver_role == Role.LEAD
    assert decision.approval_reason == "I called the customer."
    assert decision.proposed_at == proposal.proposed_at
    assert decision.decided_at - decision.proposed_at > timedelta(minutes=19)
    assert decision.effective_at - decision.decided_at == timedelta(seconds=60)
    assert fate(gift, proposal) is Fate.APPROVED
    desk.move_clock(timedelta(minutes=22))
    assert state(gift, lost) is ClaimState.RELEASED


def test_both_names_are_part_of_the_chain(gift, ana, lea, lost):
    answer(ask(gift, lost, ana), lea)
    chain = "SELECT * FROM ledger_verify_chain_v1(%s)"
    with connection.cursor() as cursor:
        cursor.execute(chain, [gift.workspace_id])
        assert cursor.fetchall() == []
        cursor.execute("ALTER TABLE ledger_decision DISABLE TRIGGER ledger_decision_append_only")
        cursor.execute("UPDATE ledger_decision SET approval_reason = 'another'")
        cursor.execute(chain, [gift.workspace_id])
        assert [fault for _, fault in cursor.fetchall()] == ["hash"]


@pytest.mark.parametrize("role", [Role.SUPPORT, Role.LEAD, Role.ADMIN])
def test_nobody_approves_their_own_request(halden, gift, lea, mo, lost, role):
    author = desk.a_person(halden, role)
    proposal = ask(gift, lost, author, role)
    result = answer(proposal, author)
    assert isinstance(result, Unavailable)
    assert "neither can an admin" in result.action.reason
    assert decisions(gift, lost) == ()


def test_the_record_itself_takes_no_one_as_their_own_second_person(gift, lea, mo, lost):
    version = queries.call(gift.workspace_id, lost).claim.version
    consent = Consent(
        proposed_at=record.clock(), second_user_id=lea.pk, roles=(Role.LEAD, Role.ADMIN)
    )
    decision = NewDecision(
        verdict=Verdict.RELEASE_NEW,
        claim_version=version,
        reason="x",
        user_id=lea.pk,
        consent=consent,
    )
    with pytest.raises(NotOffered, match="second_person"):
        append.decide(gift.workspace_id, lost, decision)


@pytest.mark.parametrize("consent", [Consent(), Consent(alone=True)], ids=["nobody", "not alone"])
def test_the_record_releases_with_a_new_key_for_no_one_person_beside_others(
    gift, lea, mo, lost, consent
):
    version = queries.call(gift.workspace_id, lost).claim.version
    decision = NewDecision(
        verdict=Verdict.RELEASE_NEW,
        claim_version=version,
        reason="x",
        user_id=lea.pk,
        consent=consent,
    )
    with pytest.raises(NotOffered):
        append.decide(gift.workspace_id, lost, decision)


def test_no_row_can_say_that_somebody_answered_their_own_request(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    with pytest.raises(IntegrityError), transaction.atomic():
        Proposal.objects.filter(pk=proposal.pk).update(
            status=Proposal.Status.REJECTED, answered_by=ana
        )


def _deactivate(lea):
    lea.is_active = False
    lea.save()


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(_deactivate, id="the account was closed"),
        pytest.param(
            lambda lea: Membership.objects.filter(user=lea).update(role=Role.SUPPORT),
            id="the role was taken away",
        ),
        pytest.param(
            lambda lea: Membership.objects.filter(user=lea).delete(),
            id="the person left the workspace",
        ),
    ],
)
def test_the_second_person_must_hold_the_role_at_that_moment(gift, ana, lea, mo, lost, happens):
    proposal = ask(gift, lost, ana)
    happens(lea)
    assert isinstance(answer(proposal, lea), Unavailable)
    assert decisions(gift, lost) == ()
    assert isinstance(answer(proposal, mo), Made)


def test_a_role_that_goes_between_the_check_and_the_record_is_seen_by_the_record(
    gift, ana, lea, mo, lost, monkeypatch
):
    proposal = ask(gift, lost, ana)
    Membership.objects.filter(user=lea).update(role=Role.VIEWER)
    monkeypatch.setattr(approve, "role_now", lambda workspace_id, user_id: Role.LEAD)
    result = answer(proposal, lea)
    assert isinstance(result, Unavailable)
    assert "another active one, with the role" in result.action.reason
    assert fate(gift, proposal) is Fate.WAITING


def test_who_asked_and_has_left_decides_nothing_any_more(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    ana.is_active = False
    ana.save()
    result = answer(proposal, lea)
    assert isinstance(result, Unavailable)
    assert "no active member" in result.action.reason


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(
            lambda tool, claim_id: desk.see(tool, claim_id, SightingWord.PENDING), id="an answer"
        ),
        pytest.param(
            lambda tool, claim_id: append.note(tool.workspace_id, claim_id, 77, "Look"), id="a note"
        ),
        pytest.param(
            lambda tool, claim_id: desk.see(
                tool, claim_id, SightingWord.FOUND, objects=("gc_1",), counts=True
            ),
            id="the effect itself",
        ),
    ],
)
def test_anything_new_makes_a_request_out_of_date_and_it_is_asked_anew(
    gift, ana, lea, lost, happens
):
    proposal = ask(gift, lost, ana)
    happens(gift, lost)
    assert fate(gift, proposal) is Fate.OUT_OF_DATE
    assert isinstance(answer(proposal, lea), Overtaken)
    assert decisions(gift, lost) == ()
    if state(gift, lost) is ClaimState.UNKNOWN:
        again = ask(gift, lost, ana)
        assert fate(gift, proposal) is Fate.REPLACED
        assert isinstance(answer(again, lea), Made)


def test_another_amount_in_the_registry_makes_a_request_out_of_date(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    gift.amount_is_minor, gift.version = True, gift.version + 1
    gift.save()
    assert isinstance(answer(proposal, lea), Overtaken)


def test_a_request_waits_a_day_at_most(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    desk.move_clock(timedelta(hours=24, seconds=5))
    assert fate(gift, proposal) is Fate.EXPIRED
    result = answer(proposal, lea)
    assert isinstance(result, Unavailable)
    assert "expired" in result.action.reason


def test_a_no_says_why_and_nothing_is_decided(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    assert answer(proposal, lea, yes=False, reason="Ask the bank first.") == Rejected()
    assert answer(proposal, lea, yes=False, reason="Ask the bank first.") == Rejected(again=True)
    assert fate(gift, proposal) is Fate.REJECTED
    assert decisions(gift, lost) == ()
    assert isinstance(answer(proposal, lea), AnsweredBefore)
    assert fate(gift, ask(gift, lost, ana, reason="The bank says no.")) is Fate.WAITING


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("reason", ["", "x" * 2001])
def test_an_answer_has_a_reason(gift, ana, lea, lost, yes, reason):
    result = answer(ask(gift, lost, ana), lea, yes=yes, reason=reason)
    assert isinstance(result, Incomplete)
    assert set(result.errors) == {"reason"}


@pytest.mark.parametrize("typed", ["", "149", "149,00", "149.00 EUR", "194.00"])
def test_the_amount_is_typed_as_it_is_shown(gift, ana, lea, lost, typed):
    result = send(gift, form(gift, lost, ana, typed=typed))
    assert isinstance(result, Incomplete)
    assert set(result.errors) == {"typed"}
    assert not Proposal.objects.exists()


def test_the_same_form_twice_asks_once(gift, ana, lea, lost):
    filled = form(gift, lost, ana)
    first, second = send(gift, filled), send(gift, filled)
    assert (first.again, second.again) == (False, True)
    assert first.proposal_id == second.proposal_id


def test_the_same_yes_twice_is_one_decision(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    first, second = answer(proposal, lea), answer(proposal, lea)
    assert first.decision_id == second.decision_id
    assert second.again
    assert len(decisions(gift, lost)) == 1


def test_another_approver_who_comes_second_is_told_who_was_first(gift, ana, lea, mo, lost):
    proposal = ask(gift, lost, ana)
    answer(proposal, lea)
    result = answer(proposal, mo)
    assert isinstance(result, AnsweredBefore)
    assert result.request.proposal.answered_by == lea


def test_one_request_about_a_call_waits_at_a_time(halden, gift, ana, lea, lost):
    ben = desk.a_person(halden, Role.SUPPORT, "ben")
    ask(gift, lost, ana)
    result = send(gift, form(gift, lost, ben))
    assert isinstance(result, Unavailable)
    assert "request of ana" in result.action.reason


def test_its_author_takes_a_request_back_and_nobody_else(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana)
    assert not approve.withdraw(gift.workspace_id, lost, proposal.pk, lea.pk)
    assert approve.withdraw(gift.workspace_id, lost, proposal.pk, ana.pk)
    assert isinstance(answer(proposal, lea), AnsweredBefore)


def test_a_second_person_can_be_asked_freely_about_anything(gift, ana, lea, lost):
    filled = form(gift, lost, ana, ActionName.CLOSE, ask_second=True, typed="")
    asked = send(gift, filled)
    proposal = Proposal.objects.get(pk=asked.proposal_id)
    assert proposal.why_second == ""
    assert isinstance(answer(proposal, lea), Made)
    assert decisions(gift, lost)[0].approved_by == lea


def test_it_did_not_happen_without_proof_is_asked_about_and_lets_it_run_again(gift, ana, lea, lost):
    proposal = ask(gift, lost, ana, action=ActionName.NOT_HAPPENED)
    answer(proposal, lea)
    desk.move_clock(timedelta(seconds=61))
    assert state(gift, lost) is ClaimState.NOT_EXECUTED


def test_the_only_person_decides_alone_and_it_is_recorded_so(gift, lea, lost):
    made = send(gift, form(gift, lost, lea), Role.LEAD)
    assert isinstance(made, Made)
    (decision,) = decisions(gift, lost)
    assert (decision.alone, decision.typed, decision.approved_by) == (True, "149.00", None)


def test_a_larger_call_is_decided_by_two_where_a_rule_says_so(halden, ana, lea, mo):
    tool = desk.an_unkeyed_tool(halden, name="issue_voucher")
    answer_ = desk.a_call(tool, arguments={"amount": 500})
    claim_id = desk.lose(tool, answer_)
    desk.see(tool, claim_id, SightingWord.ABSENT)
    filled = form(tool, claim_id, lea, ActionName.NOT_HAPPENED, typed="500.00")
    asked = send(tool, filled, Role.LEAD)
    assert isinstance(asked, Asked)
    proposal = Proposal.objects.get(pk=asked.proposal_id)
    assert proposal.why_second.startswith("A rule of this workspace")
    assert isinstance(answer(proposal, mo), Made)


def test_a_held_request_runs_once_a_second_person_agrees(halden, gift, ana, lea, lost):
    claim = queries.call(gift.workspace_id, lost).claim
    said = {"conversation": claim.conversation, "call_id": "call_" + "b" * 20}
    repeated = desk.ask(gift, arguments=claim.arguments, turn_index=4, **said)
    assert repeated.code is AnswerCode.HELD
    (other,) = queries.call(gift.workspace_id, lost).others
    asked = send(
        gift,
        form(
            gift,
            lost,
            ana,
            ActionName.ALLOW,
            ask_second=True,
            held_request=other.held_id,
        ),
    )
    proposal = Proposal.objects.get(pk=asked.proposal_id)
    assert isinstance(answer(proposal, lea), Made)
    (decision,) = decisions(gift, lost)
    assert (decision.verdict, decision.approved_by) == (Verdict.ALLOW, lea)
    again = desk.ask(gift, arguments=claim.arguments, turn_index=4, **said)
    assert again.code is AnswerCode.GRANTED


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param("approver_role = 'support'", "support approved release_new", id="the role"),
        pytest.param(
            "approved_by_id = NULL, approver_role = NULL, proposed_at = NULL",
            "one person released with a new key, and not as the only one",
            id="one person",
        ),
    ],
)
def test_verifying_the_ledger_finds_a_decision_that_two_people_did_not_make(
    gift, ana, lea, lost, change, says
):
    find = rows_of(ONE_PERSON_WHERE_TWO_WERE_NEEDED)
    answer(ask(gift, lost, ana), lea)
    assert list(find()) == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE ledger_decision DISABLE TRIGGER ledger_decision_append_only")
        cursor.execute(f"UPDATE ledger_decision SET {change}")
    assert [found.says for found in find()] == [says]
