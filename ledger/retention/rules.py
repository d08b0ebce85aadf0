"""For how many days a workspace keeps each kind of body; every change is audited."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import User
from django.db import transaction

from effects import audit
from effects.models import Workspace
from ledger.queries import clock
from ledger.retention.kinds import Kind
from ledger.retention.models import RetentionPass, RetentionRule

DAYS_MAX: Final = 3650
REASON_CHARACTERS_MAX: Final = 500


def keep_for(
    workspace: Workspace, kind: Kind, days: int | None, *, user: User | None, reason: str
) -> bool:
    """Bodies of the kind are emptied after `days`; None: kept. False: it was so already."""
    assert days is None or 1 <= days <= DAYS_MAX
    with transaction.atomic():
        rule = (
            RetentionRule.objects.select_for_update()
            .filter(workspace=workspace, kind=kind.name)
            .first()
        )
        before = rule.days if rule else None
        if before == days:
            return False
        if days is None:
            RetentionRule.objects.filter(workspace=workspace, kind=kind.name).delete()
        else:
            RetentionRule.objects.update_or_create(
                workspace=workspace,
                kind=kind.name,
                defaults={
                    "days": days,
                    "changed_at": clock(),
                    "changed_by": user,
                    "reason": reason[:REASON_CHARACTERS_MAX],
                },
            )
        # A pass that is over would make the change wait for a day.
        RetentionPass.objects.filter(kind=kind.name, ended_at__isnull=False).delete()
        audit.keep(
            workspace.pk,
            "retention.changed",
            user_id=user.pk if user else None,
            target=kind.word,
            address="/retention/",
            before={"days": before},
            after={"days": days},
            reason=reason,
        )
    return True
