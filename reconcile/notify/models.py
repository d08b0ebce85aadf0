"""Who is told of what and how, what was told, what somebody is at, and every delivery."""

from __future__ import annotations

from datetime import timedelta
from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.models import Tool, Workspace
from effects.money import Money


class NotificationChannel(models.Model):
    """One way to people: mail, or an address that takes a POST.

    `people` are numbers of members, `address` one more mailbox; both are for mail alone. `sealed`
    holds the address of a webhook and its signing secret, readable by this installation only; no
    page ever shows them, so `origin` says where they lead. `names_calls`: messages say what the
    calls are, and not only how many. A channel is retired, not deleted: its deliveries stay.
    """

    class Kind(models.TextChoices):
        EMAIL = "email", "Email"
        SLACK = "slack", "Slack-compatible webhook"
        WEBHOOK = "webhook", "Signed webhook"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind)
    public_id = models.CharField(max_length=40, unique=True)  # what `sealed` is bound to
    people = ArrayField(models.BigIntegerField(), default=list)
    address = models.EmailField(max_length=254, blank=True, default="")
    origin = models.CharField(max_length=300, blank=True, default="")
    sealed = models.BinaryField(null=True)
    names_calls = models.BooleanField(default=True)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)  # null: the newest try was taken, or none was
    failing_why = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="notification_channel_name",
                fields=["workspace", "name"],
                condition=Q(retired_at__isnull=True),
            ),
            models.CheckConstraint(
                name="notification_channel_kind",
                condition=Q(kind__in=["email", "slack", "webhook"]),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class NotificationRule(models.Model):
    """When whom to tell. Lengths of time are in seconds, `amount` and `amount_from` in whole units.

    `within_seconds` is how near a window is to its end, or for how long nobody has the call;
    `amount` of `currency` is the sum above which exposure is told. Quiet hours are of every day in
    `zone`; both times null: none. Without channels it is told on the page alone.
    """

    class Condition(models.TextChoices):
        CLOSING = "closing", "The window closes soon"
        UNTAKEN = "untaken", "Nobody has the call"
        EXPOSURE = "exposure", "Exposure is above an amount"
        OTHERWISE = "otherwise", "Contradiction, or told otherwise"
        LOOKUPS = "lookups", "Look-ups ended, or a connection is left alone"
        SECOND_PERSON = "second_person", "A request waits for a second person"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=100)
    condition = models.CharField(max_length=15, choices=Condition)
    within_seconds = models.PositiveIntegerField(null=True)
    amount = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, null=True, related_name="+")
    effect_class = models.CharField(max_length=20, blank=True, default="")
    amount_from = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    repeat_seconds = models.PositiveIntegerField()
    zone = models.CharField(max_length=64, default="UTC")
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    wake_seconds = models.PositiveIntegerField(null=True)
    channels = models.ManyToManyField(NotificationChannel, related_name="rules")
    paused_at = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="notification_rule_name",
                fields=["workspace", "name"],
                condition=Q(retired_at__isnull=True),
            ),
            models.CheckConstraint(
                name="notification_rule_condition",
                condition=Q(condition__in=["closing", "untaken"], within_seconds__isnull=False)
                | (Q(condition="exposure", amount__isnull=False) & ~Q(currency=""))
                | Q(condition__in=["otherwise", "lookups", "second_person"]),
            ),
            models.CheckConstraint(
                name="notification_rule_quiet",
                condition=Q(quiet_from=None, quiet_until=None)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class Notification(models.Model):
    """One thing that was told at one time. `rule` null: somebody tried a channel.

    `said` is the rule as it was then, for people who read it later. `of_all` counts what the rule
    was true of, also what was told before. `of_use_until`: after that nobody is helped by it.
    """

    class Why(models.TextChoices):
        TRUE = "true", "Told as it became true"
        WAKES = "wakes", "In quiet hours, because the window is that short"
        CLOSES_FIRST = "closes_first", "In quiet hours, because the window closes before their end"
        TEST = "test", "Somebody tried a channel"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    rule = models.ForeignKey(
        NotificationRule, on_delete=models.PROTECT, null=True, related_name="notifications"
    )
    made_at = models.DateTimeField()
    why = models.CharField(max_length=15, choices=Why)
    said = models.JSONField()
    of_all = models.PositiveIntegerField(default=0)
    total = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    total_currency = models.CharField(max_length=3, blank=True, default="")
    total_places = models.PositiveSmallIntegerField(default=2)
    of_use_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(name="notification_newest", fields=["workspace", "-id"])]

    @override
    def __str__(self) -> str:
        return f"notification {self.pk}"


