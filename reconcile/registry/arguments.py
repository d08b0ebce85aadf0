"""How a tool's fields and its summary fit the arguments that its newest calls really had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from effects import registry
from effects.core.canonical import Refused, parse_arguments
from effects.models import Tool
from ledger.functions import call

BYTES_READ_MAX: Final = 262_144
"""Larger arguments are not read for this: none that the ledger takes are."""

_ARGUMENTS: Final[LiteralString] = """
SELECT c.id::text, coalesce(c.arguments,
       (SELECT convert_from(p.body, 'UTF8') FROM ledger_payload p
         WHERE p.claim_id = c.id AND p.seq = 0 AND p.name = 'arguments' AND p.size_bytes <= %s))
  FROM ledger_claim c WHERE c.workspace_id = %s AND c.id = ANY(%s::uuid[])
 ORDER BY c.id DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call whose arguments can be read."""

    claim_id: str
    text: str


def samples_of(workspace_id: int, claim_ids: Sequence[str]) -> list[Sample]:
    """The arguments of these calls, newest first; those that were emptied are left out."""
    rows = call(_ARGUMENTS, (BYTES_READ_MAX, workspace_id, list(claim_ids)))
    return [Sample(claim_id=claim, text=text) for claim, text in rows if text is not None]


def names_of(arguments_text: str) -> list[str]:
    """The names of the arguments' own members, in their order; none where they cannot be read."""
    try:
        return list(parse_arguments(arguments_text))
    except (Refused, RecursionError):
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the settings fit `read` calls: how many had no amount, no customer, and which of the
    summary's fields none of them had."""

    read: int
    amount_missed: int = 0
    customer_missed: int = 0
    holes_missed: tuple[str, ...] = ()


def fit(tool: registry.Described, samples: Sequence[Sample]) -> Fit:
    """How a tool's fields fit these arguments. Pure."""
    texts = [sample.text for sample in samples]
    holes = [hole for hole in registry.field_paths(tool.summary) if hole not in _OWN]
    return Fit(
        read=len(texts),
        amount_missed=sum(registry.amount(tool, text) is None for text in texts)
        if tool.amount_field
        else 0,
        customer_missed=sum(registry.customer(tool, text) is None for text in texts)
        if tool.customer_field
        else 0,
        holes_missed=tuple(
            hole
            for hole in dict.fromkeys(holes)
            if texts and not any(registry.has_value(text, hole) for text in texts)
        ),
    )


_OWN: Final = ("amount", "customer")
"""Holes that stand for fields of the tool, which are counted by themselves."""


def facts_of(tool: Tool, claim_ids: Sequence[str]) -> dict[str, Any]:
    """The facts of `Measured` that arguments tell, by the settings as they are saved."""
    found = fit(tool, samples_of(tool.workspace_id, claim_ids))
    return {
        "read": found.read,
        "amount_missed": found.amount_missed,
        "customer_missed": found.customer_missed,
        "holes_missed": found.holes_missed,
    }
