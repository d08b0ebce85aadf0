"""The rules in force as every door reads them: remembered for a second, then compared by version.

A claim is one statement, so its rules must cost nothing: a process that remembers them looks at no
table. A change reaches the process that made it at once, and every other within `SECONDS_KNOWN`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from effects.core.redaction import EVERY_SECRET, Mode, Redaction, Rule, Secret, Where
from effects.core.redaction_paths import parse_path
from effects.redaction.models import (
    EVERYWHERE,
    RedactionRule,
    RedactionState,
    SecretSwitchedOff,
)

SECONDS_KNOWN: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """`seals`: values of this workspace were hidden and can be revealed."""

    version: int = 0
    seals: bool = False
    secrets: frozenset[Secret] = EVERY_SECRET
    rules: tuple[tuple[str, str | None, Rule], ...] = ()
    made: dict[tuple[Where, str | None], Redaction] = field(default_factory=dict)

    def names_tools(self, where: Where) -> bool:
        """Whether a rule about such texts is about one tool."""
        return any(tool is not None and _about(at, where) for at, tool, _ in self.rules)

    def redaction(self, where: Where, tool: str | None) -> Redaction:
        """What is hidden in texts of a tool; `tool` None: rules about one tool do not count."""
        known = self.made.get((where, tool))
        if known is None:
            rules = tuple(
                rule for at, of, rule in self.rules if _about(at, where) and of in {None, tool}
            )
            known = Redaction(rules=rules, secrets=self.secrets)
            self.made[where, tool] = known
        return known


def _about(at: str, where: Where) -> bool:
    return at in {EVERYWHERE, str(where)}


_known: dict[int, tuple[float, InForce]] = {}


def in_force(workspace_id: int) -> InForce:
    """The rules of a workspace."""
    known = _known.get(workspace_id)
    now = time.monotonic()
    if known is not None and now < known[0]:
        return known[1]
    state = RedactionState.objects.filter(pk=workspace_id).values_list("version", "holds_sealed")
    version, seals = state.first() or (0, False)
    found = known[1] if known is not None else None
    if found is None or (found.version, found.seals) != (version, seals):
        found = _read(workspace_id, version, seals=seals)
    _known[workspace_id] = (now + SECONDS_KNOWN, found)
    return found


def _read(workspace_id: int, version: int, *, seals: bool) -> InForce:
    if not version:
        return InForce(seals=seals)
    kept = RedactionRule.objects.filter(workspace_id=workspace_id, retired_at=None).order_by("pk")
    off = SecretSwitchedOff.objects.filter(workspace_id=workspace_id)
    return InForce(
        version=version,
        seals=seals,
        secrets=EVERY_SECRET - {Secret(word) for word in off.values_list("secret", flat=True)},
        rules=tuple(
            (where, tool, Rule(path=parse_path(path), mode=Mode(mode)))
            for where, tool, path, mode in kept.values_list("where", "tool__name", "path", "mode")
        ),
    )


def note_sealed(workspace_id: int) -> None:
    """From now on the workspace has sealed values."""
    if not in_force(workspace_id).seals:
        RedactionState.objects.update_or_create(
            workspace_id=workspace_id, defaults={"holds_sealed": True}
        )
        forget(workspace_id)


def forget(workspace_id: int) -> None:
    """Has this process read the rules again, because it has changed them."""
    _known.pop(workspace_id, None)


def forget_all() -> None:
    """The same for every workspace; for those who remove workspaces whole."""
    _known.clear()
