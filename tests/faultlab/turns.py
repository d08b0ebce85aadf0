"""One turn of an agent that dispatches a call the moment it is announced as whole, with the real
SDK. It is what makes a cut after that moment dangerous.

`python -m tests.faultlab.turns JOB MODEL_URL` is one delivery of a turn to a worker's process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import anthropic
import httpx2

from effects.client import Ledger, ToolCall
from tests.faultlab import agent
from tests.faultlab.agent import Job

TOOL: Final[Any] = {
    "name": "transfer",
    "description": "Sends money.",
    "input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}},
}
SAID: Final[Any] = [{"role": "user", "content": "Pay the invoice."}]


class StreamCut(Exception):
    """The response ended without the event that ends it."""


Dispatch = Callable[[str, dict[str, Any], str], str]
"""From call id, arguments and response id to the word that the model is told."""


def run_turn(model_url: str, dispatch: Dispatch) -> list[str]:
    """What the calls of one turn came to. Raises `StreamCut` after whatever it has dispatched."""
    told = []
    client = anthropic.Anthropic(base_url=model_url, api_key="none", max_retries=0)
    with client:
        try:
            with client.messages.stream(
                model="m", max_tokens=100, messages=SAID, tools=[TOOL]
            ) as stream:
                for event in stream:
                    if (
                        event.type == "content_block_stop"
                        and event.content_block.type == "tool_use"
                    ):
                        block, response = event.content_block, stream.current_message_snapshot.id
                        told.append(dispatch(block.id, dict(block.input), response))
                    if event.type == "message_stop":
                        return told
        except httpx2.TransportError as error:
            raise StreamCut(told) from error
    raise StreamCut(told)


def unguarded(job: Job) -> Dispatch:
    """The dispatcher without a memory."""

    def dispatch(_call_id: str, _arguments: dict[str, Any], _response_id: str) -> str:
        agent.send(job)
        return "done"

    return dispatch


@contextmanager
def guarded(job: Job) -> Iterator[Dispatch]:
    """The same, which asks the ledger first. Calls and responses have new ids each time."""
    ledger: Ledger
    with agent.opened(job) as ledger:
        tool = agent.tool_of(ledger, job)

        def dispatch(call_id: str, arguments: dict[str, Any], response_id: str) -> str:
            at = ToolCall(
                conversation=job.conversation,
                turn_index=job.turn_index,
                call_id=call_id,
                response_id=response_id,
                delivery_count=job.delivery_count,
            )
            return tool.run(at, json.dumps(arguments)).status

        yield dispatch


def deliver(job: Job, model_url: str) -> list[str]:
    """One delivery of the turn, to a dispatcher with or without a memory."""
    if not job.guarded:
        return run_turn(model_url, unguarded(job))
    with guarded(job) as dispatch:
        return run_turn(model_url, dispatch)


if __name__ == "__main__":
    print(deliver(agent.of_text(sys.argv[1]), sys.argv[2]))
