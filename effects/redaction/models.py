"""Rules about what is hidden before it is stored. A rule is never changed: it is retired."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.core.redaction import Mode, Secret, Where

EVERYWHERE = "all"
WHERES = (*map(str, Where), EVERYWHERE)


class RedactionState(models.Model):
    """One row of a workspace that ever had a rule or a hidden value. `version` counts the changes
    of its rules; `holds_sealed`: a value of it was sealed, so texts are compared with such."""

    workspace = models.OneToOneField(
        "effects.Workspace", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    version = models.IntegerField(default=0)
    holds_sealed = models.BooleanField(default=False)

    @override
    def __str__(self) -> str:
        return f"redaction of {self.workspace_id}, version {self.version}"


class RedactionRule(models.Model):
    """What stands at `path` in texts of a kind (`where`), of one tool or of all, is hidden."""

    workspace = models.ForeignKey("effects.Workspace", on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey("effects.Tool", on_delete=models.PROTECT, null=True, related_name="+")
    where = models.CharField(max_length=10)
    path = models.CharField(max_length=300)
    mode = models.CharField(max_length=4, choices=[(str(mode), str(mode)) for mode in Mode])
    reason = models.CharField(max_length=500)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_at = models.DateTimeField(null=True)
    retired_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(
                name="redaction_in_force", fields=["workspace"], condition=Q(retired_at=None)
            )
        ]
        constraints = [
            models.CheckConstraint(name="redaction_where", condition=Q(where__in=list(WHERES))),
            models.CheckConstraint(
                name="redaction_mode", condition=Q(mode__in=[str(mode) for mode in Mode])
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.mode} {self.path} in {self.where}"


class SecretSwitchedOff(models.Model):
    """A kind of secret that this workspace does not look for. Turned on again, the row is gone;
    the audit log keeps both."""

    workspace = models.ForeignKey("effects.Workspace", on_delete=models.PROTECT, related_name="+")
    secret = models.CharField(max_length=10)
    reason = models.CharField(max_length=500)
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="secret_off_once", fields=["workspace", "secret"]),
            models.CheckConstraint(
                name="secret_off_kind", condition=Q(secret__in=[str(kind) for kind in Secret])
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.secret} is not looked for"
