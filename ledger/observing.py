"""Recording what was judged a moment ago, and planning for many claims at once.

Between judging an answer and recording it nothing is locked, so what it was judged by may have
changed. Both verbs raise `ClaimNotFound` for a claim that is not in the workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from effects.core.vocabulary import ClaimState
from ledger.append import Observation, observe
from ledger.functions import call


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What became of an answer: the number of its event, whether it counts there, and whether the
    claim was still the one by which it was judged."""

    state: ClaimState
    seq: int
    counts: bool
    unchanged: bool


def observe_unchanged(
    workspace_id: int, claim_id: UUID, observation: Observation, *, version: int
) -> Observed:
    """Keeps one provider answer that was judged by the claim at `version`. Where the claim has
    changed since, it is kept and does not count."""
    named = (claim_id, workspace_id)
    with transaction.atomic():
        rows = call(
            "SELECT version FROM ledger_claim WHERE id = %s AND workspace_id = %s FOR UPDATE", named
        )
        unchanged = rows == [(version,)]
        if not unchanged:
            observation = replace(observation, counts=False, conditional=False)
        state = observe(workspace_id, claim_id, observation)
        # The newest event of a claim has its version as number, and the row is still locked.
        ((seq, counts),) = call(
            """
            SELECT e.seq, coalesce(e.counts, false) FROM ledger_claim c
            JOIN ledger_event e ON e.claim_id = c.id AND e.seq = c.version
            WHERE c.id = %s AND c.workspace_id = %s
            """,
            named,
        )
    return Observed(state=state, seq=seq, counts=counts, unchanged=unchanged)


def schedule_lookups(claim_ids: Sequence[UUID], at: datetime, *, known_at: datetime) -> None:
    """Plans the next look-up of many claims for one instant, as `append.schedule_lookup` does."""
    call(
        "SELECT ledger_schedule_lookup_v1(c, %s, %s) FROM unnest(%s::uuid[]) c ORDER BY c",
        (at, known_at, list(claim_ids)),
    )
