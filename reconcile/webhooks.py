"""The door for webhooks: `POST /webhooks/<address>`, where a signature stands for a sign-in.

A delivery is checked on its raw bytes, kept, and answered; what it means is found out afterwards,
by a sweep (`reconcile.webhook_apply`). So a slow database or a fault of ours costs the provider one
short request, and a delivery that was answered with 2xx is never lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection as database
from django.db.models import F
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from effects.core.problems import BadRequest, LedgerProblem, LimitExceeded
from effects.models import Connection
from ledger import queries, redacting
from ledger.refusals import MethodNotAllowed, problem_of, refused
from reconcile.adapters.stripe_events import NotAnEvent, read_event
from reconcile.models import WebhookAddress, WebhookDelivery
from reconcile.webhook_signatures import (
    SignatureRefused,
    check_checkout,
    check_gocardless,
    check_standard,
    check_stripe,
)

WEBHOOK_BODY_BYTES_MAX: Final = 512 * 1024
SECRETS_MAX: Final = 5
"""Most secrets of one address that are tried; two are in use while one replaces the other."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

type Check = Callable[..., None]
_CHECKS: Final[Mapping[str, Check]] = {
    Connection.Kind.STRIPE: check_stripe,
    Connection.Kind.HTTP: check_standard,
    Connection.Kind.GRAPHQL: check_standard,
    Connection.Kind.GOCARDLESS: check_gocardless,
    Connection.Kind.CHECKOUT: check_checkout,
}
SIGNED_KINDS: Final = frozenset(str(kind) for kind in _CHECKS)
"""Kinds of connections whose webhooks can be checked. A database sends none; PayPal signs with a
certificate that has to be fetched first, and Salesforce in no way that a door could check."""


class NoSuchAddress(BadRequest):
    """No provider account sends its webhooks to this address. Compare it with the desk's."""

    code, status = "no_such_webhook_address", 404


class SecretMissing(LedgerProblem):
    """The signing secret of this address is not set on our side, so nothing can be checked and
    nothing was kept. Send it again later."""

    code, status = "webhook_secret_missing", 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the list of deliveries shows of one, read without judging it."""

    event_id: str
    type: str
    object_id: str = ""
    said_at: datetime | None = None


@csrf_exempt
def receive(request: HttpRequest, public_id: str) -> HttpResponse:
    """Keeps one delivery. 202 means that it is kept and is applied next, 200 that it was applied
    before; every other answer, that nothing was kept."""
    if request.method != "POST":
        return refused(MethodNotAllowed(allowed=["POST"]))
    try:
        kept = _receive(request, public_id)
        applied = kept["state"] == WebhookDelivery.State.APPLIED
        return JsonResponse(kept, status=200 if applied else 202)
    except Exception as error:  # noqa: BLE001 - whatever it is, the sender gets a status and no page.
        return refused(problem_of(error))


def _receive(request: HttpRequest, public_id: str) -> dict[str, object]:
    addresses = WebhookAddress.objects.select_related("connection")
    address = addresses.filter(public_id=public_id).first()
    if address is None or address.connection.kind not in SIGNED_KINDS:
        raise NoSuchAddress
    now = queries.clock()
    try:
        body = _body(request)
        _check(address, body, request.headers, now=now)
    except (SignatureRefused, SecretMissing, LimitExceeded) as refusal:
        _note_refusal(address, refusal, now)
        raise
    delivery_id, state = store(
        address.connection, body, facts_of(address.connection.kind, body, request.headers), now=now
    )
    return {"delivery": delivery_id, "state": state}


def _body(request: HttpRequest) -> bytes:
    # Not `request.body`: its limit is Django's own, which an operator may have set lower.
    body: bytes = request.read(WEBHOOK_BODY_BYTES_MAX + 1)
    if len(body) > WEBHOOK_BODY_BYTES_MAX:
        raise LimitExceeded(
            f"The body is longer than WEBHOOK_BODY_BYTES_MAX={WEBHOOK_BODY_BYTES_MAX} bytes.",
            limit="WEBHOOK_BODY_BYTES_MAX",
            value=WEBHOOK_BODY_BYTES_MAX,
        )
    return body


def _check(
    address: WebhookAddress, body: bytes, headers: Mapping[str, str], *, now: datetime
) -> None:
    secrets = secrets_of(address)
    if not secrets:
        raise SecretMissing
    _CHECKS[address.connection.kind](body, headers, secrets, now=now)


def secrets_of(address: WebhookAddress) -> Sequence[str]:
    """The signing secrets as this process finds them in its environment."""
    if not address.secret_name:
        return ()
    return os.environ.get(address.secret_name, "").split()[:SECRETS_MAX]


def _note_refusal(address: WebhookAddress, refusal: LedgerProblem, now: datetime) -> None:
    WebhookAddress.objects.filter(pk=address.pk).update(
        refused_count=F("refused_count") + 1, refused_at=now, refused_why=refusal.detail[:200]
    )


def facts_of(kind: str, body: bytes, headers: Mapping[str, str]) -> Facts:
    """Names for the list. Bytes that are no event get their digest for a name: they are kept too,
    because their signature was right."""
    unnamed = f"sha256:{hashlib.sha256(body).hexdigest()[:32]}"
    if kind == Connection.Kind.STRIPE:
        try:
            event = read_event(body)
        except NotAnEvent:
            return Facts(event_id=unnamed, type="")
        return Facts(
            event_id=storable(event.id, 255),
            type=storable(event.type, 100),
            object_id=storable(event.object_id, 255),
            said_at=event.said_at,
        )
    return Facts(
        event_id=storable(headers.get("Webhook-Id", "") or unnamed, 255),
        type=storable(_type_in(body), 100),
    )


def _type_in(body: bytes) -> str:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(raw.get("type") or "") if isinstance(raw, dict) else ""


def storable(text: str, characters_max: int) -> str:
    """A sender's text, fit for a column: without what PostgreSQL cannot keep, and cut."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)[:characters_max]


# One statement and one commit. What was applied stays so; anything else is due again, because the
# sender would not send it anew if it thought that it had arrived.
_STORE: Final = """
INSERT INTO reconcile_webhookdelivery AS kept
  (connection_id, event_id, type, object_id, said_at, body, digest, received_at, last_received_at,
   times_received, state, note, claims, reads, due_at, tries)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 1, %s, '', '{}', '{}', %s, 0)
ON CONFLICT (connection_id, event_id, digest) DO UPDATE SET
  times_received = kept.times_received + 1,
  last_received_at = excluded.last_received_at,
  due_at = CASE WHEN kept.state = %s THEN kept.due_at ELSE excluded.due_at END
RETURNING id, state
"""


def store(connection: Connection, body: bytes, facts: Facts, *, now: datetime) -> tuple[int, str]:
    """Keeps the bytes once, due at once, with what is hidden in them gone; they are known by the
    digest of what came. Answers the delivery's number and its state."""
    state = WebhookDelivery.State
    kept, _ = redacting.body(connection.workspace_id, body)
    with database.cursor() as cursor:
        cursor.execute(
            _STORE,
            [
                connection.pk,
                facts.event_id,
                facts.type,
                facts.object_id,
                facts.said_at,
                kept,
                hashlib.sha256(body).digest(),
                now,
                now,
                state.WAITING,
                now,
                state.APPLIED,
            ],
        )
        delivery_id, kept_state = cursor.fetchone()
    return delivery_id, kept_state
