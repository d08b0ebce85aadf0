"""Sums of the record that pages and reports are drawn from: read models, never the truth.

Each can be emptied at any time and is filled again from the record, except `ExposureLevel`: how
much was at risk at an hour that has passed cannot be found out afterwards.
"""

from __future__ import annotations

from typing import override

from django.db import models
from django.db.models import Q

from effects.models import Tool, Workspace


class RolledDay(models.Model):
    """A day of UTC whose claims and streams have been summed up for every workspace.

    `rolled_at` is when that was last begun; what arrived later waits for the next time.
    """

    day = models.DateField(primary_key=True)
    rolled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(name="rolled_day_oldest", fields=["rolled_at"])]

    @override
    def __str__(self) -> str:
        return f"{self.day} at {self.rolled_at}"


class ToolDay(models.Model):
    """One tool on one day of UTC.

    `responses` announced a call of it; `in_window` of those failed although a call of it had been
    granted. `latency` and `gap` are counts by bin (`measuring.bin_of`). `wire_*` count the requests
    that somebody's record shows with the granted key, with another, and with none.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    responses = models.PositiveIntegerField(default=0)
    in_window = models.PositiveIntegerField(default=0)
    latency = models.JSONField(default=dict)
    gap = models.JSONField(default=dict)
    wire_same = models.PositiveIntegerField(default=0)
    wire_other = models.PositiveIntegerField(default=0)
    wire_missing = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="tool_day_once", fields=["workspace", "day", "tool"])
        ]
        indexes = [models.Index(name="tool_day_day", fields=["day"])]

    @override
    def __str__(self) -> str:
        return f"tool {self.tool_id} on {self.day}"


class StreamDay(models.Model):
    """The responses that a workspace's ledger received on one day of UTC, by how they ended.

    `in_window`: failed although a call of some write had been granted.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    success = models.PositiveIntegerField(default=0)
    incomplete = models.PositiveIntegerField(default=0)
    error_event = models.PositiveIntegerField(default=0)
    cut = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    without_end = models.PositiveIntegerField(default=0)
    in_window = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(name="stream_day_once", fields=["workspace", "day"])]
        indexes = [models.Index(name="stream_day_day", fields=["day"])]

    @override
    def __str__(self) -> str:
        return f"streams of {self.workspace_id} on {self.day}"


class ToolSlot(models.Model):
    """How many calls of a tool were granted in a quarter of an hour, and how many of those have
    been unknown at any time. Every zone's day begins at one of these quarters.

    `day` is the day of UTC by which the claims were found.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    at = models.DateTimeField()
    calls = models.PositiveIntegerField()
    unknown = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="tool_slot_once", fields=["workspace", "at", "tool", "day"]
            )
        ]
        indexes = [models.Index(name="tool_slot_day", fields=["day"])]

    @override
    def __str__(self) -> str:
        return f"tool {self.tool_id} at {self.at}"


class UnsureCall(models.Model):
    """One call that was unknown at some time, and how its first doubt ended.

    It ends with a decision, with a provider's answer that counts, or with the agent's late report,
    whichever came first after `unknown_at`; `by` says which. `race_at` is when it was over whether
    that comes while the provider still honours the key: the earlier of `ended_at` and the window's
    end; null without a window. `contradicted_at`: the record said something else later.
    """

    class By(models.TextChoices):
        PERSON = "person", "A person"
        RULE = "rule", "A rule, from the provider's answer"
        AGENT = "agent", "The agent's own late report"

    claim_id = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    unknown_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    by = models.CharField(max_length=6, choices=By, blank=True, default="")
    window_until = models.DateTimeField(null=True)
    race_at = models.DateTimeField(null=True)
    contradicted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="unsure_call_by_somebody",
                condition=Q(ended_at=None, by="") | Q(ended_at__isnull=False) & ~Q(by=""),
            )
        ]
        indexes = [
            models.Index(name="unsure_call_day", fields=["day"]),
            models.Index(
                name="unsure_call_ended",
                fields=["workspace", "ended_at"],
                condition=Q(ended_at__isnull=False),
            ),
            models.Index(
                name="unsure_call_race",
                fields=["workspace", "race_at"],
                condition=Q(race_at__isnull=False),
            ),
            models.Index(
                name="unsure_call_contradicted",
                fields=["workspace", "contradicted_at"],
                condition=Q(contradicted_at__isnull=False),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} unknown at {self.unknown_at}"


class ExposureLevel(models.Model):
    """What was at risk at the beginning of an hour, in one currency and one bucket.

    `bucket` "all" with no currency is written every hour, also with no calls: an hour without it
    was not measured. `amount` is in whole units of `currency`.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    at = models.DateTimeField()
    currency = models.CharField(max_length=3, blank=True, default="")
    bucket = models.CharField(max_length=8)
    calls = models.PositiveIntegerField()
    amount = models.DecimalField(max_digits=40, decimal_places=10, null=True)
    places = models.PositiveSmallIntegerField(default=2)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="exposure_level_once", fields=["workspace", "at", "currency", "bucket"]
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.amount or self.calls} {self.currency} {self.bucket} at {self.at}"
