"""The executions of some claims, as the ledger's own record tells them.

Every attempt that was granted is one, and so is every request that was not: an agent that asks
again has run its code again. What a library repeated below the agent only the provider saw; such
evidence is imported (`reconcile.duplicates.evidence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects.core.diagnosis import Execution
from effects.core.vocabulary import ClaimState, Flag, Outcome
from ledger import asked_again, queries
from ledger.asked_again import AskedAgain

if TYPE_CHECKING:
    from ledger.models import Attempt, Claim

CLAIMS_MAX: Final = 100
"""Most claims of one group that are read: as many as a page shows side by side."""

_KNOWN: Final = frozenset(
    {Outcome.COMPLETED, Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED}
)
_ORIGIN: Final = ("worker", "delivery_count", "retry_count", "agent", "checkpoint", "user_spoke")


def executions(workspace_id: int, claim_ids: Sequence[UUID]) -> tuple[Execution, ...]:
    """What was executed of these claims, in the order of time. Raises `ClaimNotFound`.

    Names: `attempt_name` of an attempt, `asked_name` of a request that was not granted.
    """
    claims = [queries.claim(workspace_id, claim_id) for claim_id in claim_ids[:CLAIMS_MAX]]
    asked = asked_again.of_claims(workspace_id, [claim.pk for claim in claims])
    found = [one for claim in claims for one in _of_attempts(claim)]
    found += _of_requests({claim.pk: claim for claim in claims}, asked, found)
    return tuple(sorted(found, key=lambda one: one.order))


def attempt_name(claim_id: UUID, fence: int) -> str:
    return f"{claim_id}/{fence}"


def asked_name(asked: AskedAgain) -> str:
    return f"asked/{asked.id}"


def _of_attempts(claim: Claim) -> Iterator[Execution]:
    for attempt in queries.attempts(claim):
        said = attempt.granted_data or {}
        repeats = (attempt.data or {}).get("retry_count")
        yield Execution(
            name=attempt_name(claim.pk, attempt.fence),
            at=attempt.granted_at,
            requests_sent=None if repeats is None else repeats + 1,
            conversation=claim.conversation,
            turn_index=claim.turn_index,
            position=claim.position,
            response_id=said.get("response_id") or claim.response_id,
            call_id=said.get("call_id") or claim.call_id,
            tracked=True,
            settled_at=_settled_at(claim, attempt),
            meant=True if Flag.REPEAT_OF in claim.flags else None,
            **_origin(said),
        )


def _origin(said: Mapping[str, Any]) -> dict[str, Any]:
    return {member: said.get(member) for member in _ORIGIN}


def _settled_at(claim: Claim, attempt: Attempt) -> datetime | None:
    """When it was known what became of an attempt: it said so, or the claim was settled."""
    if attempt.outcome in _KNOWN:
        return attempt.ended_at
    if claim.state in {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED}:
        return claim.completed_at or claim.decided_at
    return None


def _of_requests(
    claims: Mapping[UUID, Claim], asked: Iterable[AskedAgain], granted: Sequence[Execution]
) -> Iterator[Execution]:
    """A request that was held back and granted later is that attempt, and no execution more."""
    ran = {_place(one) for one in granted}
    for one in asked:
        claim = claims[one.claim_id]
        attempts = queries.attempts(claim)
        execution = Execution(
            name=asked_name(one),
            at=one.at,
            conversation=one.conversation,
            turn_index=one.turn_index,
            position=one.position,
            response_id=one.data.get("response_id"),
            call_id=one.data.get("call_id"),
            tracked=True,
            settled_at=_settled_at(claim, attempts[-1]) if attempts else None,
            **_origin(one.data),
        )
        of_another = (one.turn_index, one.position) != (claim.turn_index, claim.position)
        if not (of_another and _place(execution) in ran):
            yield execution


def _place(one: Execution) -> tuple[Any, ...]:
    return (one.conversation, one.turn_index, one.position)
