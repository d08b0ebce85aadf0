"""Deliveries: signed, handed over, tried again with growing pauses, and each try on record.

Messages are signed by Standard Webhooks (`reconcile.posting`): 2xx is "taken", 410 "never again". A
receiver may get a message twice, because an answer can be lost; its id is the same then.
"""

from __future__ import annotations

import os
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from django.db import transaction

from ledger import queries
from reconcile.outbox.models import AgentAddress, OutboxDelivery, OutboxMessage
from reconcile.posting.handing import (
    Taken,
    UnusableSecret,
    next_try,
    post,
    signature_headers,
)

SECRETS_MAX: Final = 5
LOG_LINES_MAX: Final = 30

PAUSES: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""Between one try and the next: 5 s to a day, about three days in all, near what the specification
recommends. After the last one a person may still send it again."""

_State = OutboxDelivery.State


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
    text = bytes(message.body).decode()
    try:
        signed = signature_headers(message.public_id, text, secrets)
    except UnusableSecret:
        return Taken(
            status=None,
            why=f"{address.secret_name} holds no signing secret: whsec_ and then base64.",
        )
    return post(address.url, text, signed)


def _note(delivery: OutboxDelivery, taken: Taken) -> OutboxDelivery:
    now = queries.clock()
    why = taken.line
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
            delivery.due_at = next_try(delivery.tries, PAUSES, taken, now)
            if delivery.due_at is None:
                delivery.state = _State.GIVEN_UP
        delivery.save()
    return delivery


def _ended(delivery: OutboxDelivery, state: str, why: str) -> OutboxDelivery:
    delivery.state, delivery.due_at, delivery.last_said = state, None, why
    delivery.save(update_fields=["state", "due_at", "last_said"])
    return delivery
