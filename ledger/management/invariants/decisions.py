"""Decisions: by whom, approved by whom, in one unbroken chain."""

from __future__ import annotations

from typing import Final

from ledger.management.invariants.base import Check, rows_of

# The role of the second person is on the decision as it was then, and part of the chain.
ONE_PERSON_WHERE_TWO_WERE_NEEDED: Final = """
SELECT format('decision %s', id), CASE
    WHEN approved_by_id = decided_by_id THEN 'its author approved it'
    WHEN approved_by_id IS NOT NULL AND approver_role NOT IN ('support', 'lead', 'admin')
      THEN format('a %s approved it', approver_role)
    WHEN approved_by_id IS NOT NULL AND approver_role = 'support'
      THEN format('support approved %s', verdict)
    ELSE 'one person released with a new key, and not as the only one' END
  FROM ledger_decision
 WHERE approved_by_id = decided_by_id
    OR approver_role NOT IN ('support', 'lead', 'admin')
    OR approver_role = 'support' AND verdict IN ('release_new', 'settle', 'reopen', 'allow')
    OR verdict = 'release_new' AND decided_by_id IS NOT NULL AND approved_by_id IS NULL
       AND NOT alone
"""

BROKEN_CHAINS: Final = """
SELECT format('decision %s', v.decision_id), format('the chain breaks at its %s', v.fault)
  FROM effects_workspace w CROSS JOIN LATERAL ledger_verify_chain_v1(w.id) v
"""

CHECKS: Final = (
    Check(
        id="I15",
        sentence="Nobody approved their own request, and who approved had the role then.",
        find=rows_of(ONE_PERSON_WHERE_TWO_WERE_NEEDED),
    ),
    Check(
        id="I18",
        sentence="The decisions of each workspace form one unbroken chain.",
        find=rows_of(BROKEN_CHAINS),
    ),
)
