"""An agent that pays, with the Anthropic SDK. Run it twice: the payment is made once.

    COUNTERFOIL_URL=http://127.0.0.1:8001 COUNTERFOIL_TOKEN=cf_... PROVIDER_URL=... \
    ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... python anthropic_loop.py c-1 "Pay 12 euros to Ada."
"""

import os
import sys
from typing import Any

import anthropic
import httpx2

from effects.client import Call, Ledger, effect
from effects.client.integrations.anthropic import Stop, Toolbox, messages


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
    with our_ledger() as ledger:
        result = messages.run_loop(
            anthropic.Anthropic(),
            tools_of(ledger),
            conversation=conversation,
            messages=[{"role": "user", "content": asked}],
            model=os.environ["ANTHROPIC_MODEL"],
            max_tokens=1024,
        )
    for one in result.ran:
        if one.effect is not None:
            print(one.call.name, one.effect.status)
    if result.stop is Stop.DIED:
        print(result.death.says)
    elif result.stop is Stop.ANSWERED:
        print(result.messages[-1]["content"][0]["text"])


if __name__ == "__main__":
    main(*sys.argv[1:])
