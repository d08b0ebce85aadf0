"""What the desk's watcher compares twice a second: two short texts that change when a page would.

Nothing is written for it and no index is kept for it. The work lists name the few claims that the
queue can show, whatever else the ledger holds; a call that somebody looks at is read by its id.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connection

from ledger.queries import clock
from reconcile.queue import CANDIDATES, CLOCK_HAS_WORK, CLOSING_SOON, LISTED

CLAIMS_PER_LOOK_MAX: Final = 1000
LOOK_MILLISECONDS_MAX: Final = 5000

# A version counts every event of a claim; the clock changes what is shown without one.
_SAID: Final = f"""concat_ws(' ', c.id, c.version, {CLOCK_HAS_WORK}, c.window_until <= %(at)s,
  c.window_until <= %(soon)s, c.state = 'in_flight' AND c.lease_until <= %(at)s,
  (SELECT string_agg(concat(p.id, p.status, p.expires_at <= %(at)s), ',' ORDER BY p.id)
     FROM reconcile_proposal p WHERE p.claim_id = c.id),
  (SELECT string_agg(concat(z.id, z.until <= %(at)s), ',' ORDER BY z.id)
     FROM reconcile_snooze z WHERE z.claim_id = c.id AND z.ended_at IS NULL),
  (SELECT string_agg(concat(k.id, k.until <= %(at)s), ',' ORDER BY k.id)
     FROM reconcile_take k WHERE k.claim_id = c.id AND k.ended_at IS NULL),
  (SELECT a.id FROM reconcile_assignment a WHERE a.claim_id = c.id AND a.ended_at IS NULL))"""  # noqa: S608 - every word is ours

_QUEUE: Final = f"""SELECT count(*),
  coalesce(sum(hashtextextended({_SAID}, 0)::numeric), 0)::text
FROM ledger_claim c
JOIN effects_tool t ON t.id = c.tool_id
WHERE {CANDIDATES}
  AND c.id = ANY(ARRAY({LISTED.format(of_workspace="AND workspace_id = %(workspace_id)s")}
    UNION SELECT claim_id FROM reconcile_proposal
      WHERE workspace_id = %(workspace_id)s AND status = 'open'))"""  # noqa: S608 - ours

_CALLS: Final = f"""SELECT c.id, {_SAID} FROM ledger_claim c
WHERE c.id = ANY(%(claim_ids)s)"""  # noqa: S608 - every word is ours


def snapshot() -> str:
    """The database's own watermark: while it stays the same, no transaction has been committed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_snapshot()::text")
        return str(cursor.fetchone()[0])


def queue_mark(workspace_id: int) -> str:
    """A digest of the undecided calls of a workspace as the queue shows them now."""
    at = clock()
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, {"workspace_id": workspace_id, "at": at, "soon": at + CLOSING_SOON})
        count, digest = cursor.fetchone()
    return f"{count} {digest}"


def call_marks(claim_ids: Collection[UUID]) -> dict[UUID, str]:
    """What each of these calls' pages depends on. Raises ValueError above CLAIMS_PER_LOOK_MAX."""
    if len(claim_ids) > CLAIMS_PER_LOOK_MAX:
        raise ValueError(f"One look takes at most {CLAIMS_PER_LOOK_MAX} calls.")
    if not claim_ids:
        return {}
    at = clock()
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, {"claim_ids": list(claim_ids), "at": at, "soon": at + CLOSING_SOON})
        return dict(cursor.fetchall())


def limit_looks(longest: timedelta = timedelta(milliseconds=LOOK_MILLISECONDS_MAX)) -> None:
    """Ends a look of this connection that takes longer: the next one comes in a second."""
    with connection.cursor() as cursor:
        milliseconds = int(longest.total_seconds() * 1000)
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(milliseconds)])
