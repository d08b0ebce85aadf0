"""Loaded once by the server that forks the workers, so that none of them imports it again.

The HTTP libraries and the stripe package import most of themselves when they are first used, which
would cost every worker half a second.
"""

from __future__ import annotations

import contextlib
from typing import Final

import django.core.management
import httpx2
import stripe

from reconcile.sandbox import worker
from reconcile.sandbox.hands import NO_AUTHORITIES
from reconcile.sandbox.tools import AGENT_STRIPE_KEY

NOBODY_LISTENS: Final = "http://127.0.0.1:9"


def _use_once() -> None:
    httpx2.Client(verify=NO_AUTHORITIES).close()
    client = stripe.StripeClient(
        AGENT_STRIPE_KEY,
        base_addresses={"api": NOBODY_LISTENS},
        http_client=stripe.RequestsClient(),
    )
    with contextlib.suppress(stripe.APIConnectionError):
        client.v1.payment_intents.create({"amount": 1, "currency": "eur"})


_use_once()
# Every worker runs the program's main module again, and `manage.py` imports Django's command line.
WARM = (django.core.management, stripe.PaymentIntent, stripe.Refund, stripe.Charge, worker)
