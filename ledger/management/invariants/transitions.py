"""How every claim came to where it is, derived again from its events, one after the other.

The fold says where each event led; what it may never lead to is asked here. One walk answers all of
these questions, because it is the walk that costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from effects.core.fold import RELEASES, Folded, LoggedEvent, fold
from effects.core.states import LEARNED_OF, is_allowed
from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Verdict
from ledger.management.invariants.base import Check, Difference
from ledger.management.invariants.batches import History, histories

S = ClaimState
DIFFERENCES_KEPT_MAX: Final = 1_000
"""How many differences of one kind are kept; a record that is broken in more places is broken."""

# What the fold reads. Every other event leaves the claim where it is.
_ACTS: Final = frozenset(
    {
        EventKind.GRANTED,
        EventKind.LAPSED,
        EventKind.DECIDED,
        EventKind.RELEASE_LAPSED,
        EventKind.ABSENCE_LAPSED,
    }
)
GRANTABLE: Final = frozenset({S.NOT_EXECUTED, S.RELEASED})
PERMITTING: Final = RELEASES | {Verdict.NOT_HAPPENED}
AN_EFFECT: Final = (Outcome.COMPLETED, SightingWord.FOUND, SightingWord.FOUND_MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event: what the claim was before it, and after it. `newest` is the newest attempt before
    it, `generation` the newest key that this ledger itself gave out before it."""

    event: LoggedEvent
    before: Folded
    after: Folded
    newest: int
    generation: int
    learned_of: bool

    @property
    def path(self) -> str:
        event = self.event
        what = f"{event.kind} {event.word}" if event.word else str(event.kind)
        return (
            f"event {event.seq} ({what}, attempt {event.fence})"
            f" led from {self.before.state} to {self.after.state}"
        )


def steps(history: History) -> Iterator[Step]:
    """Every event after the first grant that the fold reads."""
    facts = [e for e in history.events if _is_read(e)]
    if not facts or facts[0].kind is not EventKind.GRANTED:
        return  # The fold's own check says so.
    before = fold(facts[:1])
    newest = facts[0].fence
    generation = max(1, facts[0].generation)
    for count, event in enumerate(facts[1:], start=2):
        after = fold(facts[:count])
        learned_of = event.kind is EventKind.GRANTED and event.fence in history.learned_of
        yield Step(
            event=event,
            before=before,
            after=after,
            newest=newest,
            generation=generation,
            learned_of=learned_of,
        )
        before = after
        if event.kind is EventKind.GRANTED:
            newest = max(newest, event.fence)
            generation = generation if learned_of else max(generation, event.generation)


def _is_read(event: LoggedEvent) -> bool:
    if event.kind is EventKind.SIGHTING:
        return event.counts
    return event.kind is EventKind.REPORTED or event.kind in _ACTS


def outside_the_table(step: Step) -> str | None:
    """I11: a transition that nobody meant."""
    event, before, after = step.event, step.before.state, step.after.state
    if step.learned_of:
        allowed = after is before or after in LEARNED_OF
    else:
        allowed = is_allowed(before, event.kind, event.word, after)
    return None if allowed else f"{step.path}, which the table does not know"


def unknown_or_grantable_by_nothing(step: Step) -> str | None:
    """I9: silence and permission both have a cause that somebody can be shown."""
    event, before, after = step.event, step.before.state, step.after.state
    absent = event.kind is EventKind.SIGHTING and event.word == SightingWord.ABSENT
    if absent and (before is S.IN_FLIGHT or event.fence != step.newest):
        return f"event {event.seq}: an absence counts although attempt {step.newest} is not covered"
    if before is after:
        return None
    if after is S.UNKNOWN and event.kind in (EventKind.GRANTED, EventKind.SIGHTING):
        return f"{step.path}, without an end of its lease or a report"
    if before is S.UNKNOWN and after in GRANTABLE:
        permitted = (
            absent
            or (event.kind is EventKind.DECIDED and event.word in PERMITTING)
            # The attempt itself proves that it did nothing.
            or (event.kind is EventKind.REPORTED and event.word != Outcome.UNKNOWN)
        )
        return None if permitted else f"{step.path}, without a decision or evidence"
    return None


def moved_by_an_older_attempt(step: Step) -> str | None:
    """I8: what an attempt says after a newer one was granted brings an effect to light or nothing.

    A claim that is unknown waits for any attempt's proof, so there an older one may speak.
    """
    event, before, after = step.event, step.before.state, step.after.state
    if event.kind is EventKind.GRANTED:
        return (
            None
            if event.fence > step.newest
            else f"attempt {event.fence} was granted after attempt {step.newest}"
        )
    if event.fence >= step.newest:
        return None
    if event.kind in _ACTS:
        return f"event {event.seq} ({event.kind}) speaks of attempt {event.fence}, not the newest"
    by_effect = after is S.CONFLICTED or (after is S.COMPLETED and event.word in AN_EFFECT)
    if after is before or by_effect or before is S.UNKNOWN:
        return None
    return f"{step.path}, although attempt {step.newest} is newer"


def generation_moved_by_nothing(step: Step) -> str | None:
    """I14: a new key only where the old one is burnt, was given up by a decision, or has run out
    after every attempt was firmly disproven; and never the old key where it is burnt."""
    event = step.event
    if event.kind is not EventKind.GRANTED or step.learned_of:
        return None
    if event.generation == step.generation:
        return (
            f"attempt {event.fence} was granted with key {event.generation}, which is burnt or was"
            " given up"
            if step.before.fresh_key
            else None
        )
    firm = step.before.state is S.NOT_EXECUTED and not step.before.conditional
    if event.generation == step.generation + 1 and (step.before.fresh_key or firm):
        return None
    return (
        f"attempt {event.fence} was granted with key {event.generation} after key"
        f" {step.generation}, without a stored refusal, a decision or a firm absence"
    )


Asked = Callable[[Step], str | None]
QUESTIONS: Final[tuple[tuple[str, str, Asked], ...]] = (
    (
        "I11",
        "Every transition of every claim is in the one table.",
        outside_the_table,
    ),
    (
        "I9",
        "Nothing became unknown without an end or a report, nor grantable without evidence.",
        unknown_or_grantable_by_nothing,
    ),
    (
        "I8",
        "An older attempt moves a claim by an effect alone, and acts speak of the newest attempt.",
        moved_by_an_older_attempt,
    ),
    (
        "I14",
        "A key changes only after a stored refusal, a decision for a new key, or a firm absence.",
        generation_moved_by_nothing,
    ),
)


class Walk:
    """One walk through the record for all questions; it begins when the first one is asked."""

    def __init__(self) -> None:
        self._found: dict[str, list[Difference]] | None = None

    def checks(self) -> tuple[Check, ...]:
        return tuple(
            Check(id=name, sentence=sentence, find=partial(self._answer, name))
            for name, sentence, _ in QUESTIONS
        )

    def _answer(self, name: str) -> list[Difference]:
        if self._found is None:
            self._found = _walk()
        return self._found.get(name, [])


def _walk() -> dict[str, list[Difference]]:
    found: defaultdict[str, list[Difference]] = defaultdict(list)
    for history in histories():
        for step in steps(history):
            for name, _, ask in QUESTIONS:
                says = ask(step)
                if says is not None and len(found[name]) < DIFFERENCES_KEPT_MAX:
                    found[name].append(Difference(of=str(history.claim.pk), says=says))
    return found
