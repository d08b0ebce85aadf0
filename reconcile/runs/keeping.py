"""What is kept of runs and for how long, and how many calls waited at each hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import connection as database
from django.db.models import Q

from ledger import queries
from reconcile.models import Backlog, Run

KEPT: Final = timedelta(days=90)
"""How long a run that a person wanted is kept."""
KEPT_BY_ITSELF: Final = timedelta(days=7)
"""How long a run of the schedule or of a webhook is kept. What it found is in the record."""
FORGOTTEN_MAX: Final = 20
"""Most runs that one tick forgets, with at most `making.ITEMS_MAX` calls each."""
BACKLOG_KEPT: Final = timedelta(days=100)
"""The trends show ninety days of it."""

_PERSONS: Final = (Run.Trigger.PERSON, Run.Trigger.BULK)

# One row for each workspace and hour; only the first tick of an hour counts.
_BACKLOG: Final = """
INSERT INTO reconcile_backlog (workspace_id, at, calls)
SELECT w.id, %(hour)s, (SELECT count(*) FROM ledger_due d JOIN ledger_claim c ON c.id = d.claim_id
  WHERE d.workspace_id = w.id AND d.why = 'person' AND c.state = 'unknown')
FROM effects_workspace w
WHERE NOT EXISTS (SELECT FROM reconcile_backlog b WHERE b.workspace_id = w.id AND b.at = %(hour)s)
ON CONFLICT DO NOTHING
"""


def sweep() -> None:
    """Forgets old runs, and counts the calls that wait once in an hour."""
    now = queries.clock()
    forget_old(now)
    with database.cursor() as cursor:
        cursor.execute(_BACKLOG, {"hour": now.replace(minute=0, second=0, microsecond=0)})
        counted = cursor.rowcount > 0
    if counted:
        Backlog.objects.filter(at__lt=now - BACKLOG_KEPT).delete()


def forget_old(now: datetime) -> int:
    """Deletes runs that ended long ago, with their calls; answers how many."""
    by_itself = ~Q(trigger__in=_PERSONS) & Q(ended_at__lt=now - KEPT_BY_ITSELF)
    old = Run.objects.filter(by_itself | Q(ended_at__lt=now - KEPT))
    ids = list(old.order_by("ended_at").values_list("pk", flat=True)[:FORGOTTEN_MAX])
    if ids:
        Run.objects.filter(pk__in=ids).delete()
    return len(ids)
