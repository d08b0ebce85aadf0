"""Who did what: keeps the acts that no history of their own keeps.

Decisions, tools, connections and members have histories; the audit log reads those where they are.
Whoever changes anything else, or looks at what is hidden, says so here, in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import connection

from effects.models import AuditEntry

TARGET_CHARACTERS_MAX: Final = 200
REASON_CHARACTERS_MAX: Final = 500


def keep(  # noqa: PLR0913 - an entry is its words: who did what to what, from what to what, and why.
    workspace_id: int,
    act: str,
    *,
    user_id: int | None,
    target: str,
    address: str = "",
    before: Any = None,
    after: Any = None,
    reason: str = "",
) -> AuditEntry:
    """Keep one act. `act` is "what.done"; `before` and `after` are JSON values without secrets.

    Call it inside the transaction of the act: an act that is rolled back was none.
    """
    return AuditEntry.objects.create(
        workspace_id=workspace_id,
        at=_now(),
        user_id=user_id,
        act=act,
        target=target[:TARGET_CHARACTERS_MAX],
        target_address=address,
        before=before,
        after=after,
        reason=reason[:REASON_CHARACTERS_MAX],
    )


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now
