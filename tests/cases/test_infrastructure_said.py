"""What the cases about databases, brokers, clocks and poolers say to people.

X03 and X04 are asserted where claims race: tests/ledger/test_claim_batch.py, test_api_live.py.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings
from psycopg.pq import TransactionStatus

from effects.core.vocabulary import AnswerCode, ClaimState, Role, Verdict
from ledger import append, queries
from ledger.functions import call
from ledger.models import Claim, IngestItem
from reconcile import investigate
from reconcile.adapters.base import Look, Probe
from reconcile.lookups import LOOKUPS
from tests.cases.at_hand import the_case
from tests.cases.ingest import Doors
from tests.ledger.claims import LEASE_SECONDS, a_request, a_world
from tests.ledger.mirror import claim_made, tell
from tests.reconcile.finding_out import Shop, open_shop
from tests.support import desk
from tests.support.stack import ROOT


def elsewhere[T](pool: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
    """Runs `work` in another thread, with a connection of its own that is closed afterwards."""

    def closed_afterwards() -> T:
        try:
            return work()
        finally:
            connection.close()

    return pool.submit(closed_afterwards)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


# X01: background work and the commit


@pytest.mark.case("X01")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("commits", [True, False])
def test_no_worker_meets_a_claim_before_its_commit_or_after_its_rollback(
    pool: ThreadPoolExecutor,
    commits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    tool = desk.a_keyed_tool(desk.a_workspace())
    over = threading.Event()

    def worker() -> list[tuple[UUID, float]]:
        met: list[tuple[UUID, float]] = []
        while not over.wait(0.01):
            met += [(due.claim_id, time.monotonic()) for due in append.take_due_lookups(10, 60)]
        return met

    working = elsewhere(pool, worker)
    with transaction.atomic():
        lost = desk.a_lost_call(tool)
        time.sleep(0.3)
        transaction.set_rollback(not commits)
        before_the_end = time.monotonic()
    time.sleep(0.1)
    over.set()
    met = working.result()
    assert [claim_id for claim_id, _ in met] == ([lost] if commits else [])
    assert all(at > before_the_end for _, at in met)
    assert Claim.objects.exists() is commits


# X05: a pooler in transaction mode


@pytest.mark.case("X05")
def test_the_settings_behind_a_pooler_are_documented() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert "pooler in transaction mode" in page


@pytest.mark.case("X05")
@pytest.mark.django_db
def test_no_function_of_ours_keeps_anything_in_a_session() -> None:
    """What outlives a transaction would be somebody else's behind such a pooler."""
    kept = re.compile(
        r"pg_(?:try_)?advisory_lock|\blisten\b|\bnotify\b|\bwith hold\b|create temp"
        r"|set_config\([^)]*false\)",
        re.IGNORECASE,
    )
    bodies = call(
        "SELECT proname, prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
        " WHERE nspname = 'public' AND proname ~ '^(ledger|effects|reconcile)_'",
        (),
    )
    assert len(bodies) > 30
    assert [name for name, body in bodies if kept.search(body)] == []
    locks = [name for name, body in bodies if "pg_advisory_xact_lock" in body]
    assert locks, "locks there are, and they end with their transaction"


@pytest.mark.case("X05")
@pytest.mark.django_db(transaction=True)
def test_no_answer_of_the_api_leaves_a_transaction_open() -> None:
    doors = Doors.open()
    claim = {"tool": "pay", "arguments": "{}", "conversation": "c", "turn_index": 1}
    made = json.dumps(claim_made()).encode()
    asked: list[tuple[str, Any]] = [
        ("claims", claim),
        ("claims", claim | {"arguments": '{"a":1,"a":2}'}),
        ("claims", {"tool": 3}),
        ("claims/batch", {"claims": [claim, {}]}),
        ("events", b"[" + made + b',{"id":"x","source":"s","type":"no.such"}]'),
        ("events", b"[" + made),
        ("claims/nobody/complete", {"fence": 1}),
    ]
    for path, body in asked:
        doors.agent.post(path, body)
        if connection.connection is not None:
            status = connection.connection.info.transaction_status
            assert status is TransactionStatus.IDLE, path


# X06: waiting for a provider


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


ANSWERED_WITHIN_SECONDS = 2
"""The case says half a second; a machine that is busy with other tests may take a little longer."""
HELD_BACK_SECONDS_MAX = 10
"""Whoever waits for a row that the look-up holds waits for all of this."""


