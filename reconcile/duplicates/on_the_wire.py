"""Whether our keys reached the providers, tool by tool, by what was imported of their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from effects.core.diagnosis.wire import RequestSeen, WireCheck, check_wire
from effects.core.vocabulary import EffectClass
from effects.models import Tool
from ledger.functions import call

REQUESTS_MAX: Final = 1_000
"""Most requests of one tool that are looked at, the newest."""
TOOLS_MAX: Final = 50

_SEEN: Final[LiteralString] = """
SELECT c.id::text, c.key, c.sent_key, c.generation, e.facts->>'key'
  FROM reconcile_importedevidence e JOIN ledger_claim c ON c.id = e.claim_id
 WHERE e.workspace_id = %s AND c.tool_id = %s AND c.workspace_id = e.workspace_id
   AND e.source IN ('provider', 'stripe', 'gateway') AND e.facts->>'key_seen' = 'true'
 ORDER BY e.at DESC LIMIT %s
"""
_TOOLS: Final[LiteralString] = """
SELECT DISTINCT c.tool_id FROM reconcile_importedevidence e JOIN ledger_claim c ON c.id = e.claim_id
 WHERE e.workspace_id = %s AND e.source IN ('provider', 'stripe', 'gateway') LIMIT %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    tool: Tool
    check: WireCheck


def of_tool(tool: Tool) -> WireCheck | None:
    """What is known of a tool's keys; None for a tool that sends none."""
    if tool.effect_class != EffectClass.KEYED_WRITE:
        return None
    rows = call(_SEEN, (tool.workspace_id, tool.pk, REQUESTS_MAX))
    return check_wire(
        RequestSeen(operation=claim, granted=granted_keys(key, sent, generation), key=seen)
        for claim, key, sent, generation, seen in rows
    )


def granted_keys(key: str, sent: str | None, generation: int) -> frozenset[str]:
    """Every key that attempts of the claim were given: see `Claim.key_sent`."""
    own = (f"{key}-{number}" for number in range(1, generation + 1))
    return frozenset(own) | ({sent} if sent else frozenset())


def alarms(workspace_id: int) -> Sequence[Alarm]:
    """The tools whose key is missing on the wire, or another one than was granted."""
    numbers = [number for (number,) in call(_TOOLS, (workspace_id, TOOLS_MAX))]
    found = []
    for tool in Tool.objects.filter(workspace_id=workspace_id, pk__in=numbers).order_by("name"):
        check = of_tool(tool)
        if check is not None and check.alarming:
            found.append(Alarm(tool=tool, check=check))
    return found
