"""Somebody is at it: silence about exactly what was told, for a time that always ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from effects import audit
from ledger import queries
from reconcile.models import Notification, NotificationAck, NotificationItem
from reconcile.notify.deciding import ack_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """What one press of the button did. `too_late` are those whose window closes too soon."""

    made: int
    too_late: int
    until: datetime | None


def acknowledge(
    notification: Notification, items: Sequence[NotificationItem], *, user_id: int, wish: timedelta
) -> Acknowledged:
    """Silences these items of a notification for as long as is wished, a day and the window less
    half an hour at most. What stands acknowledged for longer already stays so."""
    now = queries.clock()
    ends = {one.pk: _until(one, now, wish) for one in items}
    rows = [_ack(notification, one, user_id, now, end) for one in items if (end := ends[one.pk])]
    with transaction.atomic():
        NotificationAck.objects.bulk_create(rows)
        if rows:
            audit.keep(
                notification.workspace_id,
                "notification.acknowledged",
                user_id=user_id,
                target=f"{len(rows)} of the rule {notification.said['rule']}",
                address=f"/notifications/{notification.pk}/",
                after={"until": max(one.until for one in rows).isoformat(), "of": len(items)},
            )
    return Acknowledged(
        made=len(rows),
        too_late=len(items) - len(rows),
        until=min((one.until for one in rows), default=None),
    )


def end(workspace_id: int, ack_id: int, *, user_id: int) -> bool:
    """It speaks again from now on. False: there is no such acknowledgement, or it has ended."""
    now = queries.clock()
    with transaction.atomic():
        kept = in_force(workspace_id, now).filter(pk=ack_id).first()
        if kept is None:
            return False
        # It has to end after it began, also where both were in the same microsecond.
        NotificationAck.objects.filter(pk=ack_id, until__gt=now).update(
            until=max(now, kept.at + timedelta(microseconds=1))
        )
        audit.keep(
            workspace_id,
            "notification.spoken_again",
            user_id=user_id,
            target=kept.summary or kept.subject,
            before={"until": kept.until.isoformat()},
        )
    return True


def in_force(workspace_id: int, now: datetime) -> QuerySet[NotificationAck]:
    """The acknowledgements that silence something now, the next to end first."""
    found = NotificationAck.objects.filter(workspace_id=workspace_id, until__gt=now)
    return found.select_related("rule", "by").order_by("until", "pk")


def may_be_silenced(items: Sequence[NotificationItem], now: datetime) -> bool:
    """Whether one of them is not too near its end for that."""
    return any(ack_until(now, one.deadline) is not None for one in items)


def _until(item: NotificationItem, now: datetime, wish: timedelta) -> datetime | None:
    last = ack_until(now, item.deadline)
    return None if last is None else min(last, now + wish)


def _ack(
    notification: Notification,
    item: NotificationItem,
    user_id: int,
    now: datetime,
    until: datetime,
) -> NotificationAck:
    return NotificationAck(
        workspace_id=notification.workspace_id,
        rule_id=item.rule_id,
        notification=notification,
        subject=item.subject,
        situation=item.situation,
        claim_id=item.claim_id,
        summary=item.summary,
        at=now,
        until=until,
        by_id=user_id,
    )
