"""Deliveries: signed, handed over, tried again with growing pauses, and each try on record.

Messages follow Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): the
headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, 2xx for "taken", 410 for "never
again". A receiver may get a message twice, because an answer can be lost; its id is the same then.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.db import transaction
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from ledger import queries
from reconcile.adapters.door import (
    Answered,
    Limits,
    NoAnswer,
    NotAllowed,
    Way,
    deliver,
    origin_of,
)
from reconcile.outbox.models import AgentAddress, OutboxDelivery, OutboxMessage

SECRETS_MAX: Final = 5
ANSWER_SECONDS_MAX: Final = 15.0
ANSWER_BYTES_MAX: Final = 64 * 1024
SAID_CHARACTERS_MAX: Final = 300
LOG_LINES_MAX: Final = 30

PAUSES: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""Between one try and the next: 5 s to a day, about three days in all, near what the specification
recommends. After the last one a person may still send it again."""
PAUSE_JITTER: Final = 0.1
RETRY_AFTER_SECONDS_MAX: Final = 86_400
THROTTLED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

_State = OutboxDelivery.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one try brought. `status` None: no answer; `why` says what to do about it."""

    status: int | None
    why: str
    retry_after_seconds: int | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status <= 299


def take_due(limit: int, lease_seconds: int) -> list[int]:
    """Deliveries that are due, each handed to one sender for the lease."""
    now = queries.clock()
    with transaction.atomic():
        found = OutboxDelivery.objects.filter(due_at__lte=now).order_by("due_at", "pk")
        taken = list(found.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])
        OutboxDelivery.objects.filter(pk__in=taken).update(
            due_at=now + timedelta(seconds=lease_seconds)
        )
    return taken


def send(delivery_id: int) -> OutboxDelivery | None:
    """One try. Waits for the receiver, so it must not run inside a transaction."""
    found = OutboxDelivery.objects.select_related("message", "address__workspace")
    delivery = found.filter(pk=delivery_id).first()
    if delivery is None or delivery.state != _State.WAITING:
        return delivery
    if _superseded(delivery):
        return _ended(delivery, _State.SUPERSEDED, "Newer news of the same call goes instead.")
    address = delivery.address
    if address.retired_at is not None or address.gone_at is not None:
        return _ended(delivery, _State.GIVEN_UP, "The address takes no more messages.")
    return _note(delivery, _try(delivery.message, address))


def send_again(delivery: OutboxDelivery) -> None:
    """A person wants it tried now, and then by the schedule anew."""
    OutboxDelivery.objects.filter(pk=delivery.pk).exclude(state=_State.DELIVERED).update(
        state=_State.WAITING, tries=0, due_at=queries.clock()
    )


def secrets_of(address: AgentAddress) -> list[str]:
    """The signing secrets as this process finds them in its environment."""
    return os.environ.get(address.secret_name, "").split()[:SECRETS_MAX]


def way_to(url: str) -> Way:
    """Where an address leads. Raises `NotAllowed` for one that cannot be used."""
    origin = origin_of(url)
    allowed = {origin_of(one) for one in settings.COUNTERFOIL_PRIVATE_ORIGINS}
    limits = Limits(seconds=ANSWER_SECONDS_MAX, bytes=ANSWER_BYTES_MAX)
    return Way(origin=origin, private=origin in allowed, limits=limits)


def _superseded(delivery: OutboxDelivery) -> bool:
    """Whether the receiver would be told something that is not so any more."""
    message = delivery.message
    if message.claim_id is None:
        return False
    newer = OutboxDelivery.objects.filter(
        address=delivery.address, message__claim_id=message.claim_id, message__pk__gt=message.pk
    )
    return newer.exists()


def _try(message: OutboxMessage, address: AgentAddress) -> Taken:
    secrets = secrets_of(address)
    if not secrets:
        return Taken(status=None, why=f"The variable {address.secret_name} is not set here.")
    # Not the ledger's clock: the receiver compares it with its own.
    at = datetime.now(UTC)
    text = bytes(message.body).decode()
    try:
        signed = [Webhook(secret).sign(message.public_id, at, text) for secret in secrets]
    except (ValueError, EmptyWebhookSecretError):
        return Taken(
            status=None,
            why=f"{address.secret_name} holds no signing secret: whsec_ and then base64.",
        )
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Counterfoil",
        "webhook-id": message.public_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signed),
    }
    try:
        answer = deliver(address.url, text.encode(), way=way_to(address.url), headers=headers)
    except (NotAllowed, NoAnswer) as error:
        return Taken(status=None, why=str(error))
    return _read(answer)


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


def _note(delivery: OutboxDelivery, taken: Taken) -> OutboxDelivery:
    now = queries.clock()
    why = "".join(c for c in taken.why if c.isprintable())[:SAID_CHARACTERS_MAX]
    line = {"at": now.isoformat(), "status": taken.status, "said": why}
    with transaction.atomic():
        delivery = OutboxDelivery.objects.select_for_update().get(pk=delivery.pk)
        delivery.log = [*delivery.log, line][-LOG_LINES_MAX:]
        delivery.last_at, delivery.last_status, delivery.last_said = now, taken.status, why
        delivery.tries += 1
        delivery.due_at = None
        address = AgentAddress.objects.filter(pk=delivery.address_id)
        if taken.ok:
            delivery.state = _State.DELIVERED
            address.update(failing_since=None)
        elif taken.status == HTTPStatus.GONE:
            delivery.state = _State.GIVEN_UP
            address.update(gone_at=now)
        else:
            address.filter(failing_since=None).update(failing_since=now)
            delivery.due_at = _next_at(delivery.tries, taken, now)
            if delivery.due_at is None:
                delivery.state = _State.GIVEN_UP
        delivery.save()
    return delivery


def _next_at(tries: int, taken: Taken, now: datetime) -> datetime | None:
    if tries > len(PAUSES):
        return None
    pause = PAUSES[tries - 1] * random.uniform(1, 1 + PAUSE_JITTER)  # noqa: S311 - no secret hangs on it
    return now + max(pause, timedelta(seconds=taken.retry_after_seconds or 0))


def _ended(delivery: OutboxDelivery, state: str, why: str) -> OutboxDelivery:
    delivery.state, delivery.due_at, delivery.last_said = state, None, why
    delivery.save(update_fields=["state", "due_at", "last_said"])
    return delivery
