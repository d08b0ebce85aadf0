"""The way straight to PostgreSQL: its connections, its limits of time, its answers."""

from __future__ import annotations

import io
import os
import socket
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from effects.client import Ledger, Timeouts
from effects.client.transport_postgres import PostgresTransport
from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Fail, Unknown
from effects.core.problems import (
    ArgumentsRefused,
    LedgerBehind,
    LedgerUnavailable,
    TokenRefused,
)
from effects.core.vocabulary import AnswerCode, EffectClass, Outcome, Verdict
from effects.models import Tool, Workspace
from ledger import agents, append, asked_again, claiming, queries, restore_fence
from ledger.append import NewDecision
from ledger.models import Claim, Due
from tests.effects.faulty_server import FaultyServer, faulty
from tests.support.clock import ShiftedClock


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    Tool.objects.create(
        workspace=made, name="pay", effect_class=EffectClass.KEYED_WRITE, window_seconds=86_400
    )
    return made


@pytest.fixture
def url(shop: Workspace) -> str:
    return agents.create(shop, "an agent").url


@pytest.fixture
def agent(url: str) -> Iterator[PostgresTransport]:
    transport = PostgresTransport(url, connections_max=3)
    yield transport
    transport.close()


def asked(turn: int = 0, **more: Any) -> ClaimRequest:
    usual: dict[str, Any] = {
        "tool": "pay",
        "effect_class": EffectClass.KEYED_WRITE,
        "arguments": '{"amount": 1, "order": "8841"}',
        "conversation": f"c-{turn}",
        "turn_index": turn,
        "nonce": uuid4().hex,
    }
    return ClaimRequest(**(usual | more))


def granted(agent: PostgresTransport, turn: int = 0) -> UUID:
    answer = agent.claim(asked(turn))
    assert answer.code is AnswerCode.GRANTED
    assert answer.claim_id
    return answer.claim_id


def sql(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def sessions(url: str) -> list[Any]:
    role = urlsplit(url).username or ""
    return sql("SELECT pid FROM pg_stat_activity WHERE usename = %s", role)


# Connections


def test_a_claim_that_is_refused_enters_no_tool(agent):
    with pytest.raises(ArgumentsRefused):
        agent.claim(asked(tool="never_heard_of", arguments='{"amount": NaN}'))
    assert [tool.name for tool in Tool.objects.all()] == ["pay"]


def test_connections_are_shared_and_never_more_than_allowed(agent, url):
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda turn: agent.claim(asked(turn)).code, range(40)))
    assert set(codes) == {AnswerCode.GRANTED}
    assert 1 <= len(sessions(url)) <= 3
    agent.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        agent.claim(asked())


def test_a_connection_that_ended_is_replaced_and_takes_the_others_with_it(agent, url, monkeypatch):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda turn: granted(agent, turn), range(30)))
    for (pid,) in sessions(url):
        sql("SELECT pg_terminate_backend(%s, 5000)", pid)
    with pytest.raises(LedgerUnavailable):
        agent.claim(asked(100))
    granted(agent, 101)

    # One that was idle for a while is looked at first, so that not even one question is lost.
    monkeypatch.setattr("effects.client.postgres_link.IDLE_SECONDS_TRUSTED", 0.0)
    for (pid,) in sessions(url):
        sql("SELECT pg_terminate_backend(%s, 5000)", pid)
    granted(agent, 102)


def test_a_forked_child_opens_its_own_connection_and_leaves_the_parents_alone(agent, url):
    granted(agent)
    (mine,) = sessions(url)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # The tests have threads of their own.
        child = os.fork()
    if child == 0:
        try:
            granted(agent, 1)
            os.write(writing, str(agent._links._idle[-1]._pgconn.backend_pid).encode())  # noqa: SLF001 - which session it used
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    theirs = int(os.read(reading, 100))
    assert status == 0
    os.close(reading)
    os.close(writing)
    granted(agent, 2)
    assert mine in sessions(url)
    assert (theirs,) != mine


def test_a_pooler_that_knows_no_prepared_statements_is_noticed_and_served(agent):
    granted(agent)
    (link,) = agent._links._idle  # noqa: SLF001 - the session behind the transport
    link._connection.execute("DEALLOCATE ALL")  # noqa: SLF001 - as if it were another session
    claim = granted(agent, 1)
    assert agent.report(claim, Complete(fence=1, result="1")).state == "completed"
    assert link._connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (  # noqa: SLF001 - the same
        0,
    )


def silent(server: FaultyServer, held: socket.socket) -> None:
    held.recv(65_536)
    server.over.wait(20)


