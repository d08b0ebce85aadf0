"""Who is told of what: rules, channels, what somebody is at, and every message with its fate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects import mail
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.models import Membership
from effects.times import duration_words
from ledger import queries
from reconcile.models import (
    Notification,
    NotificationAck,
    NotificationChannel,
    NotificationDelivery,
    NotificationItem,
    NotificationRule,
)
from reconcile.notify import acks, sending, tasks, telling, words
from reconcile.notify.composing import why_now
from reconcile.notify.facts import State
from reconcile.notify.limits import CHANNELS_MAX, RULES_MAX

ROWS_MAX: Final = 50
ITEMS_SHOWN_MAX: Final = 200
ACKS_SHOWN_MAX: Final = 50
WISHES: Final = {1: "1 hour", 4: "4 hours", 24: "24 hours"}
"""For how long a notification may be acknowledged, in hours; the window may end it sooner."""

_State = NotificationDelivery.State
TABS: Final = {
    "all": ("All", None),
    "waiting": ("Waiting", _State.WAITING),
    "delivered": ("Delivered", _State.DELIVERED),
    "given_up": ("Given up", _State.GIVEN_UP),
    "too_late": ("Too late", _State.TOO_LATE),
    "settled": ("Settled meanwhile", _State.SETTLED),
}
"""Which messages a tab shows, by the word in its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    words: str
    address: str
    count: int | None
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShown:
    """One call of a notification. `still`: the rule is true of it now, in the same situation."""

    kept: NotificationItem
    still: bool
    ack: NotificationAck | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of the log, as its address says it."""

    show: str
    rule: int
    channel: int
    before: int

    @property
    def narrowed(self) -> bool:
        return bool(self.rule or self.channel)

    def address(self, **changes: Any) -> str:
        said = {"show": self.show, "rule": self.rule, "channel": self.channel, **changes}
        kept = {name: value for name, value in said.items() if value and value != "all"}
        return f"{reverse('notifications')}{f'?{urlencode(kept)}' if kept else ''}#told"


@require_safe
@membership_required
def notifications(request: DeskRequest) -> HttpResponse:
    """Rules with how they stand now, channels, acknowledgements, and what was told."""
    require(request, Ability.SEE_NOTIFICATIONS)
    now = queries.clock()
    rules = _rules(request)
    asked = _asked(request)
    rows = list(_told(request, asked)[: ROWS_MAX + 1])
    channels = list(_channels(request))
    people = _people(request, channels)
    context = {
        "now": now,
        "rules": rules,
        "channels": [
            {"kept": one, "reaches": words.reaches(one, people), "last": one.last_line}
            for one in channels
        ],
        "mail_is_missing": not mail.is_configured()
        and any(one.kind == NotificationChannel.Kind.EMAIL for one in channels),
        "kinds": NotificationChannel.Kind.choices,
        "acks": list(acks.in_force(request.workspace.pk, now)[:ACKS_SHOWN_MAX]),
        "tabs": _tabs(request, asked),
        "asked": asked,
        "rows": rows[:ROWS_MAX],
        "older": asked.address(before=rows[ROWS_MAX - 1].pk) if len(rows) > ROWS_MAX else "",
        "newer": asked.address() if asked.before else "",
        "rules_max": RULES_MAX,
        "channels_max": CHANNELS_MAX,
        **_may(request),
    }
    return render(request, "reconcile/notifications.html", context)


@require_safe
@membership_required
def notification(request: DeskRequest, notification_id: int) -> HttpResponse:
    """What was told at one time: its calls as they were then and as they are now."""
    require(request, Ability.SEE_NOTIFICATIONS)
    return _one(request, _notification(request, notification_id))


@require_POST
@membership_required
def acknowledge(request: DeskRequest, notification_id: int) -> HttpResponse:
    """Somebody is at it: silence about these calls under this rule, for a time that ends."""
    require(request, Ability.ACKNOWLEDGE)
    kept = _notification(request, notification_id)
    if kept.rule is None:
        raise Http404("A test of a channel tells of nothing that could be acknowledged.")
    hours = request.POST.get("hours", "")
    wish = int(hours) if hours.isascii() and hours.isdigit() and len(hours) < 3 else 0
    still = [one.kept for one in _items(kept, _state(request, kept)) if one.still]
    if wish not in WISHES or not still:
        why = "It is not so any more." if not still else "Choose for how long."
        return _one(request, kept, error=f"Nothing was acknowledged. {why}", status=422)
    done = acks.acknowledge(kept, still, user_id=request.user.pk, wish=timedelta(hours=wish))
    if not done.made:
        sentence = "Its window closes within half an hour: it is spoken of until then."
        return _one(request, kept, error=f"Nothing was acknowledged. {sentence}", status=422)
    late = f" {done.too_late} close too soon to be silenced." if done.too_late else ""
    many = f"{done.made} call{'' if done.made == 1 else 's'}"
    first = duration_words((done.until - queries.clock()).total_seconds()) if done.until else ""
    messages.success(
        request, f"{many} acknowledged; told again in {first} if still so and not settled.{late}"
    )
    return redirect("notification", notification_id=kept.pk)


@require_POST
@membership_required
def end_ack(request: DeskRequest, ack_id: int) -> HttpResponse:
    """It is told again from now on."""
    require(request, Ability.ACKNOWLEDGE)
    if not acks.end(request.workspace.pk, ack_id, user_id=request.user.pk):
        raise Http404("No acknowledgement of this workspace that is in force has this number.")
    messages.success(request, "It is told again from now on, if it is still so.")
    return redirect("notifications")


@require_POST
@membership_required
def again(request: DeskRequest, message_id: int) -> HttpResponse:
    """Has one message tried once more, within seconds."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    found = NotificationDelivery.objects.filter(notification__workspace=request.workspace)
    delivery = found.filter(pk=message_id).first()
    if delivery is None:
        raise Http404("No message of this workspace has this number.")
    if delivery.state == _State.DELIVERED:
        messages.error(request, "It was taken already, so it is not sent again.")
    else:
        sending.send_again(delivery)
        tasks.soon()
        messages.success(request, "It is sent again.")
    return redirect("notification", notification_id=delivery.notification_id)


