"""Calls that are told to a model instead of raised, because a framework repeats what is raised."""

from __future__ import annotations

from typing import Final

from effects.client.asking import ToolCall
from effects.client.decorate import AsyncTool, Tool
from effects.client.effect_result import Effect
from effects.core.problems import ArgumentsRefused, LimitExceeded

__all__ = ["did_nothing", "refused", "run", "run_async"]

CORRECT_IT: Final = "Nothing was sent. Correct the call before it is made again."


def refused(detail: str, next_step: str = CORRECT_IT) -> Effect:
    """The effect of a call that was turned away before anything was asked or sent."""
    told = {"status": "refused", "detail": detail, "next_step": next_step}
    return Effect(status="refused", for_model=told)


def did_nothing(effect: Effect) -> bool:
    """Whether it is proven that this call did nothing and may be corrected or made again: only then
    is it shown as an error. A model that reads "error" tries again, so an unknown outcome, or one
    that a person has to settle, is never shown as one."""
    return effect.status in {"refused", "not_executed"} or effect.nothing_sent


def run(tool: Tool, at: ToolCall, text: str) -> Effect:
    """`Tool.run`, where arguments that the model has to correct are told instead of raised.

    Raises what the agent's author has to correct: `NoIdentity` and other `BadRequest`,
    `TokenRefused`, `ScopeMissing`; and the exceptions of a tool that only reads.
    """
    wrong = _wrong(tool, at, text)
    if wrong is not None:
        return wrong
    try:
        return tool.run(at, text)
    except (ArgumentsRefused, LimitExceeded) as problem:
        return refused(problem.detail)


async def run_async(tool: AsyncTool, at: ToolCall, text: str) -> Effect:
    """The same for an async tool."""
    wrong = _wrong(tool, at, text)
    if wrong is not None:
        return wrong
    try:
        return await tool.run(at, text)
    except (ArgumentsRefused, LimitExceeded) as problem:
        return refused(problem.detail)


def _wrong(tool: Tool | AsyncTool, at: ToolCall, text: str) -> Effect | None:
    # Asked for by itself: a TypeError of the tool's own function is another matter.
    try:
        tool.prepare(at, text)
    except (ArgumentsRefused, TypeError) as error:
        return refused(str(error))
    return None
