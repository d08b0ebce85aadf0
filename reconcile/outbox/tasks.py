"""The outbox as Celery tasks. What is due stays in the database: a lost task costs time only."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from reconcile.outbox import composing, sending

DELIVERIES_MAX: Final = 50
"""Most deliveries that one tick hands out."""
SEND_SECONDS_HARD: Final = 40
LEASE_SECONDS: Final = 60
"""A try that was begun and never ended is due again after this long; it outlives the task."""
TICK_SECONDS_HARD: Final = 60


@shared_task(
    name="reconcile.outbox.tasks.tick",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def tick() -> None:
    """Make messages of what is new, and hand out the deliveries that are due."""
    composing.compose()
    for delivery_id in sending.take_due(DELIVERIES_MAX, LEASE_SECONDS):
        send.apply_async(args=(delivery_id,), expires=LEASE_SECONDS)


@shared_task(
    name="reconcile.outbox.tasks.windows",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def windows() -> None:
    """Notice the windows that closed over open questions, and forget what is old."""
    composing.notice_closed_windows()
    composing.forget_old()


@shared_task(
    name="reconcile.outbox.tasks.send",
    soft_time_limit=SEND_SECONDS_HARD - 10,
    time_limit=SEND_SECONDS_HARD,
)
def send(delivery_id: int) -> None:
    """One try of one delivery."""
    sending.send(delivery_id)
