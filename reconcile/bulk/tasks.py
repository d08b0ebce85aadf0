"""Bulks as Celery tasks. A task takes a number, and a copy of it does no harm."""

from __future__ import annotations

from typing import Final

from celery import current_app, shared_task
from kombu.exceptions import OperationalError

from reconcile.bulk import running

SECONDS_SOFT: Final = 200
SECONDS_HARD: Final = 240
BROKER_SECONDS: Final = 2
"""How long a page waits for the broker."""
EXPIRES_SECONDS: Final = 60


@shared_task(name="reconcile.bulk.tasks.run", soft_time_limit=SECONDS_SOFT, time_limit=SECONDS_HARD)
def run(bulk_id: int) -> None:
    """Works on one bulk, and hands it over to the next delivery where more is to be done."""
    if running.run(bulk_id):
        run.apply_async(args=(bulk_id,), expires=EXPIRES_SECONDS)


@shared_task(name="reconcile.bulk.tasks.sweep", soft_time_limit=20, time_limit=30)
def sweep() -> None:
    """Hands out what was started and lies about: its broker or its worker may have been lost."""
    for bulk_id in running.unfinished():
        run.apply_async(args=(bulk_id,), expires=EXPIRES_SECONDS)


def begin(bulk_id: int) -> None:
    """Has a worker begin at once. Without a broker the sweep finds the bulk instead."""
    try:
        # A person waits for this page: a broker that is away is noticed at once, not after retries.
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS, interval_start=0)
            run.apply_async(  # type: ignore[call-arg] # its `options` are publishing options
                args=(bulk_id,), expires=EXPIRES_SECONDS, retry=False, connection=broker
            )
    except OperationalError:
        return
