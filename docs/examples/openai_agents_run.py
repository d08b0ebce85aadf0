"""An agent that pays, with the OpenAI Agents SDK.

The variables are those of `anthropic_loop.py`, with OPENAI_API_KEY and OPENAI_MODEL.
"""

import asyncio
import os
import sys
from typing import Any

import httpx2
import openai
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner

from effects.client import AsyncCall, AsyncLedger, effect
from effects.client.integrations.guard import AsyncGuard
from effects.client.integrations.openai_agents import AsyncToolbox, Turns, function_tools


def tools_of(ledger: AsyncLedger) -> AsyncToolbox:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    async def send_payment(call: AsyncCall, *, amount: int) -> Any:
        """Send a payment of `amount` cents."""
        async with httpx2.AsyncClient(timeout=10) as client:
            response = await client.post(
                os.environ["PROVIDER_URL"],
                json={"amount": amount, "metadata": call.marker_metadata},
                headers={"Idempotency-Key": call.key},
            )
        return response.raise_for_status().json()

    return AsyncToolbox(ledger, send_payment)


async def main(conversation: str, asked: str) -> None:
    url, token = os.environ["COUNTERFOIL_URL"], os.environ["COUNTERFOIL_TOKEN"]
    # A stream that breaks off is an error under the guard, whatever the SDK would make of it.
    http = openai.DefaultAsyncHttpxClient(transport=AsyncGuard())
    async with AsyncLedger(url, token) as ledger, openai.AsyncOpenAI(http_client=http) as client:
        agent = Agent(
            name="Till",
            model=OpenAIResponsesModel(os.environ["OPENAI_MODEL"], client),
            tools=[*function_tools(tools_of(ledger), timeout_seconds=30)],
        )
        turns = Turns(conversation)
        result = await Runner.run(
            agent, asked, hooks=turns, run_config=RunConfig(tracing_disabled=True)
        )
    for told in turns.effects.values():
        print(told.status)
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))  # noqa: TID251 - a program of its own
