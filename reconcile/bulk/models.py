"""Many calls at once, as rows: the set as it was frozen, and what became of each call in it."""

from __future__ import annotations

from typing import override

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from effects.models import Workspace


class Bulk(models.Model):
    """One act on a set of calls. The set is frozen when the row is made and never changes.

    `view` is the address of the list that the calls were chosen from, in words of the query string.
    `options` belong to its action alone. It is a draft until `started_at`; `stopped_at` ends what
    has not begun; `ended_at` is set once every item has an outcome.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=20)
    view = models.CharField(max_length=1000, blank=True, default="")
    form = models.BinaryField()  # digest of the form's token: a form that is sent twice is one bulk
    session = models.BinaryField()  # digest of the session that it was sent from
    options = models.JSONField(default=dict)
    reason = models.CharField(max_length=1000, blank=True, default="")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                name="bulk_at_work",
                fields=["started_at"],
                condition=Q(started_at__isnull=False, ended_at=None),
            ),
            models.Index(name="bulk_newest", fields=["workspace", "-id"]),
        ]
        constraints = [
            models.UniqueConstraint(name="bulk_form_once", fields=["made_by", "form"]),
            models.CheckConstraint(
                name="bulk_ends_once_started",
                condition=Q(ended_at=None) | Q(started_at__isnull=False),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"bulk {self.pk}: {self.action}"


class BulkItem(models.Model):
    """One call of a bulk. `seen_version` and `seen_state` are what its author had before them;
    `screen_hash` is the digest of that picture, kept before anything is decided on it, so that a
    second delivery of the work finds what the first one did. `said` is the outcome in words.
    """

    class Outcome(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        REFUSED = "refused"
        CHANGED = "changed"  # something was learnt since its author looked: skipped
        STOPPED = "stopped"
        UNDONE = "undone"

    bulk = models.ForeignKey(Bulk, on_delete=models.CASCADE, related_name="items")
    number = models.PositiveIntegerField()  # its place in the list that it was chosen from
    claim_id = models.UUIDField()
    seen_version = models.IntegerField()
    seen_state = models.CharField(max_length=20)
    screen_hash = models.BinaryField(null=True)
    evidence = ArrayField(models.IntegerField(), default=list)
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.WAITING)
    said = models.CharField(max_length=500, blank=True, default="")
    decision_id = models.BigIntegerField(null=True)
    at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="bulk_item_once", fields=["bulk", "claim_id"]),
            models.UniqueConstraint(name="bulk_item_number", fields=["bulk", "number"]),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.claim_id} in bulk {self.bulk_id}: {self.outcome}"
