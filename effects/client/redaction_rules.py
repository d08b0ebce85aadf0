"""What an agent that speaks to PostgreSQL itself hides before it sends.

It has no key to seal with, so what is hidden there is dropped: nobody can reveal it, and look-ups
go without it (ADR 20).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from effects.core.redaction import (
    EVERY_SECRET,
    Redacted,
    Redaction,
    Rule,
    Secret,
    Where,
    redact,
)
from effects.core.redaction_paths import BadPath, Path, parse_path

__all__ = ["Hidden", "ToolRedaction", "read_redaction"]

CLAIMS_REMEMBERED_MAX: Final = 4096
VALUES_REMEMBERED_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRedaction:
    """The rules of one tool, and the version of the workspace's rules that they are of."""

    version: int
    arguments: Redaction
    results: Redaction


def read_redaction(said: Mapping[str, Any]) -> ToolRedaction:
    """The rules as `ledger_agent_tool_v1` answers them."""
    secrets = EVERY_SECRET - {kind for kind in Secret if str(kind) in said["off"]}

    def about(where: Where) -> Redaction:
        paths = [path for at, path, _ in said["rules"] if at in {"all", str(where)}]
        return Redaction(rules=tuple(Rule(path=_path(path)) for path in paths), secrets=secrets)

    return ToolRedaction(
        version=said["version"], arguments=about(Where.ARGUMENTS), results=about(Where.RESULTS)
    )


def _path(written: str) -> Path:
    """A path that only a newer client can read hides the whole text rather than nothing."""
    try:
        return parse_path(written)
    except BadPath:
        return ()


class Hidden:
    """Which tool a claim was made for, and what was hidden of it, for as long as this process
    remembers: an error quotes what was asked. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: OrderedDict[UUID, tuple[str, tuple[str, ...]]] = OrderedDict()

    def note(self, claim_id: UUID, tool: str, asked: Redacted) -> None:
        values = tuple(one.value for one in asked.found[:VALUES_REMEMBERED_MAX] if one.value)
        with self._lock:
            self._claims[claim_id] = (tool, values)
            self._claims.move_to_end(claim_id)
            if len(self._claims) > CLAIMS_REMEMBERED_MAX:
                self._claims.popitem(last=False)

    def hide(
        self, claim_id: UUID, texts: Sequence[str | None], rules: Mapping[str, ToolRedaction]
    ) -> list[str | None]:
        """The texts of a report, each as it may be sent. Of a claim that is not remembered every
        rule that is known counts."""
        tool, known = self._claims.get(claim_id, ("", ()))
        found = [rules[tool]] if tool in rules else list(rules.values())
        redaction = Redaction(
            rules=tuple(rule for one in found for rule in one.results.rules),
            secrets=frozenset().union(*(one.results.secrets for one in found))
            if found
            else EVERY_SECRET,
        )
        redaction = replace(redaction, known=known)
        return [None if text is None else redact(text, redaction).text for text in texts]