def test_a_server_that_says_nothing_is_unavailable_in_time(url, shop):
    host = url.split("@")[1].split("/")[0]
    quick = Timeouts(connect_seconds=1, answer_seconds=0.3)
    with faulty(silent) as server:
        transport = PostgresTransport(url.replace(host, f"127.0.0.1:{server.port}"), timeouts=quick)
        begun = time.monotonic()
        with pytest.raises(LedgerUnavailable) as away:
            transport.claim(asked())
        assert time.monotonic() - begun < 4
        assert (urlsplit(url).password or "x") not in str(away.value)
    # And one that stops in the middle: the statement waits for a row, and its asker does not.
    transport = PostgresTransport(url, timeouts=quick)
    claim = granted(transport)
    with psycopg.connect(superuser_url(), autocommit=False) as other:
        other.execute("SELECT FROM ledger_claim WHERE id = %s FOR UPDATE", [claim])
        begun = time.monotonic()
        with pytest.raises(LedgerUnavailable):
            transport.report(claim, Complete(fence=1, result="1"))
        assert time.monotonic() - begun < 2
    told = transport.report(claim, Complete(fence=1, result="1"))
    assert told.state == "completed"
    transport.close()


def superuser_url() -> str:
    known = connection.settings_dict
    where = f"{known['HOST']}:{known['PORT']}/{known['NAME']}"
    return f"postgresql://{known['USER']}:{known['PASSWORD']}@{where}"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_an_address_of_postgresql_needs_no_token_and_its_password_stays_inside(url, scheme):
    url = url.replace("postgresql", scheme, 1)
    password = urlsplit(url).password or ""
    with Ledger(url) as ledger:
        assert password not in f"{ledger._transport!r}"  # noqa: SLF001 - what a log would show
    for broken in (
        url + "?port=x&sslmode=",
        url.replace("@", "@@:"),
        url + "?nonsense=" + password,
    ):
        with pytest.raises((ValueError, LedgerUnavailable, TokenRefused)) as wrong:
            PostgresTransport(broken).status("x")
        assert password not in f"{wrong.value!r} {wrong.value.__cause__!r}"
    asked_for = iter([password])
    named = PostgresTransport(url.replace(f":{password}", ""), password=lambda: next(asked_for))
    granted(named)
    granted(named, 1)
    assert not list(asked_for)
    named.close()


# Answers


def test_a_status_is_the_same_over_both_ways_whatever_happened(agent, shop, django_user_model):
    person = django_user_model.objects.create_user("ada")
    clock = ShiftedClock()
    try:
        turns = iter(range(100))
        claims = {name: granted(agent, next(turns)) for name in NAMES}
        large = '"' + "x" * 5000 + '"'
        agent.report(claims["completed"], Complete(fence=1, result="1", provider_object="pi_1"))
        agent.report(claims["large"], Complete(fence=1, result=large))
        agent.report(claims["not stored"], Complete(fence=1, result="x"))
        agent.report(claims["refused"], Fail(fence=1, proof=Outcome.REFUSED))
        for name in ("unknown", "held", "decided", "closed", "released", "due"):
            agent.report(claims[name], Unknown(fence=1, error="cut"))
        decisions = {"held": 60, "decided": 0, "closed": 0, "released": 0, "due": 30}
        verdicts = {"closed": Verdict.CLOSE, "released": Verdict.RELEASE_SAME}
        for name, hold_seconds in decisions.items():
            found = queries.claim(shop.pk, claims[name])
            append.decide(
                shop.pk,
                found.pk,
                NewDecision(
                    verdict=verdicts.get(name, Verdict.HAPPENED),
                    claim_version=found.version,
                    reason="seen",
                    user_id=person.pk,
                    hold_seconds=hold_seconds,
                    provider_object="pi_7" if name == "due" else None,
                ),
            )
        due = claims.pop("due")
        for seconds in (0, 31, 100, 4000):
            clock.advance(seconds)
            for name, claim in claims.items():
                assert seen(agent.status(str(claim))) == seen(queries.answer(shop.pk, claim)), name
        # A decision whose time has come: it is told as the record will have it, not as it stands.
        told = seen(agent.status(str(due)))
        assert told["provider_object"] == "pi_7"
        append.sweep(100)
        assert told == seen(agent.status(str(due))) == seen(queries.answer(shop.pk, due))
    finally:
        clock.restore()


NAMES = (
    *("in flight", "completed", "large", "not stored", "refused", "unknown", "held", "decided"),
    *("closed", "released", "due"),
)


def seen(answer: ClaimAnswer) -> dict[str, Any]:
    """All but what counts down from now."""
    told = answer.model_dump(exclude={"retry_after_seconds", "for_model"})
    told["told"] = {k: v for k, v in (answer.for_model or {}).items() if k != "next_step"}
    return told


