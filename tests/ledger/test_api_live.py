"""The API as a real process: many agents at once, waiting, a lost database, hostile bodies."""

import http.client
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effects.core.messages import ClaimRequest, Complete, Unknown
from effects.core.vocabulary import Outcome, Verdict
from effects.local.stack import API_THREADS
from effects.models import Workspace
from ledger import append, auth, queries
from ledger.append import NewDecision
from ledger.models import Claim, Event
from ledger.waiting import WAITERS_MAX
from tests import settings as test_settings
from tests.ledger.conftest import EVERYTHING
from tests.support import stack
from tests.support.agents import Agent, asked, through
from tests.support.cut import line_to

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def remote(live_api, shop, refund):
    """An agent that speaks to a real process."""
    _, plain = auth.issue(shop, "remote", EVERYTHING, user=None)
    return Agent(token=plain, send=through(live_api))


def decide_at_once(shop: Workspace, claim_id: str, verdict: Verdict, person: User) -> None:
    claim = queries.claim(shop.pk, UUID(claim_id))
    decision = NewDecision(
        verdict=verdict,
        claim_version=claim.version,
        reason="seen in the dashboard",
        user_id=person.pk,
        hold_seconds=0,
    )
    append.decide(shop.pk, claim.pk, decision)


# Many at once


@pytest.mark.case("X04")
def test_fifty_equal_requests_get_one_grant(remote):
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: remote.claim(), range(50)))

    assert Counter(answer.code for answer in answers) == {"granted": 1, "in_flight": 49}
    assert len({answer.claim["claim_id"] for answer in answers}) == 1
    assert Claim.objects.count() == 1


def test_many_turns_with_one_content_get_one_grant(remote):
    def ask(turn):
        return remote.claim(turn_index=turn, call_id=f"call_{turn:024}", response_id=f"r{turn}")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))

    assert Counter(answer.code for answer in answers) == {"granted": 1, "held": 19}


def test_equal_reports_at_once_are_one_fact(remote):
    claim_id = remote.claim().claim["claim_id"]
    body = {"fence": 1, "result": '{"id": "re_1"}', "provider_object": "re_1"}

    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: remote.post(f"claims/{claim_id}/complete", body), range(16))
        )

    assert {(answer.status, answer.claim["state"]) for answer in answers} == {(200, "completed")}
    assert Event.objects.filter(claim_id=claim_id, kind="reported").count() == 1


# Waiting


def test_a_waiting_agent_is_told_as_soon_as_a_decision_takes_effect(remote, shop, person):
    claim_id = remote.claim().claim["claim_id"]
    append.report(shop.pk, UUID(claim_id), Outcome.UNKNOWN, Unknown(fence=1))
    with ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        waiting = pool.submit(remote.get, f"claims/{claim_id}/wait?seconds=30")
        time.sleep(1)
        assert not waiting.done()
        decide_at_once(shop, claim_id, Verdict.CLOSE, person)
        answer = waiting.result(timeout=10)

    assert 1 < time.monotonic() - started < 5
    assert answer.status == 200
    assert answer.claim["state"] == "closed"
    assert answer.claim["decision"]["verdict"] == "close"
    assert answer.claim["for_model"]["status"] == "unknown_do_not_retry"


def test_a_release_wakes_the_agent_that_may_now_claim_again(remote, shop, person):
    claim_id = remote.claim().claim["claim_id"]
    append.report(shop.pk, UUID(claim_id), Outcome.UNKNOWN, Unknown(fence=1))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(remote.get, f"claims/{claim_id}/wait?seconds=30")
        time.sleep(0.5)
        decide_at_once(shop, claim_id, Verdict.RELEASE_SAME, person)
        answer = waiting.result(timeout=10)

    assert answer.claim["state"] == "released"
    assert remote.claim().code == "granted"


def test_waiting_ends_in_time_when_nothing_happens(remote):
    claim_id = remote.claim().claim["claim_id"]

    started = time.monotonic()
    answer = remote.get(f"claims/{claim_id}/wait?seconds=1")

    assert 0.9 < time.monotonic() - started < 3
    assert answer.claim["state"] == "in_flight"


