"""The tool by which a model asks what became of an earlier call, instead of making it again."""

from __future__ import annotations

from typing import Any, Final

from typing_extensions import override

from effects.client.aio import AsyncLedger
from effects.client.decorate import AsyncTool, Tool
from effects.client.effect_result import Effect
from effects.client.ledger import Ledger
from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import EffectClass

__all__ = ["STATUS_TOOL", "AsyncStatusTool", "StatusTool"]

STATUS_TOOL: Final = "tool_call_status"


def tool_call_status(*, claim: str) -> None:
    """Tell what became of an earlier tool call whose outcome was not known. `claim` is the value
    that the call's result named. Asking changes nothing."""


async def _tool_call_status(*, claim: str) -> None: ...


_tool_call_status.__doc__ = tool_call_status.__doc__


class StatusTool(Tool):
    """Answers what the ledger knows of a claim now, in the same words as the call's own result."""

    def __init__(self, ledger: Ledger, name: str = STATUS_TOOL) -> None:
        super().__init__(
            tool_call_status,
            ledger,
            name=name,
            effect_class=EffectClass.READ,
            contract=None,
            object_from=None,
        )

    @override
    def read(self, arguments: dict[str, Any]) -> Effect:
        try:
            told: Effect = self._ledger_now().status(arguments["claim"])
        except ClaimNotFound as problem:
            return _no_such_claim(problem)
        return told


class AsyncStatusTool(AsyncTool):
    """`StatusTool`, awaited."""

    def __init__(self, ledger: AsyncLedger, name: str = STATUS_TOOL) -> None:
        super().__init__(
            _tool_call_status,
            ledger,
            name=name,
            effect_class=EffectClass.READ,
            contract=None,
            object_from=None,
        )

    @override
    async def read(self, arguments: dict[str, Any]) -> Effect:
        try:
            told: Effect = await self._ledger_now().status(arguments["claim"])
        except ClaimNotFound as problem:
            return _no_such_claim(problem)
        return told


def _no_such_claim(problem: ClaimNotFound) -> Effect:
    told = {
        "status": problem.code,
        "detail": "The ledger has no claim of that name. That proves nothing about any call.",
        "next_step": "Ask with the claim that the call's result named. Do not repeat the call.",
    }
    return Effect(status=problem.code, for_model=told, error=problem)
