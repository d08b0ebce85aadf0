"""Which calls may be one thing done twice."""

from __future__ import annotations

from typing import Final, LiteralString
from uuid import UUID

from ledger.functions import call
from reconcile.duplicates.executions import CLAIMS_MAX

_ALIKE: Final[LiteralString] = """
WITH me AS (SELECT * FROM ledger_claim WHERE workspace_id = %s AND id = %s)
SELECT id FROM (
  SELECT id, granted_at FROM me
  UNION SELECT c.id, c.granted_at FROM me JOIN ledger_claim c
    ON c.repeat = me.repeat AND c.workspace_id = me.workspace_id
  UNION SELECT c.id, c.granted_at FROM me JOIN ledger_claim c
    ON c.business = me.business AND c.workspace_id = me.workspace_id
) found ORDER BY granted_at, id LIMIT %s
"""


def alike(workspace_id: int, claim_id: UUID) -> list[UUID]:
    """The claim and those with its business identity, or its arguments in its conversation."""
    return [found for (found,) in call(_ALIKE, (workspace_id, claim_id, CLAIMS_MAX))]
