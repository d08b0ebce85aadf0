"""A provider's object without a call, and what people said about it."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.db import models
from django.db.models import Q

from effects.models import Connection


class Ghost(models.Model):
    """One object that was met at a provider and belongs to no call that is known.

    It is never merged into a call by itself: where a call with its marker or its object appears
    later, the row names that call and leaves the list. `marker` is ours, where it carries one.
    `look_at` is when the record is searched for such a call again; null: never more.
    """

    class State(models.TextChoices):
        NEW = "new", "New"
        EXPLAINED = "explained", "Explained"
        LINKED = "linked", "Its call is known"

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, db_index=False)
    object_id = models.CharField(max_length=255)
    noun = models.CharField(max_length=60)
    status = models.CharField(max_length=60, blank=True, default="")
    marker = models.CharField(max_length=60, blank=True, default="")
    amount = models.CharField(max_length=60, blank=True, default="")
    made_at = models.DateTimeField(null=True)  # by the provider's clock
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    times_seen = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=9, choices=State, default=State.NEW)
    claim_id = models.UUIDField(null=True)
    look_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="ghost_once", fields=["connection", "object_id"]),
            models.CheckConstraint(
                name="ghost_state", condition=Q(state__in=["new", "explained", "linked"])
            ),
            models.CheckConstraint(
                name="ghost_linked_names_its_call",
                condition=Q(state="linked", claim_id__isnull=False)
                | (~Q(state="linked") & Q(claim_id=None)),
            ),
        ]
        indexes = [
            models.Index(name="ghost_list", fields=["connection", "state", "-id"]),
            models.Index(name="ghost_look", fields=["look_at"], condition=~Q(look_at=None)),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.noun} {self.object_id}"


class GhostSaid(models.Model):
    """What a person said about a ghost, and when. Never changed afterwards.

    `dismissed`: it is explained by this and leaves the list; else it stands on it, or again.
    """

    ghost = models.ForeignKey(Ghost, on_delete=models.CASCADE, related_name="said")
    said_at = models.DateTimeField()
    said_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    dismissed = models.BooleanField()
    reason = models.CharField(max_length=500)

    @override
    def __str__(self) -> str:
        return self.reason
