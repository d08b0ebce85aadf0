"""What was measured about tools: kept by name, because traffic names tools that nobody entered."""

from __future__ import annotations

from typing import override

from django.contrib.postgres.fields import ArrayField
from django.db import models


class ToolHour(models.Model):
    """What one hour of the record holds about one tool, counted again while the hour may change.

    `calls` are claims by when they were made, `written` those of them that were claimed as a write,
    `unknown` those whose outcome was not known at some time. `announced` are calls that streams
    named, claimed or not. `recent` and `recent_unknown` name the newest of them, newest first.
    A read model: every row can be counted again from the record.
    """

    workspace = models.ForeignKey("effects.Workspace", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=255)
    hour = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0, db_default=0)
    written = models.PositiveIntegerField(default=0, db_default=0)
    unknown = models.PositiveIntegerField(default=0, db_default=0)
    announced = models.PositiveIntegerField(default=0, db_default=0)
    recent = ArrayField(models.UUIDField(), default=list, db_default=[])
    recent_unknown = ArrayField(models.UUIDField(), default=list, db_default=[])
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="tool_hour_once", fields=["workspace", "name", "hour"])
        ]
        indexes = [models.Index(name="tool_hour_age", fields=["hour"])]

    @override
    def __str__(self) -> str:
        return f"{self.name} at {self.hour}: {self.calls} calls"


class ToolMeasured(models.Model):
    """All that was measured about one tool over the last days, as `reconcile.registry.measured`
    reads it. Pages read this one row instead of the record."""

    workspace = models.ForeignKey("effects.Workspace", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=255)
    measured_at = models.DateTimeField()
    facts = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="tool_measured_once", fields=["workspace", "name"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.name} as of {self.measured_at}"


class MeasureMark(models.Model):
    """How far measuring has come: the hours before `hour` are counted for good, and the calls of
    streams up to `call_id` are. There is one row."""

    hour = models.DateTimeField()
    call_id = models.BigIntegerField(default=0)

    @override
    def __str__(self) -> str:
        return f"measured up to {self.hour}"
