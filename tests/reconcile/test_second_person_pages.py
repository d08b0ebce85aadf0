"""The pages by which two people decide, over HTTP, as a browser without script sends them."""

import re

import pytest
from django.test import Client

from effects.core.vocabulary import Role, SightingWord
from ledger.models import Claim
from reconcile import queries
from reconcile.models import Proposal, SecondPersonRule
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def gift(halden):
    return desk.an_unkeyed_tool(halden)


@pytest.fixture
def lost(gift):
    claim_id = desk.a_lost_call(gift, arguments={"amount": 149})
    desk.see(gift, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    return claim_id


def browser_of(halden, role, name):
    client = Client()
    client.force_login(desk.a_person(halden, role, name))
    return client


@pytest.fixture
def ana(halden):
    return browser_of(halden, Role.SUPPORT, "ana")


@pytest.fixture
def lea(halden):
    return browser_of(halden, Role.LEAD, "lea")


@pytest.fixture
def mo(halden):
    return browser_of(halden, Role.ADMIN, "mo")


def text_of(response):
    return response.content.decode()


def propose(client, lost, **changes):
    page = text_of(client.get(f"/calls/{lost}?dialog=release_new&ev=3"))
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found, page
    usual = {
        "action": "release_new",
        "token": found[1],
        "ev": "3",
        "reason": "The customer got nothing.",
        "typed": "149.00",
    }
    return client.post(f"/calls/{lost}/decide", usual | changes, follow=True)


def reply(client, lost, said, reason="I called them.", proposal=None):
    number = proposal or Proposal.objects.get().pk
    address = f"/calls/{lost}/requests/{number}/answer"
    return client.post(address, {"answer": said, "reason": reason}, follow=True)


def test_the_review_says_what_will_happen_and_asks_for_the_amount(ana, lea, lost):
    page = text_of(ana.get(f"/calls/{lost}?dialog=release_new&ev=3"))
    assert "This can make the effect happen twice" in page
    assert "Nothing happens before a second person approves." in page
    assert "Here: lea." in page
    assert re.search(r"Type <b[^>]*>149.00</b> to continue", page)


def test_one_proposes_and_another_approves_and_both_names_stand(ana, lea, gift, lost):
    asked = text_of(propose(ana, lost))
    assert "A second person is asked." in asked
    assert "Waiting for a second person: release with a new key" in asked
    assert "Approve: release" not in asked  # Its author has no such button.
    seen = text_of(lea.get(f"/calls/{lost}"))
    assert "Approve: release with a new key" in seen
    assert "The customer got nothing." in seen
    assert "149.00 EUR" in seen
    held = text_of(reply(lea, lost, "approve"))
    assert "Held: release with a new key" in held
    assert "approved by you" in held
    (decision,) = queries.call(gift.workspace_id, lost).decisions
    assert decision.decided_by
    assert decision.approved_by
    assert (decision.decided_by.username, decision.approved_by.username) == ("ana", "lea")


def test_nobody_answers_their_own_request_by_its_address_either(ana, lea, lost):
    propose(ana, lost)
    for said in ("approve", "reject"):
        response = reply(ana, lost, said)
        assert response.status_code == 409
        assert "You cannot approve your own request" in text_of(response)


def test_a_request_that_is_out_of_date_shows_what_changed(ana, lea, gift, lost):
    propose(ana, lost)
    desk.see(gift, lost, SightingWord.PENDING)
    page = text_of(lea.get(f"/calls/{lost}"))
    assert "Request out of date" in page
    assert "Approve: release" not in page
    response = reply(lea, lost, "approve")
    assert response.status_code == 409
    assert "What happened in between" in text_of(response)


def test_an_answer_without_a_reason_comes_back(ana, lea, lost):
    propose(ana, lost)
    response = reply(lea, lost, "approve", reason=" ")
    assert response.status_code == 422
    assert "Say why" in text_of(response)


def test_a_no_reaches_its_author_and_can_be_sent_twice(ana, lea, lost):
    propose(ana, lost)
    for _ in range(2):
        assert reply(lea, lost, "reject", reason="Ask the bank.").status_code == 200
    assert "Ask the bank." in text_of(ana.get(f"/calls/{lost}"))


def test_a_request_is_taken_back_and_another_workspaces_is_not_found(ana, lea, lost):
    propose(ana, lost)
    number = Proposal.objects.get().pk
    page = text_of(ana.post(f"/calls/{lost}/requests/{number}/take-back", follow=True))
    assert "The request is taken back." in page
    stranger = browser_of(desk.a_workspace("other"), Role.LEAD, "eve")
    assert reply(stranger, lost, "approve").status_code == 404
    assert reply(lea, lost, "approve", proposal=number + 1).status_code == 404


@pytest.mark.case("U14")
def test_what_belongs_to_one_action_is_not_read_for_another(ana, lea, lost):
    page = text_of(ana.get(f"/calls/{lost}?dialog=close"))
    token = re.search(r'name="token" value="([^"]+)"', page)
    ana.post(
        f"/calls/{lost}/decide",
        {
            "action": "close",
            "token": token[1] if token else "",
            "reason": "Enough.",
            "provider_object": "gc_9",
            "held": "7",
            "about": "refunded",
            "link": "re_1",
        },
    )
    (decision,) = queries.call(lost_workspace(lost), lost).decisions
    assert (decision.object, decision.held_request_id, decision.reason) == (None, None, "Enough.")


def lost_workspace(lost):
    return Claim.objects.get(pk=lost).workspace_id


def test_a_call_is_snoozed_and_brought_back(ana, lost):
    assert "Snooze?" in text_of(ana.get(f"/calls/{lost}?dialog=snooze"))
    page = text_of(ana.post(f"/calls/{lost}/snooze", {"reason": "Tomorrow."}, follow=True))
    assert "Snoozed until" in page
    assert "back in the queue" in text_of(ana.post(f"/calls/{lost}/wake", follow=True))


RULE = {"action": "close", "amount_from": "1,250.50", "currency": "eur", "approver": "lead"}


def test_an_admin_adds_a_rule_and_takes_it_away_each_with_a_reason(mo, lea):
    page = text_of(mo.post("/second-person/", RULE | {"reason": "An audit."}, follow=True))
    assert "Stop: do not retry, from 1,250.5 EUR" in page
    assert SecondPersonRule.objects.filter(retired_at=None).count() == 5  # four from the start
    code = "|close|EUR|1250.5|lead"
    page = text_of(
        mo.post("/second-person/retire/", {"rule": code, "reason": "Done."}, follow=True)
    )
    assert "Taken away" in page
    assert SecondPersonRule.objects.filter(retired_at=None).count() == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": ""},
        {"amount_from": "-1"},
        {"amount_from": "NaN"},
        {"amount_from": ""},
        {"currency": "euro"},
        {"approver": "viewer"},
        {"action": "ask"},
        {"effect_class": "read"},
    ],
)
def test_a_rule_that_makes_no_sense_is_put_right(mo, changes):
    response = mo.post("/second-person/", RULE | {"reason": "An audit."} | changes)
    assert response.status_code == 422
    assert not SecondPersonRule.objects.exists()


def test_only_admins_change_rules_and_everybody_may_read_them(lea, mo):
    assert "Needs the role Admin." in text_of(lea.get("/second-person/"))
    assert lea.post("/second-person/", RULE | {"reason": "x"}).status_code == 403
    assert lea.post("/second-person/retire/", {"rule": "", "reason": "x"}).status_code == 403


def test_in_a_workspace_of_one_the_rules_rest_and_the_page_says_why(mo):
    assert "The rules rest." in text_of(mo.get("/second-person/"))


def test_with_somebody_else_who_may_decide_they_are_in_force(mo, lea):
    assert "The rules rest." not in text_of(mo.get("/second-person/"))
