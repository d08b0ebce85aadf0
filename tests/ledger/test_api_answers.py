"""What an agent is told: every code of the table, with its status and the answer inside."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from effects.core.messages import Unknown
from effects.core.vocabulary import AnswerCode, Outcome, Verdict
from effects.models import Tool, Workspace
from ledger import append, queries
from ledger.append import NewDecision
from ledger.refusals import ANSWER_STATUS, NOT_GRANTED
from tests.support.agents import Agent, Answer

pytestmark = pytest.mark.django_db

LATER = {"turn_index": 7, "call_id": "call_bbbbbbbbbbbbbbbbbbbbbbbb", "response_id": "response-2"}


def completed(agent: Agent, **changes: Any) -> dict[str, Any]:
    claim = agent.claim(**changes).claim
    answer = agent.post(
        f"claims/{claim['claim_id']}/complete",
        {"fence": claim["fence"], "result": '{"id": "re_1"}', "provider_object": "re_1"},
    )
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.claim
    return told


def lost(agent: Agent, **changes: Any) -> dict[str, Any]:
    """A claim whose outcome nobody knows."""
    claim = agent.claim(**changes).claim
    answer = agent.post(f"claims/{claim['claim_id']}/unknown", {"fence": claim["fence"]})
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.claim
    return told


def decide(
    shop: Workspace, claim: dict[str, Any], verdict: Verdict, person: User, *, hold_seconds: int = 0
) -> None:
    claim_id = UUID(claim["claim_id"])
    decision = NewDecision(
        verdict=verdict,
        claim_version=queries.claim(shop.pk, claim_id).version,
        reason="seen in the dashboard",
        user_id=person.pk,
        hold_seconds=hold_seconds,
    )
    append.decide(shop.pk, claim_id, decision)


def refused_answer(answer: Answer, code: str) -> dict[str, Any]:
    """The problem document of a claim that was not granted."""
    assert answer.code == code, answer.body
    assert answer.status == ANSWER_STATUS[AnswerCode(code)]
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["title"] == NOT_GRANTED[AnswerCode(code)]
    assert answer.json["status"] == answer.status
    assert answer.json["type"] == f"/api/docs#{code}"
    assert answer.claim["code"] == code
    assert answer.claim["for_model"]["status"]
    assert not {"key", "marker", "send_within_seconds"} & answer.claim.keys(), "permits no send"
    told: dict[str, Any] = answer.claim
    return told


# One test for each word


def test_granted_is_201_with_all_that_a_send_needs(agent, shop):
    answer = agent.claim()

    assert answer.status == 201
    assert answer.code == "granted"
    claim = answer.claim
    assert claim["fence"] == claim["generation"] == 1
    assert claim["key"].startswith("cf1-")
    assert claim["marker"] == f"cf_{UUID(claim['claim_id']).hex}_1"
    assert 85 < claim["send_within_seconds"] <= 90
    assert claim["safe_retry_until"] > claim["lease_until"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_granted_again_is_for_the_holder_of_the_nonce_alone(agent):
    nonce = "0123456789abcdef" * 2
    first = agent.claim(nonce=nonce)

    again = agent.claim(nonce=nonce)
    other = agent.claim(nonce="f" * 32)

    assert (again.status, again.code) == (200, "granted_again")
    assert again.claim["key"] == first.claim["key"]
    assert again.claim["fence"] == first.claim["fence"]
    refused_answer(other, "in_flight")


def test_replayed_is_200_with_the_very_result(agent):
    completed(agent)

    answer = agent.claim(call_id="call_cccccccccccccccccccccccc")

    assert (answer.status, answer.code) == (200, "replayed")
    assert answer.claim["result"] == '{"id": "re_1"}'
    assert answer.claim["provider_object"] == "re_1"
    assert answer.claim["for_model"]["result"] == {"id": "re_1"}


def test_in_flight_is_409_and_says_when_the_lease_ends(agent):
    agent.claim()

    answer = agent.claim()

    refused_answer(answer, "in_flight")
    assert 85 < int(answer.headers["Retry-After"]) <= 90


def test_unknown_is_409_and_names_no_time_while_nobody_has_decided(agent):
    claim = lost(agent)

    answer = agent.claim()

    told = refused_answer(answer, "unknown")
    assert "Retry-After" not in answer.headers
    assert told["claim_id"] == claim["claim_id"]
    assert told["decision_pending"] is False
    assert told["for_model"]["status"] == "unknown"
    assert "safe_retry_until" in told


def test_unknown_with_a_held_decision_says_when_it_takes_effect(agent, shop, person):
    decide(shop, lost(agent), Verdict.HAPPENED, person, hold_seconds=60)

    answer = agent.claim()

    assert refused_answer(answer, "unknown")["decision_pending"] is True
    assert 55 < int(answer.headers["Retry-After"]) <= 60


@pytest.mark.case("U13")
def test_a_window_that_closed_over_an_open_question_is_no_outcome_and_nobodys_denial(
    agent, shop, refund, person, pass_time
):
    claim = lost(agent)
    almost = refund.window_seconds - refund.margin_seconds
    pass_time(seconds=almost - 30)
    assert refused_answer(agent.claim(), "unknown")["for_model"]["status"] == "unknown"

    pass_time(seconds=31)

    told = refused_answer(agent.claim(), "unknown")
    assert (told["state"], told["reason"]) == ("unknown", "expired_unanswered")
    assert told["for_model"]["status"] == "expired_unanswered"
    assert told["for_model"]["next_step"].startswith("Do not call this tool again for this")
    assert "denied" not in str(told)
    asked = agent.get(f"claims/{claim['claim_id']}").claim
    assert (asked["reason"], asked["for_model"]["status"]) == ("expired_unanswered",) * 2

    decide(shop, claim, Verdict.CLOSE, person, hold_seconds=60)
    assert agent.claim().claim["for_model"]["status"] == "unknown", "a person has answered"
    pass_time(seconds=61)
    closed = refused_answer(agent.claim(), "closed")
    assert closed["for_model"]["status"] == "unknown_do_not_retry"


def test_closed_is_409(agent, shop, person):
    decide(shop, lost(agent), Verdict.CLOSE, person)

    refused_answer(agent.claim(), "closed")


def test_conflicted_is_409(agent, shop):
    claim = agent.claim().claim
    for provider_object in ("re_1", "re_2"):
        body = {"fence": 1, "provider_object": provider_object, "result": "1"}
        agent.post(f"claims/{claim['claim_id']}/complete", body)

    refused_answer(agent.claim(), "conflicted")


def test_attempts_exhausted_is_409(agent, refund):
    Tool.objects.filter(pk=refund.pk).update(attempts_max=1, version=2)
    claim = agent.claim().claim
    agent.post(f"claims/{claim['claim_id']}/fail", {"fence": 1, "proof": "not_sent"})

    refused_answer(agent.claim(), "attempts_exhausted")


def test_held_is_409_and_names_the_blocker(agent):
    blocker = lost(agent)

    told = refused_answer(agent.claim(**LATER), "held")

    assert told["blocker"] == blocker["claim_id"]


def test_already_done_is_409_with_the_blockers_result(agent):
    blocker = agent.claim().claim
    refused_answer(agent.claim(**LATER), "held")
    agent.post(
        f"claims/{blocker['claim_id']}/complete",
        {"fence": 1, "result": '{"id": "re_1"}', "provider_object": "re_1"},
    )

    told = refused_answer(agent.claim(**LATER), "already_done")

    assert told["blocker"] == blocker["claim_id"]
    assert told["for_model"]["result"] == {"id": "re_1"}


def test_reissued_differently_is_409(agent):
    lost(agent)

    answer = agent.claim(
        arguments='{"charge": "ch_1", "amount": 9900}',
        response_id="response-2",
        call_id="call_bbbbbbbbbbbbbbbbbbbbbbbb",
    )

    refused_answer(answer, "reissued_differently")


def test_identities_disagree_is_409(agent):
    completed(agent, caller_key="one")
    completed(agent, caller_key="two", turn_index=9, call_id=None, arguments='{"amount": 1}')

    answer = agent.claim(caller_key="two")

    refused_answer(answer, "identities_disagree")


def test_mismatch_is_422_also_while_the_first_one_runs(agent):
    agent.claim(caller_key="one")

    other_arguments = agent.claim(caller_key="one", arguments='{"charge": "ch_1", "amount": 1}')
    other_tool = agent.claim(caller_key="one", tool="email")

    refused_answer(other_arguments, "mismatch")
    refused_answer(other_tool, "mismatch")
    assert other_arguments.status == 422


def test_every_word_is_in_the_table():
    assert set(ANSWER_STATUS) == set(AnswerCode)
    refusals = {code for code, status in ANSWER_STATUS.items() if status >= 400}
    assert set(NOT_GRANTED) == refusals
    tested = [name for name in globals() if name.startswith("test_")]
    for code in AnswerCode:
        assert any(name.startswith(f"test_{code}_is_") for name in tested), code


# Classes


def test_a_read_needs_no_claim(agent, lookup):
    answer = agent.claim(tool="lookup", effect_class="read")

    assert answer.status == 200
    assert answer.code is None
    assert answer.claim["effect_class"] == "read"
    assert "claim_id" not in answer.claim


def test_a_tool_that_nobody_registered_is_an_unkeyed_write(agent, shop):
    answer = agent.claim(tool="send_money", effect_class="read")

    assert answer.status == 201
    assert answer.claim["effect_class"] == "unkeyed_write"
    assert "key" not in answer.claim
    assert answer.claim["marker"].startswith("cf_")
    tool = Tool.objects.get(workspace=shop, name="send_money")
    assert not tool.registered


def test_the_stricter_class_is_in_force(agent, lookup):
    assert agent.claim(tool="lookup", effect_class="keyed_write").claim["effect_class"] == (
        "keyed_write"
    )


# Reports


@pytest.mark.parametrize(
    ("verb", "report", "state"),
    [
        pytest.param("complete", {"result": "1"}, "completed", id="complete"),
        pytest.param("fail", {"proof": "not_sent"}, "not_executed", id="not sent"),
        pytest.param(
            "fail", {"proof": "refused", "http_status": 401}, "not_executed", id="refused"
        ),
        pytest.param("fail", {"proof": "refused_stored"}, "not_executed", id="stored refusal"),
        pytest.param("unknown", {"error": "ReadTimeout"}, "unknown", id="unknown"),
    ],
)
def test_a_report_is_answered_with_what_the_claim_now_is(agent, verb, report, state):
    claim = agent.claim().claim

    answer = agent.post(f"claims/{claim['claim_id']}/{verb}", {"fence": 1, **report})
    again = agent.post(f"claims/{claim['claim_id']}/{verb}", {"fence": 1, **report})

    assert answer.status == 200
    assert answer.claim["state"] == state
    assert answer.headers["ETag"] == '"2"'
    assert again.body == answer.body, "the same report is the same fact"


def test_sent_and_heartbeat(agent, shop, refund, pass_time):
    claim = agent.claim().claim
    assert agent.post(f"claims/{claim['claim_id']}/sent", {"fence": 1}).status == 204

    pass_time(seconds=60)
    beat = agent.post(f"claims/{claim['claim_id']}/heartbeat", {"fence": 1})
    assert beat.json["word"] == "ok"
    assert beat.json["lease_until"] > claim["lease_until"]

    append.report(shop.pk, UUID(claim["claim_id"]), Outcome.UNKNOWN, Unknown(fence=1))
    stopped = agent.post(f"claims/{claim['claim_id']}/heartbeat", {"fence": 1})
    assert stopped.json["word"] == "stop"


# A refusal by the database ends the transaction around it, so these run without one.
@pytest.mark.django_db(transaction=True)
def test_a_report_of_an_attempt_that_was_never_granted_is_refused(agent):
    claim = agent.claim().claim

    for verb in ("sent", "complete", "unknown"):
        answer = agent.post(f"claims/{claim['claim_id']}/{verb}", {"fence": 7})
        assert (answer.status, answer.code) == (409, "stale_fence"), verb
        assert "attempt 7" in answer.json["detail"]


def test_a_result_that_cannot_be_kept_does_not_cost_the_report(agent):
    bad = {
        "too long": '"' + "x" * 1024 * 1024 + '"',
        "not JSON": "<html>",
        "too deep": "[" * 100 + "]" * 100,
        "far too deep": "[" * 100_000 + "]" * 100_000,
    }
    for number, (why, result) in enumerate(bad.items()):
        claim = agent.claim(turn_index=number, call_id=None, arguments=f'{{"n": {number}}}').claim
        answer = agent.post(f"claims/{claim['claim_id']}/complete", {"fence": 1, "result": result})
        assert answer.claim["state"] == "completed", why
        assert answer.claim["result_stored"] is False, why


def test_the_longest_result_that_is_kept_comes_back_whole(agent):
    claim = agent.claim().claim
    result = '"' + "\N{EURO SIGN}" * ((1024 * 1024 - 2) // 3) + '"'

    answer = agent.post(f"claims/{claim['claim_id']}/complete", {"fence": 1, "result": result})

    assert answer.claim["result_stored"] is True
    assert agent.claim().claim["result"] == result


def test_a_report_keeps_its_text_where_the_database_could_not(agent, shop):
    claim = agent.claim().claim

    body = {"fence": 1, "error": "read \x00 bytes"}
    answer = agent.post(f"claims/{claim['claim_id']}/unknown", body)

    assert answer.status == 200
    event = queries.events(queries.claim(shop.pk, UUID(claim["claim_id"])))[-1]
    assert event.data is not None
    assert event.data["error"] == "read \N{SYMBOL FOR NULL} bytes"
