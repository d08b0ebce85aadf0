"""An agent in a process of its own: it charges a card, learns nothing, waits, and is told.

    python -m tests.browser.agent LEDGER_URL TOKEN PROVIDER_URL

Each line of its output is the object that the model is given, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import stripe

from effects.client import Ledger, ToolCall, effect

WAIT_SECONDS_MAX = 180


def main(ledger_url: str, token: str, provider_url: str) -> None:
    client = stripe.StripeClient(
        "sk_test_halden",
        base_addresses={"api": provider_url},
        http_client=stripe.RequestsClient(timeout=5),
        max_network_retries=0,
    )
    with Ledger(ledger_url, token) as ledger:

        @effect(ledger, tool="charge_card", effect_class="keyed_write", object_from="id")
        def charge(call: Any, **asked: Any) -> Any:
            params: Any = {
                "amount": asked["amount"],
                "currency": asked["currency"],
                "confirm": True,
                "payment_method": "pm_card_visa",
                "metadata": call.marker_metadata,
            }
            # The provider answers with an error that says nothing, and stores it.
            options: Any = {
                "idempotency_key": call.key,
                "headers": {"X-Sandbox-Fault": "error_500"},
            }
            return client.v1.payment_intents.create(params, options=options)

        call = ToolCall(conversation="c-1", turn_index=4, call_id="toolu_01WkP9QmXyZ0aaaa")
        told = charge(
            call, amount=14_900, currency="eur", customer="cus_Ab12345679X2", order="8841"
        )
        print(json.dumps(told.for_model), flush=True)
        assert told.claim_id is not None
        told = ledger.wait(told.claim_id, WAIT_SECONDS_MAX)
        print(json.dumps(told.for_model), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
