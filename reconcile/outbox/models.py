"""Who waits for news of calls, what there is to tell, and every delivery with its tries."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.models import Workspace


class AgentAddress(models.Model):
    """Where one agent's runtime takes news of the workspace's calls.

    `secret_name` names an environment variable that holds the signing secret (`whsec_...`), or
    several with white space between them while one replaces another: every message is then signed
    with each. `types` holds the types of messages that are wanted; empty means all. An address is
    retired, not deleted, because its deliveries stay on record. `gone_at`: its server answered 410.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="agent_addresses"
    )
    name = models.CharField(max_length=100)
    url = models.URLField(max_length=500)
    secret_name = models.CharField(max_length=100)
    types = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)  # null: the newest try was taken, or none was

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="agent_address_name",
                fields=["workspace", "name"],
                condition=Q(retired_at__isnull=True),
            )
        ]

    @override
    def __str__(self) -> str:
        return self.name


class OutboxCue(models.Model):
    """One change of a call that may be news, written in the transaction that made it.

    A trigger writes it, and only where the workspace has an address. `seq` is the event that gave
    the cue, 0 where the claim's state changed by a report.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    claim_id = models.UUIDField()
    seq = models.IntegerField()
    at = models.DateTimeField()
    due_at = models.DateTimeField()
    tries = models.PositiveIntegerField(db_default=0)

    class Meta:
        indexes = [models.Index(name="cue_due", fields=["due_at"])]

    @override
    def __str__(self) -> str:
        return f"cue {self.claim_id} #{self.seq}"


class OutboxMessage(models.Model):
    """One thing to tell about one call, in the very bytes that are signed and sent.

    `said` is what was told, so that the same is not told twice. `public_id` is the message's id at
    the receiver, the same in every try.
    """

    public_id = models.CharField(max_length=40, unique=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    claim_id = models.UUIDField(null=True)  # null: a test message
    version = models.IntegerField(default=0)
    type = models.CharField(max_length=40)
    said = models.JSONField(default=list)
    body = models.BinaryField()
    made_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(name="outbox_claim", fields=["claim_id", "-id"]),
            models.Index(name="outbox_made", fields=["workspace", "-id"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.type} {self.public_id}"


class OutboxDelivery(models.Model):
    """One message on its way to one address. `log` holds a line for each try, oldest first."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        SUPERSEDED = "superseded", "Superseded"  # newer news of the same call goes instead
        GIVEN_UP = "given_up", "Given up"

    message = models.ForeignKey(OutboxMessage, on_delete=models.CASCADE, related_name="deliveries")
    address = models.ForeignKey(AgentAddress, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)  # null: nothing more happens by itself
    last_at = models.DateTimeField(null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_said = models.CharField(max_length=300, blank=True, default="")
    log = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="outbox_once", fields=["message", "address"]),
            models.CheckConstraint(
                name="outbox_state",
                condition=Q(state__in=["waiting", "delivered", "superseded", "given_up"]),
            ),
        ]
        indexes = [
            models.Index(name="outbox_due", fields=["due_at"], condition=Q(due_at__isnull=False))
        ]

    @override
    def __str__(self) -> str:
        return f"{self.message_id} to {self.address_id}"


class OutboxMark(models.Model):
    """How far the outbox has looked for windows that closed. One row."""

    windows_until = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"windows until {self.windows_until}"
