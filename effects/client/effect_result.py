"""What a call of a tool came to: the object that an agent gets back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from effects.core.failures import Failure
from effects.core.for_model import exact_value, for_model
from effects.core.messages import ClaimAnswer

__all__ = ["Effect", "effect_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One tool call's outcome, as it may be told.

    `status` is the word in `for_model`: completed, not_executed, unknown, expired_unanswered,
    unknown_do_not_retry, in_flight, held, already_done, released, conflicted, attempts_exhausted,
    mismatch, reissued_differently, identities_disagree or ledger_unavailable.
    `for_model` is the exact object to give to the model as the tool's result; `text` is its JSON.
    `result` is the tool's result as the ledger keeps it, the same for the first call and for every
    repeat; `value` is what the function itself returned, in the process that ran it only.
    `error` is the exception of the function, `failure` how it was sorted.
    `reported` is false if the attempt's end could not be told to the ledger. `kept`: it waits in
    the spool and is delivered later. Without that its lease will run out, the claim becomes unknown
    there, and the ledger finds out by itself.
    `nothing_sent` is true if the ledger was away when the call was to be claimed: it was not made.
    """

    status: str
    for_model: dict[str, Any]
    answer: ClaimAnswer | None = None
    result: Any = None
    value: Any = None
    error: BaseException | None = None
    failure: Failure | None = None
    reported: bool = True
    kept: bool = False
    nothing_sent: bool = False

    @property
    def claim_id(self) -> UUID | None:
        return None if self.answer is None else self.answer.claim_id

    @property
    def happened(self) -> bool:
        """Whether the effect is known to have happened, in this call or in an earlier one."""
        return self.status in {"completed", "already_done"}

    @property
    def may_call_again(self) -> bool:
        """Whether the same call may be made again: it is proven that nothing happened, a person
        released it, or nothing was asked and so nothing was sent."""
        return self.status in {"not_executed", "released"} or self.nothing_sent

    @property
    def text(self) -> str:
        """`for_model` as JSON text."""
        return json.dumps(self.for_model, ensure_ascii=False)


def effect_of(
    answer: ClaimAnswer,
    *,
    value: Any = None,
    error: BaseException | None = None,
    failure: Failure | None = None,
    reported: bool = True,
    kept: bool = False,
) -> Effect:
    """The effect that an answer of the ledger stands for."""
    told = answer.for_model or for_model(answer)
    return Effect(
        status=str(told["status"]),
        for_model=told,
        answer=answer,
        result=None if answer.result is None else exact_value(answer.result),
        value=value,
        error=error,
        failure=failure,
        reported=reported,
        kept=kept,
    )
