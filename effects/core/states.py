"""The one transition table: from which state which event may lead to which.

The fold decides where a claim goes; this table says what it may ever decide, so that a mistake in
the fold shows as a transition that nobody meant. `verify_ledger` and the laws hold every recorded
claim against it.
"""

from __future__ import annotations

from typing import Final

from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Verdict

S = ClaimState
Step = tuple[EventKind, str | None]

ANYTHING: Final = frozenset(S)
SETTLED_OR_OPEN: Final = frozenset({S.COMPLETED, S.CONFLICTED})
NOWHERE: Final[frozenset[ClaimState]] = frozenset()

_RECORDS_ONLY: Final = (
    EventKind.STARTED,
    EventKind.SENT,
    EventKind.NOTED,
    EventKind.DECISION_HELD,
    EventKind.HOLD_EXTENDED,
    EventKind.DECISION_WITHDRAWN,
    EventKind.DECISION_CANCELLED,
)

# What a fact may turn a claim into, from wherever it is. Staying where it is, is always allowed.
FACTS: Final[dict[Step, frozenset[ClaimState]]] = {
    # An effect is never forgotten: it completes the claim, or it is one too many.
    (EventKind.REPORTED, Outcome.COMPLETED): SETTLED_OR_OPEN,
    (EventKind.SIGHTING, SightingWord.FOUND): SETTLED_OR_OPEN,
    (EventKind.SIGHTING, SightingWord.FOUND_MANY): SETTLED_OR_OPEN,
    # An effect that did not last contradicts what was told.
    (EventKind.SIGHTING, SightingWord.FOUND_DIFFERENT): frozenset({S.CONFLICTED}),
    # A proof that one attempt did nothing ends it; others may be open. Against a person's word that
    # it happened it is a contradiction.
    (EventKind.REPORTED, Outcome.NOT_SENT): frozenset({S.NOT_EXECUTED, S.UNKNOWN, S.CONFLICTED}),
    (EventKind.REPORTED, Outcome.REFUSED): frozenset({S.NOT_EXECUTED, S.UNKNOWN, S.CONFLICTED}),
    (EventKind.REPORTED, Outcome.REFUSED_STORED): frozenset(
        {S.NOT_EXECUTED, S.UNKNOWN, S.CONFLICTED}
    ),
    (EventKind.SIGHTING, SightingWord.ABSENT): frozenset({S.NOT_EXECUTED, S.CONFLICTED}),
    # Silence ends the attempt and settles nothing, unless the attempt was disproven already.
    (EventKind.REPORTED, Outcome.UNKNOWN): frozenset({S.UNKNOWN, S.NOT_EXECUTED}),
    (EventKind.LAPSED, None): frozenset({S.UNKNOWN, S.NOT_EXECUTED}),
    (EventKind.RELEASE_LAPSED, None): frozenset({S.UNKNOWN, S.NOT_EXECUTED}),
    (EventKind.ABSENCE_LAPSED, None): frozenset({S.UNKNOWN}),
}

DECISIONS: Final[dict[Verdict, frozenset[ClaimState]]] = {
    Verdict.HAPPENED: frozenset({S.COMPLETED, S.CONFLICTED}),
    Verdict.NOT_HAPPENED: frozenset({S.NOT_EXECUTED}),
    Verdict.RELEASE_SAME: frozenset({S.RELEASED}),
    Verdict.RELEASE_NEW: frozenset({S.RELEASED}),
    Verdict.LOST: frozenset({S.UNKNOWN, S.NOT_EXECUTED}),
    Verdict.CLOSE: frozenset({S.CLOSED}),
    Verdict.SETTLE: frozenset({S.COMPLETED}),
    # Reopening rejects what was recorded before it; nothing is left that could settle the claim.
    Verdict.REOPEN: frozenset({S.UNKNOWN}),
    Verdict.ALLOW: NOWHERE,
    Verdict.WITHDRAW: NOWHERE,
}

GRANTED_FROM: Final = frozenset({S.NOT_EXECUTED, S.RELEASED})

# An attempt of a ledger kept elsewhere is learned of and granted by nobody: it runs, wherever the
# claim was. A person's word that it happened may have spoken of it, so that what the other attempts
# contradicted is no contradiction any more.
LEARNED_OF: Final = frozenset({S.IN_FLIGHT, S.COMPLETED})


def targets(before: ClaimState, kind: EventKind, word: str | None) -> frozenset[ClaimState]:
    """Where this event may lead from `before`, besides leaving the claim where it is."""
    if kind is EventKind.GRANTED:
        return frozenset({S.IN_FLIGHT}) if before in GRANTED_FROM else NOWHERE
    if kind is EventKind.DECIDED:
        return DECISIONS[Verdict(word or "")]
    if kind in _RECORDS_ONLY:
        return NOWHERE
    return FACTS.get((kind, word), NOWHERE)


def is_allowed(before: ClaimState, kind: EventKind, word: str | None, after: ClaimState) -> bool:
    """Whether the table knows this transition."""
    return after is before or after in targets(before, kind, word)
