"""The search for duplicates as the worker does it, beside everything else."""

from __future__ import annotations

import logging
from typing import Final

from celery import shared_task

from effects.models import Workspace
from reconcile.duplicates import finding

SEARCHES_MAX: Final = 20
"""Most searches of one workspace in one task; the next one goes on."""
SECONDS_SOFT: Final = 50
SECONDS_HARD: Final = 60

logger = logging.getLogger(__name__)


@shared_task(
    name="reconcile.duplicates.tasks.search",
    soft_time_limit=SECONDS_SOFT,
    time_limit=SECONDS_HARD,
)
def search() -> None:
    """Searches every workspace; one that cannot be searched does not cost the others."""
    for workspace_id in Workspace.objects.order_by("pk").values_list("pk", flat=True):
        try:
            for _ in range(SEARCHES_MAX):
                if not finding.search(workspace_id).more:
                    break
        except Exception:
            logger.exception("Workspace %s could not be searched for duplicates.", workspace_id)
