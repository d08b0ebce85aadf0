"""What workers do for the pages about connections. A task takes a number; a copy does no harm."""

from __future__ import annotations

from typing import Final

from celery import current_app, shared_task
from kombu.exceptions import OperationalError

from reconcile.connecting import secrets_seen, trial

SECONDS_SOFT: Final = 80
SECONDS_HARD: Final = 100
BROKER_SECONDS: Final = 2
"""How long a page waits for the broker."""
EXPIRES_SECONDS: Final = 60
"""A trial that no worker has begun by then is not worth beginning: nobody waits for it any more."""


@shared_task(
    name="reconcile.connecting.tasks.perform",
    soft_time_limit=SECONDS_SOFT,
    time_limit=SECONDS_HARD,
)
def perform(trial_id: int) -> None:
    """Tries one look-up."""
    trial.perform(trial_id)


@shared_task(name="reconcile.connecting.tasks.tick", soft_time_limit=20, time_limit=30)
def tick() -> None:
    """Notes which secrets are here, and forgets what was tried long ago."""
    secrets_seen.note()
    trial.forget()


def begin(trial_id: int) -> bool:
    """Has a worker try it. False where the broker is away: then nobody will."""
    try:
        # A person waits for this page: a broker that is away is noticed at once, not after retries.
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS, interval_start=0)
            perform.apply_async(  # type: ignore[call-arg] # its `options` are publishing options
                args=(trial_id,), expires=EXPIRES_SECONDS, retry=False, connection=broker
            )
    except OperationalError:
        return False
    return True
