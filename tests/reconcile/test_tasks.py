"""The clock's tick, and look-ups as tasks: handed out once, lost without harm, done by a worker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from effects.celery import app
from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import ClaimState
from effects.local.processes import Program
from ledger import append, queries
from reconcile import tasks
from tests.reconcile.finding_out import WORKING_SECONDS, Shop, id_of, open_shop
from tests.settings import TEST_VAR
from tests.support import stack

pytestmark = pytest.mark.django_db(transaction=True)

WORKER_SECONDS_MAX = 150


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def at_once() -> Iterator[None]:
    """What is sent to a worker is done in this process, through Celery's own door."""
    app.conf.update(task_always_eager=True, task_eager_propagates=True)
    yield
    app.conf.update(task_always_eager=False, task_eager_propagates=False)


@pytest.mark.usefixtures("at_once")
def test_one_tick_settles_what_can_be_settled(shop: Shop) -> None:
    paid, lost = shop.claim(shop.charge), shop.claim(shop.charge)
    shop.pay(paid, fault="drop_after_commit")
    for answer in (paid, lost):
        shop.unknown(answer)

    tasks.tick.delay()

    assert shop.state(id_of(paid)) is ClaimState.COMPLETED
    assert shop.state(id_of(lost)) is ClaimState.UNKNOWN
    assert len(shop.sightings(id_of(lost))) == 1


@pytest.mark.usefixtures("at_once")
def test_the_next_tick_does_not_ask_again_before_the_plan_says_so(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))

    for _ in range(3):
        tasks.tick.delay()
    asked_once = len(shop.sightings(claim_id))
    shop.past(6)
    tasks.tick.delay()

    assert (asked_once, len(shop.sightings(claim_id))) == (1, 2)


@pytest.mark.usefixtures("at_once")
def test_ticks_alone_bring_a_lost_payment_to_its_end(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))

    for _ in range(int(WORKING_SECONDS / 60) + 2):
        tasks.tick.delay()
        shop.past(60)

    assert shop.state(claim_id) is ClaimState.NOT_EXECUTED


def test_a_look_up_that_was_handed_out_and_lost_is_due_again(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    (first,) = append.take_due_lookups(10, tasks.LEASE_SECONDS)

    at_once = append.take_due_lookups(10, tasks.LEASE_SECONDS)
    shop.clock.advance(tasks.LEASE_SECONDS + 1)
    (second,) = append.take_due_lookups(10, tasks.LEASE_SECONDS)

    assert at_once == []
    assert (first.claim_id, second.claim_id) == (claim_id, claim_id)
    assert second.tries == 2


def test_a_lease_outlives_the_task(shop: Shop) -> None:
    assert tasks.LEASE_SECONDS > tasks.LOOK_SECONDS_HARD > tasks.LOOK_SECONDS_SOFT


@pytest.mark.usefixtures("at_once")
def test_the_same_look_up_twice_changes_nothing_more(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    claim_id = shop.unknown(answer)

    for _ in range(2):
        tasks.look.delay(shop.workspace.pk, str(claim_id))

    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert len(shop.customer.truth()) == 1


@pytest.mark.usefixtures("at_once")
def test_a_claim_that_is_gone_ends_the_task_in_peace(shop: Shop) -> None:
    tasks.look.delay(shop.workspace.pk, str(uuid4()))


@pytest.mark.usefixtures("at_once")
def test_a_person_is_answered_at_once_and_by_name(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    claim_id = shop.unknown(answer)
    tasks.tick.delay()
    shop.pay(answer)

    tasks.ask_now(shop.workspace.pk, claim_id, user_id=7)

    assert shop.state(claim_id) is ClaimState.COMPLETED
    newest = shop.sightings(claim_id)[-1]
    assert (newest.data["trigger"], newest.data["user_id"]) == ("person", 7)


def test_a_person_cannot_ask_about_another_workspaces_claim(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))

    with pytest.raises(ClaimNotFound):
        tasks.ask_now(shop.workspace.pk + 1, claim_id, user_id=7)


@pytest.mark.case("X01")
def test_without_a_broker_the_next_tick_finds_what_a_person_asked_for(
    shop: Shop, process_env: dict[str, str]
) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    append.schedule_lookup(claim_id, None, known_at=queries.clock())
    program = (
        "import django; django.setup()\n"
        "from uuid import UUID\n"
        "from reconcile.tasks import ask_now\n"
        f"ask_now({shop.workspace.pk}, UUID('{claim_id}'), user_id=7)"
    )

    subprocess.run(
        [sys.executable, "-c", program],
        env={**process_env, "CELERY_BROKER_URL": "redis://127.0.0.1:1/0"},
        cwd=stack.ROOT,
        check=True,
        timeout=60,
    )

    (due,) = append.take_due_lookups(10, 60)
    assert due.claim_id == claim_id


def test_a_real_worker_settles_what_a_tick_finds(shop: Shop, process_env: dict[str, str]) -> None:
    paid, lost = shop.claim(shop.charge), shop.claim(shop.charge)
    shop.pay(paid, fault="drop_after_commit")
    for answer in (paid, lost):
        shop.unknown(answer)
    shop.past(WORKING_SECONDS + 1)
    worker = Program(
        name="worker",
        argv=(
            *(sys.executable, "-m", "celery", "-q", "-A", "effects.celery", "worker"),
            *("-P", "solo", "-l", "WARNING", "--without-gossip", "--without-mingle"),
        ),
        env={
            **process_env,
            "COUNTERFOIL_PRIVATE_ORIGINS": shop.customer.url,
            "PYTHONWARNINGS": "ignore",
        },
        stop_seconds=10,
    )

    with stack.running(worker, log=TEST_VAR / "worker.log"):
        deadline = time.monotonic() + WORKER_SECONDS_MAX
        settled = {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED}
        while {shop.state(id_of(paid)), shop.state(id_of(lost))} != settled:
            assert time.monotonic() < deadline, "the worker settled nothing"
            tasks.tick.apply_async(expires=5)
            time.sleep(0.5)

    assert shop.state(id_of(paid)) is ClaimState.COMPLETED
