"""Measuring as the worker does it, beside everything else."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from ledger import queries
from reconcile.registry import measuring

SECONDS_SOFT: Final = 110
SECONDS_HARD: Final = 120


@shared_task(
    name="reconcile.registry.tasks.measure",
    soft_time_limit=SECONDS_SOFT,
    time_limit=SECONDS_HARD,
)
def measure() -> None:
    """One turn of measuring; two at once wait for each other."""
    measuring.measure(queries.clock())