# Inside


def _one(
    request: DeskRequest, kept: Notification, *, error: str = "", status: int = 200
) -> HttpResponse:
    now = queries.clock()
    items = _items(kept, _state(request, kept))
    still = [one.kept for one in items if one.still]
    silent = [one for one in items if one.still and one.ack]
    letter = telling.letter_of(kept, names_calls=True) if kept.rule else None
    context = {
        "now": now,
        "kept": kept,
        "items": items[:ITEMS_SHOWN_MAX],
        "items_more": max(0, len(items) - ITEMS_SHOWN_MAX),
        "still": len(still),
        "silent": len(silent),
        "why": why_now(letter) if letter else "",
        "queue_link": letter.queue_link if letter else "",
        "rule_words": words.condition_words(kept.rule) if kept.rule else "",
        "deliveries": kept.deliveries.select_related("channel").order_by("pk"),
        "wishes": WISHES,
        "can_be_silenced": acks.may_be_silenced(still, now),
        "error": error,
        "may_acknowledge": can(request.role, Ability.ACKNOWLEDGE),
        "needs_to_acknowledge": needs(Ability.ACKNOWLEDGE),
        **_may(request),
    }
    return render(request, "reconcile/notification.html", context, status=status)


def _may(request: DeskRequest) -> dict[str, Any]:
    return {
        "may_edit": can(request.role, Ability.EDIT_NOTIFICATIONS),
        "needs": needs(Ability.EDIT_NOTIFICATIONS),
    }


def _state(request: DeskRequest, kept: Notification) -> State:
    if kept.rule is None:
        return State()
    return telling.state_of(request.workspace.pk, [kept.rule])[kept.rule.pk]


