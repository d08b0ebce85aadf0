"""Views of the queue that people keep, and their own keys."""

from __future__ import annotations

from typing import Final, override

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from effects.models import Workspace

NAME_CHARACTERS_MAX: Final = 60
QUERY_CHARACTERS_MAX: Final = 2000


class SavedView(models.Model):
    """A view that somebody named. `query` is what it asks for, as the queue's own query string says
    it; it is read anew each time, so a word that means nothing any more filters nothing.

    Everybody of the workspace sees a shared one; only its owner changes it.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=NAME_CHARACTERS_MAX)
    query = models.CharField(max_length=QUERY_CHARACTERS_MAX)
    shared = models.BooleanField(default=False)
    made_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    begins: bool  # for the person who looks; annotated by `saved.seen_by`

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "workspace", "owner", Lower("name"), name="view_name_once_a_person"
            )
        ]
        indexes = [
            models.Index(name="view_shared", fields=["workspace"], condition=Q(shared=True)),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """The view that a person's queue begins with in one workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(name="default_view_once", fields=["workspace", "user"])
        ]

    @override
    def __str__(self) -> str:
        return f"default view {self.view_id} of {self.user_id}"


class PersonKeys(models.Model):
    """A person's own keys: for each action that has another key than the usual one, that key.

    `on` false: single keys do nothing at all (WCAG 2.2, SC 2.1.4).
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    keys = models.JSONField(default=dict)
    on = models.BooleanField(default=True)
    changed_at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"keys of {self.user_id}"
