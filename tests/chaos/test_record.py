"""Faults of the api door, of PostgreSQL and of the clock, met by real agents.

After each of them nothing that was acknowledged is lost, nothing is doubled, no attempt was
permitted twice, and the record is what its own events say.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import DatabaseError, connections

from effects.client import Ledger, Patience, ToolCall
from effects.client.asking import Asked, claim_request
from effects.client.call import Call
from effects.client.effect_result import Effect
from effects.client.transport_http import HttpTransport, Timeouts
from effects.core.messages import Complete
from effects.core.problems import Stale
from effects.core.vocabulary import ClaimState, EffectClass, EventKind, Outcome, Verdict
from effects.local.service import Service
from ledger import append
from ledger.functions import call
from ledger.models import Claim, Decision, Event
from reconcile.sandbox.jobs import Mishap
from reconcile.sandbox.tools import ToolName
from tests.chaos import place as places
from tests.chaos.cells import cell
from tests.chaos.load import Load, load
from tests.chaos.place import Place, eventually, through
from tests.races.actors import Stage
from tests.support.agents import Agent, asked
from tests.support.agents import through as agent_through
from tests.support.cut import Line, line_to

S = ClaimState
LEASE_SECONDS = 60
LOAD_SECONDS = 1.0
HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Doors:
    """The api's process, and a line to it that can be cut."""

    api: Service
    line: Line


@pytest.fixture(scope="module")
def doors(place: Place) -> Iterator[Doors]:
    api = place.an_api()
    with line_to(int(place.api_url.rsplit(":", 1)[1])) as line:
        yield Doors(api=api, line=line)


@pytest.fixture
def stage(doors: Doors, stage: Stage) -> Iterator[Stage]:
    """The stage, with the api open before and the record sound afterwards."""
    yield stage
    assert places.unsound() == []


def an_agent(stage: Stage, url: str) -> Agent:
    return Agent(token=stage.world.token, send=agent_through(url))


def a_request(nonce: str = "a", **changes: Any) -> dict[str, Any]:
    return asked(tool="charge_card", nonce=nonce * 32, **changes)


def a_ledger(stage: Stage, url: str, *, answer_seconds: float = 10.0, tries: int = 3) -> Ledger:
    timeouts = Timeouts(answer_seconds=answer_seconds)
    return Ledger(
        transport=HttpTransport(url, stage.world.token, timeouts=timeouts),
        patience=Patience(claim_tries_max=tries, report_tries_max=tries),
    )


def begin(ledger: Ledger) -> Call | Effect:
    """One call of the model, as a worker asks for it; each worker has a nonce of its own."""
    request = claim_request(
        tool=ToolName.CHARGE_CARD,
        effect_class=EffectClass.KEYED_WRITE,
        arguments='{"amount": 100, "order": "8841"}',
        at=ToolCall(conversation="c-1", turn_index=1, call_id="toolu_aaaaaaaaaaaaaaaa"),
    )
    return ledger.begin(Asked(request=request))


def grants(stage: Stage) -> int:
    return Event.objects.filter(claim__workspace=stage.workspace, kind=EventKind.GRANTED).count()


@cell("api", "kill -9", "claim executed, answer not read", "asked again: the one grant, or unknown")
def test_an_api_that_dies_after_the_commit_has_granted_once(stage: Stage, doors: Doors) -> None:
    doors.line.drop_next_answer(then=doors.api.kill)
    with pytest.raises(OSError):
        an_agent(stage, doors.line.url).claim(**a_request())
    doors.api.start()

    agent = an_agent(stage, doors.line.url)
    assert agent.claim(**a_request()).code == "granted_again"
    assert agent.claim(**a_request(nonce="b")).code == "in_flight"
    stage.time_passes(LEASE_SECONDS)
    assert agent.claim(**a_request()).code == "unknown"
    assert (grants(stage), stage.claim.fence, stage.state()) == (1, 1, S.UNKNOWN)


