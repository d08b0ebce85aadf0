"""Who is spoken to in a note."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models

from effects.models import Workspace


class Mention(models.Model):
    """A person who is named in a note, by the note's event."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField()
    seq = models.IntegerField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(name="mention_of", fields=["workspace", "user", "at"])]
        constraints = [
            models.UniqueConstraint(name="mention_once", fields=["claim_id", "seq", "user"])
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user_id} in note {self.seq} of {self.claim_id}"
