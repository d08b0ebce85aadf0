"""What a tool's own people say is to be done about its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.safestring import SafeString

from reconcile.notes.markdown import rendered

if TYPE_CHECKING:
    from effects.models import Tool

SUGGESTIONS_MAX: Final = 8
SUGGESTION_CHARACTERS_MAX: Final = 200
_HEADS: Final = frozenset({"reasons:", "**reasons:**", "**reasons**:", "**reasons**"})


def runbook_of(tool: Tool) -> SafeString | None:
    """The runbook as HTML, or None where nobody has written one."""
    return rendered(tool.runbook, {}) if tool.runbook.strip() else None


def reasons_in(runbook: str) -> list[str]:
    """The reasons that a runbook suggests: the list under a line that says "Reasons:"."""
    lines = iter(runbook.splitlines())
    for line in lines:
        if line.strip().lower() in _HEADS:
            break
    found: list[str] = []
    for line in lines:
        if not line.strip() and not found:
            continue
        if not line.startswith(("- ", "* ")):
            break
        found.append(line[2:].strip()[:SUGGESTION_CHARACTERS_MAX])
    return [one for one in found if one][:SUGGESTIONS_MAX]
