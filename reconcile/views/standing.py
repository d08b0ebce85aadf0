"""What is true where the queue is empty: how much was settled, and when an agent last asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import connection

COUNTED_MAX: Final = 10_000
"""How far settled calls are counted: whoever has more has no use for the exact figure."""

# Ids ascend in time, so a day of calls is one range of the primary key.
_STANDING: Final = """
SELECT
  (SELECT granted_at FROM ledger_claim WHERE workspace_id = %(workspace_id)s
    ORDER BY id DESC LIMIT 1),
  (SELECT received_at FROM ledger_ingestitem WHERE workspace_id = %(workspace_id)s
    ORDER BY id DESC LIMIT 1),
  (SELECT count(*) FROM (SELECT FROM ledger_claim WHERE workspace_id = %(workspace_id)s
    AND id >= uuidv7(interval '-24 hours') AND state IN ('completed', 'not_executed')
    LIMIT %(limit)s) settled)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`settled`: how many of the calls of the last 24 hours are settled, up to `COUNTED_MAX`.
    `heard_at`: when an agent last asked, or a ledger elsewhere last sent; None: never."""

    settled: int
    heard_at: datetime | None

    @property
    def settled_words(self) -> str:
        return f"{self.settled:,}{' and more' if self.settled >= COUNTED_MAX else ''}"


def standing_of(workspace_id: int) -> Standing:
    """How the workspace stands now."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, {"workspace_id": workspace_id, "limit": COUNTED_MAX})
        asked_at, sent_at, settled = cursor.fetchone()
    heard = [instant for instant in (asked_at, sent_at) if instant is not None]
    return Standing(settled=settled, heard_at=max(heard, default=None))


def first_claim() -> str:
    """A command that makes the first call of this installation, once its token is in the shell."""
    server = settings.COUNTERFOIL_API_URL.rstrip("/")
    body = (
        '{"tool": "try_out", "effect_class": "unkeyed_write", "arguments": "{\\"amount\\": 1}", '
        '"conversation": "first", "turn_index": 0, "position": 0, "ordinal": 0, '
        '"call_id": "call_first", "nonce": "00000000000000000000000000000001"}'
    )
    return (
        'curl -sS -X POST -H "Authorization: Bearer $COUNTERFOIL_TOKEN" '
        f"-H 'Content-Type: application/json' -d '{body}' {server}/api/v1/claims"
    )
