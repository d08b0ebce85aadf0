"""What the SQL adapter lets through, and what a replica's silence is worth, at real servers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from effects.core.vocabulary import SightingWord
from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres, binaries, identity
from effects.local.processes import Program, run_to_end
from reconcile.adapters.base import CLOCK_SKEW_SECONDS, Delay, Look, Place, Probe
from reconcile.adapters.door import Limits, Way, origin_of
from reconcile.adapters.sql import (
    REPLICA_ROUTE,
    ROUTE,
    look_in_database,
    look_in_database_for_many,
)
from reconcile.adapters.sql_config import read_config
from tests import settings as test_settings
from tests.reconcile.adapters.conformance import ours, probe_on, theirs
from tests.reconcile.adapters.conformance_sql import PASSWORD, ROLE, STAGES, SqlRunning
from tests.support import stack

LIST = STAGES[-1]
MINIMAL: dict[str, Any] = {"query": "SELECT 1 AS id WHERE %(key)s <> ''", "map": {"a": "found"}}


@pytest.fixture
def running() -> Iterator[SqlRunning]:
    with LIST.open() as playing:
        yield playing


def look_with(running: SqlRunning, query: str, **changes: Any) -> Look:
    probe = probe_on(LIST, running)
    config = {**LIST.config, "query": query, **changes}
    return look_in_database(replace(probe, config=config))


# What goes through


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM public.stage_payments WHERE %(key)s <> '' RETURNING *",
        "SELECT 1 WHERE %(key)s <> ''; DELETE FROM public.stage_payments",
        "SELECT 1 WHERE %(key)s <> '') AS a; DELETE FROM public.stage_payments; --",
        "WITH gone AS (DELETE FROM public.stage_payments RETURNING *) SELECT %(key)s FROM gone",
        "SELECT public.stage_write(%(key)s) AS id",
        "SELECT * FROM public.stage_payments WHERE %(key)s <> '' FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', false) AS id WHERE %(key)s <> ''",
        "SELECT 1 WHERE %(key)s <> '' /*",
        "EXPLAIN ANALYZE SELECT 1 WHERE %(key)s <> ''",
    ],
)
def test_a_query_that_would_write_is_refused_and_writes_nothing(
    running: SqlRunning, query: str
) -> None:
    running.owner.execute("""
        CREATE OR REPLACE FUNCTION public.stage_write(text) RETURNS text LANGUAGE sql
        AS 'DELETE FROM public.stage_payments RETURNING id'
    """)
    running.show(ours(), theirs("alien_1"))

    look = look_with(running, query, reference_field="")

    assert look.word is SightingWord.MISCONFIGURED, look
    assert running.writes == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM public.stage_payments WHERE reference = %(marker)s;",
        "SELECT * FROM public.stage_payments WHERE reference = %(marker)s -- the newest last",
        "SELECT * FROM public.stage_payments WHERE reference = %(marker)s AND id LIKE 'obj%%'",
    ],
)
def test_a_query_may_be_written_as_people_write_them(running: SqlRunning, query: str) -> None:
    running.show(ours())

    assert look_with(running, query).word is SightingWord.FOUND


def test_a_parameter_is_sent_apart_from_the_query(running: SqlRunning) -> None:
    probe = probe_on(LIST, running)
    evil = "x' OR '1'='1"
    config = {
        **LIST.config,
        "query": "SELECT * FROM public.stage_payments WHERE reference = %(reference)s",
        "reference": "arguments.order",
        "reference_field": "",
    }
    running.show(ours())

    look = look_in_database(replace(probe, config=config, arguments={"order": evil}))

    assert look.word is SightingWord.ABSENT


def test_a_query_that_takes_too_long_is_cut_off(running: SqlRunning) -> None:
    began = time.monotonic()

    look = look_with(
        running, "SELECT pg_sleep(30)::text AS id WHERE %(key)s <> ''", statement_seconds=1
    )

    assert look.word is SightingWord.LOOKUP_FAILED
    assert "timeout" in look.why
    assert time.monotonic() - began < 5


def test_more_rows_than_are_read_is_no_whole_reading(running: SqlRunning) -> None:
    query = (
        "SELECT n::text AS id, 'x' AS reference FROM generate_series(1, 1000000) n "
        "WHERE %(since)s::timestamptz < now()"
    )

    look = look_with(running, query)

    assert look.word is SightingWord.ABSENT
    assert not look.pages_complete


def test_rows_that_are_too_long_are_no_answer(running: SqlRunning) -> None:
    query = "SELECT repeat('x', 1000000) AS id FROM generate_series(1, 5) WHERE %(key)s <> ''"

    look = look_with(running, query, reference_field="")

    assert look.word is SightingWord.LOOKUP_FAILED
    assert "longer than the limit" in look.why


def test_every_type_of_column_can_be_read(running: SqlRunning) -> None:
    query = """
        SELECT gen_random_uuid() AS id, 'done' AS status, %(marker)s AS reference,
               42.00::numeric AS amount, 'eur' AS currency, false AS livemode, now() AS at,
               0.1::float8 AS share, '{"a": [1]}'::jsonb AS body, '\\x00ff'::bytea AS bytes,
               NULL AS nothing, ARRAY['a'] AS names, '1 day'::interval AS span
    """

    look = look_with(running, query, amount_is_minor=False)

    assert look.word is SightingWord.FOUND, look
    assert str(UUID(look.objects[0])) == look.objects[0]
    assert b"00ff" in (look.raw or b"")


# Where it goes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"account": ""}, "names the role", id="no role"),
        pytest.param({"base_url": "/x"}, "database", id="another database's name"),
        pytest.param({"secret": "postgresql://{role}:{pw}@127.0.0.1:1/counterfoil"}, "elsewhere"),
        pytest.param({"secret": "postgresql://other:{pw}@{there}/counterfoil"}, "another role"),
        pytest.param(
            {"secret": "postgresql://{role}:{pw}@{there}/counterfoil?options=-c%20x"}, "options"
        ),
        pytest.param({"secret": "postgresql://[x"}, "cannot be read"),
        pytest.param({"private": False}, "not a public address", id="not allowed by name"),
    ],
)
def test_what_leads_elsewhere_asks_nobody(
    running: SqlRunning, changes: dict[str, Any], said: str
) -> None:
    place = running.place
    there = f"127.0.0.1:{running.proxy.port}"
    named = {"role": ROLE, "pw": PASSWORD, "there": there}
    texts: dict[str, Any] = {
        k: v.format(**named) if isinstance(v, str) else v for k, v in changes.items()
    }
    if texts.pop("private", True) is False:
        place = replace(place, way=replace(place.way, private=False))
    if "base_url" in texts:
        texts["base_url"] = f"postgresql://{there}/x/y"

    look = look_in_database(replace(probe_on(LIST, running), place=replace(place, **texts)))

    assert look.word is SightingWord.MISCONFIGURED
    assert said in look.why
    assert running.reads == 0


def test_a_whole_dsn_may_be_the_secret(running: SqlRunning) -> None:
    place = running.place
    dsn = f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:{running.proxy.port}/counterfoil"
    running.show(ours())

    look = look_in_database(
        replace(probe_on(LIST, running), place=replace(place, secret=dsn, account=""))
    )

    assert look.word is SightingWord.FOUND


def test_a_server_that_says_nothing_is_given_up(running: SqlRunning) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/counterfoil"
        way = Way(origin=origin_of(url), private=True, limits=Limits(seconds=1.0))
        place = replace(running.place, way=way, base_url=url)
        began = time.monotonic()

        look = look_in_database(replace(probe_on(LIST, running), place=place))

    assert look.word is SightingWord.LOOKUP_FAILED
    assert time.monotonic() - began < 4


# Many calls


def test_one_select_answers_for_many_calls(running: SqlRunning) -> None:
    claims = [UUID(int=n) for n in range(1, 40)]
    running.show(*(ours(f"obj_{n}", claim=claim) for n, claim in enumerate(claims[::2])))
    stage = STAGES[1]

    scan = look_in_database_for_many([probe_on(stage, running, claim) for claim in claims])

    words = [scan.looks[claim].word for claim in claims]
    assert words == [SightingWord.FOUND if n % 2 == 0 else SightingWord.ABSENT for n in range(39)]
    assert (scan.reads, running.reads) == (1, 1)
    assert not any(look.reads for look in scan.looks.values())


# A replica


@pytest.fixture(scope="module")
def replica() -> Iterator[LocalPostgres]:
    """A streaming replica of the tests' own server."""
    primary = test_settings.TEST_POSTGRES
    standby = replace(primary, home=test_settings.TEST_VAR / "replica", port=any_free_port())
    standby.data.parent.mkdir(parents=True, exist_ok=True)
    argv = (str(binaries() / "pg_basebackup"), "-d", primary.url, "-D", str(standby.data))
    options = ("-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
    backup = Program(name="backup", argv=(*argv, *options), identity=identity())
    run_to_end(backup, seconds_max=60)
    with stack.running(standby.program(), log=test_settings.TEST_VAR / "replica.log"):
        yield standby


def settled(minutes_ago: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes_ago)


def look_in(replica: LocalPostgres, probe: Probe) -> Look:
    url = f"postgresql://127.0.0.1:{replica.port}/counterfoil"
    way = Way(origin=origin_of(url), private=True)
    place = Place(way=way, base_url=url, mode="test", account=ROLE, secret=PASSWORD)
    return look_in_database(replace(probe, place=place))


def caught_up(replica: LocalPostgres, running: SqlRunning) -> None:
    """Waits until the replica has replayed what the primary has written."""
    running.owner.execute("SELECT pg_switch_wal()")
    (lsn,) = running.owner.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
    with psycopg.connect(replica.url, autocommit=True) as database:
        deadline = time.monotonic() + 10
        reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        while database.execute(reached, [lsn]).fetchone() != (True,):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_an_absence_in_a_replica_is_worth_what_the_replica_has_replayed(
    replica: LocalPostgres, running: SqlRunning
) -> None:
    running.show(theirs("alien_1"))
    caught_up(replica, running)
    probe = probe_on(LIST, running)
    margin = CLOCK_SKEW_SECONDS / 60

    on_primary = look_in_database(probe)
    long_past = look_in(replica, replace(probe, settled_from=settled(margin + 1)))
    just_now = look_in(replica, replace(probe, settled_from=settled(margin - 1)))
    unknown = look_in(replica, replace(probe, settled_from=None))

    looks = (on_primary, long_past, just_now, unknown)
    assert {look.word for look in looks} == {SightingWord.ABSENT}
    assert [look.delay_class for look in looks] == [
        Delay.NONE,
        Delay.NONE,
        Delay.EVENTUAL,
        Delay.EVENTUAL,
    ]
    assert [look.route for look in looks] == [ROUTE, REPLICA_ROUTE, REPLICA_ROUTE, REPLICA_ROUTE]
    assert long_past.interval_to is not None
    assert long_past.interval_to < long_past.asked_at


def test_a_replica_that_lags_never_proves_an_absence(
    replica: LocalPostgres, running: SqlRunning
) -> None:
    running.show()
    caught_up(replica, running)
    with psycopg.connect(replica.url, autocommit=True) as database:
        database.execute("SELECT pg_wal_replay_pause()")
        try:
            running.show(ours())
            probe = probe_on(LIST, running)
            behind = look_in(replica, replace(probe, settled_from=probe.asked_at))
        finally:
            database.execute("SELECT pg_wal_replay_resume()")
    caught_up(replica, running)

    assert (behind.word, behind.delay_class) == (SightingWord.ABSENT, Delay.EVENTUAL)
    assert look_in(replica, probe).word is SightingWord.FOUND


# The entry


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"query": "SELECT 1"}, "names the call", id="about nobody"),
        pytest.param({"query": "SELECT %s"}, "lone %", id="a parameter without a name"),
        pytest.param({"query": "SELECT '5%' = %(key)s"}, "lone %", id="a percent sign"),
        pytest.param({"query": "SELECT %(secret)s"}, "there are", id="no such parameter"),
        pytest.param({"query": "SELECT %(key)s, %(keys)s"}, "do not go together", id="both"),
        pytest.param({"query": "SELECT %(keys)s"}, "whose it is", id="rows without owners"),
        pytest.param({"query": "SELECT %(since)s"}, "whose it is", id="a time without owners"),
        pytest.param({"query": "SELECT %(key)s \0"}, "zero byte", id="a zero byte"),
        pytest.param({"absent_when": {"http_status": 404}}, "rows", id="a status of the web"),
        pytest.param({"statement_seconds": 60}, "statement_seconds", id="too long a wait"),
        pytest.param({"reference": "whatever"}, "whatever", id="no such reference"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config({**MINIMAL, **changes})


def test_the_smallest_entry_promises_nothing() -> None:
    config = read_config(MINIMAL)

    assert (config.delay_class, config.absent_when.empty) == ("unknown", False)
    assert not config.is_shared


def test_no_row_says_nothing_where_the_entry_does_not_say_so(running: SqlRunning) -> None:
    for stage in STAGES:
        probe = probe_on(stage, running)
        config = {**stage.config, "absent_when": {}}
        scan = look_in_database_for_many([replace(probe, config=config)])

        assert scan.looks[probe.claim_id].word is SightingWord.UNMAPPED
