"""Sequences that went wrong in other people's systems, asked over HTTP."""

import psycopg
import pytest
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404

from effects.core.canonical import Refused
from effects.core.problems import StaleFence
from ledger.queries import attempts, claim_by_key, events
from ledger.refusals import problem_of, refused
from tests.support.agents import Agent, Answer

pytestmark = pytest.mark.django_db

NOBODY = {"conversation": None, "turn_index": None, "call_id": None, "response_id": None}
ONE, TWO = '{"x": 1}', '{"x": 2}'


@pytest.mark.case("P19")
def test_one_key_of_two_tenants_with_other_bodies_and_in_odd_shapes(agent, stranger):
    """No key is not replaced by a made-up one; keys belong to a tenant; another body is told as
    another body also while the first one runs; and no shape of a key is a fault of the server."""

    def ask(who: Agent, key: str | None, arguments: str = ONE, tool: str = "refund") -> Answer:
        return who.claim(**NOBODY, caller_key=key, arguments=arguments, tool=tool)

    answers = [
        ask(agent, None),
        ask(agent, "same"),
        ask(stranger, "same"),
        ask(agent, "same", TWO),
        ask(agent, "same"),
        ask(agent, "same", tool="other_tool"),
        ask(agent, "K" * 290),
        ask(agent, " same "),
        ask(agent, ""),
    ]

    assert [a.status for a in answers] == [400, 201, 201, 422, 409, 422, 400, 400, 400]
    assert answers[0].code == "no_identity"
    assert answers[3].code == answers[5].code == "mismatch"
    assert answers[4].code == "in_flight"
    assert answers[1].claim["claim_id"] != answers[2].claim["claim_id"]


def test_a_redelivered_job_learns_that_its_first_copy_still_runs(agent, shop, email, pass_time):
    """A queue hands a task out again after five minutes, and once more after ten. The first copy is
    alive and beats; nobody else may run, and its completion is the truth."""
    report = {"tool": "email", "effect_class": "unkeyed_write", "arguments": '{"m": "2026-02"}'}
    first = agent.claim(**report, worker="w1", delivery_count=1).claim
    told = []
    for worker, delivery_count in (("w2", 2), ("w3", 3)):
        for _ in range(4):
            pass_time(seconds=70)
            beat = agent.post(f"claims/{first['claim_id']}/heartbeat", {"fence": 1})
            assert beat.json["word"] == "ok"
        told.append(agent.claim(**report, worker=worker, delivery_count=delivery_count))

    assert [answer.code for answer in told] == ["in_flight", "in_flight"]
    assert all(int(answer.headers["Retry-After"]) <= 90 for answer in told)
    done = agent.post(
        f"claims/{first['claim_id']}/complete", {"fence": 1, "result": '{"rows": 10}'}
    )
    assert done.claim["state"] == "completed"
    claim = claim_by_key(shop.pk, first["claim_id"])
    assert len(attempts(claim)) == 1
    granted = events(claim)[0].data
    assert granted is not None
    assert (granted["worker"], granted["delivery_count"]) == ("w1", 1)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        pytest.param(OperationalError("gone"), 503, "ledger_unavailable", id="lost"),
        pytest.param(InterfaceError("closed"), 503, "ledger_unavailable", id="closed"),
        pytest.param(
            psycopg.errors.DeadlockDetected("again"), 503, "ledger_unavailable", id="lost a race"
        ),
        pytest.param(DataError("sk_live_secret"), 500, "internal_error", id="a statement of ours"),
        pytest.param(RuntimeError("sk_live_secret"), 500, "internal_error", id="unforeseen"),
        pytest.param(Http404("x"), 404, "no_such_endpoint", id="no page"),
        pytest.param(StaleFence(), 409, "stale_fence", id="a problem as it is"),
        pytest.param(Refused("nul", "It holds U+0000."), 422, "arguments_refused", id="refused"),
    ],
)
def test_every_exception_is_a_problem_and_tells_nothing_of_its_text(error, status, code):
    response = refused(problem_of(error))

    assert response.status_code == status
    assert f'"code":"{code}"'.encode() in response.content
    assert b"sk_live" not in response.content
    assert ("Retry-After" in response) == (status == 503)
