"""Reading the record: whose claim it is, what became of it, and what is true at this instant."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from effects.core.messages import ClaimRequest, Complete, Fail, Unknown
from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EventKind,
    Flag,
    Outcome,
    Reason,
    SightingWord,
    Verdict,
)
from effects.models import Workspace
from ledger import append, claiming, queries
from ledger.append import DecisionHeld, NewDecision, Observation
from tests.support.agents import asked

pytestmark = pytest.mark.django_db


def granted_answer(workspace: Workspace, **changes: Any) -> Any:
    answer = claiming.claim(
        workspace.pk, ClaimRequest.model_validate_json(json.dumps(asked(**changes)))
    )
    assert answer.code is AnswerCode.GRANTED, answer
    return answer


def granted(workspace: Workspace, **changes: Any) -> UUID:
    claim_id: UUID = granted_answer(workspace, **changes).claim_id
    return claim_id


def told(workspace: Workspace, claim_id: UUID) -> Any:
    return queries.answer(workspace.pk, claim_id)


def decided(
    workspace: Workspace, claim_id: UUID, verdict: Verdict, person: User, *, hold_seconds: int = 60
) -> DecisionHeld:
    claim = queries.claim(workspace.pk, claim_id)
    decision = NewDecision(
        verdict=verdict,
        claim_version=claim.version,
        reason="the customer called",
        user_id=person.pk,
        hold_seconds=hold_seconds,
    )
    return append.decide(workspace.pk, claim_id, decision)


@pytest.mark.case("X09")
def test_the_clock_is_the_databases():
    before = queries.clock()
    assert before.utcoffset() == timedelta()
    assert before <= queries.clock()


# Whose claim


@pytest.mark.parametrize("ask", [queries.claim, queries.answer], ids=["claim", "answer"])
def test_another_workspaces_claim_is_not_found(shop, neighbour, refund, ask):
    claim_id = granted(shop)

    assert ask(shop.pk, claim_id)
    nobodys = uuid4()
    with pytest.raises(ClaimNotFound) as foreign:
        ask(neighbour.pk, claim_id)
    with pytest.raises(ClaimNotFound) as unknown:
        ask(neighbour.pk, nobodys)
    assert foreign.value.detail.replace(str(claim_id), "") == (
        unknown.value.detail.replace(str(nobodys), "")
    ), "the two must not be told apart"


def test_a_claim_is_found_by_every_name_that_an_agent_may_hold(shop, neighbour, refund):
    answer = granted_answer(shop, caller_key="order/17 refund")
    key, generation = answer.key.rsplit("-", 1)
    assert generation == "1"
    names = [str(answer.claim_id), answer.claim_id.hex, answer.key, key, answer.marker]

    for name in [*names, "order/17 refund"]:
        assert queries.claim_by_key(shop.pk, name).pk == answer.claim_id, name
        with pytest.raises(ClaimNotFound):
            queries.claim_by_key(neighbour.pk, name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("order/17 REFUND", id="case is not folded"),
        pytest.param("order/17 refund ", id="space is not trimmed"),
        pytest.param("", id="empty"),
        pytest.param("a\x00b", id="a character that no database stores"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param("cf1-" + "0" * 32, id="a key of nobody"),
        pytest.param("x" * 10_000, id="very long"),
    ],
)
def test_what_names_no_claim_is_not_found(shop, refund, name):
    granted(shop, caller_key="order/17 refund")

    with pytest.raises(ClaimNotFound):
        queries.claim_by_key(shop.pk, name)


def test_a_caller_key_in_the_shape_of_ours_is_still_found(shop, refund):
    shaped = "cf1-" + "a" * 32 + "-1"
    answer = granted_answer(shop, caller_key=shaped)

    assert queries.claim_by_key(shop.pk, shaped).pk == answer.claim_id


def test_the_status_by_key_uses_an_index(shop, refund):
    granted(shop)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT * FROM ledger_claim WHERE key = 'cf1-0'")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "claim_key" in plan


# What became of it


def test_a_running_claim_says_when_its_lease_ends(shop, refund):
    answer = told(shop, granted(shop))

    assert answer.state is ClaimState.IN_FLIGHT
    assert answer.code is None
    assert (answer.key, answer.marker, answer.send_within_seconds) == (None, None, None)
    assert 80 <= answer.retry_after_seconds <= 90
    assert answer.lease_until is not None
    assert answer.link == f"{settings.COUNTERFOIL_DESK_URL}/calls/{answer.claim_id}"
    assert answer.for_model["status"] == "in_flight"
    window = timedelta(seconds=refund.window_seconds - refund.margin_seconds)
    assert answer.safe_retry_until == queries.claim(shop.pk, answer.claim_id).granted_at + window


@pytest.mark.parametrize("size", [10, 5000], ids=["in the row", "in a payload"])
def test_a_completed_claim_gives_the_very_result(shop, refund, size):
    claim_id = granted(shop)
    result = '{"amount": 12345678901234567890.10, "note": "%s"}' % ("x" * size)
    report = Complete(fence=1, result=result, provider_object="re_1")
    append.report(shop.pk, claim_id, Outcome.COMPLETED, report)

    answer = told(shop, claim_id)

    assert answer.state is ClaimState.COMPLETED
    assert answer.result == result
    assert answer.result_stored is True
    assert answer.provider_object == "re_1"
    assert answer.for_model["status"] == "completed"


def test_a_result_that_was_emptied_is_not_read_as_null(shop, refund):
    claim_id = granted(shop)
    report = Complete(fence=1, result='"%s"' % ("x" * 5000))
    append.report(shop.pk, claim_id, Outcome.COMPLETED, report)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_payload SET body = NULL, emptied_reason = 'retention'")

    answer = told(shop, claim_id)

    assert answer.result is None
    assert answer.result_stored is False
    kept = queries.payload(queries.claim(shop.pk, claim_id), 2, "result")
    assert kept is not None
    assert kept.size_bytes == 5002


def test_large_arguments_are_found_in_their_payload(shop, refund):
    small, large = '{"a": 1}', '{"a": "%s"}' % ("x" * 5000)
    first = granted(shop, arguments=small)
    second = granted(shop, arguments=large, turn_index=4, call_id=None)

    assert queries.arguments_text(queries.claim(shop.pk, first)) == small
    assert queries.arguments_text(queries.claim(shop.pk, second)) == large


def test_a_proof_and_a_doubt_are_told_apart(shop, refund, email):
    refused, doubtful = granted(shop), granted(shop, tool="email", call_id=None, position=1)
    append.report(shop.pk, refused, Outcome.NOT_SENT, Fail(fence=1, proof=Outcome.NOT_SENT))
    append.report(shop.pk, doubtful, Outcome.UNKNOWN, Unknown(fence=1))

    assert told(shop, refused).state is ClaimState.NOT_EXECUTED
    unknown = told(shop, doubtful)
    assert unknown.state is ClaimState.UNKNOWN
    assert unknown.safe_retry_until is None, "the tool has no key"
    assert unknown.retry_after_seconds is None


@pytest.mark.case("X09")
def test_a_lease_that_ran_out_is_unknown_at_once_without_a_sweep(shop, refund, pass_time):
    claim_id = granted(shop)
    pass_time(seconds=refund.lease_seconds + 1)

    answer = told(shop, claim_id)

    assert (answer.state, answer.reason) == (ClaimState.UNKNOWN, Reason.LEASE_OVER)
    assert queries.claim(shop.pk, claim_id).state == ClaimState.IN_FLIGHT, "reading changed nothing"
    append.sweep(10)
    swept = told(shop, claim_id)
    assert (swept.state, swept.reason) == (answer.state, answer.reason)


# Decisions


def test_a_held_decision_is_shown_as_pending_and_then_as_in_force(shop, refund, person, pass_time):
    claim_id = granted(shop)
    append.report(shop.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1))
    held = decided(shop, claim_id, Verdict.HAPPENED, person)

    before = told(shop, claim_id)
    assert before.state is ClaimState.UNKNOWN
    assert before.decision_pending
    assert before.decision.verdict is Verdict.HAPPENED
    assert 55 <= before.retry_after_seconds <= 60

    pass_time(seconds=61)
    due = told(shop, claim_id)
    assert due.state is ClaimState.COMPLETED, "true at its instant, swept or not"
    assert not due.decision_pending
    append.sweep(10)
    after = told(shop, claim_id)
    assert after.state is ClaimState.COMPLETED
    assert after.decision == due.decision
    assert after.decision.decision_id == held.decision_id
    assert after.retry_after_seconds is None


def test_the_record_says_what_became_of_each_decision(shop, refund, person, pass_time):
    claim_id = granted(shop)
    append.report(shop.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1))
    first = decided(shop, claim_id, Verdict.CLOSE, person).decision_id
    assert append.withdraw(shop.pk, claim_id, first, person.pk)
    second = decided(shop, claim_id, Verdict.CLOSE, person).decision_id
    seen = Observation(word=SightingWord.PENDING, fence=1, counts=False)
    append.observe(shop.pk, claim_id, seen)
    third = decided(shop, claim_id, Verdict.CLOSE, person).decision_id
    pass_time(seconds=61)
    append.sweep(10)
    fourth = decided(shop, claim_id, Verdict.REOPEN, person).decision_id

    claim = queries.claim(shop.pk, claim_id)
    assert queries.fates(claim) == {
        first: queries.Fate.WITHDRAWN,
        second: queries.Fate.CANCELLED,
        third: queries.Fate.IN_FORCE,
        fourth: queries.Fate.HELD,
    }
    verdicts = [decision.verdict for decision in queries.decisions(claim)]
    assert verdicts.count(Verdict.WITHDRAW) == 1
    assert len(verdicts) == 5


def test_a_release_that_nobody_took_is_unknown_again_at_its_instant(
    shop, refund, person, pass_time
):
    claim_id = granted(shop)
    append.report(shop.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1))
    decided(shop, claim_id, Verdict.RELEASE_SAME, person)
    pass_time(seconds=61)
    assert told(shop, claim_id).state is ClaimState.RELEASED
    append.sweep(10)
    assert told(shop, claim_id).state is ClaimState.RELEASED

    pass_time(minutes=refund.release_lapse_minutes)

    answer = told(shop, claim_id)
    assert (answer.state, answer.reason) == (ClaimState.UNKNOWN, Reason.RELEASE_LAPSED)


# Its parts


def test_events_attempts_and_sightings_come_in_their_order(shop, refund):
    claim_id = granted(shop)
    append.sent(shop.pk, claim_id, 1)
    append.report(shop.pk, claim_id, Outcome.UNKNOWN, Unknown(fence=1, http_status=504))
    for word in (SightingWord.LOOKUP_FAILED, SightingWord.PENDING):
        append.observe(shop.pk, claim_id, Observation(word=word, fence=1, counts=False, raw=b"{}"))

    claim = queries.claim(shop.pk, claim_id)
    kinds = [event.kind for event in queries.events(claim)]
    assert kinds == [
        EventKind.GRANTED,
        EventKind.SENT,
        EventKind.REPORTED,
        EventKind.SIGHTING,
        EventKind.SIGHTING,
    ]
    assert [event.seq for event in queries.events(claim, after_seq=3)] == [4, 5]
    assert [seen.word for seen in queries.sightings(claim)] == ["pending", "lookup_failed"]
    (attempt,) = queries.attempts(claim)
    assert (attempt.fence, attempt.outcome) == (1, "unknown")
    assert attempt.sent_at is not None
    raw = queries.payload(claim, 4, "raw")
    assert raw is not None
    assert raw.body is not None
    assert bytes(raw.body) == b"{}"


def test_flags_reach_the_answer(shop, refund):
    granted(shop, call_id=None)
    twin = granted(shop, call_id=None, position=1, ordinal=1)

    assert Flag.IDENTICAL_IN_TURN in told(shop, twin).flags