@cell("api", "SIGSTOP", "before claim", "the client's deadline; the grant is made at most once")
def test_a_hung_api_gets_no_second_chance_to_grant(stage: Stage, doors: Doors) -> None:
    doors.api.send(signal.SIGSTOP)
    try:
        with a_ledger(stage, doors.line.url, answer_seconds=0.3, tries=2) as ledger:
            told = begin(ledger)
    finally:
        doors.api.send(signal.SIGCONT)
    assert isinstance(told, Effect)
    assert (told.status, told.nothing_sent) == ("ledger_unavailable", True)

    # What was asked of the hung process is carried out when it wakes: the row is there, or not yet.
    with a_ledger(stage, doors.line.url) as ledger:
        later = eventually(
            lambda: begin(ledger), lambda told: isinstance(told, Effect), "the claim is there"
        )
    assert isinstance(later, Effect)
    assert later.status == "in_flight"
    assert grants(stage) == 1


@cell("line", "answer cut after commit", "claim executed, answer not read", "the same grant again")
def test_a_grant_whose_answer_was_cut_is_given_again(stage: Stage, doors: Doors) -> None:
    with a_ledger(stage, doors.line.url) as ledger:
        doors.line.drop_next_answer()
        told = begin(ledger)
        assert isinstance(told, Call)
        assert told.answer.code == "granted_again"
        told.complete({"id": "pi_1"})
    assert (grants(stage), stage.claim.fence, stage.state()) == (1, 1, S.COMPLETED)


@cell("line", "answer cut after commit", "settle executed, answer not read", "one report is kept")
def test_a_report_whose_answer_was_cut_counts_once(stage: Stage, doors: Doors) -> None:
    with a_ledger(stage, doors.line.url) as ledger:
        told = begin(ledger)
        assert isinstance(told, Call)
        doors.line.drop_next_answer()
        assert told.complete({"id": "pi_1"}).status == "completed"
    assert doors.line.answers_dropped
    reported = Event.objects.filter(claim=stage.claim.pk, kind=EventKind.REPORTED)
    assert (reported.count(), stage.state()) == (1, S.COMPLETED)


@cell("line", "answer cut after commit", "during decide", "one decision; the second try is stale")
def test_a_decision_whose_answer_was_cut_is_there_once(stage: Stage, place: Place) -> None:
    claim = an_unknown_claim(stage)
    with line_to(place.cluster.port) as line, through(line.port):
        warm(stage)
        line.drop_next_answer()
        with pytest.raises(DatabaseError):
            a_release(stage, claim)
        with pytest.raises(Stale):
            a_release(stage, claim)
    assert Decision.objects.filter(claim=claim.pk).count() == 1


def an_unknown_claim(stage: Stage) -> Claim:
    stage.deliver(mishap=Mishap.KILLED_BEFORE_SEND).await_end()
    stage.time_passes(LEASE_SECONDS)
    assert stage.state() is S.UNKNOWN
    return stage.claim


def a_release(stage: Stage, claim: Claim, *, hold_seconds: int = 60) -> append.DecisionHeld:
    decision = append.NewDecision(
        verdict=Verdict.RELEASE_SAME,
        claim_version=claim.version,
        reason="the customer is waiting",
        user_id=stage.person.pk,
        hold_seconds=hold_seconds,
    )
    return append.decide(stage.workspace.pk, claim.pk, decision)


def warm(stage: Stage) -> None:
    """Let the statement be known to the connection's server, so that its next answer is the last:
    a decision about a version that never was is refused and changes nothing."""
    with pytest.raises(Stale):
        a_release(stage, Claim(pk=stage.claim.pk, version=-1))


@cell("PostgreSQL", "kill -9, group", "during decide", "a held decision takes effect, once")
def test_a_held_decision_outlives_the_database(stage: Stage, place: Place) -> None:
    claim = an_unknown_claim(stage)
    a_release(stage, claim)
    place.postgres.kill()
    place.restart_postgres()
    assert stage.state() is S.UNKNOWN
    stage.time_passes(61)
    assert stage.state() is S.RELEASED
    assert Event.objects.filter(claim=claim.pk, kind=EventKind.DECIDED).count() == 1


