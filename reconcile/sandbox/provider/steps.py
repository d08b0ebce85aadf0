"""What becomes of objects by themselves: the bank's next word, after a while, by our own clock.

Whatever is planned here is caused by no request, and its events say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconcile.sandbox.provider.context import Context
from reconcile.sandbox.provider.recipes import STEP_SECONDS

STEPS_TABLE: Final = "steps"


def plan(
    ctx: Context,
    table: str,
    object_id: str,
    course: Sequence[str],
    *,
    seconds: float = STEP_SECONDS,
) -> None:
    """The statuses that an object goes through from now on, one every so many seconds; an empty
    course ends what was planned."""
    if not course:
        ctx.batch.remove(STEPS_TABLE, object_id)
        return
    step = {
        "scope": ctx.scope,
        "livemode": ctx.livemode,
        "table": table,
        "course": list(course),
        "due_at": ctx.now + seconds,
    }
    ctx.batch.put(STEPS_TABLE, object_id, step)
