"""Changing the rules: each change has a reason, counts the version up, and is audited."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.models import User
from django.db import connection, transaction

from effects import audit
from effects.core.redaction import Mode, Secret
from effects.core.redaction_paths import parse_path
from effects.models import Tool, Workspace
from effects.redaction import rules
from effects.redaction.models import (
    WHERES,
    RedactionRule,
    RedactionState,
    SecretSwitchedOff,
)

RULES_MAX: Final = 200
REASON_CHARACTERS_MAX: Final = 500


class TooManyRulesError(ValueError):
    """The workspace has `RULES_MAX` rules in force already."""


def add(  # noqa: PLR0913 - a rule is its words: what is hidden where, how, by whom and why.
    workspace: Workspace,
    path: str,
    *,
    where: str,
    mode: Mode,
    tool: Tool | None,
    user: User | None,
    reason: str,
) -> RedactionRule:
    """Puts a rule in force. Raises `BadPath`, ValueError for an unknown `where` or another
    workspace's tool, and `TooManyRulesError`."""
    parse_path(path)
    if where not in WHERES:
        raise ValueError(f"{where!r} is none of {', '.join(WHERES)}.")
    if tool is not None and tool.workspace_id != workspace.pk:
        raise ValueError("The tool is another workspace's.")
    with transaction.atomic():
        _count_up(workspace.pk)
        kept = RedactionRule.objects.filter(workspace=workspace, retired_at=None).count()
        if kept >= RULES_MAX:
            says = f"There are {kept} rules in force; the limit RULES_MAX is {RULES_MAX}."
            raise TooManyRulesError(says)
        rule = RedactionRule.objects.create(
            workspace=workspace,
            tool=tool,
            where=where,
            path=path,
            mode=mode,
            reason=reason[:REASON_CHARACTERS_MAX],
            made_at=_now(),
            made_by=user,
        )
        _keep(workspace, "redaction.added", user, target=path, after=_shown(rule), reason=reason)
    rules.forget(workspace.pk)
    return rule


def retire(workspace: Workspace, rule_id: int, *, user: User | None, reason: str) -> bool:
    """Takes a rule out of force: what is hidden stays so. False: it is out of force already."""
    with transaction.atomic():
        _count_up(workspace.pk)
        rule = RedactionRule.objects.filter(
            workspace=workspace, pk=rule_id, retired_at=None
        ).first()
        if rule is None:
            return False
        rule.retired_at, rule.retired_by = _now(), user
        rule.retired_reason = reason[:REASON_CHARACTERS_MAX]
        rule.save(update_fields=["retired_at", "retired_by", "retired_reason"])
        _keep(
            workspace,
            "redaction.retired",
            user,
            target=rule.path,
            before=_shown(rule),
            reason=reason,
        )
    rules.forget(workspace.pk)
    return True


def switch(
    workspace: Workspace, secret: Secret, *, on: bool, user: User | None, reason: str
) -> bool:
    """Looks for a kind of secret from now on, or no longer. False: it was so already."""
    with transaction.atomic():
        _count_up(workspace.pk)
        off = SecretSwitchedOff.objects.filter(workspace=workspace, secret=secret)
        if on is not off.exists():
            return False
        if on:
            off.delete()
        else:
            SecretSwitchedOff.objects.create(
                workspace=workspace,
                secret=secret,
                reason=reason[:REASON_CHARACTERS_MAX],
                at=_now(),
                by=user,
            )
        _keep(
            workspace,
            "redaction.secret_on" if on else "redaction.secret_off",
            user,
            target=f"Secrets: {secret}",
            before={"looked_for": not on},
            after={"looked_for": on},
            reason=reason,
        )
    rules.forget(workspace.pk)
    return True


def _count_up(workspace_id: int) -> None:
    """The next version; the row's lock lets one change follow the other."""
    RedactionState.objects.get_or_create(workspace_id=workspace_id)
    state = RedactionState.objects.select_for_update().get(pk=workspace_id)
    state.version += 1
    state.save(update_fields=["version"])


def _shown(rule: RedactionRule) -> dict[str, Any]:
    tool = rule.tool.name if rule.tool else None
    return {"path": rule.path, "where": rule.where, "mode": rule.mode, "tool": tool}


def _keep(workspace: Workspace, act: str, user: User | None, **what: Any) -> None:
    audit.keep(workspace.pk, act, user_id=user.pk if user else None, address="/redaction/", **what)


def _now() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now
