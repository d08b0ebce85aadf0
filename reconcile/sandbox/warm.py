"""Loaded once by the server that forks the workers, so that none of them imports it again.

The stripe package imports its services and objects when they are first used, which would cost every
worker a third of a second.
"""

from __future__ import annotations

import stripe

from reconcile.sandbox import worker
from reconcile.sandbox.tools import AGENT_STRIPE_KEY

_client = stripe.StripeClient(AGENT_STRIPE_KEY, http_client=stripe.RequestsClient())
WARM = (_client.v1.payment_intents, _client.v1.refunds, stripe.PaymentIntent, stripe.Refund, worker)