@cell("PostgreSQL", "kill -9, group", "settle executed, answer not read", "told again: one report")
def test_a_report_that_the_database_died_after_is_there(stage: Stage, place: Place) -> None:
    agent = an_agent(stage, place.api_url)
    told = agent.claim(**a_request()).json
    report = Complete(fence=told["fence"], provider_object="pi_1")
    with line_to(place.cluster.port) as line, through(line.port):
        for _ in range(2):  # The second time the connection knows the statement.
            append.heartbeat(stage.workspace.pk, told["claim_id"], told["fence"])
        with pytest.raises(DatabaseError):
            reported_while(line, place, stage, told["claim_id"], report)
    place.restart_postgres()
    settle = (stage.workspace.pk, told["claim_id"], Outcome.COMPLETED, report)
    assert append.report(*settle) is S.COMPLETED
    reported = Event.objects.filter(claim=stage.claim.pk, kind=EventKind.REPORTED)
    assert (reported.count(), stage.claim.object) == (1, "pi_1")


def reported_while(line: Line, place: Place, stage: Stage, claim_id: Any, report: Complete) -> None:
    """Report twice; the second answer is cut, and the database dies with it."""
    append.report(stage.workspace.pk, claim_id, Outcome.COMPLETED, report)
    line.drop_next_answer(then=place.postgres.kill)
    append.report(stage.workspace.pk, claim_id, Outcome.COMPLETED, report)


@cell("PostgreSQL", "stopped", "before claim", "503 and Retry-After; nothing granted, nothing sent")
def test_without_a_database_nothing_is_granted_and_nothing_sent(stage: Stage, place: Place) -> None:
    agent = an_agent(stage, place.api_url)
    agent.claim(**a_request(conversation="another"))  # the api has a connection to lose
    place.postgres.stop()
    try:
        refused = [agent.claim(**a_request()) for _ in range(3)]
        told = stage.redeliver().last
    finally:
        place.restart_postgres()
    assert [(r.status, r.code) for r in refused] == [(503, "ledger_unavailable")] * 3
    assert all(int(r.headers["Retry-After"]) > 0 for r in refused)
    assert told is not None
    assert (told.status, stage.effects()) == ("ledger_unavailable", [])
    back = eventually(
        lambda: agent.claim(**a_request()), lambda answer: answer.status != 503, "it grants again"
    )
    assert back.code == "granted"


@cell("PostgreSQL", "SIGSTOP", "before claim", "the client's deadline; asked again: one grant")
def test_a_hung_database_grants_at_most_once(stage: Stage, place: Place) -> None:
    place.postgres.send(signal.SIGSTOP)
    try:
        with a_ledger(stage, place.api_url, answer_seconds=0.5, tries=2) as ledger:
            told = begin(ledger)
    finally:
        place.postgres.send(signal.SIGCONT)
    assert isinstance(told, Effect)
    assert (told.status, told.nothing_sent) == ("ledger_unavailable", True)
    with a_ledger(stage, place.api_url) as ledger:
        later = eventually(
            lambda: begin(ledger), lambda told: isinstance(told, Effect), "the claim is there"
        )
    assert isinstance(later, Effect)
    assert (later.status, grants(stage)) == ("in_flight", 1)


def _backends_of_others() -> list[tuple[int]]:
    return call(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        [],
    )


def kill_a_backend(place: Place, doors: Doors) -> None:
    """PostgreSQL then ends all others, recovers, and goes on by itself. One of the api's: those of
    other kinds come and go."""
    eventually(_kill_one_of_others, bool, "the api has a backend")
    connections.close_all()


def _kill_one_of_others() -> bool:
    """One that ends by itself between the look and the kill is none of ours to kill."""
    for (pid,) in _backends_of_others():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def kill_the_database(place: Place, doors: Doors) -> None:
    place.postgres.kill()
    time.sleep(0.5)
    place.restart_postgres()


def kill_the_postmaster(place: Place, doors: Doors) -> None:
    place.postgres.send_first(signal.SIGKILL)
    place.postgres.kill()
    place.restart_postgres()


def restart_immediately(place: Place, doors: Doors) -> None:
    """What `pg_ctl restart -m immediate` does: no checkpoint, recovery at the next start."""
    place.postgres.send_first(signal.SIGQUIT)
    place.postgres.kill()
    place.restart_postgres()


def lose_power(place: Place, doors: Doors) -> None:
    doors.api.kill()
    place.postgres.kill()
    place.restart_postgres()
    doors.api.start()


