"""What people may decide in the exhaustive search: `ledger_offered_v1`, said once more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from effects.core.fold import Folded
from effects.core.vocabulary import ClaimState, Verdict
from tests.laws.search_claim import MARGIN_TICKS, RELEASES, Claim, Law, newest_grant

Offer = tuple[Verdict, str | None, tuple[str, ...]]
"""A verdict, the object that it names, and the effects that it covers."""

OFFERED_IN: Final[dict[ClaimState, tuple[Verdict, ...]]] = {
    ClaimState.IN_FLIGHT: (Verdict.LOST, Verdict.CLOSE),
    ClaimState.UNKNOWN: (Verdict.HAPPENED, Verdict.NOT_HAPPENED, Verdict.CLOSE, *RELEASES),
    ClaimState.NOT_EXECUTED: (Verdict.CLOSE, Verdict.REOPEN, *RELEASES),
    ClaimState.RELEASED: (Verdict.CLOSE,),
    ClaimState.COMPLETED: (Verdict.REOPEN,),
    ClaimState.CLOSED: (Verdict.REOPEN,),
    ClaimState.CONFLICTED: (Verdict.SETTLE, Verdict.REOPEN),
}


def offered(law: Law, claim: Claim, effects: int) -> Iterator[Offer]:
    """Everything that the record lets a person decide now."""
    folded = law.fold(claim.log)
    for verdict in OFFERED_IN[folded.state]:
        if not _is_ruled_out(law, claim, folded, verdict):
            covered = tuple(sorted(folded.effects)) if verdict is Verdict.SETTLE else ()
            yield verdict, None, covered
            if verdict is Verdict.HAPPENED and effects:
                yield verdict, "pi_1", ()


def _is_ruled_out(law: Law, claim: Claim, folded: Folded, verdict: Verdict) -> bool:
    exhausted = newest_grant(claim.log).fence >= claim.budget and claim.grant_ends is None
    contradiction = folded.state is ClaimState.CONFLICTED and len(folded.effects) < 2
    match verdict:
        case Verdict.SETTLE:
            return contradiction
        case Verdict.REOPEN:
            conflict = folded.state is ClaimState.CONFLICTED and not contradiction
            return conflict or law.still_runs(claim)
        case Verdict.RELEASE_SAME | Verdict.RELEASE_NEW:
            refused = folded.state is ClaimState.NOT_EXECUTED and not exhausted
            same = verdict is Verdict.RELEASE_SAME
            return refused or (same and not key_holds(law, claim, 0))
        case _:
            return False


def key_holds(law: Law, claim: Claim, ticks: int) -> bool:
    """Whether a release with the same key may take effect in so many ticks."""
    if not claim.windows or law.fold(claim.log).fresh_key:
        return False
    return claim.windows[newest_grant(claim.log).generation - 1] - ticks > MARGIN_TICKS


def objects_of(effects: int) -> tuple[str, ...]:
    """What the provider calls the effects, in the order in which they happened."""
    return tuple(f"pi_{number}" for number in range(1, effects + 1))