def test_a_tool_that_is_edited_is_compared_by_its_new_rules(agent, shop):
    first = agent.claim(asked(arguments='{"amount": 1, "trace": "a"}'))
    Tool.objects.update(version=2, argument_rules={"volatile": ["trace"]})
    again = agent.claim(asked(1, arguments='{"amount": 1, "trace": "b"}'))
    answers = agent.claim_batch(
        [asked(1, arguments='{"amount": 1, "trace": "c"}'), asked(2, conversation=None)]
    )
    assert first.code is again.code is AnswerCode.GRANTED
    assert isinstance(answers[0], ClaimAnswer)
    assert answers[0].claim_id == again.claim_id
    assert type(answers[1]).__name__ == "NoIdentity"
    assert claiming.claim(shop.pk, asked(1, arguments='{"amount": 1}')).claim_id == again.claim_id


def test_what_the_server_does_after_a_report_is_on_its_work_lists(agent, shop):
    unknown, silent_one = granted(agent, 0), granted(agent, 1)
    agent.report(unknown, Unknown(fence=1))
    due = append.take_due_lookups(10, 60)
    assert [one.claim_id for one in due] == [unknown]
    clock = ShiftedClock()
    try:
        clock.advance(4000)
        append.sweep(100)
        assert Claim.objects.get(pk=silent_one).state == "unknown"
        assert Due.objects.filter(claim_id=silent_one, why="lookup").exists()
    finally:
        clock.restore()


# A database that was set back


@pytest.fixture
def fence(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("COUNTERFOIL_RESTORE_FENCE", "on")
    settings.COUNTERFOIL_VAR = tmp_path


def test_a_ledger_that_was_set_back_grants_an_agent_nothing_and_takes_its_reports(agent, fence):
    restore_fence.refresh()
    running = granted(agent)
    sql("CREATE TEMP TABLE backup AS SELECT * FROM ledger_watermark")
    restore_fence.refresh()
    sql("DELETE FROM ledger_watermark")
    sql("INSERT INTO ledger_watermark SELECT * FROM backup; DROP TABLE backup")

    assert not restore_fence.refresh()
    for ask in (lambda: agent.claim(asked(1)), lambda: agent.claim_batch([asked(2)])):
        with pytest.raises(LedgerBehind, match="accept_restore"):
            ask()
    assert agent.report(running, Complete(fence=1, result="1")).state == "completed"
    assert agent.status(str(running)).state == "completed"

    call_command("accept_restore", "--reason", "compared", stdout=io.StringIO())
    granted(agent, 1)


def test_a_database_that_was_started_or_filled_anew_waits_for_the_worker(agent, fence):
    restore_fence.refresh()
    granted(agent)
    sql("CREATE TEMP TABLE backup AS SELECT * FROM ledger_claim")
    sql("TRUNCATE ledger_claim")
    sql("INSERT INTO ledger_claim SELECT * FROM backup; DROP TABLE backup")
    with pytest.raises(LedgerUnavailable, match="worker") as waiting:
        agent.claim(asked(1))
    assert not isinstance(waiting.value, LedgerBehind), "it is asked again in a moment"
    assert restore_fence.refresh()
    granted(agent, 1)


# The command


def test_the_command_makes_lists_and_closes_roles(shop):
    out, said = io.StringIO(), io.StringIO()
    call_command("agent_role", "--workspace", "shop", "create", "w-1", stdout=out, stderr=said)
    url = out.getvalue().strip()
    with Ledger(url) as ledger:
        assert ledger._transport.claim(asked()).code is AnswerCode.GRANTED  # noqa: SLF001 - its way
    role = urlsplit(url).username or ""
    assert role in said.getvalue()
    listed = io.StringIO()
    call_command("agent_role", "--workspace", "shop", "list", stdout=listed)
    assert f"{role}  w-1  open" in listed.getvalue()
    assert (urlsplit(url).password or "x") not in said.getvalue() + listed.getvalue()
    call_command("agent_role", "--workspace", "shop", "revoke", role, stdout=io.StringIO())
    with pytest.raises(TokenRefused), Ledger(url) as ledger:
        ledger.status("x")
    for wrong in (("revoke", role), ("create", "  ")):
        with pytest.raises(CommandError):
            call_command("agent_role", "--workspace", "shop", *wrong, stdout=io.StringIO())
    elsewhere = agents.create(shop, "x", address="db.internal:6432").url
    assert elsewhere.split("@")[1].startswith("db.internal:6432/")


def test_a_repeat_is_kept_as_evidence_with_the_origin_that_its_agent_tells(
    agent: PostgresTransport, shop: Workspace
) -> None:
    claim_id = granted(agent)
    origin: dict[str, Any] = {
        "agent": "billing",
        "checkpoint": "ck-5",
        "user_spoke": True,
        "delivery_count": 2,
    }
    assert agent.claim(asked(**origin)).code is AnswerCode.IN_FLIGHT
    agent.report(claim_id, Complete(fence=1, result="{}"))
    agent.claim(asked(**origin))
    agent.claim_batch([asked(**origin)])
    seen = asked_again.of_claims(shop.pk, [claim_id])
    assert [str(one.code) for one in seen] == ["in_flight", "replayed", "replayed"]
    assert all(origin.items() <= one.data.items() for one in seen)
