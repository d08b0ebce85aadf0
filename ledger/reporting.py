"""How one attempt ended, as its agent reports it: redacted, then one statement and one commit."""

from __future__ import annotations

from functools import partial
from typing import LiteralString
from uuid import UUID

from django.conf import settings
from psycopg.types.json import Jsonb

from effects.core.claim_rows import reported_facts
from effects.core.messages import Complete, Settle
from effects.core.redaction import Redacted
from effects.core.status import Shown, read_shown
from effects.core.vocabulary import ClaimState, Outcome
from ledger import redacting
from ledger.functions import call_for_claim
from ledger.models_sealed import SealedText


def report(workspace_id: int, claim_id: UUID, outcome: Outcome, settle: Settle) -> ClaimState:
    """One attempt's report. The same report again is the same fact.

    Raises `StaleFence` for an attempt that was never granted.
    """
    shown, _ = reported(workspace_id, claim_id, outcome, settle)
    return shown.state


REPORT: LiteralString = """
SELECT (shown).*, version FROM ledger_reported_v1(
  %s, %s, %s, %s::ledger_event_word, %s, %s, %s, %s, %s, %s, %s)
"""
REPORT_IF_OPEN: LiteralString = """
SELECT (r.shown).*, r.version FROM ledger_apitoken t CROSS JOIN LATERAL ledger_reported_v1(
  t.workspace_id, %s, %s, %s::ledger_event_word, %s, %s, %s, %s, %s, %s, %s) r
WHERE t.hash = %s AND t.revoked_at IS NULL
"""
"""The same if the token is open; the report depends on the token's row."""


def reported(
    workspace_id: int,
    claim_id: UUID,
    outcome: Outcome,
    settle: Settle,
    *,
    token: bytes | None = None,
) -> tuple[Shown, int]:
    """The same, answered with the claim as its agent may be told of it then, and its version.

    `token` is the hash of one of the workspace's tokens about which nobody has asked yet; raises
    `TokenRefused` where it is not open.
    """
    settle, kept = redacting.report(workspace_id, claim_id, settle)
    if kept is not None and kept.found:
        return redacting.in_one(
            partial(_report_and_seal, workspace_id, claim_id, outcome, settle, token, kept)
        )
    return _report(workspace_id, claim_id, outcome, settle, token)


def _report_and_seal(
    workspace_id: int,
    claim_id: UUID,
    outcome: Outcome,
    settle: Settle,
    token: bytes | None,
    kept: Redacted,
) -> tuple[Shown, int]:
    told = _report(workspace_id, claim_id, outcome, settle, token)
    redacting.seal(workspace_id, SealedText.Name.RESULT, kept, claim_id=claim_id)
    return told


def _report(
    workspace_id: int, claim_id: UUID, outcome: Outcome, settle: Settle, token: bytes | None
) -> tuple[Shown, int]:
    complete = settle if isinstance(settle, Complete) else None
    said = reported_facts(settle)
    values = (
        workspace_id,
        claim_id,
        settle.fence,
        str(outcome),
        settle.provider_object,
        settle.replayed,
        settle.marker_sent,
        complete.result if complete else None,
        complete.result_stored and complete.result is not None if complete else None,
        Jsonb(said) if said else None,
        settings.COUNTERFOIL_DESK_URL,
    )
    *row, version = (
        call_for_claim(claim_id, REPORT, values)
        if token is None
        else call_for_claim(claim_id, REPORT_IF_OPEN, (*values[1:], token))
    )
    return read_shown(row), version
