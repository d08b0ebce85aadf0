"""Calls to MCP servers: one identity for every request of a call, and a claim where the server
recognises nothing.

    shop = partial(Client, "http://127.0.0.1:8000/mcp")
    result = await call_tool(shop, "place_order", {"sku": "Z"}, at)

Needs the extra `mcp`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

from effects.client.aio import AsyncCall, AsyncLedger
from effects.client.asking import ToolCall
from effects.client.decorate import AsyncTool, effect
from effects.client.effect_result import Effect
from effects.client.integrations.mcp import (
    CLAIM_META,
    KEY_META,
    RECOGNISES_META,
    RETRY_META,
    meta_of,
    result_of,
)
from effects.core.vocabulary import EffectClass

try:
    import anyio
    import httpx2
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        CONNECTION_CLOSED,
        REQUEST_TIMEOUT,
        CallToolResult,
        RequestParamsMeta,
        TextContent,
    )
except ImportError as error:
    raise ImportError(
        "MCP is not installed. Install the extra: pip install 'counterfoil[mcp]'."
    ) from error

__all__ = ["OutcomeUnknown", "call_tool", "remote_tool"]

logger = logging.getLogger("counterfoil")

BROKEN: Final = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})
"""Errors that the client itself makes up where no answer came. They say nothing about the call."""

LOSSES: Final = (httpx2.TransportError, OSError, anyio.ClosedResourceError, anyio.EndOfStream)

PAUSE_SECONDS_FIRST: Final = 0.1
"""Before a request is re-issued for the first time; it doubles with every further one."""

Connect = Callable[[], AbstractAsyncContextManager[Client]]

Answer = TypeVar("Answer")


class OutcomeUnknown(Exception):
    """A tool of another server may have happened. Its answer is no proof of either."""


async def call_tool(
    connect: Connect,
    name: str,
    arguments: dict[str, Any],
    at: ToolCall,
    *,
    tries_max: int = 3,
    read_timeout_seconds: float | None = None,
) -> CallToolResult:
    """Calls a tool for the model's call `at`, and re-issues the request where no answer came.

    `connect` makes a client, as in `lambda: Client(url)`: a connection that broke ends the client
    that had it. Only a server that says of this tool that it recognises the call is asked again. Of
    any other the result is *unknown*: it may have happened, and asking again might do it twice.
    Rounds in which the server asks for input carry the same identity and are part of one request.

    Raises `MCPError` for an error that the server answered, as `Client.call_tool` does.
    """
    meta, asked = meta_of(at), 0

    async def ask(client: Client) -> CallToolResult | None:
        nonlocal asked
        if asked and not await _recognises(client, name):
            return None
        asked += 1
        return await client.call_tool(
            name,
            arguments,
            read_timeout_seconds=read_timeout_seconds,
            meta=cast("RequestParamsMeta", {**meta, RETRY_META: asked - 1}),
        )

    for retry in range(max(1, tries_max)):
        if retry:
            await anyio.sleep(PAUSE_SECONDS_FIRST * 2 ** (retry - 1))
        try:
            result = await _answered(connect, ask)
        except Exception as problem:
            lost = _lost(problem)
            if lost is None:
                raise
            logger.warning("%s: no answer (%s: %s).", name, type(lost).__name__, lost)
            continue
        if result is None:
            break
        return result
    return result_of(_unknown(name) if asked else _never_sent(name))


async def _answered(connect: Connect, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """What `ask` gets of a client; an answer that came counts also if closing the client fails."""
    answers: list[Answer] = []
    try:
        async with connect() as client:
            answers.append(await ask(client))
    except Exception as problem:
        if not answers:
            raise
        logger.info("The client did not close well: %s: %s", type(problem).__name__, problem)
    return answers[0]


def _lost(problem: Exception) -> Exception | None:
    """The loss of a connection, if that is what happened. The client's tasks raise it in a group,
    and where a stream ended, or took too long, it makes up an error answer of its own."""
    if isinstance(problem, ExceptionGroup):
        found = [_lost(each) for each in problem.exceptions]
        return found[0] if all(found) else None
    if isinstance(problem, MCPError):
        return problem if problem.code in BROKEN else None
    return problem if isinstance(problem, LOSSES) else None


async def _recognises(client: Client, name: str) -> bool:
    cursor: str | None = None
    while True:
        listed = await client.list_tools(cursor=cursor)
        for tool in listed.tools:
            if tool.name == name:
                return (tool.meta or {}).get(RECOGNISES_META) is True
        cursor = listed.next_cursor
        if cursor is None:
            return False


def _unknown(name: str) -> Effect:
    told = {
        "status": "unknown",
        "detail": f"It is not known whether {name} happened: the connection was lost.",
        "next_step": "Do not call this tool again for this; ask a person.",
    }
    return Effect(status="unknown", for_model=told)


def _never_sent(name: str) -> Effect:
    told = {
        "status": "not_executed",
        "detail": f"{name} was not called: its server could not be reached.",
        "next_step": "Nothing happened. The call may be made again later.",
    }
    return Effect(status="not_executed", for_model=told)


def remote_tool(
    ledger: AsyncLedger,
    connect: Connect,
    name: str,
    *,
    effect_class: EffectClass | str,
    read_timeout_seconds: float | None = None,
) -> AsyncTool:
    """A tool of another server, claimed in the agent's own ledger: for servers that recognise
    nothing. `effect_class` is the author's word, never the server's hint.

    The request is made once. A result that is an error, an error answer and a lost connection leave
    the outcome unknown: `isError` does not say that nothing was done. A connection that was refused
    does. A tool that asks for input is unknown as well: claim it on its server.
    """

    async def ask(arguments: dict[str, Any], meta: dict[str, Any]) -> Any:
        async def once(client: Client) -> CallToolResult:
            await client.list_tools()  # The client has to know the schema before it sends.
            return await client.session.call_tool(
                name,
                arguments,
                read_timeout_seconds=read_timeout_seconds,
                meta=cast("RequestParamsMeta", meta),
            )

        try:
            return _proven(name, await _answered(connect, once))
        except ExceptionGroup as group:
            problem = _lost(group) or group
        raise problem  # Outside the handler: the group around it is no part of what was met.

    async def read(**arguments: Any) -> Any:
        return await ask(arguments, {})

    async def write(call: AsyncCall, **arguments: Any) -> Any:
        call.check_send()
        return await ask(arguments, {KEY_META: call.plain.answer.key or call.marker})

    reads = EffectClass(effect_class) is EffectClass.READ
    return effect(ledger, effect_class=effect_class, tool=name)(read if reads else write)


def _proven(name: str, result: CallToolResult) -> Any:
    """The value of a result that says that the tool did its work. Raises `OutcomeUnknown`."""
    claim = (result.meta or {}).get(CLAIM_META)
    status = claim.get("status") if isinstance(claim, Mapping) else None
    words = " ".join(one.text for one in result.content if isinstance(one, TextContent))
    if result.is_error or status not in {None, "completed", "already_done"}:
        raise OutcomeUnknown(f"{name} answered: {words or 'an error'}")
    return words if result.structured_content is None else result.structured_content
