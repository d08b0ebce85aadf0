"""The results of orphaned calls: calls that a response announced and that no result answered.

What is written back is what the status question by the API answers, word for word. Where no claim
was made here, the ledger has no word on the call, and says that; nothing is made up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from effects.core.for_model import for_model
from effects.core.messages import ClaimAnswer
from effects.core.result_blocks import result_blocks
from ledger import queries
from ledger.items import visible_json
from ledger.turn_parts.calls import GoesBack, TurnCall

BLOCK_CHARACTERS_SHOWN_MAX: Final = 20_000
"""A longer result is not copied by hand: the status question gives it to the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One API's form, as JSON text. `too_long` counts its characters where it is not shown."""

    api: str
    text: str
    too_long: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBack:
    """What goes back for one call. Without blocks `says` tells why there are none."""

    call: TurnCall
    status: str = ""
    says: str
    blocks: Sequence[Block] = ()


_NONE: Final = {
    GoesBack.NOTHING: (
        "It was cut off inside its arguments and never ran. Leave its block out of the history: "
        "a result would tell the model of something that was not asked."
    ),
    GoesBack.AGAIN: (
        "It only reads, and no claim was made for it. Make the call again and write back what it "
        "returns; no result of it is kept here."
    ),
}
NO_ID: Final = (
    "The response gave the call no id, so no result can name it. Leave its block out, and tell the "
    "model in words what is known."
)


def written_back(workspace_id: int, call: TurnCall) -> WrittenBack | None:
    """What goes back to the model for this call now; None where its response ended well."""
    if call.goes_back is None:
        return None
    if call.goes_back in _NONE:
        return WrittenBack(call=call, says=_NONE[call.goes_back])
    told = _told(workspace_id, call)
    if not call.call_id:
        return WrittenBack(call=call, status=str(told["status"]), says=NO_ID)
    blocks = [_block(api, block) for api, block in result_blocks(call.call_id, told).items()]
    return WrittenBack(
        call=call, status=str(told["status"]), says=str(told["detail"]), blocks=blocks
    )


def _told(workspace_id: int, call: TurnCall) -> dict[str, Any]:
    if call.claim_id is None:
        return for_model(ClaimAnswer(tool=call.tool or None))
    return queries.answer(workspace_id, call.claim_id).for_model or {}


def _block(api: str, block: dict[str, Any]) -> Block:
    text = visible_json(json.dumps(block, ensure_ascii=False, indent=2))
    if len(text) > BLOCK_CHARACTERS_SHOWN_MAX:
        return Block(api=api, text="", too_long=len(text))
    return Block(api=api, text=text)
