"""What there is beside a call, asked by one statement: most calls have none of it, and then nobody
has to look for it table by table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import connection

if TYPE_CHECKING:
    from ledger.models import Claim

_LOOK: Final = """
SELECT EXISTS (SELECT FROM ledger_decision WHERE workspace_id = c.workspace_id AND claim_id = c.id),
       EXISTS (SELECT FROM ledger_case WHERE workspace_id = c.workspace_id AND claim_id = c.id)
       OR EXISTS (SELECT FROM ledger_heldrequest
                   WHERE workspace_id = c.workspace_id AND blocker_id = c.id),
       EXISTS (SELECT FROM reconcile_snooze WHERE claim_id = c.id AND ended_at IS NULL),
       EXISTS (SELECT FROM reconcile_askingended WHERE claim_id = c.id),
       EXISTS (SELECT FROM reconcile_proposal WHERE claim_id = c.id),
       EXISTS (SELECT FROM reconcile_take WHERE claim_id = c.id AND ended_at IS NULL),
       EXISTS (SELECT FROM reconcile_assignment WHERE claim_id = c.id),
       EXISTS (SELECT FROM reconcile_submission WHERE claim_id = c.id),
       EXISTS (SELECT FROM reconcile_outboxmessage WHERE claim_id = c.id),
       EXISTS (SELECT FROM ledger_sealedtext WHERE claim_id = c.id),
       sibling.id, (ledger_seen_v1(sibling, %(now)s)).state
  FROM ledger_claim c
  -- Worked out first: in the join itself it would be asked for every claim there is.
  CROSS JOIN LATERAL (SELECT ledger_sibling_v1(c, %(now)s) AS id) blocker
  LEFT JOIN ledger_claim sibling ON sibling.id = blocker.id
 WHERE c.id = %(claim_id)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Whether there is any of it. `sibling` is the claim that stands in the way of running this one
    again, by the ledger's own rule, with its state."""

    decisions: bool
    others: bool
    snooze: bool
    asking_ended: bool
    proposals: bool
    take: bool
    assignments: bool
    submissions: bool
    messages: bool
    hidden: bool
    sibling: UUID | None
    sibling_state: str | None


def look_beside(claim: Claim, now: datetime) -> Beside:
    """Asked after the claim was read, so that no decision which its version counts is missed."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"claim_id": claim.pk, "now": now})
        found = cursor.fetchone()
    assert found is not None, "a claim is never deleted"
    decisions, others, snooze, asking_ended, proposals, take, assignments, *rest = found
    submissions, messages, hidden, sibling, sibling_state = rest
    return Beside(
        decisions=decisions,
        others=others,
        snooze=snooze,
        asking_ended=asking_ended,
        proposals=proposals,
        take=take,
        assignments=assignments,
        submissions=submissions,
        messages=messages,
        hidden=hidden,
        sibling=sibling,
        sibling_state=sibling_state,
    )
