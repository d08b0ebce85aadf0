"""Changes and acts of people that no history of their own keeps."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One act of a person, with what it was before and after. The database refuses to change it.

    `act` is two words of ours, "what.done" ("redaction.changed"); `target` names what it was done
    to as people read it, `target_address` where that is seen on the desk, or empty. `before` and
    `after` are what the act changed, small and without secrets; null where there was or is nothing.
    `user` null: it was done from a shell of the machine.
    """

    workspace = models.ForeignKey("effects.Workspace", on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    act = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    target_address = models.CharField(max_length=500, blank=True, default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        indexes = [models.Index(name="audit_entry_newest", fields=["workspace", "-at", "-id"])]

    @override
    def __str__(self) -> str:
        return f"{self.act} {self.target}"
