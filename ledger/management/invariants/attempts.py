"""Attempts and events: numbered without gaps, granted once, within the budget.

Each row of an answer is a difference: first of what, then what is wrong.
"""

from __future__ import annotations

from typing import Final

from ledger.management.invariants.base import Check, rows_of

ONE_GRANT_PER_FENCE: Final = """
SELECT claim_id, format('attempt %s was granted %s times', fence, count(*))
  FROM ledger_event WHERE kind = 'granted' GROUP BY claim_id, fence HAVING count(*) > 1
"""

FENCES_WITHOUT_GAPS: Final = """
SELECT c.id, format('the fence is %s; attempts %s to %s were granted, %s of them',
                    c.fence, e.low, e.high, e.many)
  FROM ledger_claim c
  LEFT JOIN LATERAL (SELECT min(fence) AS low, max(fence) AS high, count(DISTINCT fence) AS many
                       FROM ledger_event WHERE claim_id = c.id AND kind = 'granted') e ON true
 WHERE (e.low, e.high, e.many) IS DISTINCT FROM (1, c.fence, c.fence::bigint)
"""

EVENTS_WITHOUT_GAPS: Final = """
SELECT claim_id, format('%s events, numbered %s to %s', count(*), min(seq), max(seq))
  FROM ledger_event GROUP BY claim_id HAVING min(seq) <> 1 OR max(seq) <> count(*)
"""

ATTEMPTS_WITHIN_BUDGET: Final = """
SELECT c.id, format('%s attempts; the budget with its releases is %s', e.many, c.budget)
  FROM ledger_claim c
  JOIN LATERAL (SELECT count(*) AS many FROM ledger_event
                 WHERE claim_id = c.id AND kind = 'granted'
                   AND data->'ungranted' IS NULL) e ON true
 WHERE e.many > c.budget
"""

TWO_OBJECTS_ARE_A_CONFLICT: Final = """
SELECT c.id, format('%s different provider objects were reported, and the claim is %s',
                    e.objects, c.state)
  FROM ledger_claim c
  JOIN LATERAL (
    SELECT count(DISTINCT object) AS objects FROM ledger_event
     WHERE claim_id = c.id AND kind = 'reported' AND word = 'completed' AND object IS NOT NULL
       AND seq > coalesce((SELECT max(seq) FROM ledger_event
                            WHERE claim_id = c.id AND kind = 'decided' AND word = 'reopen'), 0)
  ) e ON true
 WHERE e.objects > 1 AND c.state <> 'conflicted'
   AND NOT EXISTS (SELECT FROM ledger_event
                    WHERE claim_id = c.id AND kind = 'decided' AND word = 'settle')
"""

CHECKS: Final = (
    Check(
        id="I3",
        sentence="Each attempt of a claim was granted once.",
        find=rows_of(ONE_GRANT_PER_FENCE),
    ),
    Check(
        id="I4",
        sentence="The fences of a claim are 1 to n without gaps, and the row holds the newest.",
        find=rows_of(FENCES_WITHOUT_GAPS),
    ),
    Check(
        id="I4",
        sentence="The events of a claim are numbered from 1 without gaps.",
        find=rows_of(EVENTS_WITHOUT_GAPS),
    ),
    Check(
        id="I5",
        sentence="A claim was granted no more often than its budget and the releases taken up.",
        find=rows_of(ATTEMPTS_WITHIN_BUDGET),
    ),
    Check(
        id="I7",
        sentence="Two provider objects of one claim are a conflict until a person settles it.",
        find=rows_of(TWO_OBJECTS_ARE_A_CONFLICT),
    ),
)
