"""What a person may do about a call now, and why, or why not.

`safe_actions` is what the call page shows and what a POST enforces; nothing else decides it. It is
pure: the situation (its instant included), the person's role and the people around them are its
arguments. Every action is always answered for, in one fixed order, so an action never disappears
without a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from effects.access import Ability, can, needs
from effects.core.vocabulary import Role
from reconcile.action_names import ActionName
from reconcile.action_rules import RULES, No
from reconcile.second_person import Team, confirm_text, guard
from reconcile.situation import Situation, instant_words

__all__ = ["Action", "ActionName", "find", "instant_words", "safe_actions"]

DECIDES_NOTHING: Final = frozenset({ActionName.ASK, ActionName.SNOOZE, ActionName.SECOND_PERSON})
"""Acts that no second person is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action with its reason. `sibling` is the claim that stands in the way, if one does.

    `note_required`, `object_required`, `typed`: what the person must write before it can be
    decided; `typed` is the text itself, empty where nothing has to be typed. `needs_second`: why a
    second person has to say yes before anything happens. `may_ask`: a second person can be asked,
    with one of the roles `approvers`. `alone`: it would need one and there is none, so it is
    recorded as decided alone.
    """

    name: ActionName
    offered: bool
    reason: str
    sibling: UUID | None = None
    note_required: bool = False
    object_required: bool = False
    typed: str = ""
    needs_second: str = ""
    may_ask: bool = False
    approvers: frozenset[Role] = frozenset()
    alone: bool = False

    @property
    def label(self) -> str:
        return self.name.label


def safe_actions(situation: Situation, *, role: Role, team: Team) -> tuple[Action, ...]:
    """Every action, in the order of `ActionName`, each offered or unavailable with its reason."""
    actions = [
        action(name, situation, role=role, team=team)
        for name in ActionName
        if name is not ActionName.SECOND_PERSON
    ]
    asking = _second_person(situation, tuple(actions), role)
    return tuple(
        asking if name is asking.name else find(tuple(actions), name) for name in ActionName
    )


def find(actions: tuple[Action, ...], name: ActionName) -> Action:
    """The action of that name among all of them."""
    return next(action for action in actions if action.name is name)


def action(name: ActionName, situation: Situation, *, role: Role, team: Team) -> Action:
    """One action for one person; never `SECOND_PERSON`, which speaks of all the others."""
    try:
        reason = RULES[name](situation)
    except No as no:
        return Action(name=name, offered=False, reason=no.reason, sibling=no.sibling)
    ability = Ability(name)
    if name in DECIDES_NOTHING:
        allowed = can(role, ability)
        return Action(name=name, offered=allowed, reason=reason if allowed else needs(ability))
    guarded = guard(name, situation, role=role, team=team)
    if guarded.refused:
        return Action(name=name, offered=False, reason=guarded.refused)
    may_ask = can(role, Ability.SECOND_PERSON) and team.anybody(guarded.approvers)
    offered = may_ask if guarded.needs_second else can(role, ability)
    happened = name is ActionName.HAPPENED
    return Action(
        name=name,
        offered=offered,
        reason=reason
        if offered
        else needs(Ability.SECOND_PERSON if guarded.needs_second else ability),
        note_required=happened and not situation.found,
        object_required=happened and bool(situation.strong_absence),
        typed=confirm_text(situation)
        if _is_typed(name, guarded.needs_second, guarded.alone)
        else "",
        needs_second=guarded.needs_second,
        may_ask=may_ask,
        approvers=guarded.approvers,
        alone=guarded.alone,
    )


def _is_typed(name: ActionName, needs_second: str, alone: bool) -> bool:  # noqa: FBT001 - a fact of the guard
    """The amount is typed where the effect can happen twice or two people are needed."""
    return bool(needs_second) or alone or name in {ActionName.RELEASE_NEW, ActionName.ALLOW}


def _second_person(situation: Situation, actions: tuple[Action, ...], role: Role) -> Action:
    name = ActionName.SECOND_PERSON
    try:
        reason = RULES[name](situation)
    except No as no:
        return Action(name=name, offered=False, reason=no.reason)
    if not can(role, Ability.SECOND_PERSON):
        return Action(name=name, offered=False, reason=needs(Ability.SECOND_PERSON))
    if not any(one.may_ask for one in actions):
        return Action(
            name=name,
            offered=False,
            reason="No decision can be made about this call now, or nobody else could approve it.",
        )
    return Action(
        name=name,
        offered=True,
        reason=f"{reason} You cannot approve your own request, and neither can an admin.",
    )