class NotificationItem(models.Model):
    """One call or connection that was told, as it was then. The log of what is not told again.

    `subject` is what deciding names it by, `situation` what was so. `place` sorts by urgency.
    """

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="items")
    rule_id = models.BigIntegerField()
    subject = models.CharField(max_length=60)
    situation = models.CharField(max_length=100)
    at = models.DateTimeField()
    place = models.PositiveIntegerField()
    claim_id = models.UUIDField(null=True)
    state = models.CharField(max_length=20, blank=True, default="")
    summary = models.CharField(max_length=200, blank=True, default="")
    amount = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    places = models.PositiveSmallIntegerField(default=2)
    deadline = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                name="notification_told", fields=["rule_id", "subject", "situation", "-at"]
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.subject} in {self.notification_id}"

    @property
    def money(self) -> Money | None:
        if self.amount is None:
            return None
        return Money(amount=self.amount.normalize(), currency=self.currency, places=self.places)


class NotificationAck(models.Model):
    """Somebody is at it: one situation of one subject under one rule, silent until `until`."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    rule = models.ForeignKey(NotificationRule, on_delete=models.PROTECT, related_name="+")
    notification = models.ForeignKey(
        Notification, on_delete=models.SET_NULL, null=True, related_name="acks"
    )
    subject = models.CharField(max_length=60)
    situation = models.CharField(max_length=100)
    claim_id = models.UUIDField(null=True)
    summary = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField()
    until = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        indexes = [models.Index(name="notification_ack_open", fields=["workspace", "until"])]
        constraints = [
            # It ends: nobody is silenced for longer than a day by one press of a button.
            models.CheckConstraint(
                name="notification_ack_ends",
                condition=Q(
                    until__gt=models.F("at"), until__lte=models.F("at") + timedelta(hours=24)
                ),
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.subject} until {self.until}"


class NotificationDelivery(models.Model):
    """One message on its way to one recipient. `log` holds a line for each try, oldest first.

    `public_id` is the message's id at the receiver, the same in every try. `begun_at`: a try was
    begun whose end is not written down yet; if it stays, its sender died, and the next try may
    bring a second copy.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        TOO_LATE = "too_late", "Too late"  # the window closed before anybody took it
        SETTLED = "settled", "Settled meanwhile"
        GIVEN_UP = "given_up", "Given up"

    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="deliveries"
    )
    channel = models.ForeignKey(
        NotificationChannel, on_delete=models.CASCADE, related_name="deliveries"
    )
    to = models.CharField(max_length=254, blank=True, default="")  # a mailbox; empty for webhooks
    public_id = models.CharField(max_length=40, unique=True)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)  # null: nothing more happens by itself
    begun_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_said = models.CharField(max_length=300, blank=True, default="")
    log = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="notification_once", fields=["notification", "channel", "to"]
            ),
            models.CheckConstraint(
                name="notification_delivery_state",
                condition=Q(state__in=["waiting", "delivered", "too_late", "settled", "given_up"]),
            ),
        ]
        indexes = [
            models.Index(
                name="notification_due", fields=["due_at"], condition=Q(due_at__isnull=False)
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} to {self.to or self.channel_id}"
