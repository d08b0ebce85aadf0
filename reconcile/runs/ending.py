"""When asking about a call ends although it is not settled. Nothing is concluded from it.

The call stays what it is and stays in the queue. That asking ended is said once, with the time and
the reason, and a person can have it begin anew.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from effects import mail
from effects.access import Ability, roles_with
from effects.models import Membership, Workspace
from ledger import append, queries
from reconcile.models import AskingEnded, WebhookDelivery

logger = logging.getLogger(__name__)

LISTED_MAX: Final = 200
"""Most calls that a page lists whose asking has ended."""
WEBHOOKS_LATELY: Final = timedelta(hours=24)
"""Webhooks of an account arrive if one of the newest came in this time and could be applied."""
DELIVERIES_LOOKED_AT: Final = 20
MAILED_MAX: Final = 20
"""Most people of a workspace who are mailed."""


def ended(workspace_id: int, claim_id: UUID, now: datetime, *, why: str) -> bool:
    """Asking has ended. False: that was known. An end is told to people once."""
    with transaction.atomic():
        known, made = AskingEnded.objects.select_for_update().get_or_create(
            claim_id=claim_id,
            defaults={"workspace_id": workspace_id, "ended_at": now, "why": why},
        )
        if not made:
            if known.open:
                return False
            known.open, known.ended_at, known.why, known.told_at = True, now, why, None
            known.save(update_fields=["open", "ended_at", "why", "told_at"])
    logger.warning("call %s is not settled and is asked about no more: %s", claim_id, why)
    return True


def tell() -> bool:
    """Mails what has ended in one workspace since its last mail: one mail to all who may decide,
    whatever the number of calls. Without a mail server the list has to do."""
    if not mail.is_configured():
        return False
    untold = AskingEnded.objects.filter(open=True, told_at=None)
    first = untold.select_related("workspace").order_by("ended_at").first()
    if first is None:
        return False
    # Marked first: a mail that goes out twice is worse than one that the list has to say.
    calls = untold.filter(workspace=first.workspace).update(told_at=queries.clock())
    people = _deciders(first.workspace)
    return bool(calls and people) and _mail(people, first.workspace, calls)


def _deciders(workspace: Workspace) -> list[str]:
    roles = [str(role) for role in roles_with(Ability.HAPPENED)]
    members = Membership.objects.filter(workspace=workspace, role__in=roles, user__is_active=True)
    found = members.exclude(user__email="").order_by("pk")
    return list(found.values_list("user__email", flat=True)[:MAILED_MAX])


def _mail(people: list[str], workspace: Workspace, calls: int) -> bool:
    many = f"{calls} call{'' if calls == 1 else 's'} of {workspace.name}"
    # A link and nothing of the calls themselves: a mailbox is not this desk.
    text = (
        f"The provider is asked no more about {many}, and nothing is settled by that. Somebody has "
        f"to decide, or have the asking begin anew:\n\n{settings.COUNTERFOIL_DESK_URL}/runs/\n"
    )
    subject = f"Asking has ended ({workspace.name})"
    try:
        EmailMessage(subject, text, None, bcc=people).send()
    except OSError:  # smtplib's own errors are OSErrors too
        logger.exception("A mail for workspace %s was not taken by the server.", workspace.pk)
        return False
    return True


def goes_on(claim_id: UUID) -> None:
    """The call is asked about (again), or it is settled."""
    AskingEnded.objects.filter(claim_id=claim_id, open=True).update(open=False)


def restart(workspace_id: int, claim_id: UUID, *, user_id: int) -> bool:
    """A person has asking begin anew, with a new horizon and a new budget. False: it had not ended.

    Raises `ClaimNotFound`.
    """
    claim = queries.claim(workspace_id, claim_id)
    now = queries.clock()
    found = AskingEnded.objects.filter(claim_id=claim.pk, workspace_id=workspace_id, open=True)
    if not found.update(open=False, restarted_at=now, restarted_by_id=user_id):
        return False
    append.schedule_lookup(claim.pk, now, known_at=now)
    return True


def restarted_at(claim_id: UUID) -> datetime | None:
    """When a person had asking begin anew, if ever."""
    rows = AskingEnded.objects.filter(claim_id=claim_id)
    return rows.values_list("restarted_at", flat=True).first()


def of_call(workspace_id: int, claim_id: UUID) -> AskingEnded | None:
    """What is known of the end of asking about a call; `open`: it rests now."""
    rows = AskingEnded.objects.filter(workspace_id=workspace_id, claim_id=claim_id)
    return rows.select_related("restarted_by").first()


def listed(workspace_id: int) -> list[AskingEnded]:
    """The calls of a workspace about which nobody is asked any more, newest end first."""
    rows = AskingEnded.objects.filter(workspace_id=workspace_id, open=True)
    return list(rows.order_by("-ended_at")[:LISTED_MAX])


def webhooks_arrive(connection_id: int, now: datetime) -> bool:
    """Whether this account's webhooks have arrived lately and been of use."""
    newest = WebhookDelivery.objects.filter(connection_id=connection_id).order_by("-pk")
    return any(
        state == WebhookDelivery.State.APPLIED and at > now - WEBHOOKS_LATELY
        for state, at in newest.values_list("state", "received_at")[:DELIVERIES_LOOKED_AT]
    )
