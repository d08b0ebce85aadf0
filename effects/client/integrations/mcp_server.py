"""Decorated tools on an MCP server: the ledger is asked before a tool runs.

    server = MCPServer("shop")
    add_tool(server, place_order)

A request that is re-issued because its stream broke gets the first result. Needs the extra `mcp`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast
from uuid import UUID

from effects.client.aio import AsyncLedger
from effects.client.asking import ToolCall
from effects.client.decorate import AsyncTool, Tool
from effects.client.effect_result import Effect
from effects.client.integrations.mcp import RECOGNISES_META, annotations_of, place_of, result_of
from effects.client.integrations.refusals import refused, run, run_async
from effects.client.integrations.schema import arguments_model, description_of, what_is_wrong
from effects.client.results import arguments_text
from effects.core.failures import NotSent
from effects.core.problems import ArgumentsRefused, LedgerProblem, NoIdentity
from effects.core.vocabulary import EffectClass

try:
    import anyio
    import anyio.to_thread
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import CallToolResult, InputRequiredResult
except ImportError as error:
    raise ImportError(
        "MCP is not installed. Install the extra: pip install 'counterfoil[mcp]'."
    ) from error

__all__ = ["add_tool"]

logger = logging.getLogger("counterfoil")

Before = Callable[[Context[Any, Any], dict[str, Any]], Awaitable[InputRequiredResult | None]]


def add_tool(
    server: MCPServer[Any],
    tool: Tool | AsyncTool,
    *,
    description: str | None = None,
    identify: Callable[[Context[Any, Any]], ToolCall] | None = None,
    before: Before | None = None,
    wait_seconds: float = 10.0,
) -> None:
    """Adds a decorated tool to an MCP server.

    `identify` says which call a request is; by default its `_meta` says so (`place_of`), and a
    write without an identity is refused. `before` is asked on every round before the claim; what it
    returns is sent as `input_required`, and it raises `NotSent` to turn the call away. A tool never
    asks for input after its claim: the rounds of one call would be attempts.

    A call that runs is carried to its end although the protocol treats a lost connection as a
    cancellation: half an effect helps nobody, and the re-issued request gets the result. One that
    arrives while the first still runs waits for it, at most `wait_seconds`.

    Raises TypeError for a tool without words, or whose function returns `InputRequiredResult`.
    """
    if "InputRequiredResult" in str(_returns(tool)):
        raise TypeError(f"{tool.name} asks for input after its claim. Ask in `before`.")
    handler = _Handler(tool, identify or _identified, before, wait_seconds)

    async def handle(ctx: Context[Any, Any], **given: Any) -> CallToolResult | InputRequiredResult:
        return await handler(ctx, given)

    _show_parameters(handle, tool)
    server.add_tool(
        handle,
        name=tool.name,
        description=description_of(tool, description),
        annotations=annotations_of(tool.effect_class),
        meta={RECOGNISES_META: True},
        structured_output=False,
    )


class _Handler:
    """One tool of a server."""

    def __init__(
        self,
        tool: Tool | AsyncTool,
        identify: Callable[[Context[Any, Any]], ToolCall],
        before: Before | None,
        wait_seconds: float,
    ) -> None:
        self._tool = tool
        self._arguments = arguments_model(tool)
        self._identify = identify
        self._before = before
        self._wait_seconds = wait_seconds

    async def __call__(
        self, ctx: Context[Any, Any], given: dict[str, Any]
    ) -> CallToolResult | InputRequiredResult:
        given = _as_written(ctx, given)
        try:
            text = arguments_text(given)
        except ArgumentsRefused as problem:
            return result_of(refused(problem.detail))
        wrong = what_is_wrong(self._arguments, text)
        if wrong is not None:
            return result_of(refused(f"The arguments of {self._tool.name} are wrong. {wrong}"))
        try:
            reads = self._tool.effect_class is EffectClass.READ
            at = ToolCall() if reads else self._identify(ctx)
            asked = None if self._before is None else await self._before(ctx, given)
        except NoIdentity as problem:
            return result_of(refused(problem.detail))
        except NotSent as error:
            return result_of(refused(str(error)))
        return asked if asked is not None else result_of(await self._claimed(at, text))

    async def _claimed(self, at: ToolCall, text: str) -> Effect:
        tool = self._tool
        try:
            with anyio.CancelScope(shield=tool.effect_class is not EffectClass.READ):
                told = await _carried_out(tool, at, text)
        except LedgerProblem:
            logger.exception("%s was called and could not be claimed.", tool.name)
            return refused(f"The record of {tool.name} could not be opened.", "Nothing was sent.")
        if told.status != "in_flight" or told.claim_id is None or self._wait_seconds <= 0:
            return told
        try:
            return await self._waited(told.claim_id)
        except LedgerProblem:
            return told  # Asking again is a courtesy; what was said is still true.

    async def _waited(self, claim_id: UUID) -> Effect:
        ledger = self._tool._ledger_now()  # noqa: SLF001 - the ledger that the tool has just asked
        if isinstance(ledger, AsyncLedger):
            return await ledger.wait(claim_id, self._wait_seconds)
        waiting = partial(ledger.wait, claim_id, self._wait_seconds)
        return cast("Effect", await anyio.to_thread.run_sync(waiting, abandon_on_cancel=True))


async def _carried_out(tool: Tool | AsyncTool, at: ToolCall, text: str) -> Effect:
    if isinstance(tool, AsyncTool):
        return await run_async(tool, at, text)
    return await anyio.to_thread.run_sync(run, tool, at, text)


def _identified(ctx: Context[Any, Any]) -> ToolCall:
    return place_of(cast("Mapping[str, Any] | None", ctx.request_context.meta))


def _as_written(ctx: Context[Any, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they came. MCP's server has converted `given` by the schema, and a converted
    amount is compared as another one."""
    params = ctx.request_context.params or {}
    written = params.get("arguments")
    return dict(written) if isinstance(written, Mapping) else given


def _returns(tool: Tool | AsyncTool) -> Any:
    return inspect.signature(cast("Any", tool).__wrapped__).return_annotation


def _show_parameters(handle: Callable[..., Any], tool: Tool | AsyncTool) -> None:
    """Gives `handle` the parameters of the tool, from which MCP's server makes the schema."""
    fields = arguments_model(tool).model_fields
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context),
        *(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=field.rebuild_annotation(),
                default=inspect.Parameter.empty if field.is_required() else field.default,
            )
            for name, field in fields.items()
        ),
    ]
    shown = cast("Any", handle)
    shown.__signature__ = inspect.Signature(parameters)
    shown.__annotations__ = {each.name: each.annotation for each in parameters}
