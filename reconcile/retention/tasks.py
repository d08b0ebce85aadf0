"""The worker's part of retention: passes that go on, and figures that somebody wants anew."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from ledger.retention import emptying
from reconcile.retention import EVERY_KIND

SECONDS_MAX: Final = 20.0
"""How long one tick empties; the rest is the next tick's."""


@shared_task
def tick() -> None:
    """Goes on with what is due."""
    emptying.run(EVERY_KIND, seconds_max=SECONDS_MAX)


@shared_task
def count(workspace_id: int) -> None:
    """Counts what a workspace keeps."""
    emptying.count(EVERY_KIND, workspace_id)
