"""Who a call is given to, as rows that stay."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.models import Workspace


class Assignment(models.Model):
    """A call that somebody gave to a person, themselves perhaps. Open while `ended_at` is null.

    It is no take: it does not run out, and it warns nobody who decides.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    claim_id = models.UUIDField()
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    assigned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField()
    note = models.CharField(max_length=500, blank=True, default="")
    ended_at = models.DateTimeField(null=True)  # given to another, or to nobody
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        indexes = [
            models.Index(name="assignment_claim", fields=["claim_id"]),
            models.Index(
                name="assignment_open",
                fields=["workspace", "assigned_to"],
                condition=Q(ended_at=None),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                name="assignment_once", fields=["claim_id"], condition=Q(ended_at=None)
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} is with {self.assigned_to_id}"
