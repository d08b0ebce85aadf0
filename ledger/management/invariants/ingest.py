"""What ledgers kept elsewhere sent: one id is one content."""

from __future__ import annotations

from typing import Final

from ledger.management.invariants.base import Check, rows_of

OTHER_CONTENT_IS_A_CONFLICT: Final = """
SELECT format('item %s', i.id), format('its id %s of %s holds other content: it is %s',
                                       i.event_id, i.source, i.state)
  FROM ledger_ingestitem i
  LEFT JOIN ledger_ingestitem f ON f.id = i.conflicts_with
 WHERE NOT i.holds_id AND i.state <> 'unreadable'
   AND (i.state <> 'conflict' OR f.id IS NULL OR f.digest = i.digest
        OR (f.source, f.event_id, f.holds_id) IS DISTINCT FROM (i.source, i.event_id, true))
"""

CHECKS: Final = (
    Check(
        id="I13",
        sentence="One id of one source is one content; any other is kept as a conflict.",
        find=rows_of(OTHER_CONTENT_IS_A_CONFLICT),
    ),
)