def test_any_change_is_news_to_who_names_the_version_seen(remote, shop):
    claim = remote.claim().claim
    seen = remote.get(f"claims/{claim['claim_id']}").headers["ETag"].strip('"')
    append.sent(shop.pk, UUID(claim["claim_id"]), 1)

    started = time.monotonic()
    answer = remote.get(f"claims/{claim['claim_id']}/wait?seconds=30&version={seen}")

    assert time.monotonic() - started < 5
    assert int(answer.headers["ETag"].strip('"')) == int(seen) + 1
    assert answer.claim["state"] == "in_flight"


def test_waiting_agents_hold_no_connection_and_do_not_stop_a_claim(remote, shop):
    claim_ids = [
        remote.claim(turn_index=turn, call_id=None, arguments=f'{{"n": {turn}}}').claim["claim_id"]
        for turn in range(16)
    ]
    with ThreadPoolExecutor(16) as pool:
        # Each of the door's threads that has served a request keeps its connection for the next.
        list(pool.map(lambda c: remote.get(f"claims/{c}"), claim_ids))
        before, _ = connections()
        waiting = [pool.submit(remote.get, f"claims/{c}/wait?seconds=20") for c in claim_ids]
        time.sleep(1.5)
        during, idle_in_transaction = connections()
        started = time.monotonic()
        assert remote.claim(turn_index=99, arguments='{"n": 99}').status == 201
        assert time.monotonic() - started < 1
        for claim_id in claim_ids:
            append.report(shop.pk, UUID(claim_id), Outcome.COMPLETED, Complete(fence=1, result="1"))
        answers = [future.result(timeout=15) for future in waiting]

    assert {answer.claim["state"] for answer in answers} == {"completed"}
    assert idle_in_transaction == 0
    # How many threads of the door had served before is chance; sixteen agents wait in any case.
    assert during <= max(4, before - 12), "all but a few threads gave theirs back"


