"""Deliveries: handed over, tried again with growing pauses, and each try on record.

A try is written down before it begins. Where its sender dies, the next try says that it may bring a
second copy; its id at the receiver is the same, so that a mailbox or a receiver can tell.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from smtplib import SMTPResponseException
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from effects import mail
from effects.sealing import CannotOpen, opened, seal
from ledger import queries
from reconcile.models import Notification, NotificationChannel, NotificationDelivery
from reconcile.notify import reading
from reconcile.notify.composing import (
    Letter,
    data_of,
    escaped,
    one_line,
    slack_of,
    subject_of,
    text_of,
)
from reconcile.notify.telling import letter_of, recipients
from reconcile.posting.handing import Taken, UnusableSecret, next_try, post, signature_headers

logger = logging.getLogger(__name__)

LEASE: Final = timedelta(seconds=60)
"""A try that was begun and never ended is due again after this long."""
TRY_ENDS: Final = timedelta(seconds=45)
"""Longer than a try can take: who began it before that is dead."""
LOG_LINES_MAX: Final = 20
PAUSES: Final = tuple(
    timedelta(seconds=seconds) for seconds in (10, 60, 300, 900, 3600, 14_400, 43_200)
)
"""Between one try and the next: 10 s to half a day. People are told soon, or are not helped."""
MAIL_TAKEN: Final = 250  # RFC 5321, 4.2.3

_State = NotificationDelivery.State


def take_due(limit: int) -> list[int]:
    """Deliveries that are due, each handed to one sender for the lease."""
    now = queries.clock()
    with transaction.atomic():
        found = NotificationDelivery.objects.filter(due_at__lte=now).order_by("due_at", "pk")
        taken = list(found.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])
        NotificationDelivery.objects.filter(pk__in=taken).update(due_at=now + LEASE)
    return taken


def send(delivery_id: int) -> NotificationDelivery | None:
    """One try. Waits for the receiver, so it must not run inside a transaction."""
    delivery = _begun(delivery_id, queries.clock())
    if delivery is None:
        return None
    notification = delivery.notification
    end, now = notification.of_use_until, queries.clock()
    if delivery.channel.retired_at is not None:
        return _ended(delivery, _State.GIVEN_UP, "The channel is retired.")
    if end is not None and end <= now:
        return _ended(delivery, _State.TOO_LATE, "The window closed before anybody took it.")
    if delivery.to and delivery.to not in recipients(delivery.channel):
        return _ended(delivery, _State.GIVEN_UP, "The channel reaches this mailbox no more.")
    if delivery.tries and _is_settled(notification):
        return _ended(delivery, _State.SETTLED, "All its calls were settled before it was taken.")
    try:
        taken = _try(delivery)
    except (ValueError, LookupError, TypeError) as error:
        # One that cannot be put into words is given up after its tries, like any other.
        logger.exception("Message %s could not be composed.", delivery.public_id)
        taken = Taken(status=None, why=f"It could not be composed: {type(error).__name__}.")
    return _note(delivery, taken)


def send_again(delivery: NotificationDelivery) -> None:
    """A person wants it tried now, and then by the schedule anew."""
    NotificationDelivery.objects.filter(pk=delivery.pk).exclude(state=_State.DELIVERED).update(
        state=_State.WAITING, tries=0, due_at=queries.clock()
    )


def sealed(channel: NotificationChannel, *, url: str, secret: str = "") -> bytes:
    """The address and the signing secret of a webhook, as a channel keeps them."""
    return seal(json.dumps({"url": url, "secret": secret}), place=_place(channel))


def unsealed(channel: NotificationChannel) -> tuple[str, str]:
    """Address and signing secret. Raises `CannotOpen`."""
    if channel.sealed is None:
        raise CannotOpen("No address was entered.")
    said: dict[str, str] = json.loads(opened(bytes(channel.sealed), place=_place(channel)))
    return said["url"], said["secret"]


# Inside


def _place(channel: NotificationChannel) -> str:
    return f"notification-channel:{channel.public_id}"


def _begun(delivery_id: int, now: datetime) -> NotificationDelivery | None:
    """The delivery, marked as begun by this sender; None if it has ended or somebody is at it."""
    found = NotificationDelivery.objects.filter(pk=delivery_id, state=_State.WAITING)
    related = found.select_related("notification__workspace", "channel")
    delivery = related.first()
    if delivery is None:
        return None
    free = found.filter(Q(begun_at=None) | Q(begun_at__lt=now - TRY_ENDS))
    if delivery.begun_at is not None:
        line = {
            "at": now.isoformat(),
            "status": None,
            "said": f"The try of {delivery.begun_at:%H:%M:%S} UTC never ended: its sender died. "
            "It may have arrived, so what follows may be a second copy.",
        }
        delivery.log = [*delivery.log, line][-LOG_LINES_MAX:]
    if not free.update(begun_at=now, log=delivery.log):
        return None
    return delivery


def _is_settled(notification: Notification) -> bool:
    """Whether nothing that it tells is open any more; of a connection that is never known here."""
    items = list(notification.items.values_list("claim_id", "situation"))
    ids = [claim_id for claim_id, _ in items if claim_id is not None]
    if not items or len(ids) < len(items) or any(s.startswith("told") for _, s in items):
        return False
    return not reading.any_open(notification.workspace_id, ids)


def _try(delivery: NotificationDelivery) -> Taken:
    kinds = NotificationChannel.Kind
    if delivery.channel.kind == kinds.EMAIL:
        return _mail(delivery)
    try:
        url, secret = unsealed(delivery.channel)
    except CannotOpen as error:
        return Taken(status=None, why=f"Its address cannot be read, enter it anew. {error}")
    try:
        taken = _post(delivery, url, secret)
    except UnusableSecret:
        return Taken(status=None, why="Its signing secret is none: whsec_ and then base64.")
    # A receiver may repeat the address in its answer, and the address is a secret.
    parts = urlsplit(url)
    hidden = taken.why.replace(url, "…")
    hidden = hidden.replace(parts.path, "…") if len(parts.path) > 1 else hidden
    return Taken(status=taken.status, why=hidden, retry_after_seconds=taken.retry_after_seconds)


def _post(delivery: NotificationDelivery, url: str, secret: str) -> Taken:
    if delivery.channel.kind == NotificationChannel.Kind.SLACK:
        return post(url, _in_words(delivery, slack_of, _slack_trial), {})
    text = _in_words(delivery, data_of, _data_trial)
    return post(url, text, signature_headers(delivery.public_id, text, [secret]))


def _in_words[T](
    delivery: NotificationDelivery,
    compose: Callable[[Letter], T],
    trial: Callable[[Notification], T],
) -> T:
    notification = delivery.notification
    if notification.rule_id is None:
        return trial(notification)
    return compose(letter_of(notification, names_calls=delivery.channel.names_calls))


def _mail(delivery: NotificationDelivery) -> Taken:
    if not mail.is_configured():
        return Taken(status=None, why="No mail server is set up here: COUNTERFOIL_MAIL_URL.")
    subject, text = _in_words(
        delivery, lambda letter: (subject_of(letter), text_of(letter)), _mail_trial
    )
    host = urlsplit(settings.COUNTERFOIL_DESK_URL).hostname or "localhost"
    headers = {
        "Message-ID": f"<{delivery.public_id}@{host}>",
        "Auto-Submitted": "auto-generated",  # RFC 3834: nobody's holiday note answers it
    }
    try:
        EmailMessage(subject, text, None, [delivery.to], headers=headers).send()
    except SMTPResponseException as error:
        said = error.smtp_error
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return Taken(status=error.smtp_code, why=f"The mail server answered {words}")
    except OSError as error:  # smtplib's other errors are OSErrors too
        return Taken(status=None, why=f"The mail server did not take it: {error}")
    return Taken(status=MAIL_TAKEN, why="Taken by the mail server.")


def _mail_trial(notification: Notification) -> tuple[str, str]:
    name = one_line(str(notification.said["channel"]), 100)
    workspace = one_line(notification.workspace.name, 40)
    said = f'Somebody tries the channel "{name}" of {workspace}. This is about no call.'
    link = f"{settings.COUNTERFOIL_DESK_URL}{reverse('notifications')}"
    return f"[{workspace}] Test of the channel {name}", f"{said}\n\n{link}\n"


def _slack_trial(notification: Notification) -> str:
    return json.dumps({"text": escaped(_mail_trial(notification)[1])})


def _data_trial(notification: Notification) -> str:
    data = {"workspace": notification.workspace.name, "mode": notification.workspace.mode}
    at = notification.made_at.isoformat()
    return json.dumps({"type": "notification.test", "timestamp": at, "data": data})


def _note(delivery: NotificationDelivery, taken: Taken) -> NotificationDelivery:
    now = queries.clock()
    line = {"at": now.isoformat(), "status": taken.status, "said": taken.line}
    with transaction.atomic():
        delivery = NotificationDelivery.objects.select_for_update().get(pk=delivery.pk)
        delivery.log = [*delivery.log, line][-LOG_LINES_MAX:]
        delivery.last_at, delivery.last_status, delivery.last_said = now, taken.status, taken.line
        delivery.tries += 1
        delivery.due_at = delivery.begun_at = None
        channel = NotificationChannel.objects.filter(pk=delivery.channel_id)
        if taken.ok:
            delivery.state = _State.DELIVERED
            channel.update(failing_since=None, failing_why="")
        else:
            channel.update(failing_why=taken.line)
            channel.filter(failing_since=None).update(failing_since=now)
            gone = taken.status == HTTPStatus.GONE
            delivery.due_at = None if gone else next_try(delivery.tries, PAUSES, taken, now)
            if delivery.due_at is None:
                delivery.state = _State.GIVEN_UP
        delivery.save()
    return delivery


def _ended(delivery: NotificationDelivery, state: str, why: str) -> NotificationDelivery:
    delivery.state, delivery.due_at, delivery.begun_at, delivery.last_said = state, None, None, why
    delivery.save(update_fields=["state", "due_at", "begun_at", "last_said"])
    return delivery
