"""Who was let in, with which role, by whom; and the sessions in which people are signed in."""

from __future__ import annotations

from typing import Any, override

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q


class MemberChange(models.Model):
    """One change of who may do what in a workspace. The database refuses to change a row.

    `role_before` is empty for somebody who was no member before, `role_after` for somebody who is
    none any more. `changed_by` null: it was done from a shell of the machine.
    """

    class Kind(models.TextChoices):
        ADDED = "added"
        ROLE = "role"
        DEACTIVATED = "deactivated"
        ACTIVATED = "activated"
        LINK = "link"  # a new link to set a password was made; the link itself is not kept
        PASSWORD = "password"  # noqa: S105 - the word for "they set it by their link".

    workspace = models.ForeignKey(
        "effects.Workspace", on_delete=models.PROTECT, related_name="member_changes"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind)
    role_before = models.CharField(max_length=20, blank=True, default="")
    role_after = models.CharField(max_length=20, blank=True, default="")
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        indexes = [models.Index(name="member_change_of", fields=["workspace", "user"])]
        constraints = [
            models.CheckConstraint(
                name="member_change_kind",
                condition=Q(
                    kind__in=["added", "role", "deactivated", "activated", "link", "password"]
                ),
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user_id} {self.kind} in {self.workspace_id}"


class DeskSession(AbstractBaseSession):
    """A session that knows whose it is, so that all sessions of one person can be ended."""

    user_id = models.IntegerField(null=True, db_index=True)

    @override
    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        from effects.sessions import SessionStore  # noqa: PLC0415 - the store imports this model.

        return SessionStore

    @property
    def said(self) -> dict[str, Any]:
        """What the session holds."""
        return self.get_decoded()