def connections() -> tuple[int, int]:
    """How many connections to the database there are, and how many sit in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE state LIKE 'idle in transaction%')"
            " FROM pg_stat_activity WHERE datname = current_database()"
        )
        every, idle = cursor.fetchone()
    return every, idle


def test_one_waiter_too_many_is_answered_at_once_and_told_when_to_come_back(remote):
    claim_id = remote.claim().claim["claim_id"]
    many = WAITERS_MAX + 8
    with ThreadPoolExecutor(many) as pool:
        waiting = [
            pool.submit(remote.get, f"claims/{claim_id}/wait?seconds=4") for _ in range(many)
        ]
        answers = [future.result(timeout=30) for future in waiting]

    told_to_come_back = [a for a in answers if a.headers["Retry-After"] == "5"]
    assert len(told_to_come_back) == 8
    assert {answer.status for answer in answers} == {200}


def test_the_doors_threads_outnumber_those_that_may_wait():
    assert WAITERS_MAX <= API_THREADS * 2 // 3


# A lost database


@pytest.fixture(scope="module")
def door_on_a_line(process_env):
    """A real process whose line to the database can be cut, and that line."""
    address = urlsplit(process_env["DATABASE_URL"])
    with line_to(address.port) as line:
        host = address.netloc.rpartition("@")[0] + f"@127.0.0.1:{line.port}"
        env = {**process_env, "DATABASE_URL": urlunsplit(address._replace(netloc=host))}
        url, program = stack.door("api", "wsgi", "effects.wsgi:application", env=env)
        with stack.running(program, log=test_settings.TEST_VAR / "cut-api.log"):
            yield url, line


@pytest.fixture
def fragile(door_on_a_line, shop, refund):
    """An agent that speaks to that process, and the line."""
    url, line = door_on_a_line
    _, plain = auth.issue(shop, "remote", EVERYTHING, user=None)
    yield Agent(token=plain, send=through(url)), line
    line.mend()


def test_a_lost_database_is_a_503_and_comes_back_by_itself(fragile):
    agent, line = fragile
    claim_id = agent.claim().claim["claim_id"]
    report = {"fence": 1, "result": "1"}

    line.cut()
    answers = [
        agent.claim(),
        agent.get(f"claims/{claim_id}"),
        agent.get(f"claims/{claim_id}/wait?seconds=5"),
        agent.post(f"claims/{claim_id}/complete", report),
    ]
    for answer in answers:
        assert (answer.status, answer.code) == (503, "ledger_unavailable"), answer.body
        assert int(answer.headers["Retry-After"]) > 0
        assert "nothing is permitted" in answer.json["detail"]

    line.mend()
    assert agent.post(f"claims/{claim_id}/complete", report).status == 200


def test_a_database_that_restarted_between_two_requests_is_not_noticed(fragile):
    agent, line = fragile
    claim_id = agent.claim().claim["claim_id"]
    with ThreadPoolExecutor(12) as pool:
        # So many at once that threads with a connection of before are asked again afterwards.
        list(pool.map(lambda _: agent.get(f"claims/{claim_id}"), range(60)))
        line.cut()
        line.mend()
        after = list(pool.map(lambda _: agent.get(f"claims/{claim_id}"), range(60)))

    assert Counter(answer.status for answer in after) == {200: 60}


def test_a_database_lost_while_an_agent_waits_is_told_to_it(fragile):
    agent, line = fragile
    claim_id = agent.claim().claim["claim_id"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(agent.get, f"claims/{claim_id}/wait?seconds=30")
        time.sleep(1)
        line.cut()
        answer = waiting.result(timeout=10)

    assert (answer.status, answer.code) == (503, "ledger_unavailable")


# Hostile bodies


def _bodies() -> st.SearchStrategy[bytes]:
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
    fields = st.dictionaries(
        st.sampled_from(sorted(ClaimRequest.model_fields)), anything | st.text(), max_size=4
    )
    near_misses = fields.map(lambda changes: json.dumps(asked() | changes).encode())
    arguments = st.one_of(
        st.text(),
        anything.map(json.dumps),
        st.sampled_from(["{", '{"a":1e999}', '"{}"', "1" * 5000]),
    )
    odd_arguments = arguments.map(lambda text: json.dumps(asked(arguments=text)).encode())
    return st.one_of(
        st.binary(max_size=200),
        anything.map(json.dumps).map(str.encode),
        near_misses,
        odd_arguments,
    )


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=_bodies())
def test_no_body_is_a_fault_of_the_server(remote, body):
    answer = remote.post("claims", body)

    assert answer.status < 500, (body, answer.body)
    assert answer.json is not None
    if answer.status >= 400:
        assert answer.code
        assert answer.headers["Content-Type"] == "application/problem+json"


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    verb=st.sampled_from(["sent", "heartbeat", "complete", "fail", "unknown"]),
    changes=st.dictionaries(
        st.sampled_from(
            ["fence", "result", "proof", "error", "provider_object", "http_status", "request_id"]
        ),
        st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["not_sent", 1]),
        max_size=4,
    ),
)
def test_no_report_is_a_fault_of_the_server(remote, verb, changes):
    claim_id = remote.claim().claim["claim_id"]

    answer = remote.post(f"claims/{claim_id}/{verb}", {"fence": 1} | changes)

    assert answer.status < 500, (verb, changes, answer.body)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=st.binary(max_size=60))
def test_no_name_of_a_claim_is_a_fault_of_the_server(remote, name):
    escaped = "".join(f"%{byte:02X}" for byte in name)

    for path in (f"claims/x{escaped}", f"claims?key={escaped}", f"claims/{escaped}/wait?seconds=0"):
        assert remote.get(path).status < 500, path


def test_a_body_that_ends_early_and_one_without_a_length_are_refused(remote, live_api):
    address = urlsplit(live_api)
    head = {"Authorization": f"Bearer {remote.token}", "Content-Type": "application/json"}
    chunked = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    body = json.dumps(asked()).encode()
    chunked.request("POST", "/api/v1/claims", iter([body]), head, encode_chunked=True)
    response = chunked.getresponse()
    told = json.loads(response.read())
    chunked.close()

    assert (response.status, told["code"]) == (411, "length_required")
    assert Claim.objects.count() == 0
