"""An agent that pays, with a loop of its own over the Responses API of the OpenAI SDK.

The loop asks, reads, runs and tells by itself, and shows what each part of the integration is for;
`responses.run_loop` is the same in one call. The variables are those of `anthropic_loop.py`, with
OPENAI_API_KEY and OPENAI_MODEL.
"""

import os
import sys
from typing import Any

import httpx2
import openai

from effects.client import Call, Ledger, effect
from effects.client.integrations.loop import retry_count_of
from effects.client.integrations.openai import Toolbox, responses
from effects.core.streams import Protocol, StreamReader
from effects.core.vocabulary import Terminal


def our_ledger() -> Ledger:
    return Ledger(os.environ["COUNTERFOIL_URL"], os.environ["COUNTERFOIL_TOKEN"])


def tools_of(ledger: Ledger) -> Toolbox:
    @effect(ledger, effect_class="keyed_write", object_from="id")
    def send_payment(call: Call, *, amount: int) -> Any:
        """Send a payment of `amount` cents."""
        response = httpx2.post(
            os.environ["PROVIDER_URL"],
            json={"amount": amount, "metadata": call.marker_metadata},
            headers={"Idempotency-Key": call.key},
            timeout=10,
        )
        return response.raise_for_status().json()

    return Toolbox(ledger, send_payment)


def main(conversation: str, asked: str) -> None:
    client = openai.OpenAI()
    said: list[Any] = [{"role": "user", "content": asked}]
    with our_ledger() as ledger:
        tools = tools_of(ledger)
        while True:
            reader = StreamReader(Protocol.OPENAI_RESPONSES, from_events=True)
            output: list[Any] = []
            with client.responses.create(
                model=os.environ["OPENAI_MODEL"],
                input=said,
                tools=responses.tool_definitions(tools),
                stream=True,
            ) as stream:
                tries = retry_count_of(stream.response)
                for event in stream:
                    reader.feed_event(event)
                    if event.type == "response.completed":
                        output = [
                            item.model_dump(exclude_unset=True) for item in event.response.output
                        ]
            record = reader.close()
            if record.terminal is not Terminal.SUCCESS:
                # Nothing was run. The same turn may be asked again, in the same conversation.
                print(record.where_it_died().says)
                return
            index = responses.turn_index(said)
            said += output
            if not record.calls:
                print(output[-1]["content"][0]["text"])
                return
            turn = ledger.turn(
                conversation, index, response_id=record.response_id, retry_count=tries
            )
            ran = tools.run_calls(record, turn)
            said += responses.tool_results(ran)
            for one in ran:
                if one.effect is not None:
                    print(one.call.name, one.effect.status)


if __name__ == "__main__":
    main(*sys.argv[1:])