def _items(kept: Notification, state: State) -> list[ItemShown]:
    now = queries.clock()
    true_now = {(one.subject.key, one.situation) for one in state.true_of}
    in_force = NotificationAck.objects.filter(rule=kept.rule_id, until__gt=now)
    silent = {
        (one.subject, one.situation): one
        for one in in_force.select_related("by").order_by("until", "pk")
    }
    return [
        ItemShown(
            kept=item,
            still=(item.subject, item.situation) in true_now,
            ack=silent.get((item.subject, item.situation)),
        )
        for item in kept.items.order_by("place")
    ]


def _rules(request: DeskRequest) -> list[words.RuleShown]:
    """The rules by name, each with how it stands by the very function that decides."""
    found = NotificationRule.objects.filter(workspace=request.workspace, retired_at=None)
    kept = list(found.select_related("tool").prefetch_related("channels").order_by("name"))
    speaking = [one for one in kept if one.paused_at is None]
    states = telling.state_of(request.workspace.pk, speaking) if speaking else {}
    return [
        words.RuleShown(
            kept=one,
            words=words.condition_words(one),
            quiet=words.quiet_words(one),
            channels=tuple(c for c in one.channels.all() if c.retired_at is None),
            state=states.get(one.pk),
        )
        for one in kept
    ]


def _channels(request: DeskRequest) -> QuerySet[NotificationChannel, Any]:
    newest = NotificationDelivery.objects.filter(
        channel=OuterRef("pk"), last_at__isnull=False
    ).order_by("-pk")
    return (
        NotificationChannel.objects.filter(workspace=request.workspace, retired_at=None)
        .annotate(
            last_line=Subquery(newest.values("last_said")[:1]),
            last_try=Subquery(newest.values("last_at")[:1]),
        )
        .order_by("name")
    )


def _people(request: DeskRequest, channels: Iterable[NotificationChannel]) -> dict[int, User]:
    named = {person for one in channels for person in one.people}
    members = Membership.objects.filter(workspace=request.workspace, user_id__in=named)
    return {one.user_id: one.user for one in members.select_related("user")}


def _asked(request: DeskRequest) -> Asked:
    def number(name: str) -> int:
        said = request.GET.get(name, "")
        return int(said) if said.isascii() and said.isdigit() and len(said) < 18 else 0

    show = request.GET.get("show", "")
    return Asked(
        show=show if show in TABS else "all",
        rule=number("rule"),
        channel=number("channel"),
        before=number("before"),
    )


def _of_workspace(request: DeskRequest, asked: Asked) -> QuerySet[Notification]:
    found = Notification.objects.filter(workspace=request.workspace)
    if asked.rule:
        found = found.filter(rule_id=asked.rule)
    if asked.channel:
        found = found.filter(deliveries__channel_id=asked.channel).distinct()
    return found


def _told(request: DeskRequest, asked: Asked) -> QuerySet[Notification]:
    found = _of_workspace(request, asked)
    state = TABS[asked.show][1]
    if state is not None:
        found = found.filter(
            pk__in=NotificationDelivery.objects.filter(state=state).values("notification_id")
        )
    if asked.before:
        found = found.filter(pk__lt=asked.before)
    return found.select_related("rule").prefetch_related("deliveries__channel").order_by("-pk")


def _tabs(request: DeskRequest, asked: Asked) -> list[Tab]:
    of = NotificationDelivery.objects.filter(notification__workspace=request.workspace)
    if asked.rule:
        of = of.filter(notification__rule_id=asked.rule)
    if asked.channel:
        of = of.filter(channel_id=asked.channel)
    counted = dict(of.values_list("state").annotate(n=Count("pk")))
    return [
        Tab(
            words=said,
            address=asked.address(show=word),
            count=None if state is None else counted.get(str(state), 0),
            current=word == asked.show,
        )
        for word, (said, state) in TABS.items()
    ]


def _notification(request: DeskRequest, notification_id: int) -> Notification:
    found = Notification.objects.filter(workspace=request.workspace, pk=notification_id)
    kept = found.select_related("rule__tool", "workspace").first()
    if kept is None:
        raise Http404("No notification of this workspace has this number.")
    return kept