def kill_the_api(place: Place, doors: Doors) -> None:
    doors.api.kill()
    doors.api.start()


def end_the_api(place: Place, doors: Doors) -> None:
    doors.api.stop()
    doors.api.start()


NOTHING_LOST = "acknowledged and lost 0, granted twice 0, never a 500"


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(
            kill_a_backend, marks=cell("PostgreSQL", "kill -9, backend", "load", NOTHING_LOST)
        ),
        pytest.param(
            kill_the_database, marks=cell("PostgreSQL", "kill -9, group", "load", NOTHING_LOST)
        ),
        pytest.param(
            kill_the_postmaster,
            marks=cell("PostgreSQL", "kill -9, postmaster", "load", NOTHING_LOST),
        ),
        pytest.param(
            restart_immediately, marks=cell("PostgreSQL", "immediate restart", "load", NOTHING_LOST)
        ),
        pytest.param(kill_the_api, marks=cell("api", "kill -9", "load", NOTHING_LOST)),
        pytest.param(end_the_api, marks=cell("api", "SIGTERM", "load", NOTHING_LOST)),
        pytest.param(lose_power, marks=cell("all", "kill -9", "load", NOTHING_LOST)),
    ],
)
def test_under_load_nothing_is_lost_and_nothing_doubled(
    stage: Stage, place: Place, doors: Doors, break_it: Any
) -> None:
    with load(place.api_url, stage.world.token) as heard:
        time.sleep(LOAD_SECONDS)
        before = len(heard.settled)
        break_it(place, doors)
        broken_at = len(heard.settled)
        eventually(lambda: len(heard.settled), lambda n: n > broken_at + 20, "work goes on")
    assert before > 0
    assert_kept(stage, heard)


def assert_kept(stage: Stage, heard: Load) -> None:
    claims = {c.conversation: c for c in Claim.objects.filter(workspace=stage.workspace)}
    lost = [name for name in heard.settled if claims[name].state != S.COMPLETED]
    other = [
        name
        for name, (claim_id, fence) in heard.granted.items()
        if (str(claims[name].pk), claims[name].fence) != (claim_id, fence)
    ]
    assert (lost, other, heard.strange, heard.without_retry_after) == ([], [], [], [])
    assert {claim.fence for claim in claims.values()} == {1}
    assert grants(stage) == len(claims)


@cell("PostgreSQL", "clock +25 h", "sent, before answer", "unknown, never a grant; late truth kept")
def test_a_clock_that_leaps_forward_ends_leases_and_grants_nothing(
    stage: Stage, place: Place
) -> None:
    agent = an_agent(stage, place.api_url)
    told = agent.claim(**a_request()).json
    stage.clock.advance(25 * HOUR)
    assert agent.claim(**a_request(nonce="b")).code == "unknown"
    assert (stage.state(), grants(stage)) == (S.UNKNOWN, 1)
    agent.post(f"claims/{told['claim_id']}/complete", {"fence": 1, "provider_object": "pi_1"})
    assert stage.state() is S.COMPLETED


@cell("PostgreSQL", "clock -2 h", "sent, before answer", "no grant, no early end of a lease")
def test_a_clock_that_goes_back_grants_nothing(stage: Stage, place: Place) -> None:
    agent = an_agent(stage, place.api_url)
    agent.claim(**a_request())
    stage.clock.advance(LEASE_SECONDS)
    assert agent.claim(**a_request(nonce="b")).code == "unknown"
    stage.clock.advance(-2 * HOUR)
    assert agent.claim(**a_request(nonce="c")).code == "unknown"
    assert (stage.state(), grants(stage)) == (S.UNKNOWN, 1)


@cell(
    "PostgreSQL", "clock -2 h", "granted, before send", "in flight, and the grant is not repeated"
)
def test_a_lease_in_a_clock_that_goes_back_is_not_granted_twice(stage: Stage, place: Place) -> None:
    agent = an_agent(stage, place.api_url)
    agent.claim(**a_request())
    stage.clock.advance(-2 * HOUR)
    assert agent.claim(**a_request(nonce="b")).code == "in_flight"
    assert (stage.state(), grants(stage)) == (S.IN_FLIGHT, 1)
