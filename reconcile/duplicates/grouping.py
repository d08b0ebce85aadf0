"""What a group of calls amounts to: its numbers, its layers, and what is at stake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from effects.core.diagnosis import Constants, Diagnosis, GroupDiagnosis, Layer, Source, diagnose
from effects.core.diagnosis.evidence import Execution
from effects.core.fold import fold
from effects.core.vocabulary import ClaimState, EffectClass, Outcome
from ledger import queries
from reconcile.cards import cards_of
from reconcile.duplicates import constants
from reconcile.duplicates.evidence import group_of
from reconcile.models import DuplicateGroup

if TYPE_CHECKING:
    from ledger.models import Claim

GAP: Final = "gap"
OBJECTS_SHOWN_MAX: Final = 20
PROVEN_NOTHING: Final = frozenset({Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One group of calls, looked at now."""

    claims: tuple[Claim, ...]
    executions: tuple[Execution, ...]
    diagnosis: GroupDiagnosis
    objects: tuple[str, ...]
    stopped: int
    possible: int

    @property
    def layers(self) -> list[str]:
        return sorted({str(pair.layer) for pair in self.diagnosis.pairs})

    @property
    def certain(self) -> bool:
        return bool(self.diagnosis.pairs) and all(map(is_certain, self.diagnosis.pairs))


def is_certain(pair: Diagnosis) -> bool:
    """Whether an answer rests on fingerprints alone; a gap makes it likely at best."""
    return pair.layer is not Layer.UNDETERMINED and GAP not in pair.decided_by


def weigh(workspace_id: int, claim_ids: Sequence[UUID], by: Constants) -> Weighed:
    """Reads and diagnoses a group. Raises `ClaimNotFound`."""
    claims = tuple(queries.claim(workspace_id, claim_id) for claim_id in claim_ids)
    known = group_of(workspace_id, claim_ids)
    objects = tuple(
        dict.fromkeys(
            one for claim in claims for one in sorted(fold(queries.event_log(claim)).effects)
        )
    )
    app = [one for one in known.executions if one.source is Source.APP]
    return Weighed(
        claims=claims,
        executions=known.executions,
        diagnosis=diagnose(known, by),
        objects=objects,
        stopped=sum(one.name.startswith("asked/") for one in app),
        possible=max(len(objects), sum(map(_possible_effects, claims))),
    )


def _possible_effects(claim: Claim) -> int:
    """How many effects this call has or may have: with a key its attempts are one at the provider,
    as long as the key stays; without one each of them may be another."""
    if claim.state == ClaimState.NOT_EXECUTED:
        return 0
    open_attempts = [one for one in queries.attempts(claim) if one.outcome not in PROVEN_NOTHING]
    if claim.effect_class == EffectClass.KEYED_WRITE:
        return len({one.generation for one in open_attempts}) or 1
    return len(open_attempts) or 1


def refresh(group: DuplicateGroup, *, by: Constants | None = None) -> Weighed:
    """Looks at a group again and keeps what came of it. Its state and its version stay."""
    workspace_id = group.workspace_id
    weighed = weigh(workspace_id, group.claim_ids, by or constants.in_force(workspace_id))
    for name, value in columns(workspace_id, weighed, queries.clock()).items():
        setattr(group, name, value)
    group.save(update_fields=COLUMNS)
    return weighed


COLUMNS: Final = (
    *("tool", "objects_seen", "operations", "app_attempts", "provider_requests", "stopped"),
    *("possible", "amount", "currency", "places", "customer", "layers", "certain", "last_at"),
    "diagnosed_at",
)
"""What a look at a group says anew."""


def columns(workspace_id: int, weighed: Weighed, now: datetime) -> dict[str, object]:
    cards = cards_of(workspace_id, [claim.pk for claim in weighed.claims])
    card = next((cards[c.pk] for c in weighed.claims if c.pk in cards), None)
    return {
        "tool": weighed.claims[0].tool.name,
        "objects_seen": list(weighed.objects[:OBJECTS_SHOWN_MAX]),
        "operations": weighed.diagnosis.operations,
        "app_attempts": weighed.diagnosis.app_attempts,
        "provider_requests": weighed.diagnosis.provider_requests,
        "stopped": weighed.stopped,
        "possible": weighed.possible,
        "amount": card.amount if card else None,
        "currency": card.currency if card else "",
        "places": card.places if card else 2,
        "customer": card.customer if card else "",
        "layers": weighed.layers,
        "certain": weighed.certain,
        "last_at": max((one.at for one in weighed.executions), default=now),
        "diagnosed_at": now,
    }
