"""What is kept about decisions beside the decisions themselves."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models

from effects.models import Workspace


class Submission(models.Model):
    """A form of a decision that somebody sent, and what became of it. Never changed.

    `form` is the digest of the form's token, `session` that of the session it came from, `version`
    what its author had before them. The same form with the same action is one row however often it
    is sent. A form that had to be put right first is none.
    """

    class Outcome(models.TextChoices):
        MADE = "made"
        ASKED = "asked"  # a second person
        OVERTAKEN = "overtaken"
        UNAVAILABLE = "unavailable"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField()
    action = models.CharField(max_length=20)
    version = models.IntegerField()
    screen_hash = models.BinaryField()
    form = models.BinaryField()
    session = models.BinaryField()
    sent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    sent_at = models.DateTimeField()
    outcome = models.CharField(max_length=12, choices=Outcome)
    said = models.CharField(max_length=500, blank=True, default="")
    decision_id = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="submission_once", fields=["claim_id", "form", "action"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.action} of {self.claim_id}: {self.outcome}"


class ChainCheck(models.Model):
    """One time at which a workspace's chain of decisions was verified, link by link.

    `fault` is empty where every link fits; `head` is the hash of the last decision then.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    decisions = models.BigIntegerField()
    head = models.BinaryField(null=True)
    fault = models.CharField(max_length=500, blank=True, default="")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        indexes = [models.Index(name="chain_check_newest", fields=["workspace", "-id"])]

    @override
    def __str__(self) -> str:
        return f"chain of {self.workspace_id} at {self.at}"
