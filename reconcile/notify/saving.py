"""Rules and channels change here alone, each change with its line in the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from effects import audit
from effects.models import Workspace
from effects.sealing import CannotOpen
from effects.times import write_duration
from reconcile.models import NotificationChannel, NotificationRule
from reconcile.notify.limits import CHANNELS_MAX, RULES_MAX
from reconcile.notify.sending import sealed, unsealed
from reconcile.posting.handing import way_to


class LimitMet(Exception):
    """One more is not made. The message names the limit."""


class RuleMoved(Exception):
    """Somebody saved the rule after this version of it was read."""


def save_rule(
    rule: NotificationRule,
    channels: Iterable[NotificationChannel],
    *,
    read_version: int | None,
    user: User,
    now: datetime,
) -> None:
    """Saves a rule as its next version. `read_version` None: it is new.

    Raises `LimitMet` or `RuleMoved`.
    """
    with transaction.atomic():
        before = None
        if read_version is None:
            _limit(NotificationRule, rule.workspace, RULES_MAX, "RULES_MAX")
            rule.made_at, rule.made_by = now, user
        else:
            kept = NotificationRule.objects.select_for_update().get(pk=rule.pk)
            if kept.version != read_version or kept.retired_at is not None:
                raise RuleMoved
            before, rule.version = rule_said(kept), read_version + 1
        rule.save()
        rule.channels.set(channels)
        _keep(rule, "notification_rule.saved", user, before=before, after=rule_said(rule))


def pause(rule: NotificationRule, *, user: User, now: datetime) -> None:
    """Pauses a rule, or has a paused one speak again."""
    with transaction.atomic():
        rule.paused_at = None if rule.paused_at else now
        rule.save(update_fields=["paused_at"])
        act = "notification_rule.paused" if rule.paused_at else "notification_rule.resumed"
        _keep(rule, act, user)


def retire_rule(rule: NotificationRule, *, user: User, now: datetime) -> None:
    with transaction.atomic():
        rule.retired_at = now
        rule.save(update_fields=["retired_at"])
        _keep(rule, "notification_rule.retired", user, before=rule_said(rule))


def save_channel(
    channel: NotificationChannel, said: Mapping[str, Any], *, user: User, now: datetime
) -> None:
    """Saves a channel as its form says. What is secret is sealed, and in no line of the log.

    Raises `LimitMet`.
    """
    with transaction.atomic():
        before = None
        if not channel.public_id:
            _limit(NotificationChannel, channel.workspace, CHANNELS_MAX, "CHANNELS_MAX")
            channel.public_id = f"nch_{uuid4().hex}"
            channel.made_at, channel.made_by = now, user
        else:
            before = channel_said(NotificationChannel.objects.get(pk=channel.pk))
        channel.name, channel.names_calls = said["name"], said["names_calls"]
        channel.people = said.get("people", [])
        channel.address = said.get("address", "")
        changed = _seal(channel, said.get("url", ""), said.get("secret", ""))
        channel.save()
        after = channel_said(channel) | ({"secret": "entered anew"} if changed else {})
        _keep(channel, "notification_channel.saved", user, before=before, after=after)


def retire_channel(channel: NotificationChannel, *, user: User, now: datetime) -> None:
    """Nothing more is sent there, and its secret is forgotten at once."""
    with transaction.atomic():
        channel.retired_at, channel.sealed = now, None
        channel.save(update_fields=["retired_at", "sealed"])
        said = channel_said(channel)
        _keep(channel, "notification_channel.retired", user, before=said)


def rule_said(rule: NotificationRule) -> dict[str, Any]:
    """A rule as plain words, for the audit log."""
    return {
        "name": rule.name,
        "condition": rule.condition,
        "within": _words(rule.within_seconds),
        "amount": _figure(rule.amount),
        "currency": rule.currency,
        "tool": rule.tool.name if rule.tool else "",
        "class": rule.effect_class,
        "amount_from": _figure(rule.amount_from),
        "repeat": _words(rule.repeat_seconds),
        "zone": rule.zone,
        "quiet": f"{rule.quiet_from:%H:%M}-{rule.quiet_until:%H:%M}" if rule.quiet_from else "",
        "wake_below": _words(rule.wake_seconds),
        "channels": sorted(one.name for one in rule.channels.all()),
    }


def channel_said(channel: NotificationChannel) -> dict[str, Any]:
    """A channel as plain words, without what is secret."""
    return {
        "name": channel.name,
        "kind": channel.kind,
        "people": list(channel.people),
        "address": channel.address,
        "origin": channel.origin,
        "names_calls": channel.names_calls,
    }


# Inside


def _seal(channel: NotificationChannel, url: str, secret: str) -> bool:
    """Seals what was typed; what was not typed stays. False: nothing was."""
    if not url and not secret:
        return False
    try:
        known_url, known_secret = unsealed(channel)
    except CannotOpen:
        known_url, known_secret = "", ""
    channel.sealed = sealed(channel, url=url or known_url, secret=secret or known_secret)
    if url:
        channel.origin = way_to(url).origin
    channel.failing_since, channel.failing_why = None, ""
    return True


def _limit(model: Any, workspace: Workspace, most: int, name: str) -> None:
    # The workspace's row is the queue for whoever adds one, so that two never pass
    # together; agents that claim in it meanwhile do not wait.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    if model.objects.filter(workspace=workspace, retired_at=None).count() >= most:
        raise LimitMet(f"{name} is {most}: retire one first.")


def _keep(
    of: NotificationRule | NotificationChannel,
    act: str,
    user: User,
    *,
    before: Any = None,
    after: Any = None,
) -> None:
    audit.keep(
        of.workspace_id,
        act,
        user_id=user.pk,
        target=of.name,
        address=reverse("notifications"),
        before=before,
        after=after,
    )


def _words(seconds: int | None) -> str:
    return "" if seconds is None else write_duration(seconds)


def _figure(amount: Any) -> str:
    return "" if amount is None else f"{amount.normalize():f}"
