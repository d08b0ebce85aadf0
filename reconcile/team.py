"""The people and the rules of a workspace, read for one decision; rules are changed by admins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from effects.core.vocabulary import EffectClass, Role
from effects.models import Membership, Workspace
from reconcile.action_names import ActionName
from reconcile.models import SecondPersonRule
from reconcile.second_person import APPROVER_ROLES, DEFAULT_RULES, Rule, Team

RULES_MAX: Final = 50
"""Most rules of one workspace: more are not read by anybody."""
REASON_CHARACTERS_MAX: Final = 500


def team_of(workspace_id: int, user_id: int) -> Team:
    """The workspace as this person meets it now."""
    others = Membership.objects.filter(workspace_id=workspace_id, user__is_active=True)
    roles = others.exclude(user_id=user_id).values_list("role", flat=True)
    return Team(rules=rules_in_force(workspace_id), others=tuple(Role(role) for role in roles))


def role_now(workspace_id: int, user_id: int) -> Role | None:
    """The role that somebody has at this moment; None for who is no active member."""
    found = Membership.objects.filter(
        workspace_id=workspace_id, user_id=user_id, user__is_active=True
    )
    role = found.values_list("role", flat=True).first()
    return None if role is None else Role(role)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRule:
    """A rule with its row; `row` None: a default rule, because nobody has changed the rules yet."""

    rule: Rule
    row: SecondPersonRule | None


def kept_rules(workspace_id: int) -> tuple[KeptRule, ...]:
    """The rules in force, oldest first."""
    rows = SecondPersonRule.objects.filter(workspace_id=workspace_id)
    if not rows.exists():
        return tuple(KeptRule(rule=rule, row=None) for rule in DEFAULT_RULES)
    in_force = rows.filter(retired_at=None).select_related("made_by").order_by("pk")
    return tuple(KeptRule(rule=rule_of(row), row=row) for row in in_force[:RULES_MAX])


def rules_in_force(workspace_id: int) -> tuple[Rule, ...]:
    return tuple(kept.rule for kept in kept_rules(workspace_id))


def rule_of(row: SecondPersonRule) -> Rule:
    return Rule(
        effect_class=EffectClass(row.effect_class) if row.effect_class else None,
        action=ActionName(row.action) if row.action else None,
        currency=row.currency,
        amount_from=row.amount_from,
        approver=Role(row.approver_role),
    )


def are_default(workspace_id: int) -> bool:
    return not SecondPersonRule.objects.filter(workspace_id=workspace_id).exists()


class TooManyRulesError(Exception):
    """The workspace has `RULES_MAX` rules already."""


def add_rule(
    workspace: Workspace, rule: Rule, *, user_id: int, reason: str, now: datetime
) -> SecondPersonRule:
    """Puts a rule in force. The same rule twice is one. Raises `TooManyRulesError`."""
    with transaction.atomic():
        _alone_at_the_rules(workspace)
        _keep_defaults(workspace, now)
        in_force = SecondPersonRule.objects.filter(workspace=workspace, retired_at=None)
        same = next((row for row in in_force if rule_of(row) == rule), None)
        if same is not None:
            return same
        if in_force.count() >= RULES_MAX:
            raise TooManyRulesError(f"A workspace has at most {RULES_MAX} rules.")
        return _row(workspace, rule, user_id=user_id, reason=reason, now=now)


def retire_rule(
    workspace: Workspace, rule: Rule, *, user_id: int, reason: str, now: datetime
) -> bool:
    """Takes a rule out of force. False: it was in force no more."""
    with transaction.atomic():
        _alone_at_the_rules(workspace)
        _keep_defaults(workspace, now)
        for row in SecondPersonRule.objects.filter(workspace=workspace, retired_at=None):
            if rule_of(row) == rule:
                row.retired_at, row.retired_by_id, row.retired_reason = now, user_id, reason
                row.save(update_fields=["retired_at", "retired_by", "retired_reason"])
                return True
        return False


def _alone_at_the_rules(workspace: Workspace) -> None:
    Workspace.objects.select_for_update().get(pk=workspace.pk)


def _keep_defaults(workspace: Workspace, now: datetime) -> None:
    """The first change writes the default rules down, so that the change is all that changes."""
    if are_default(workspace.pk):
        for rule in DEFAULT_RULES:
            _row(workspace, rule, user_id=None, reason="In force from the start.", now=now)


def _row(
    workspace: Workspace, rule: Rule, *, user_id: int | None, reason: str, now: datetime
) -> SecondPersonRule:
    return SecondPersonRule.objects.create(
        workspace=workspace,
        effect_class=str(rule.effect_class or ""),
        action=str(rule.action or ""),
        currency=rule.currency,
        amount_from=rule.amount_from,
        approver_role=rule.approver,
        made_at=now,
        made_by_id=user_id,
        reason=reason,
    )


def possible_approvers(workspace_id: int, user_id: int, roles: Iterable[Role]) -> list[str]:
    """The names of the active people, other than this one, who have one of the roles."""
    found = Membership.objects.filter(
        workspace_id=workspace_id, user__is_active=True, role__in=[str(role) for role in roles]
    ).exclude(user_id=user_id)
    people = found.select_related("user").order_by("user__username")[:20]
    return [one.user.get_full_name() or one.user.get_username() for one in people]


def somebody_else_could_approve(workspace_id: int) -> bool:
    """Whether two active people of the workspace may decide at all: else its rules rest."""
    roles = [str(role) for role in APPROVER_ROLES[Role.SUPPORT]]
    found = Membership.objects.filter(
        workspace_id=workspace_id, user__is_active=True, role__in=roles
    )
    return found.count() > 1
