"""A worker that is killed in the middle of a run: nothing is lost, nothing is settled twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from effects.core.vocabulary import ClaimState
from ledger import append
from reconcile.models import Run
from reconcile.runs import making, working
from tests.reconcile.finding_out import Shop
from tests.reconcile.runs.conftest import Runs
from tests.support import stack

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = 5
KILLED_AT = 3
"""The call whose answer is in the record already, and is not yet in the run."""

WORKER = """
import os, signal, sys
import django
django.setup()
from reconcile.runs import recording, working

real, told = recording.record, []

def record(*said, **more):
    told.append(said)
    if len(told) == {killed_at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*said, **more)

recording.record = record
working.work({run_id})
"""


def killed_in_the_middle(shop: Shop, run: Run, process_env: dict[str, str]) -> None:
    """A real process works at the run and dies by kill -9 between two of its commits."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER.format(run_id=run.pk, killed_at=KILLED_AT)],
        env={
            **process_env,
            "COUNTERFOIL_PRIVATE_ORIGINS": shop.customer.url,
            "TEST_STRIPE_KEY": os.environ["TEST_STRIPE_KEY"],
            "PYTHONWARNINGS": "ignore",
        },
        cwd=stack.ROOT,
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]


def test_another_worker_goes_on_with_what_a_person_wanted(
    shop: Shop, runs: Runs, process_env: dict[str, str]
) -> None:
    paid = [runs.paid() for _ in range(CALLS)]
    run = runs.start(*paid)

    killed_in_the_middle(shop, run, process_env)
    left = runs.results(run)
    assert working.work(run.pk) is False, "it is not known yet that its worker is dead"
    shop.clock.advance(working.LEASE.total_seconds() + 1)
    working.bury(10)
    run = runs.worked(run)

    assert left == {"happened": KILLED_AT - 1, "waiting": CALLS - KILLED_AT + 1}
    assert (run.state, run.deaths) == (Run.State.DONE, 0)
    assert sum(runs.results(run).values()) == CALLS
    assert {shop.state(one) for one in paid} == {ClaimState.COMPLETED}
    assert [len(shop.sightings(one)) for one in paid] == [1, 1, 2, 1, 1], "none is lost"


def test_what_the_schedules_run_leaves_is_due_again_and_the_run_is_interrupted(
    shop: Shop, runs: Runs, process_env: dict[str, str]
) -> None:
    paid = [runs.paid() for _ in range(CALLS)]
    (run,) = making.from_due(append.take_due_lookups(10, 30))

    killed_in_the_middle(shop, run, process_env)
    shop.clock.advance(working.LEASE.total_seconds() + 1)
    working.bury(10)
    run.refresh_from_db()
    due = {one.claim_id for one in append.take_due_lookups(10, 30)}

    assert (run.state, run.note[:15]) == (Run.State.INTERRUPTED, "Its worker died")
    assert due == set(paid[KILLED_AT:]), "the third is settled, its answer was recorded"


def test_workers_that_die_one_after_the_other_end_the_run(runs: Runs) -> None:
    run = runs.start(runs.lost())
    states = []
    for _ in range(working.DEATHS_MAX):
        Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING, due_at=run.made_at)
        working.bury(10)
        run.refresh_from_db()
        states.append(run.state)

    assert states == ["waiting", "waiting", "interrupted"]
    assert runs.results(run) == {"waiting": 1}
    assert making.again(run, user_id=1).again_of == run


def test_a_task_that_comes_back_takes_the_run_of_its_dead_worker(shop: Shop, runs: Runs) -> None:
    paid = runs.paid()
    (run,) = making.from_due(append.take_due_lookups(10, 30))
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)

    working.work(run.pk)
    before = shop.state(paid)
    working.work(run.pk, came_back=True)

    assert (before, shop.state(paid)) == (ClaimState.UNKNOWN, ClaimState.COMPLETED)


def test_a_run_of_the_schedule_that_no_worker_began_leaves_no_trace(shop: Shop, runs: Runs) -> None:
    lost = runs.lost()
    (run,) = making.from_due(append.take_due_lookups(10, 30))
    shop.clock.advance(31)

    working.bury(10)

    assert not Run.objects.filter(pk=run.pk).exists()
    assert working.work(run.pk) is False, "its task comes too late"
    assert [one.claim_id for one in append.take_due_lookups(10, 30)] == [lost]


def test_a_run_that_takes_long_is_handed_on(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "SECONDS_MAX", 0.0)
    run = runs.start(runs.paid())

    more = working.work(run.pk)
    run.refresh_from_db()

    assert (more, run.state) == (True, Run.State.WAITING)
    monkeypatch.undo()
    assert runs.worked(run).state == Run.State.DONE
