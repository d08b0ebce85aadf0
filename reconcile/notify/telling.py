"""From what is open to a notification on record: decided and written down before anything is sent.

One process at a time tells for a workspace, so nobody is told twice by two; what has to be sent is
a row with a due time, so a lost task costs time only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from django.conf import settings
from django.db import Error, connection, transaction
from django.urls import reverse

from effects.models import Membership
from effects.money import Money
from ledger import queries
from reconcile.models import (
    Notification,
    NotificationChannel,
    NotificationDelivery,
    NotificationItem,
    NotificationRule,
)
from reconcile.notify import reading
from reconcile.notify.composing import Letter, Line, headline
from reconcile.notify.deciding import quiet_end, standing, what_to_send
from reconcile.notify.facts import Condition, Item, Notice, State, Why
from reconcile.notify.limits import FORGOTTEN_MAX, KEPT
from reconcile.queue import CLOSING_SOON

logger = logging.getLogger(__name__)

_LOCK: Final = 0x6E6F7469  # "noti"; the second number of the lock is the workspace's
SUMMARY_CHARACTERS_MAX: Final = 200

VIEW_OF: Final[dict[str, str]] = {
    Condition.CLOSING: "closing",
    Condition.UNTAKEN: "untaken",
    Condition.SECOND_PERSON: "waiting",
}
"""The tab of the queue that holds what a condition finds; the others lead to all that is open."""


def tell_everybody() -> int:
    """Looks once at every workspace that has a rule in force; answers how many notices were made.

    A workspace that cannot be read keeps no other one waiting.
    """
    in_force = NotificationRule.objects.filter(retired_at=None, paused_at=None)
    made = 0
    for workspace_id in in_force.order_by("workspace_id").values_list("workspace_id").distinct():
        try:
            made += tell(*workspace_id)
        except (Error, ValueError, LookupError):
            logger.exception("Nobody could be told about workspace %s.", *workspace_id)
    return made


def tell(workspace_id: int) -> int:
    """Decides for one workspace and writes down what is to be sent; answers how many notices."""
    kept = reading.rules_in_force(workspace_id)
    needs_connections = any(one.condition == Condition.LOOKUPS for one in kept)
    now = queries.clock()
    seen = reading.look(workspace_id, now, connections=needs_connections)
    if seen.cut:
        logger.warning("Workspace %s has more open calls than one look reads.", workspace_id)
    by_id = {one.pk: one for one in kept}
    rules = [reading.rule_of(one) for one in kept]
    with transaction.atomic():
        if not _alone(workspace_id):
            return 0
        # Read behind the lock: whoever held it before has written down what they told.
        log = reading.told(by_id, seen.subjects)
        notices = what_to_send(now, rules, seen.subjects, reading.acks([*by_id], now), log)
        channels = _channels_of(notices) if notices else {}
        for notice in notices:
            _write(by_id[notice.rule_id], notice, seen, channels[notice.rule_id])
    return len(notices)


def state_of(workspace_id: int, rules: Sequence[NotificationRule]) -> dict[int, State]:
    """How these rules stand at this moment: the preview is the decision itself."""
    needs_connections = any(one.condition == Condition.LOOKUPS for one in rules)
    now = queries.clock()
    seen = reading.look(workspace_id, now, connections=needs_connections)
    ids = [one.pk or 0 for one in rules]
    log = reading.told(ids, seen.subjects)
    listed = [reading.rule_of(one) for one in rules]
    return standing(now, listed, seen.subjects, reading.acks(ids, now), log)


def trial(channel: NotificationChannel) -> list[NotificationDelivery]:
    """A message about no call, on its way to everybody whom a channel reaches."""
    now = queries.clock()
    with transaction.atomic():
        made = Notification.objects.create(
            workspace_id=channel.workspace_id,
            made_at=now,
            why=Notification.Why.TEST,
            said={
                "channel": channel.name,
                "headline": f"Test of the channel {channel.name}",
                "count": 0,
            },
        )
        return _deliveries(made, [channel], now)


def letter_of(notification: Notification, *, names_calls: bool) -> Letter:
    """What a notification says, from what was written down when it was decided."""
    said = notification.said
    workspace = notification.workspace
    quiet_until = said["quiet_until"]
    total, currency, places = (
        notification.total,
        notification.total_currency,
        notification.total_places,
    )
    return Letter(
        workspace=workspace.name,
        mode=workspace.mode,
        rule=said["rule"],
        condition=Condition(said["condition"]),
        within_seconds=said["within_seconds"],
        limit=_money(Decimal(said["amount"]), currency, places) if total else None,
        zone=said["zone"],
        at=notification.made_at,
        why=Why(notification.why),
        quiet_until=datetime.fromisoformat(quiet_until) if quiet_until else None,
        lines=[_line(item) for item in notification.items.order_by("place")],
        total=_money(total, currency, places) if total else None,
        link=link_of(notification),
        queue_link=queue_link(said),
        names_calls=names_calls,
    )


def link_of(notification: Notification) -> str:
    address = reverse("notification", args=[notification.pk])
    return f"{settings.COUNTERFOIL_DESK_URL}{address}"


def queue_link(said: Mapping[str, Any]) -> str:
    """The list that holds what a rule, as it is written down, finds."""
    if said["condition"] == Condition.OTHERWISE:
        return f"{settings.COUNTERFOIL_DESK_URL}{reverse('told-otherwise')}"
    view = VIEW_OF.get(said["condition"], "")
    if view == "closing" and said["within_seconds"] > CLOSING_SOON.total_seconds():
        view = ""  # The tab holds less; all that is open is sorted by the time left.
    words = {name: word for name, word in (("view", view), ("tool", said["tool"])) if word}
    query = f"?{urlencode(words)}" if words else ""
    return f"{settings.COUNTERFOIL_DESK_URL}{reverse('queue')}{query}"


def forget_old() -> None:
    """Removes notifications to which nothing more happens and that are older than `KEPT`."""
    before = queries.clock() - KEPT
    old = Notification.objects.filter(made_at__lt=before)
    done = old.exclude(deliveries__due_at__isnull=False).values_list("pk", flat=True)
    Notification.objects.filter(pk__in=list(done.order_by("pk")[:FORGOTTEN_MAX])).delete()


# Inside


def _alone(workspace_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_LOCK, workspace_id])
        return bool(cursor.fetchone()[0])


def _channels_of(notices: Sequence[Notice]) -> dict[int, list[NotificationChannel]]:
    """The channels of each rule that has something to tell, in one query."""
    found: dict[int, list[NotificationChannel]] = {one.rule_id: [] for one in notices}
    through = NotificationRule.channels.through
    rows = through.objects.filter(
        notificationrule_id__in=found, notificationchannel__retired_at=None
    ).select_related("notificationchannel")
    for row in rows.order_by("notificationchannel_id"):
        found[row.notificationrule_id].append(row.notificationchannel)
    return found


def _write(
    rule: NotificationRule,
    notice: Notice,
    seen: reading.Look,
    channels: Sequence[NotificationChannel],
) -> None:
    ends = [item.of_use_until for item in notice.items]
    known = [end for end in ends if end is not None]
    quiet_until = quiet_end(seen.at, reading.rule_of(rule).quiet)
    made = Notification.objects.create(
        workspace_id=rule.workspace_id,
        rule=rule,
        made_at=seen.at,
        why=str(notice.why),
        said={
            "rule": rule.name,
            "condition": rule.condition,
            "within_seconds": rule.within_seconds or 0,
            "amount": None if rule.amount is None else f"{rule.amount.normalize():f}",
            "currency": rule.currency,
            "tool": rule.tool.name if rule.tool else "",
            "zone": rule.zone,
            "quiet_until": quiet_until.isoformat() if quiet_until else None,
        },
        of_all=notice.of_all,
        total=notice.total.amount if notice.total else None,
        total_currency=notice.total.currency if notice.total else "",
        total_places=notice.total.places if notice.total else 2,
        of_use_until=max(known) if len(known) == len(ends) else None,
    )
    items = (
        _item(made, place, item, seen.shown[item.subject.key])
        for place, item in enumerate(notice.items)
    )
    NotificationItem.objects.bulk_create(items)
    # In its own words already now: a list of many reads no calls.
    made.said |= {
        "headline": headline(letter_of(made, names_calls=True)),
        "count": len(notice.items),
    }
    made.save(update_fields=["said"])
    _deliveries(made, channels, seen.at)


def _item(made: Notification, place: int, item: Item, shown: reading.Shown) -> NotificationItem:
    subject = item.subject
    return NotificationItem(
        notification=made,
        rule_id=made.rule_id or 0,
        subject=subject.key,
        situation=item.situation,
        at=made.made_at,
        place=place,
        claim_id=subject.claim_id,
        state=shown.state,
        summary=shown.summary[:SUMMARY_CHARACTERS_MAX],
        amount=subject.money.amount if subject.money else None,
        currency=subject.money.currency if subject.money else "",
        places=subject.money.places if subject.money else 2,
        deadline=subject.deadline,
    )


def _deliveries(
    made: Notification, channels: Sequence[NotificationChannel], now: datetime
) -> list[NotificationDelivery]:
    rows = [
        NotificationDelivery(
            notification=made, channel=channel, to=to, public_id=f"ntf_{uuid4().hex}", due_at=now
        )
        for channel in channels
        for to in recipients(channel)
    ]
    return NotificationDelivery.objects.bulk_create(rows)


def recipients(channel: NotificationChannel) -> Iterator[str]:
    """The mailboxes of a channel now, or "" for an address that takes a POST."""
    if channel.kind != NotificationChannel.Kind.EMAIL:
        yield ""
        return
    members = Membership.objects.filter(
        workspace_id=channel.workspace_id, user_id__in=channel.people, user__is_active=True
    ).exclude(user__email="")
    mailboxes = [*members.order_by("pk").values_list("user__email", flat=True), channel.address]
    # One person may stand there twice, with another spelling of the same mailbox.
    yield from {one.lower(): one for one in mailboxes if one}.values()


def _money(amount: Decimal, currency: str, places: int) -> Money:
    return Money(amount=amount.normalize(), currency=currency, places=places)


def _line(item: NotificationItem) -> Line:
    link = (
        queries.link(item.claim_id)
        if item.claim_id
        else f"{settings.COUNTERFOIL_DESK_URL}{reverse('connections')}"
    )
    return Line(
        summary=item.summary,
        state=item.state,
        money=item.money,
        deadline=item.deadline,
        link=link,
        claim_id=str(item.claim_id or ""),
    )
