"""What the third floor keeps for itself: read models, never the truth."""

from __future__ import annotations

from typing import override

from django.db import models

from effects.money import Money
from reconcile.assign.models import Assignment
from reconcile.audit.models import ChainCheck, Submission
from reconcile.bulk.models import Bulk, BulkItem
from reconcile.customer.models import CustomerText
from reconcile.duplicates.models import (
    DuplicateAct,
    DuplicateGroup,
    FindingMark,
    ImportedEvidence,
    RetryConstants,
)
from reconcile.exposure.models import (
    ExposureLevel,
    RolledDay,
    StreamDay,
    ToolDay,
    ToolSlot,
    UnsureCall,
)
from reconcile.ghosts.models import Ghost, GhostSaid
from reconcile.late.models import Alert, Contradiction
from reconcile.models_people import Proposal, SecondPersonRule, Snooze, Take
from reconcile.models_webhooks import ConnectionReads, WebhookAddress, WebhookDelivery
from reconcile.notes.models import Mention
from reconcile.notify.models import (
    Notification,
    NotificationAck,
    NotificationChannel,
    NotificationDelivery,
    NotificationItem,
    NotificationRule,
)
from reconcile.outbox.models import (
    AgentAddress,
    OutboxCue,
    OutboxDelivery,
    OutboxMark,
    OutboxMessage,
)
from reconcile.runs.models import AskingEnded, Backlog, Run, RunItem
from reconcile.views.models import DefaultView, PersonKeys, SavedView

__all__ = [
    "AgentAddress",
    "Alert",
    "AskingEnded",
    "Assignment",
    "Backlog",
    "Bulk",
    "BulkItem",
    "Card",
    "ChainCheck",
    "ConnectionReads",
    "Contradiction",
    "CustomerText",
    "DefaultView",
    "DuplicateAct",
    "DuplicateGroup",
    "ExposureLevel",
    "FindingMark",
    "Ghost",
    "GhostSaid",
    "ImportedEvidence",
    "Mention",
    "Notification",
    "NotificationAck",
    "NotificationChannel",
    "NotificationDelivery",
    "NotificationItem",
    "NotificationRule",
    "OutboxCue",
    "OutboxDelivery",
    "OutboxMark",
    "OutboxMessage",
    "PersonKeys",
    "Proposal",
    "RetryConstants",
    "RolledDay",
    "Run",
    "RunItem",
    "SavedView",
    "SecondPersonRule",
    "Snooze",
    "StreamDay",
    "Submission",
    "Take",
    "ToolDay",
    "ToolSlot",
    "UnsureCall",
    "WebhookAddress",
    "WebhookDelivery",
]


class Card(models.Model):
    """What people search and sort calls by, read out of the arguments once.

    A cache: it can be emptied at any time and fills itself again. The arguments of a claim never
    change, so a card is out of date only when its tool reads them in another way; `tool_version`
    tells. `amount` is in whole units of `currency` (149.00 is 149.00); null: the arguments name
    none. `filled_at` is by the database's clock, so that a list that was opened before it keeps its
    order while it is paged through.
    """

    claim_id = models.UUIDField(primary_key=True)
    workspace_id = models.BigIntegerField()
    tool_version = models.PositiveIntegerField()
    amount = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    places = models.PositiveSmallIntegerField(default=2)
    customer = models.CharField(max_length=255, blank=True, default="")
    summary = models.CharField(max_length=200, blank=True, default="")
    filled_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="card_amount_has_currency",
                condition=models.Q(amount=None) | ~models.Q(currency=""),
            )
        ]

    @override
    def __str__(self) -> str:
        return self.summary

    @property
    def money(self) -> Money | None:
        """The amount as it is shown, without the zeros that the column pads it with."""
        if self.amount is None:
            return None
        return Money(amount=self.amount.normalize(), currency=self.currency, places=self.places)
