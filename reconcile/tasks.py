"""The clock's work and the look-ups, as Celery tasks. Tasks take ids and give nothing back.

A task that is lost, killed or delivered twice costs time or a question, never a fact: what is due
stays in the database, and every step may be done again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from celery import Task, current_app, shared_task
from kombu.exceptions import OperationalError

from effects.core.problems import ClaimNotFound
from ledger import append, ingest, queries, restore_fence
from reconcile import cards, webhook_apply
from reconcile.ghosts import noting
from reconcile.investigate import Asking, investigate
from reconcile.late import alerts
from reconcile.runs import ending, keeping, making, working

logger = logging.getLogger(__name__)

SWEPT_MAX: Final = 200
"""Most claims that the clock speaks to in one tick."""
ITEMS_RETRIED_MAX: Final = 50
"""Most items of ledgers kept elsewhere that one tick tries to apply again."""
LOOKUPS_MAX: Final = 1000
"""Most look-ups that one tick hands out: as many as one reading is made for."""
RUNS_MAX: Final = 20
"""Most runs that one tick hands out again."""
LOOK_SECONDS_SOFT: Final = 100
LOOK_SECONDS_HARD: Final = 120
RUN_SECONDS_SOFT: Final = 240
RUN_SECONDS_HARD: Final = 270
"""A worker hands a run on after `working.SECONDS_MAX`, once its answers are recorded."""
LEASE_SECONDS: Final = int(working.LEASE.total_seconds())
"""A look-up that was begun and never finished is due again after this long; it must outlive the
task, or two workers ask at once."""
HANDED_OVER_SECONDS: Final = int(making.HANDED_OVER.total_seconds())
"""A look-up that no worker has begun after this long is due again: the broker may have lost it."""
TICK_SECONDS_HARD: Final = 60
WEBHOOKS_MAX: Final = 100
"""Most webhooks that one tick applies."""
READS_MAX: Final = 20
"""Most fresh reads that webhooks ordered and one tick hands out."""
BROKER_SECONDS: Final = 2
"""How long a page waits for the broker."""


@shared_task(
    name="reconcile.tasks.tick",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def tick() -> None:
    """Let the clock speak, then hand out the runs that are due, what is due now among them."""
    restore_fence.refresh()
    append.sweep(SWEPT_MAX)
    ingest.retry(ITEMS_RETRIED_MAX)
    working.bury(RUNS_MAX)
    due = append.take_due_lookups(LOOKUPS_MAX, HANDED_OVER_SECONDS)
    made = making.from_due(due) if due else []
    hand_out([*(one.pk for one in made), *working.due(RUNS_MAX)])
    cards.fill()
    noting.look_again()
    ending.tell()
    keeping.sweep()
    alerts.tick()


@shared_task(
    name="reconcile.tasks.run",
    bind=True,
    soft_time_limit=RUN_SECONDS_SOFT,
    time_limit=RUN_SECONDS_HARD,
)
def run(self: Task[Any, Any], run_id: int) -> None:
    """One worker's turn at one run."""
    came_back = bool((self.request.delivery_info or {}).get("redelivered"))
    if working.work(run_id, came_back=came_back):
        hand_out([run_id])


def hand_out(run_ids: Sequence[int]) -> None:
    """Sends runs to workers. Each is due again where no worker begins with it."""
    working.hand_over(run_ids, making.HANDED_OVER)
    for run_id in run_ids:
        # From then on it is handed out again; a late copy would find that somebody has it.
        run.apply_async(args=(run_id,), expires=HANDED_OVER_SECONDS)


@shared_task(
    name="reconcile.tasks.look", soft_time_limit=LOOK_SECONDS_SOFT, time_limit=LOOK_SECONDS_HARD
)
def look(
    workspace_id: int,
    claim_id: str,
    *,
    trigger: str = "schedule",
    user_id: int | None = None,
) -> None:
    """Find out about one claim."""
    asking = Asking(trigger=trigger, user_id=user_id)
    if not asking.by_a_person:
        # It has arrived, so from here on only this worker's death makes it due again.
        now = queries.clock()
        lease = timedelta(seconds=LEASE_SECONDS)
        append.schedule_lookup(UUID(claim_id), now + lease, known_at=now)
    try:
        looked = investigate(workspace_id, UUID(claim_id), asking)
    except ClaimNotFound:
        logger.warning("claim %s is gone from workspace %s", claim_id, workspace_id)
        return
    logger.info("claim %s: %s, %s", claim_id, looked.word or "not asked", looked.state)


@shared_task(
    name="reconcile.tasks.webhooks",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def webhooks() -> None:
    """Apply the webhooks that are due, and hand out the reads that they gave rise to."""
    for delivery_id in webhook_apply.due(WEBHOOKS_MAX):
        webhook_apply.apply(delivery_id)
    for delivery_id in webhook_apply.take_reads(READS_MAX, LEASE_SECONDS):
        read_afresh.apply_async(args=(delivery_id,), expires=LEASE_SECONDS)
    webhook_apply.forget_old()


@shared_task(
    name="reconcile.tasks.read_afresh",
    soft_time_limit=LOOK_SECONDS_SOFT,
    time_limit=LOOK_SECONDS_HARD,
)
def read_afresh(delivery_id: int) -> None:
    """Ask the provider about the calls that one webhook speaks against."""
    webhook_apply.read_afresh(delivery_id)


def start_now(run_id: int) -> None:
    """A person wants this run to begin. Without a broker the next tick finds it."""
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS, interval_start=0)
            run.apply_async(  # type: ignore[call-arg] # its `options` are publishing options
                args=(run_id,), expires=LEASE_SECONDS, retry=False, connection=broker
            )
    except OperationalError:
        working.hand_over([run_id], timedelta(0))


def ask_now(workspace_id: int, claim_id: UUID, *, user_id: int) -> None:
    """A person wants the provider asked. It happens in a worker, usually within a second.

    Raises `ClaimNotFound`. Without a broker the look-up is made due instead, and the next tick
    finds it.
    """
    claim = queries.claim(workspace_id, claim_id)
    try:
        # A person waits for this page: a broker that is away is noticed at once, not after retries.
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS, interval_start=0)
            look.apply_async(  # type: ignore[call-arg] # its `options` are publishing options
                args=(workspace_id, str(claim.pk)),
                kwargs={"trigger": "person", "user_id": user_id},
                expires=LEASE_SECONDS,
                retry=False,
                connection=broker,
            )
    except OperationalError:
        now = queries.clock()
        append.schedule_lookup(claim.pk, now, known_at=now)
