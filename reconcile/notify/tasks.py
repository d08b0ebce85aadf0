"""Notifications as Celery tasks. What is due stays in the database: a lost task costs time only."""

from __future__ import annotations

from typing import Final

from celery import shared_task
from kombu.exceptions import OperationalError

from reconcile.notify import sending, telling

DELIVERIES_MAX: Final = 50
"""Most deliveries that one tick hands out."""
SEND_SECONDS_HARD: Final = 40
LEASE_SECONDS: Final = int(sending.LEASE.total_seconds())
TICK_SECONDS_HARD: Final = 55


@shared_task(
    name="reconcile.notify.tasks.tick",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def tick() -> None:
    """Look once whom to tell of what, hand out what is due, and forget what is old."""
    telling.tell_everybody()
    hand_out()
    telling.forget_old()


@shared_task(
    name="reconcile.notify.tasks.hand_out",
    soft_time_limit=TICK_SECONDS_HARD - 10,
    time_limit=TICK_SECONDS_HARD,
)
def hand_out() -> None:
    """Give each delivery that is due to a sender."""
    for delivery_id in sending.take_due(DELIVERIES_MAX):
        send.apply_async(args=(delivery_id,), expires=LEASE_SECONDS)


@shared_task(
    name="reconcile.notify.tasks.send",
    soft_time_limit=SEND_SECONDS_HARD - 10,
    time_limit=SEND_SECONDS_HARD,
)
def send(delivery_id: int) -> None:
    """One try of one delivery."""
    sending.send(delivery_id)


def soon() -> None:
    """Has what is due handed out at once. Without a broker the next tick does it."""
    try:
        hand_out.apply_async(expires=LEASE_SECONDS, retry=False)
    except OperationalError:
        return
