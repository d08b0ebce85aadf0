"""What was told of a call and is contradicted since, and everybody who was told."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.models import Workspace


class Contradiction(models.Model):
    """One change of a call against what was told. A trigger writes it with the change itself.

    `version` is the number of the event that changed it, `told` and `became` are states of a claim.
    `raised_at`: when its alerts were made, null until then.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    claim = models.ForeignKey(
        "ledger.Claim",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    version = models.IntegerField()
    told = models.CharField(max_length=20)
    became = models.CharField(max_length=20)
    at = models.DateTimeField()
    raised_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="contradiction_once", fields=["claim", "version"])
        ]
        indexes = [
            models.Index(
                name="contradiction_to_raise", fields=["id"], condition=Q(raised_at__isnull=True)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} was told {self.told}, is {self.became}"


class Alert(models.Model):
    """One recipient of what was told: a person who decided it, or the agent that was answered.

    `agent` is the worker that held the newest attempt, as it named itself; empty for a person.
    `decision_id` is the decision that is contradicted, null where a fact alone had settled the
    call. Somebody marks it as seen once the recipient knows.
    """

    contradiction = models.ForeignKey(
        Contradiction, on_delete=models.CASCADE, related_name="alerts", db_index=False
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    agent = models.CharField(max_length=255, blank=True, default="")
    decision_id = models.BigIntegerField(null=True)
    at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    seen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="alert_once",
                fields=["contradiction", "person", "agent"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="alert_seen_by_somebody",
                condition=Q(seen_at=None, seen_by=None)
                | Q(seen_at__isnull=False, seen_by__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                name="alert_open", fields=["workspace", "id"], condition=Q(seen_at__isnull=True)
            ),
            models.Index(name="alert_list", fields=["workspace", "-id"]),
        ]

    @override
    def __str__(self) -> str:
        return f"alert {self.pk} of {self.contradiction_id}"
