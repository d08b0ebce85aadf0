"""Agents that speak to PostgreSQL themselves: which database role opens which workspace."""

from __future__ import annotations

from typing import override

from django.db import models

from effects.models import Workspace


class AgentRole(models.Model):
    """A database role of an agent's own, bound to one workspace.

    It may execute the agent functions, which read the workspace here by who has logged in, and it
    owns nothing. `desk_url` is the desk's address for the links in answers, `part` the workspace as
    the digests of its claims begin with it. `redaction_version` follows the workspace's, so that a
    claim whose agent hides by older rules is found out in the row that is read anyway.
    """

    role = models.CharField(max_length=63, unique=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT)
    name = models.CharField(max_length=100)
    part = models.BinaryField()
    desk_url = models.CharField(max_length=500)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    redaction_version = models.IntegerField(default=0)

    @override
    def __str__(self) -> str:
        return f"{self.name} ({self.role})"
