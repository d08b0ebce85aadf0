"""From a change in the ledger to a message, in one transaction with it and without a loss."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from effects.core.messages import Complete
from effects.core.vocabulary import Outcome, SightingWord, Verdict
from ledger import append, queries
from reconcile.outbox import composing
from reconcile.outbox.models import OutboxCue, OutboxDelivery, OutboxMark, OutboxMessage
from tests.support import desk

pytestmark = pytest.mark.django_db


def decide(tool, claim_id, verdict, person, *, hold_seconds=0, **more):
    claim = queries.claim(tool.workspace_id, claim_id)
    return append.decide(
        tool.workspace_id,
        claim_id,
        append.NewDecision(
            verdict=verdict,
            claim_version=claim.version,
            reason="because",
            user_id=person.pk,
            hold_seconds=hold_seconds,
            **more,
        ),
    )


def told() -> list[dict[str, Any]]:
    composing.compose()
    return [json.loads(bytes(m.body)) for m in OutboxMessage.objects.order_by("pk")]


def test_what_a_person_decided_is_told_exactly_as_the_status_question_answers_it(
    address, charge, ana
):
    claim_id = desk.a_lost_call(charge)
    assert told() == [], "that it is unknown was known to the agent"
    decide(charge, claim_id, Verdict.CLOSE, ana)

    (message,) = told()

    assert message["type"] == "call.closed"
    data, claim = message["data"], queries.claim(charge.workspace_id, claim_id)
    answer = queries.status(claim, now=queries.clock()).model_dump(mode="json")
    assert data["answer"] == answer
    assert data["answer"]["for_model"]["status"] == "unknown_do_not_retry"
    assert (data["conversation"], data["turn_index"]) == (claim.conversation, 3)
    assert (data["workspace"], data["mode"], data["version"]) == ("halden", "test", claim.version)
    assert data["overtaken"] is None
    assert told() == [message], "and it is told once"


def test_an_ordinary_call_costs_the_outbox_nothing(address, charge):
    desk.complete(charge, desk.a_call(charge))
    desk.not_sent(charge, desk.a_call(charge))
    desk.a_lost_call(charge)
    assert not OutboxCue.objects.exists()


def test_where_nobody_waits_nothing_is_noted(charge, ana):
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    assert not OutboxCue.objects.exists()


def test_a_change_that_is_rolled_back_is_told_to_nobody(address, charge, ana):
    claim_id = desk.a_lost_call(charge)
    with transaction.atomic():
        decide(charge, claim_id, Verdict.CLOSE, ana)
        assert OutboxCue.objects.count() > 0
        transaction.set_rollback(True)
    assert told() == []


def test_what_a_rule_settled_by_a_sighting_is_told(address, charge):
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.FOUND, counts=True, objects=("pi_7",))
    (message,) = told()
    assert message["type"] == "call.completed"
    assert message["data"]["answer"]["provider_object"] == "pi_7"


def test_a_worker_that_reports_after_a_person_stopped_the_call_corrects_what_was_told(
    address, charge, ana
):
    call = desk.a_call(charge)
    claim_id = desk.lose(charge, call)
    decide(charge, claim_id, Verdict.CLOSE, ana)
    assert [m["type"] for m in told()] == ["call.closed"]

    report = Complete(fence=call.fence, provider_object="pi_9", result='{"id": "pi_9"}')
    append.report(charge.workspace_id, claim_id, Outcome.COMPLETED, report)

    last = told()[-1]
    assert last["type"] == "call.completed"
    assert last["data"]["answer"]["reason"] == "told_otherwise"


def test_a_release_that_was_taken_up_first_is_said_to_be_overtaken(address, charge, ana):
    call = desk.a_call(charge, conversation="c-1", call_id="call_aaaaaaaaaaaaaaaaaaaaaaaa")
    claim_id = desk.lose(charge, call)
    decide(charge, claim_id, Verdict.RELEASE_SAME, ana)
    arguments = queries.claim(charge.workspace_id, claim_id).arguments
    again = desk.ask(
        charge,
        arguments=arguments,
        conversation="c-1",
        call_id="call_aaaaaaaaaaaaaaaaaaaaaaaa",
        response_id=queries.claim(charge.workspace_id, claim_id).response_id,
    )
    assert again.fence == 2

    (message,) = told()

    assert message["type"] == "call.decision_overtaken"
    assert message["data"]["overtaken"]["by"] == "attempt"
    assert message["data"]["overtaken"]["fence"] == 2
    assert message["data"]["answer"]["state"] == "in_flight"


def test_a_decision_that_a_fact_cancelled_in_its_minute_is_said_to_be_overtaken(
    address, charge, ana
):
    call = desk.a_call(charge)
    claim_id = desk.lose(charge, call)
    held = decide(charge, claim_id, Verdict.CLOSE, ana, hold_seconds=60)
    desk.complete(charge, call, "pi_3")
    (message,) = told()
    assert message["type"] == "call.completed"
    assert message["data"]["overtaken"]["decision_id"] == held.decision_id
    assert message["data"]["overtaken"]["by"] == "fact"


@pytest.mark.case("U13")
def test_a_window_that_closes_over_an_open_question_is_told_once(address, charge):
    composing.notice_closed_windows()
    claim_id = desk.a_lost_call(charge)
    composing.notice_closed_windows()
    assert told() == []

    desk.move_clock(timedelta(seconds=charge.window_seconds - charge.margin_seconds + 5))
    composing.notice_closed_windows()
    composing.notice_closed_windows()

    (message,) = told()
    assert message["type"] == "call.expired_unanswered"
    assert message["data"]["answer"]["claim_id"] == str(claim_id)
    assert message["data"]["answer"]["for_model"]["status"] == "expired_unanswered"


def test_windows_that_closed_before_anybody_looked_are_no_news(address, charge):
    desk.a_lost_call(charge)
    desk.move_clock(timedelta(days=2))
    composing.notice_closed_windows()
    composing.notice_closed_windows()
    assert OutboxMark.objects.count() == 1
    assert told() == []


def test_an_address_gets_the_types_that_it_asked_for(address, charge, ana):
    address.types = ["call.completed"]
    address.save()
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    assert told() == []
    decide(charge, desk.a_lost_call(charge), Verdict.HAPPENED, ana)
    assert [m["type"] for m in told()] == ["call.completed"]


def test_a_call_that_cannot_be_read_keeps_nobody_elses_news(address, charge, ana, monkeypatch):
    broken, whole = desk.a_lost_call(charge), desk.a_lost_call(charge)
    for claim_id in (broken, whole):
        decide(charge, claim_id, Verdict.CLOSE, ana)
    status = queries.status

    def sometimes(claim, *, now):
        if claim.pk == broken:
            raise ValueError("cannot be read")
        return status(claim, now=now)

    monkeypatch.setattr(queries, "status", sometimes)
    assert [m["data"]["answer"]["claim_id"] for m in told()] == [str(whole)]
    assert set(OutboxCue.objects.values_list("claim_id", flat=True)) == {broken}

    monkeypatch.undo()
    OutboxCue.objects.update(due_at=queries.clock())
    assert [m["data"]["answer"]["claim_id"] for m in told()] == [str(whole), str(broken)]


def test_a_result_that_is_too_long_is_left_out_and_said_so(address, charge, ana, monkeypatch):
    monkeypatch.setattr(composing, "BODY_BYTES_MAX", 2000)
    call = desk.a_call(charge)
    claim_id = desk.lose(charge, call)
    decide(charge, claim_id, Verdict.CLOSE, ana)
    report = Complete(fence=1, provider_object="pi_1", result=json.dumps("x" * 5000))
    append.report(charge.workspace_id, claim_id, Outcome.COMPLETED, report)
    answer = told()[-1]["data"]["answer"]
    assert answer["result"] is None
    assert answer["result_stored"] is True
    assert "result" not in answer["for_model"]
    assert "too long for this message" in answer["for_model"]["detail"]


def test_old_messages_are_forgotten_once_nothing_more_happens_to_them(address, charge, ana):
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    assert len(told()) == 2
    OutboxDelivery.objects.filter(pk=OutboxDelivery.objects.earliest("pk").pk).update(due_at=None)
    desk.move_clock(timedelta(days=composing.KEPT_DAYS + 1))
    composing.forget_old()
    assert OutboxMessage.objects.count() == 1, "one is still on its way"


def test_a_cue_is_written_by_whoever_writes_the_event(address, charge, ana):
    """Also by plain SQL: the trigger is the one place."""
    claim_id = desk.a_lost_call(charge)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname IN "
            "('reconcile_event_cue', 'reconcile_claim_cue') AND tgenabled = 'O'"
        )
        assert cursor.fetchone() == (2,)
    decide(charge, claim_id, Verdict.CLOSE, ana)
    assert OutboxCue.objects.filter(claim_id=claim_id).exists()
