"""Tells the sandbox's provider where its webhooks go: to the door of the demo's own connection."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any, Final

from django.conf import settings

from reconcile.models import WebhookAddress
from reconcile.sandbox.seed import WORKSPACE_SLUG
from reconcile.sandbox.tools import ACCOUNT, STRIPE_CONNECTION, WEBHOOK_SECRET_NAME

SECONDS_MAX: Final = 5
RECIPE: Final = {
    "duplicated_share": 0.15,
    "overtaken_share": 0.15,
    "lost_share": 0.1,
    "late_seconds": 3,
}
"""What the demo's webhooks suffer, so that there is something to see."""


def connect_webhooks(provider_url: str) -> str | None:
    """Register the door at the provider; answers its address, or None where there is no secret.

    Done at every start: the door's port may be another one. Raises OSError if nobody answers.
    """
    address = WebhookAddress.objects.filter(
        connection__workspace__slug=WORKSPACE_SLUG, connection__name=STRIPE_CONNECTION
    ).first()
    secret = os.environ.get(WEBHOOK_SECRET_NAME, "")
    if address is None or not secret:
        return None
    url = f"{settings.COUNTERFOIL_API_URL}/webhooks/{address.public_id}"
    endpoint = {"scope": f"acct_{ACCOUNT}/test", "url": url, "secret": secret}
    _say(provider_url, "/_sandbox/endpoints", endpoint)
    _say(provider_url, "/_sandbox/webhooks", RECIPE)
    return url


def _say(provider_url: str, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310 - on loopback.
        provider_url + path, data=json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:  # noqa: S310 - on loopback.
        answer.read()
