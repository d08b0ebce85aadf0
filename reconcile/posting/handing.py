"""One POST of a message of ours, plain or signed, and what the receiver made of it.

Signed messages follow Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): the
headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, 2xx for "taken". Every address is
checked by the door, so nothing of ours reaches a private network without the operator's leave.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.conf import settings
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from reconcile.adapters.door import (
    Answered,
    Limits,
    NoAnswer,
    NotAllowed,
    Way,
    deliver,
    origin_of,
)

ANSWER_SECONDS_MAX: Final = 15.0
ANSWER_BYTES_MAX: Final = 64 * 1024
SAID_CHARACTERS_MAX: Final = 300
PAUSE_JITTER: Final = 0.1
RETRY_AFTER_SECONDS_MAX: Final = 86_400
THROTTLED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class UnusableSecret(Exception):
    """The secret cannot sign: it is not `whsec_` and then base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one try brought. `status` None: no answer; `why` says what to do about it."""

    status: int | None
    why: str
    retry_after_seconds: int | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status <= 299

    @property
    def line(self) -> str:
        """`why` as one line that is stored and shown: short, and nothing in it unseen."""
        return "".join(c for c in self.why if c.isprintable())[:SAID_CHARACTERS_MAX]


def way_to(url: str) -> Way:
    """Where an address leads. Raises `NotAllowed` for one that cannot be used."""
    origin = origin_of(url)
    allowed = {origin_of(one) for one in settings.COUNTERFOIL_PRIVATE_ORIGINS}
    limits = Limits(seconds=ANSWER_SECONDS_MAX, bytes=ANSWER_BYTES_MAX)
    return Way(origin=origin, private=origin in allowed, limits=limits)


def signature_headers(message_id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers of Standard Webhooks, signed with each secret. Raises `UnusableSecret`."""
    # Not the ledger's clock: the receiver compares it with its own.
    at = datetime.now(UTC)
    try:
        signed = [Webhook(secret).sign(message_id, at, body) for secret in secrets]
    except (ValueError, EmptyWebhookSecretError):
        raise UnusableSecret from None
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signed),
    }


def post(url: str, body: str, headers: Mapping[str, str]) -> Taken:
    """Hands one JSON text over. Waits for the receiver, so never inside a transaction."""
    named = {"Content-Type": "application/json", "User-Agent": "Counterfoil", **headers}
    try:
        return _read(deliver(url, body.encode(), way=way_to(url), headers=named))
    except (NotAllowed, NoAnswer) as error:
        return Taken(status=None, why=str(error))


def next_try(
    tries: int, pauses: Sequence[timedelta], taken: Taken, now: datetime
) -> datetime | None:
    """When to try again after so many tries, or None once the pauses are used up."""
    if tries > len(pauses):
        return None
    pause = pauses[tries - 1] * random.uniform(1, 1 + PAUSE_JITTER)  # noqa: S311 - no secret hangs on it
    return now + max(pause, timedelta(seconds=taken.retry_after_seconds or 0))


def _read(answer: Answered) -> Taken:
    if 200 <= answer.status <= 299:
        return Taken(status=answer.status, why="Taken.")
    retry_after = answer.headers.get("retry-after", "")
    said = answer.body[:SAID_CHARACTERS_MAX].decode("utf-8", "replace").strip()
    return Taken(
        status=answer.status,
        why=f"Answered {answer.status}: {said}" if said else f"Answered {answer.status}.",
        retry_after_seconds=min(int(retry_after), RETRY_AFTER_SECONDS_MAX)
        if answer.status in THROTTLED and retry_after.isascii() and retry_after.isdecimal()
        else None,
    )
