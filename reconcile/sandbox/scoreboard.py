"""The provider's truth beside the ledger's word, operation by operation. Pure.

The truth comes from the provider's own files, which the ledger never reads. A claim that is
`completed` says that there is exactly one effect with its marker, `not_executed` that there is
none, `conflicted` that there are several. Every other state says nothing, and cannot be wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from effects.core.identity import read_marker
from effects.core.vocabulary import ClaimState, EffectClass
from reconcile.sandbox.hands import ORDER_FIELD

SOURCE_FIELD: Final = "source"
CHECKOUT: Final = "checkout"
"""What the shop's own till did is in the truth, too, and no agent's affair."""

OPEN_STATES: Final = frozenset({ClaimState.IN_FLIGHT, ClaimState.UNKNOWN, ClaimState.RELEASED})
FIRM_STATES: Final = frozenset({ClaimState.COMPLETED, ClaimState.NOT_EXECUTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWord:
    """What the ledger says of one claim.

    `by_rule`: a look-up settled it. `needs_person`: nothing that is still to come can settle it.
    `allowed`: how many further effects named decisions made possible.
    """

    claim_id: UUID
    version: int
    order: str
    tool: str
    effect_class: EffectClass
    state: ClaimState
    by_rule: bool = False
    needs_person: bool = False
    allowed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation: its claims, its effects, and what does not fit."""

    order: str
    claims: tuple[ClaimWord, ...]
    effects: tuple[Mapping[str, Any], ...]
    disagreements: tuple[str, ...]

    @property
    def allowed(self) -> int:
        return 1 + sum(claim.allowed for claim in self.claims)

    @property
    def too_many(self) -> bool:
        """Whether there are more effects than one, without a named decision that allowed it."""
        return len(self.effects) > self.allowed

    def to_json(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "claims": [
                {"id": str(claim.claim_id), "tool": claim.tool, "state": str(claim.state)}
                for claim in self.claims
            ],
            "effects": [effect["object_id"] for effect in self.effects],
            "disagreements": list(self.disagreements),
        }


def agents_effects(truth: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The effects that agents caused."""
    return [effect for effect in truth if effect.get("metadata", {}).get(SOURCE_FIELD) != CHECKOUT]


def claim_of(effect: Mapping[str, Any]) -> UUID | None:
    """The claim that an effect's marker names, or None."""
    marked = read_marker(str(effect.get("marker")))
    return None if marked is None else marked[0]


def rows(claims: Iterable[ClaimWord], truth: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each operation that the ledger or the provider knows of."""
    words = {claim.claim_id: claim for claim in claims}
    by_claim: defaultdict[UUID, list[Mapping[str, Any]]] = defaultdict(list)
    orders: dict[str, list[ClaimWord]] = defaultdict(list)
    effects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    strays: dict[str, list[str]] = defaultdict(list)
    for claim in words.values():
        orders[claim.order].append(claim)
    for effect in agents_effects(truth):
        claim_id = claim_of(effect)
        known = words.get(claim_id) if claim_id else None
        order = known.order if known else _order_of(effect)
        effects[order].append(effect)
        if known is None:
            strays[order].append(f"{effect['object_id']} happened without a claim")
        else:
            by_claim[known.claim_id].append(effect)
    return [
        Row(
            order=order,
            claims=tuple(orders[order]),
            effects=tuple(effects[order]),
            disagreements=(
                *strays[order],
                *(
                    sentence
                    for claim in orders[order]
                    if (sentence := disagreement(claim, len(by_claim[claim.claim_id])))
                ),
            ),
        )
        for order in sorted({*orders, *effects})
    ]


def disagreement(claim: ClaimWord, effects: int) -> str | None:
    """How the ledger's word differs from the provider's count, or None where it does not."""
    match claim.state:
        case ClaimState.COMPLETED:
            fits = effects == 1
        case ClaimState.NOT_EXECUTED:
            fits = effects == 0
        case ClaimState.CONFLICTED:
            fits = effects > 1
        case _:
            fits = True
    if fits:
        return None
    return f"{claim.tool} {claim.claim_id} is {claim.state}, the provider has {effects}"


def summary(board: Iterable[Row]) -> dict[str, int]:
    """The six figures of ``sandbox status --json``."""
    board = list(board)
    claims = [claim for row in board for claim in row.claims]
    return {
        "operations": len(board),
        "effects": sum(len(row.effects) for row in board),
        "disagreements": sum(len(row.disagreements) for row in board),
        "unknown": sum(claim.state is ClaimState.UNKNOWN for claim in claims),
        "needs_person": sum(claim.needs_person for claim in claims),
        "settled_by_rule": sum(claim.by_rule for claim in claims),
    }


def _order_of(effect: Mapping[str, Any]) -> str:
    return str(effect.get("metadata", {}).get(ORDER_FIELD) or effect["object_id"])
