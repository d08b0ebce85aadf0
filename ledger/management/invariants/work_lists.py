"""Nothing is forgotten: what is undecided waits on a list that somebody or something works through.

Each row of an answer is a difference: first of what, then what is wrong.
"""

from __future__ import annotations

from typing import Final

from ledger.management.invariants.base import Check, rows_of

WAITS_FOR_NOBODY: Final = """
SELECT c.id, format('the claim is %s, its attempts are %s of %s, and no person''s list has it',
                    c.state, c.fence, c.budget)
  FROM ledger_claim c
 WHERE (c.state IN ('unknown', 'conflicted', 'released', 'closed')
        OR c.state = 'not_executed' AND c.fence >= c.budget)
   AND NOT EXISTS (SELECT FROM ledger_due d WHERE d.claim_id = c.id AND d.why = 'person')
"""

NEVER_LOOKED_UP: Final = """
SELECT c.id, format('the claim is %s with an open truth, and no look-up is filed', c.state)
  FROM ledger_claim c
 WHERE c.open_truth AND c.state <> 'in_flight'
   AND NOT EXISTS (SELECT FROM ledger_due d WHERE d.claim_id = c.id AND d.why = 'lookup')
"""

# First attempts have no row of their own until the watermark of the leases has passed them.
NEVER_SWEPT: Final = """
SELECT c.id, CASE WHEN c.state = 'in_flight'
                  THEN 'the claim is in_flight, and nothing watches its lease'
                  ELSE 'a decision or a permission has an end, and nothing watches it' END
  FROM ledger_claim c
 WHERE (c.pending_at IS NOT NULL OR c.grant_until IS NOT NULL
        OR c.state = 'in_flight'
           AND (c.fence > 1
                OR c.id <= (SELECT claim_id FROM ledger_watermark WHERE name = 'leases')))
   AND NOT EXISTS (SELECT FROM ledger_due d WHERE d.claim_id = c.id AND d.why = 'clock')
"""

CHECKS: Final = (
    Check(
        id="I20",
        sentence="Every undecided claim is on the list that people work through.",
        find=rows_of(WAITS_FOR_NOBODY),
    ),
    Check(
        id="I20",
        sentence="Every claim with an attempt whose truth is open has a look-up filed.",
        find=rows_of(NEVER_LOOKED_UP),
    ),
    Check(
        id="I20",
        sentence="Every lease, held decision and permission that ends is watched by the clock.",
        find=rows_of(NEVER_SWEPT),
    ),
)
