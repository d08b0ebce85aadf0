"""Retention of everything: the ledger's kinds, and what providers sent by themselves."""

from __future__ import annotations

from typing import Final

from ledger.retention.kinds import KINDS as OF_THE_LEDGER
from ledger.retention.kinds import OLD, SETTLED, Kind

_DONE: Final = f"""
  FROM reconcile_webhookdelivery w JOIN effects_connection n ON n.id = w.connection_id
  JOIN ledger_retentionrule r ON r.workspace_id = n.workspace_id AND r.kind = 'webhooks'
 WHERE w.body <> '' AND w.due_at IS NULL AND w.last_received_at {OLD}
   AND NOT EXISTS (SELECT FROM ledger_claim c WHERE c.id = ANY(w.claims || w.reads)
     AND NOT coalesce({SETTLED}, false))
"""

WEBHOOKS: Final = Kind(
    name="webhooks",
    word="Webhooks",
    says="the bytes of signed webhooks; which call each was applied to stays",
    first="0",
    looked="""
    SELECT id::text FROM reconcile_webhookdelivery WHERE id > %(after)s::bigint
     ORDER BY id LIMIT %(limit)s
    """,
    due=f"SELECT w.id::text, n.workspace_id, octet_length(w.body), r.days {_DONE}"
    " AND w.id = ANY(%(ids)s::bigint[]) FOR UPDATE OF w SKIP LOCKED",
    empty=("UPDATE reconcile_webhookdelivery SET body = '' WHERE id = ANY(%(ids)s::bigint[])",),
    kept="""
    SELECT count(*), coalesce(sum(octet_length(w.body)), 0), min(w.received_at)
      FROM reconcile_webhookdelivery w JOIN effects_connection n ON n.id = w.connection_id
     WHERE n.workspace_id = %(workspace_id)s AND w.body <> ''
    """,
    due_now=f"SELECT count(*) {_DONE} AND n.workspace_id = %(workspace_id)s",
)

EVERY_KIND: Final = (*OF_THE_LEDGER, WEBHOOKS)