@pytest.mark.case("X06")
@pytest.mark.django_db(transaction=True)
def test_people_and_claims_are_answered_while_a_provider_is_waited_for(
    shop: Shop, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shop.claim(shop.charge)
    lost = shop.unknown(answer)
    kind = shop.charge.lookup_kind
    real, asked, may_answer = LOOKUPS[kind], threading.Event(), threading.Event()

    def slowly(probe: Probe) -> Look:
        """The real answer, held back until somebody lets it through."""
        found = real.look(probe)
        asked.set()
        assert may_answer.wait(HELD_BACK_SECONDS_MAX)
        return found

    monkeypatch.setattr(investigate, "LOOKUPS", {kind: replace(real, look=slowly)})
    person = desk.a_person(shop.workspace, Role.LEAD)
    looking = elsewhere(pool, lambda: shop.look(lost))
    assert asked.wait(20)

    began = time.monotonic()
    version = queries.claim(shop.workspace.pk, lost).version
    decision = append.NewDecision(
        verdict=Verdict.HAPPENED,
        claim_version=version,
        reason="seen at the provider",
        user_id=person.pk,
        hold_seconds=0,
    )
    append.decide(shop.workspace.pk, lost, decision)
    row = queries.claim(shop.workspace.pk, lost)
    again = desk.ask(
        shop.charge,
        arguments=queries.arguments_text(row),
        conversation=row.conversation,
        turn_index=1,
    )
    waited = time.monotonic() - began
    may_answer.set()
    looking.result()

    assert again.code is AnswerCode.REPLAYED
    assert waited < ANSWERED_WITHIN_SECONDS
    # The provider knew of nothing: that is kept as evidence, and the person's word stands.
    assert [one.word for one in shop.sightings(lost)] == ["absent"]
    assert shop.state(lost) is ClaimState.COMPLETED


# X07: no layer whose loss could stop a claim


@pytest.mark.case("X07")
def test_live_pages_need_no_channel_layer() -> None:
    assert not hasattr(settings, "CHANNEL_LAYERS")


@pytest.mark.case("X07")
@pytest.mark.django_db
@override_settings(CELERY_BROKER_URL="redis://127.0.0.1:1/0", REDIS_URL="redis://127.0.0.1:1/0")
def test_claims_and_reports_go_on_without_any_broker() -> None:
    doors = Doors.open()
    claim = {"tool": "pay", "arguments": "{}", "conversation": "c", "turn_index": 1}
    granted = doors.agent.post("claims", claim)
    assert granted.status == 201
    done = doors.agent.post(f"claims/{granted.json['claim_id']}/complete", {"fence": 1})
    assert (done.status, done.json["state"]) == (200, "completed")


# X08: times without an offset


@pytest.mark.case("X08")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "zone", [one["TIME_ZONE"] for one in the_case("X08").input["settings_variants"]]
)
def test_a_time_names_a_moment_or_is_refused_whatever_the_servers_zone(zone: str) -> None:
    workspace = desk.a_workspace()
    with override_settings(TIME_ZONE=zone):
        told = tell(
            workspace.pk,
            *(
                claim_made(f"k{number}", position=number) | {"time": one["occurred_at"]}
                for number, one in enumerate(the_case("X08").input["events"])
            ),
        )
        words = [(str(item.word), item.reason) for item in told]
    assert [word for word, _ in words] == ["unreadable", "applied", "unreadable", "applied"]
    assert {reason for word, reason in words if word == "unreadable"} == {"time_unreadable"}
    kept = IngestItem.objects.get(event_id="k1-made")
    assert kept.said_at == datetime.fromisoformat("2026-03-29T00:30:00+00:00")


@pytest.mark.case("X08")
@pytest.mark.django_db
def test_the_time_of_receipt_decides_and_the_senders_is_only_shown() -> None:
    workspace = desk.a_workspace()
    future = claim_made() | {"time": "2099-01-01T00:00:00Z"}
    (told,) = tell(workspace.pk, future)
    claim = queries.claim_by_key(workspace.pk, str(told.claim_id))
    assert abs(claim.granted_at - queries.clock()) < timedelta(minutes=1)
    assert claim.lease_until < queries.clock() + timedelta(hours=1)
    assert (queries.events(claim)[0].data or {})["said_at"].startswith("2099")


# X09: leases by one clock


@pytest.mark.case("X09")
@pytest.mark.django_db
def test_a_lease_is_judged_by_the_database_and_its_end_frees_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers' clocks do not come into it: nothing that they send holds one of their times."""
    world = a_world()
    first = world.ask(a_request(world))
    assert first.claim_id
    real = time.time
    for skew in (120, -120):
        monkeypatch.setattr(time, "time", lambda skew=skew: real() + skew)
        world.clock.advance(5)
        assert world.ask(a_request(world)).code is AnswerCode.IN_FLIGHT
    world.clock.advance(LEASE_SECONDS)
    assert world.ask(a_request(world)).code is AnswerCode.UNKNOWN
    assert world.heartbeat(first.claim_id, first.fence) == "stop"
