"""A shop over MCP whose orders are made once, and a client that may ask again.

    COUNTERFOIL_URL=http://127.0.0.1:8001 COUNTERFOIL_TOKEN=cf_... PROVIDER_URL=... \
    python mcp_shop.py serve
    python mcp_shop.py order c-1 Z
"""

import os
import sys
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult

from effects.client import Call, Ledger, ToolCall, effect
from effects.client.integrations.mcp_client import Connect, call_tool
from effects.client.integrations.mcp_server import add_tool

URL = "http://127.0.0.1:8000/mcp"


def shop(ledger: Ledger) -> MCPServer[Any]:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    def place_order(call: Call, *, sku: str) -> Any:
        """Order one piece of `sku`."""
        response = httpx2.post(
            os.environ["PROVIDER_URL"],
            json={"sku": sku, "metadata": call.marker_metadata},
            headers={"Idempotency-Key": call.key},
            timeout=10,
        )
        return response.raise_for_status().json()

    server: MCPServer[Any] = MCPServer("shop")
    add_tool(server, place_order)
    return server


async def order(connect: Connect, conversation: str, sku: str) -> CallToolResult:
    """The first call of a conversation's first turn. An agent takes these from its loop."""
    at = ToolCall(conversation=conversation, turn_index=0, call_id="toolu_01WkP9QmXyZ0")
    return await call_tool(connect, "place_order", {"sku": sku}, at)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        with Ledger(os.environ["COUNTERFOIL_URL"], os.environ["COUNTERFOIL_TOKEN"]) as ledger:
            shop(ledger).run("streamable-http")
    else:
        _, _, conversation, sku = sys.argv
        result = anyio.run(order, lambda: Client(URL), conversation, sku)
        print(result.structured_content)
