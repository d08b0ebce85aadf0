"""Which decisions need two people, and whether this one is among them. Pure.

A rule of the workspace asks for a second person by class, action and amount. Some acts need one
whatever the rules say, because they can make the effect happen twice. A workspace in which nobody
else could say yes has no second person: its rules rest, and those acts are recorded as decided
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from effects.access import ABILITIES, ROLE_WORDS, Ability, can
from effects.core.vocabulary import EffectClass, Role
from reconcile.action_names import ActionName
from reconcile.situation import Situation

APPROVER_ROLES: Final = {
    Role.SUPPORT: frozenset({Role.SUPPORT, Role.LEAD, Role.ADMIN}),
    Role.LEAD: frozenset({Role.LEAD, Role.ADMIN}),
    Role.ADMIN: frozenset({Role.ADMIN}),
}
"""Who may be the second person, by the role that a rule asks for at least."""

RULED: Final = (
    ActionName.HAPPENED,
    ActionName.NOT_HAPPENED,
    ActionName.RELEASE_SAME,
    ActionName.LOST,
    ActionName.CLOSE,
    ActionName.SETTLE,
    ActionName.REOPEN,
    ActionName.ALLOW,
)
"""The decisions that a rule can speak of; a release with a new key always needs two people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. None and "" speak of every class, action or currency; `amount_from` None of every
    amount, and of calls that have none. `approver` is the role that the second person needs at
    least."""

    effect_class: EffectClass | None = None
    action: ActionName | None = None
    currency: str = ""
    amount_from: Decimal | None = None
    approver: Role = Role.LEAD

    def speaks_of(self, name: ActionName, situation: Situation) -> bool:
        """Whether this rule asks for a second person here.

        An amount that the tool promises and that cannot be read may be any amount, so it counts as
        one that is large enough.
        """
        if self.effect_class not in {None, situation.effect_class}:
            return False
        if self.action not in {None, name}:
            return False
        money = situation.money
        if money is None:
            return self.amount_from is None or situation.amount_unreadable
        if self.currency and self.currency != money.currency:
            return False
        return self.amount_from is None or money.amount >= self.amount_from


DEFAULT_RULES: Final = (
    Rule(
        effect_class=EffectClass.UNKEYED_WRITE,
        action=ActionName.NOT_HAPPENED,
        amount_from=Decimal(500),
    ),
    Rule(action=ActionName.ALLOW, amount_from=Decimal(500)),
    Rule(action=ActionName.SETTLE, amount_from=Decimal(500)),
    Rule(action=ActionName.REOPEN, amount_from=Decimal(500)),
)
"""In force until an admin changes them: what lets a larger payment run again, or says of two which
one stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The workspace as one person meets it: its rules, and the roles of the other active people."""

    rules: tuple[Rule, ...] = ()
    others: tuple[Role, ...] = ()

    def anybody(self, roles: frozenset[Role]) -> bool:
        return any(role in roles for role in self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """How one decision is guarded for one person.

    `needs_second`: why another person has to say yes; empty where nobody has to. `approvers`: the
    roles that may. `alone`: it would need a second person and there is none, so its author answers
    for it alone. `refused`: why this person can neither decide nor ask.
    """

    approvers: frozenset[Role]
    needs_second: str = ""
    alone: bool = False
    refused: str = ""


def guard(name: ActionName, situation: Situation, *, role: Role, team: Team) -> Guard:
    """How `name` is guarded for a person with `role` in this team."""
    least, why = _least_and_why(name, situation, team)
    approvers = APPROVER_ROLES[least] & ABILITIES[Ability(name)]
    if not why or not (always(name, situation) or team.anybody(approvers)):
        return Guard(approvers=approvers)
    if team.anybody(approvers):
        return Guard(approvers=approvers, needs_second=why)
    if team.anybody(APPROVER_ROLES[Role.LEAD]):
        return Guard(
            approvers=approvers,
            refused=f"Needs a second person with the role {ROLE_WORDS[least]}; nobody else has it.",
        )
    if not can(role, Ability.APPROVE):
        return Guard(
            approvers=approvers,
            refused="Needs a second person who is Payments lead or Admin, and nobody is.",
        )
    return Guard(approvers=approvers, alone=True)


def always(name: ActionName, situation: Situation) -> bool:
    """Whether the act needs two people whatever the rules say."""
    match name:
        case ActionName.RELEASE_NEW:
            return True
        case ActionName.NOT_HAPPENED:
            return not situation.strong_absence
        case ActionName.LOST:
            return situation.worker_heard_of
        case _:
            return False


def _least_and_why(name: ActionName, situation: Situation, team: Team) -> tuple[Role, str]:
    asked = [rule.approver for rule in team.rules if rule.speaks_of(name, situation)]
    if always(name, situation):
        asked.append(Role.LEAD)
        why = _WHY_ALWAYS[name]
    elif asked:
        amount = f" of {situation.money}" if situation.money else ""
        why = f"A rule of this workspace asks for a second person for this decision{amount}."
    else:
        return Role.SUPPORT if name not in _FOR_LEADS else Role.LEAD, ""
    strictest = max(asked, key=list(Role).index)
    return strictest, why


_FOR_LEADS: Final = frozenset({ActionName.RELEASE_NEW, ActionName.SETTLE, ActionName.REOPEN})
_WHY_ALWAYS: Final = {
    ActionName.RELEASE_NEW: "It can make the effect happen twice, so a second person must approve.",
    ActionName.NOT_HAPPENED: "Nothing proves that it did not happen, so it can make the effect "
    "happen twice: a second person must approve.",
    ActionName.LOST: "The worker was heard of just now and may still act: a second person must "
    "approve.",
}


def confirm_text(situation: Situation) -> str:
    """What a person types to confirm an act that can happen twice: the amount as it is shown, or
    the end of the call's id where there is none."""
    return situation.money.figure if situation.money else str(situation.claim_id)[-8:]
