"""The newest arguments of a tool as they are stored: what a rule is tried on."""

from __future__ import annotations

from typing import Final, LiteralString
from uuid import UUID

from ledger.functions import call

CLAIMS_LOOKED_AT_MAX: Final = 5000
"""Newest claims of the installation among which those of a tool are looked for."""

_NEWEST: LiteralString = """
SELECT c.id, coalesce(c.arguments, (SELECT convert_from(p.body, 'UTF8') FROM ledger_payload p
    WHERE p.claim_id = c.id AND p.seq = 0 AND p.name = 'arguments'))
  FROM (SELECT id, workspace_id, tool_id, arguments FROM ledger_claim
         ORDER BY id DESC LIMIT %s) c
 WHERE c.workspace_id = %s AND c.tool_id = %s
 ORDER BY c.id DESC LIMIT %s
"""


def newest_arguments(workspace_id: int, tool_id: int, *, limit: int) -> list[tuple[UUID, str]]:
    """Claim and arguments of the tool's newest calls; those that were emptied are left out."""
    rows = call(_NEWEST, (CLAIMS_LOOKED_AT_MAX, workspace_id, tool_id, limit))
    return [(claim_id, text) for claim_id, text in rows if text is not None]
