"""Telling people by mail that a call is theirs, or that a note speaks to them."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from kombu.exceptions import OperationalError

from effects import mail
from effects.models import Membership

SECONDS_HARD: Final = 60
EXPIRES_SECONDS: Final = 3600
SUBJECTS: Final = {
    "assigned": "A call was assigned to you",
    "mentioned": "You are mentioned in a note",
}
MINE: Final = "?view=mine"

log = logging.getLogger(__name__)


def tell(
    workspace_id: int, claim_id: UUID, *, user_id: int, by_id: int, why: str, many: int = 1
) -> None:
    """Has a mail sent once the transaction is over, where mail is set up and it is not one's own
    doing. Nothing waits for it and nothing fails with it: the queue says the same.

    `many` calls in one go are one mail, which leads to all that are with the person.
    """
    if user_id == by_id or not mail.is_configured():
        return
    arguments = (workspace_id, str(claim_id), user_id, by_id, why, many)
    transaction.on_commit(lambda: _hand_over(arguments))


def _hand_over(arguments: tuple[int, str, int, int, str, int]) -> None:
    try:
        send.apply_async(args=arguments, expires=EXPIRES_SECONDS, retry=False)
    except OperationalError:
        log.warning("No broker takes the mail about call %s; the queue shows it.", arguments[1])


@shared_task(name="reconcile.assign.tasks.send", time_limit=SECONDS_HARD)
def send(
    workspace_id: int, claim_id: str, user_id: int, by_id: int, why: str, many: int = 1
) -> None:
    """One mail with a link and nothing of the call itself: a mailbox is not this desk."""
    member = Membership.objects.select_related("user", "workspace").filter(
        workspace_id=workspace_id, user_id=user_id, user__is_active=True
    )
    found = member.first()
    if found is None or not found.user.email:
        return
    by = User.objects.filter(pk=by_id).first()
    name = (by.get_full_name() or by.get_username()) if by else "Somebody"
    one = reverse("call", args=[UUID(claim_id)])
    link = f"{settings.COUNTERFOIL_DESK_URL}{one if many == 1 else reverse('queue') + MINE}"
    subject = SUBJECTS[why] if many == 1 else f"{many} calls were assigned to you"
    text = f"{subject} by {name} in {found.workspace.name}:\n\n{link}\n"
    try:
        send_mail(f"{subject} ({found.workspace.name})", text, None, [found.user.email])
    except OSError:  # smtplib's own errors are OSErrors too
        log.exception("The mail server did not take the mail about call %s.", claim_id)
