"""What providers send on their own: where they may send it, and every delivery as it came."""

from __future__ import annotations

from typing import override

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.models import Connection


class WebhookAddress(models.Model):
    """Where one provider account sends its webhooks: `/webhooks/<public_id>`.

    `secret_name` names an environment variable that holds the signing secret, or several with
    white space between them while one replaces another: the secret itself is never in the database
    and no page can show it. The newest refusal is kept, because a secret that was changed on one
    side only shows nowhere else.
    """

    connection = models.OneToOneField(
        Connection, on_delete=models.CASCADE, related_name="webhook_address"
    )
    public_id = models.CharField(max_length=64, unique=True)
    secret_name = models.CharField(max_length=100, blank=True, default="")
    refused_count = models.PositiveIntegerField(default=0)
    refused_at = models.DateTimeField(null=True)
    refused_why = models.CharField(max_length=200, blank=True, default="")

    @override
    def __str__(self) -> str:
        return f"webhooks of {self.connection_id}"


class WebhookDelivery(models.Model):
    """One webhook with a right signature, kept before anything else was done with it.

    The same bytes again are the same delivery, seen once more; the same event id with other bytes
    is a delivery of its own. Only what was applied is done with: a delivery that failed, or that
    matched no claim, is due again at `due_at`, also when it is sent anew. `claims` are those that
    it was applied to, `reads` those for which it has ordered a fresh read that is still to come.
    `said_at` is the provider's own time of the event; it has seconds and is no order.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"  # kept, and not yet looked at
        APPLIED = "applied", "Applied"
        UNMATCHED = "unmatched", "Matches no call"
        MISPLACED = "misplaced", "Wrong account or mode"
        UNREADABLE = "unreadable", "Not understood"
        FAILED = "failed", "Failed"

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, db_index=False)
    event_id = models.CharField(max_length=255)
    type = models.CharField(max_length=100)
    object_id = models.CharField(max_length=255, blank=True, default="")
    said_at = models.DateTimeField(null=True)
    body = models.BinaryField()
    digest = models.BinaryField()
    received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()
    times_received = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    note = models.CharField(max_length=500, blank=True, default="")
    claims = ArrayField(models.UUIDField(), default=list)
    reads = ArrayField(models.UUIDField(), default=list)
    due_at = models.DateTimeField(null=True)  # null: nothing more happens by itself
    tries = models.PositiveIntegerField(default=0)
    applied_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="webhook_once", fields=["connection", "event_id", "digest"]
            ),
            models.CheckConstraint(
                name="webhook_state",
                condition=Q(
                    state__in=[
                        "waiting",
                        "applied",
                        "unmatched",
                        "misplaced",
                        "unreadable",
                        "failed",
                    ]
                ),
            ),
        ]
        indexes = [
            models.Index(name="webhook_due", fields=["due_at"], condition=Q(due_at__isnull=False)),
            models.Index(name="webhook_object", fields=["connection", "object_id"]),
            models.Index(name="webhook_list", fields=["connection", "-id"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"


class ConnectionReads(models.Model):
    """How many requests our own look-ups made at one provider account on one day (UTC).

    Stripe allows an account 500 reads for each transaction over thirty days, and at least 10,000;
    the agents' own reads count there too, and are not seen here.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    reads = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(name="reads_by_day", fields=["connection", "day"])]

    @override
    def __str__(self) -> str:
        return f"{self.reads} reads of {self.connection_id} on {self.day}"
