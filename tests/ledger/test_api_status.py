"""Asking what became of a claim: by every name, and never another workspace's."""

from uuid import UUID

import pytest

from effects.core.messages import Unknown
from effects.core.vocabulary import Outcome, Verdict
from ledger import append, queries
from ledger.append import NewDecision
from tests.support.agents import asked

pytestmark = pytest.mark.django_db


def test_status_by_every_name(agent):
    claim = agent.claim(caller_key="order/17").claim

    for path in (
        f"claims/{claim['claim_id']}",
        f"claims/{claim['key']}",
        f"claims/{claim['key'].rpartition('-')[0]}",
        f"claims/{claim['marker']}",
        "claims/order/17",
        "claims/order%2F17",
        "claims?key=order%2F17",
    ):
        answer = agent.get(path)
        assert answer.status == 200, path
        assert answer.claim["claim_id"] == claim["claim_id"]
        assert answer.claim["state"] == "in_flight"
        assert "key" not in answer.claim


def test_a_status_question_permits_no_send_whatever_the_state(agent, shop, person):
    claim_id = UUID(agent.claim().claim["claim_id"])
    append.report(shop.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1))
    decision = NewDecision(
        verdict=Verdict.RELEASE_SAME,
        claim_version=queries.claim(shop.pk, claim_id).version,
        reason="seen in the dashboard",
        user_id=person.pk,
        hold_seconds=0,
    )
    append.decide(shop.pk, claim_id, decision)

    answer = agent.get(f"claims/{claim_id}")

    assert answer.claim["state"] == "released"
    assert not {"key", "marker", "send_within_seconds", "code"} & answer.claim.keys()
    assert answer.claim["decision"]["verdict"] == "release_same"
    assert agent.claim().code == "granted"


# Whose


# A refusal by the database ends the transaction around it, so these run without one.
@pytest.mark.django_db(transaction=True)
def test_another_workspaces_claim_is_a_404_everywhere(agent, stranger):
    claim = agent.claim(caller_key="one").claim
    claim_id = claim["claim_id"]

    answers = [
        stranger.get(f"claims/{claim_id}"),
        stranger.get(f"claims/{claim['key']}"),
        stranger.get("claims/one"),
        stranger.get(f"claims/{claim_id}/wait?seconds=0"),
        stranger.post(f"claims/{claim_id}/sent", {"fence": 1}),
        stranger.post(f"claims/{claim_id}/heartbeat", {"fence": 1}),
        stranger.post(f"claims/{claim_id}/complete", {"fence": 1}),
        stranger.post(f"claims/{claim_id}/fail", {"fence": 1, "proof": "refused"}),
        stranger.post(f"claims/{claim_id}/unknown", {"fence": 1}),
    ]

    assert {(answer.status, answer.code) for answer in answers} == {(404, "claim_not_found")}
    assert agent.get(f"claims/{claim_id}").claim["state"] == "in_flight", "nothing was recorded"


def test_the_same_key_in_two_workspaces_is_two_claims(agent, stranger):
    mine, theirs = agent.claim(caller_key="same"), stranger.claim(caller_key="same")

    assert mine.status == theirs.status == 201
    assert mine.claim["claim_id"] != theirs.claim["claim_id"]
    assert stranger.get("claims/same").claim["claim_id"] == theirs.claim["claim_id"]


@pytest.mark.parametrize("name", ["nobody", "00000000-0000-0000-0000-000000000000", "cf1-0"])
def test_what_names_no_claim_is_a_404(agent, name):
    assert agent.get(f"claims/{name}").code == "claim_not_found"
    assert agent.post(f"claims/{name}/sent", {"fence": 1}).code == "claim_not_found"


def test_equal_requests_are_one_claim(agent):
    first = agent.claim()
    body = asked(arguments='{"amount":42.00e2,"charge":"ch_1"}')

    assert agent.post("claims", body).claim["claim_id"] == first.claim["claim_id"]
