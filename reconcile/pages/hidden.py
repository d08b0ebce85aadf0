"""What the page of a call says of values that were hidden before they were stored."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from effects.access import Ability, DeskRequest, can, needs
from ledger import redacting

NAME_WORDS: Final = {"arguments": "arguments", "result": "result", "raw": "provider's answer"}


def hidden_part(request: DeskRequest, claim_id: UUID) -> dict[str, Any]:
    """The hidden values of a call, by their places; none of them is opened for it."""
    listed = redacting.hidden_values(request.workspace.pk, claim_id)
    return {
        "hidden": [{"is": one, "in": NAME_WORDS.get(one.name, one.name)} for one in listed],
        "may_reveal": can(request.role, Ability.REVEAL),
        "needs_reveal": needs(Ability.REVEAL),
    }
