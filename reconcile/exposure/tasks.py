"""The rolling of days and the level of each hour, as the worker does them."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from reconcile.exposure import levels, rollup

SECONDS_SOFT: Final = 120
SECONDS_HARD: Final = 150


@shared_task(
    name="reconcile.exposure.tasks.roll", soft_time_limit=SECONDS_SOFT, time_limit=SECONDS_HARD
)
def roll() -> None:
    """Keeps the level first: its hour passes, and a day can be rolled at any time."""
    levels.keep_hour()
    rollup.roll_due()
