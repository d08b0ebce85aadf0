"""Two second persons at once, and a second person against the clock of the claim: one decision."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from effects.core.vocabulary import Role, SightingWord
from reconcile import approve, queries
from reconcile import decide as deciding
from reconcile.actions import ActionName
from reconcile.approve import Answer, AnsweredBefore
from reconcile.decide import Asked, Form, Made, Overtaken
from reconcile.models import Proposal
from tests.support import desk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting():
    """A request of ana about a lost gift card, and two leads who could approve it."""
    workspace = desk.a_workspace()
    tool = desk.an_unkeyed_tool(workspace)
    ana = desk.a_person(workspace, Role.SUPPORT, "ana")
    leads = [desk.a_person(workspace, Role.LEAD, name) for name in ("lea", "leo")]
    claim_id = desk.a_lost_call(tool, arguments={"amount": 149})
    desk.see(tool, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    call = queries.call(tool.workspace_id, claim_id)
    token = deciding.token_for(call, ana.pk)
    screen = deciding.read_token(token, claim_id=claim_id, user_id=ana.pk)
    assert screen is not None
    filled = Form(
        action=ActionName.RELEASE_NEW,
        screen=screen,
        evidence=tuple(item.number for item in call.situation.evidence),
        reason="The customer got nothing.",
        typed="149.00",
    )
    asked = deciding.decide(tool.workspace_id, filled, role=Role.SUPPORT)
    assert isinstance(asked, Asked)
    return tool, Proposal.objects.get(pk=asked.proposal_id), leads


def yes(proposal, user):
    said = Answer(
        proposal_id=proposal.pk,
        claim_id=proposal.claim_id,
        user_id=user.pk,
        approve=True,
        reason="I called them.",
    )
    return approve.answer(proposal.workspace_id, said)


def at_once(*acts):
    def run(act):
        try:
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [future.result() for future in [threads.submit(run, act) for act in acts]]


def test_two_second_persons_at_once_make_one_decision(waiting):
    tool, proposal, leads = waiting
    results = at_once(*(lambda lead=lead: yes(proposal, lead) for lead in leads * 2))
    made = [result for result in results if isinstance(result, Made)]
    assert len({result.decision_id for result in made}) == 1
    assert all(isinstance(result, Made | AnsweredBefore) for result in results)
    (decision,) = queries.call(tool.workspace_id, proposal.claim_id).decisions
    proposal.refresh_from_db()
    assert proposal.decision_id == decision.pk
    assert proposal.answered_by_id == decision.approved_by_id


def test_a_yes_against_new_evidence_is_approved_before_it_or_not_at_all(waiting):
    tool, proposal, (lea, _) = waiting
    result, _ = at_once(
        lambda: yes(proposal, lea),
        lambda: desk.see(tool, proposal.claim_id, SightingWord.PENDING),
    )
    call = queries.call(tool.workspace_id, proposal.claim_id)
    proposal.refresh_from_db()
    assert call.held is None  # Either it was never made, or the answer cancelled it.
    if isinstance(result, Made):
        assert call.cancelled is not None
        assert proposal.status == Proposal.Status.APPROVED
    else:
        assert isinstance(result, Overtaken)
        assert call.decisions == ()
        assert proposal.status == Proposal.Status.OPEN


def test_a_yes_against_taking_the_request_back_is_one_or_the_other(waiting):
    tool, proposal, (lea, _) = waiting
    result, taken_back = at_once(
        lambda: yes(proposal, lea),
        lambda: approve.withdraw(
            tool.workspace_id, proposal.claim_id, proposal.pk, proposal.proposed_by_id
        ),
    )
    made = isinstance(result, Made)
    assert made is not taken_back
    assert len(queries.call(tool.workspace_id, proposal.claim_id).decisions) == int(made)


def test_nothing_stays_locked_behind_an_answer(waiting):
    _, proposal, (lea, _) = waiting
    yes(proposal, lea)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)
