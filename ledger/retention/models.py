"""For how many days each kind of body is kept, and what was emptied when."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.models import Workspace


class RetentionRule(models.Model):
    """Bodies of a kind are emptied `days` days after nothing more happened. No row: kept."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=20)
    days = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="retention_once", fields=["workspace", "kind"]),
            models.CheckConstraint(name="retention_days", condition=Q(days__gte=1)),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kind}: {self.days} days"


class RetentionPass(models.Model):
    """How far the emptying of a kind is, in all workspaces: everything up to `after` was looked at
    since `began_at`. `ended_at` set: the pass is over, and the next begins a day after it began."""

    kind = models.CharField(primary_key=True, max_length=20)
    after = models.CharField(max_length=40)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    @override
    def __str__(self) -> str:
        return f"{self.kind} up to {self.after}"


class RetentionRun(models.Model):
    """What one pass emptied in a workspace."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=20)
    began_at = models.DateTimeField()
    last_at = models.DateTimeField()
    emptied = models.IntegerField(default=0)
    emptied_bytes = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="retention_run_once", fields=["workspace", "kind", "began_at"]
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.emptied} {self.kind} emptied"


class RetentionFigure(models.Model):
    """How much of a kind a workspace keeps, counted at `at`: `due` of it the next pass empties."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=20)
    kept = models.BigIntegerField()
    kept_bytes = models.BigIntegerField()
    oldest_at = models.DateTimeField(null=True)
    due = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="retention_figure_once", fields=["workspace", "kind"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kept} {self.kind} kept"
