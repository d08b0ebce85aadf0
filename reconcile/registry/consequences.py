"""What a change of a tool does to the calls that are open now, action by action.

It is computed and not told: each open call is read, and the rules of the call page are asked twice,
with the tool as it is and as it would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from effects import registry
from effects.models import Tool
from ledger import queries as record
from ledger.functions import call as run
from reconcile import queries
from reconcile.action_names import ActionName
from reconcile.actions import Action, safe_actions
from reconcile.registry.simulation import Outlook, Viewer, simulate
from reconcile.situation import Situation

OPEN_READ_MAX: Final = 40
"""Most open calls whose actions are worked out, the oldest; of more it is said how many were."""

_OPEN: Final = """
SELECT c.id FROM ledger_claim c
 WHERE c.id = ANY(ARRAY(SELECT claim_id FROM ledger_due
         WHERE workspace_id = %s AND why IN ('clock', 'person')))
   AND c.workspace_id = %s AND c.tool_id = %s
   AND c.state IN ('unknown', 'released', 'in_flight', 'conflicted')
 ORDER BY c.id LIMIT %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One action that becomes available, or is no longer, on these calls, and the reason that the
    calls' pages will give on the first of them."""

    action: ActionName
    offered: bool
    claim_ids: tuple[UUID, ...]
    reason: str

    @property
    def words(self) -> str:
        becomes = "becomes available" if self.offered else "is no longer available"
        return f"{self.action.label} {becomes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """`read` open calls were worked out; `all_read` says whether there are no others."""

    read: int
    all_read: bool
    found: tuple[Shift, ...]


def of_change(before: Tool, after: Tool, viewer: Viewer) -> Shifts:
    """What saving `after` does to the actions on the open calls of the tool."""
    values = (before.workspace_id, before.workspace_id, before.pk, OPEN_READ_MAX + 1)
    claim_ids = [claim_id for (claim_id,) in run(_OPEN, values)]
    calls = [queries.call(before.workspace_id, one) for one in claim_ids[:OPEN_READ_MAX]]
    pairs = [(one.situation, situation_under(one, after)) for one in calls]
    return Shifts(
        read=len(calls),
        all_read=len(claim_ids) <= OPEN_READ_MAX,
        found=shifts(pairs, viewer),
    )


def situation_under(call: queries.Call, tool: Tool) -> Situation:
    """The call's situation if its tool were this one. Class, key and window are the call's own:
    they were granted with it, and no change of the tool moves them."""
    money = registry.amount(tool, record.arguments_text(call.claim))
    return replace(
        call.situation,
        lease_seconds=tool.lease_seconds,
        margin_seconds=tool.margin_seconds,
        attempt_seconds_max=tool.attempt_seconds_max,
        can_look_up=bool(tool.lookup_kind) and tool.connection_id is not None,
        provider=tool.connection.name if tool.connection else "the provider",
        money=money,
        amount_unreadable=bool(tool.amount_field) and money is None,
    )


def shifts(pairs: Iterable[tuple[Situation, Situation]], viewer: Viewer) -> tuple[Shift, ...]:
    """The actions that differ between each pair's two situations, in their fixed order. Pure."""
    found: dict[tuple[ActionName, bool], list[tuple[UUID, str]]] = {}
    for before, after in pairs:
        old = {one.name: one for one in _actions(before, viewer)}
        for new in _actions(after, viewer):
            if new.offered is not old[new.name].offered:
                kept = found.setdefault((new.name, new.offered), [])
                kept.append((after.claim_id, new.reason))
    order = list(ActionName)
    return tuple(
        Shift(
            action=name,
            offered=offered,
            claim_ids=tuple(claim_id for claim_id, _ in kept),
            reason=kept[0][1],
        )
        for (name, offered), kept in sorted(found.items(), key=lambda one: order.index(one[0][0]))
    )


def _actions(situation: Situation, viewer: Viewer) -> tuple[Action, ...]:
    return safe_actions(situation, role=viewer.role, team=viewer.team)


# The calls to come


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What the same moment of the next call leads to, before and after the change. `gained` and
    `lost` are the actions that differ."""

    before: Outlook | None
    after: Outlook | None
    gained: tuple[ActionName, ...]
    lost: tuple[ActionName, ...]

    @property
    def title(self) -> str:
        outlook = self.after or self.before
        return outlook.title if outlook else ""


def of_next_calls(before: Tool, after: Tool, viewer: Viewer) -> tuple[Next, ...]:
    """Where a timeout of the next call would lead elsewhere than now; nothing where it would not.

    A read is walked through as nothing: it takes no claim, so nobody could decide about it.
    """
    now = record.clock()
    old, new = simulate(before, viewer, now), simulate(after, viewer, now)
    pairs = _paired(old, new)
    found = [_next(one, other) for one, other in pairs]
    return tuple(one for one in found if one.gained or one.lost)


def _paired(
    old: Sequence[Outlook], new: Sequence[Outlook]
) -> list[tuple[Outlook | None, Outlook | None]]:
    if old and new:
        return list(zip(old, new, strict=True))
    return [(one, None) for one in old] + [(None, one) for one in new]


def _next(before: Outlook | None, after: Outlook | None) -> Next:
    had = {one.name for one in before.offered} if before else set()
    has = {one.name for one in after.offered} if after else set()
    order = list(ActionName)
    return Next(
        before=before,
        after=after,
        gained=tuple(sorted(has - had, key=order.index)),
        lost=tuple(sorted(had - has, key=order.index)),
    )
