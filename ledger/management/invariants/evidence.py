"""What the record keeps as proof: decisions behind acts, dates in order, bodies unchanged.

Each row of an answer is a difference: first of what, then what is wrong.
"""

from __future__ import annotations

from typing import Final

from ledger.management.invariants.base import Check, rows_of

ACTS_WITHOUT_THEIR_DECISION: Final = """
SELECT e.claim_id, format('event %s (decided %s): %s', e.seq, e.word, CASE
    WHEN d.id IS NULL THEN 'there is no such decision of this claim'
    WHEN d.verdict::text <> e.word::text THEN format('its decision says %s', d.verdict)
    WHEN d.fence <> e.fence THEN format('its decision was about attempt %s', d.fence)
    WHEN e.at < d.effective_at THEN 'it was in force before its decision was'
    ELSE 'its decision had been withdrawn' END)
  FROM ledger_event e
  LEFT JOIN ledger_decision d ON d.id = e.decision_id AND d.claim_id = e.claim_id
 WHERE e.kind = 'decided'
   AND (d.id IS NULL OR d.verdict::text IS DISTINCT FROM e.word::text OR d.fence <> e.fence
        OR e.at < d.effective_at
        OR EXISTS (SELECT FROM ledger_decision w WHERE w.withdraws = d.id))
"""

# What the clock writes is dated to when it was due, which may lie before what was recorded since.
CLOCK_WENT_BACK: Final = """
SELECT claim_id, format('event %s (%s) lies %s s before an earlier one', seq, kind,
                        round(extract(epoch FROM latest - at)))
  FROM (SELECT claim_id, seq, kind, at, max(at) OVER (
                 PARTITION BY claim_id ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS latest
          FROM ledger_event) e
 WHERE at < latest - interval '5 seconds'
   AND kind NOT IN ('lapsed', 'decided', 'release_lapsed', 'absence_lapsed')
"""

CHANGED_BODIES: Final = """
SELECT claim_id, format('%s of event %s: %s', name, seq, CASE
    WHEN body IS NULL THEN 'the body is gone, and nothing says who emptied it'
    WHEN size_bytes <> octet_length(body)
      THEN format('%s bytes, and %s were recorded', octet_length(body), size_bytes)
    ELSE 'the digest does not fit the body' END)
  FROM ledger_payload
 WHERE body IS NULL AND emptied_at IS NULL
    OR size_bytes <> octet_length(body) OR digest <> sha256(body)
"""

LOST_RESULTS: Final = """
SELECT c.id, 'a result was stored, and it is not there'
  FROM ledger_claim c
 WHERE c.result_stored AND c.result IS NULL
   AND NOT EXISTS (SELECT FROM ledger_payload p WHERE p.claim_id = c.id AND p.name = 'result')
"""

CHECKS: Final = (
    Check(
        id="I9",
        sentence="Behind every decision in force stands its decision, with the same verdict.",
        find=rows_of(ACTS_WITHOUT_THEIR_DECISION),
    ),
    Check(
        id="I17",
        sentence="No event lies more than 5 s before an earlier one of its claim.",
        find=rows_of(CLOCK_WENT_BACK),
    ),
    Check(
        id="I2",
        sentence="Every stored body is the one that was stored.",
        find=rows_of(CHANGED_BODIES),
    ),
    Check(
        id="I2",
        sentence="Every result that was stored can be told again.",
        find=rows_of(LOST_RESULTS),
    ),
)
