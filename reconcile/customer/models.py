"""The texts for customers as admins wrote them. A row is never changed: the newest one counts."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models

from effects.models import Tool, Workspace


class CustomerText(models.Model):
    """One text for one kind of situation; `tool` None: for every tool that has none of its own.

    An empty text goes back to what was there before anybody wrote one.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=30)
    text = models.CharField(max_length=1000, blank=True, default="")
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    written_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(name="customer_text_newest", fields=["workspace", "kind", "-id"])]

    @override
    def __str__(self) -> str:
        return f"{self.kind} of {self.tool_id or 'every tool'}"
