"""What the page of a call says of values that were hidden before they were stored."""

from __future__ import annotations

from typing import Any, Final

from effects.access import Ability, DeskRequest, can, needs
from ledger import redacting
from reconcile.queries import Call

NAME_WORDS: Final = {"arguments": "arguments", "result": "result", "raw": "provider's answer"}


def hidden_part(request: DeskRequest, seen: Call) -> dict[str, Any]:
    """The hidden values of a call, by their places; none of them is opened for it."""
    hidden = seen.beside.hidden
    listed = redacting.hidden_values(request.workspace.pk, seen.claim.pk) if hidden else []
    return {
        "hidden": [{"is": one, "in": NAME_WORDS.get(one.name, one.name)} for one in listed],
        "may_reveal": can(request.role, Ability.REVEAL),
        "needs_reveal": needs(Ability.REVEAL),
    }
