"""The law: what a claim's events say, whatever order its facts arrived in.

Acts (grants, decisions, lapses) are ordered by their number. Facts (reports, sightings) are a set:
any permutation of them between two acts gives the same answer. The database holds the same rules
in `ledger_fold_v1`; every difference between the two is an error, searched for by the tests and by
`verify_ledger`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord, Verdict

PROVEN_NO = frozenset({Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED})
RELEASES = frozenset({Verdict.RELEASE_SAME, Verdict.RELEASE_NEW})
FOUND = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """One event, as far as the fold reads it. `fence` of a decision or a sighting is the newest
    attempt that existed then: it speaks of that attempt and of every earlier one."""

    seq: int
    kind: EventKind
    word: str | None = None
    fence: int = 0
    generation: int = 0
    object: str | None = None
    objects: tuple[str, ...] = ()
    replayed: bool = False
    counts: bool = False
    conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """`conditional` belongs to `not_executed`: some attempt is closed only by an absence that holds
    while the provider honours the key. `fresh_key`: the next grant must take a new generation."""

    state: ClaimState
    conditional: bool = False
    fresh_key: bool = False
    effects: frozenset[str] = frozenset()
    open_attempts: tuple[int, ...] = ()


def fold(events: Iterable[LoggedEvent]) -> Folded:
    """The state that these events amount to. There is always a first grant among them."""
    return _Folding(tuple(events)).result()


class _Folding:
    def __init__(self, events: Collection[LoggedEvent]) -> None:
        self.generation_of = {e.fence: e.generation for e in events if e.kind is EventKind.GRANTED}
        assert self.generation_of, "a claim begins with a grant"
        self.newest = max(self.generation_of)
        self.events = events
        self.decided = sorted(self._of(EventKind.DECIDED), key=lambda e: e.seq)
        self.last = self.decided[-1] if self.decided else None
        # Reopening rejects every fact recorded before it: a fact must be observed anew to count.
        self.reopened = self._newest_seq(e for e in self.decided if e.word == Verdict.REOPEN)
        self.release_lapsed = self._newest_seq(self._of(EventKind.RELEASE_LAPSED))
        self.absence_lapsed = self._newest_seq(self._of(EventKind.ABSENCE_LAPSED))
        self.reports = [e for e in self._of(EventKind.REPORTED) if e.seq > self.reopened]
        self.sightings = [
            e for e in self._of(EventKind.SIGHTING) if e.counts and e.seq > self.reopened
        ]

    def _of(self, kind: EventKind) -> list[LoggedEvent]:
        return [e for e in self.events if e.kind is kind]

    @staticmethod
    def _newest_seq(events: Iterable[LoggedEvent]) -> int:
        return max((e.seq for e in events), default=0)

    def result(self) -> Folded:
        state = self._state()
        all_firm = all(self._proven_no(f, conditional=False) for f in self.generation_of)
        return Folded(
            state=state,
            conditional=state is ClaimState.NOT_EXECUTED and not all_firm,
            fresh_key=self._key_is_burnt
            or (state is ClaimState.RELEASED and self.last_word == Verdict.RELEASE_NEW),
            effects=self.effects,
            open_attempts=self._open_attempts(),
        )

    @property
    def last_word(self) -> str | None:
        return self.last.word if self.last else None

    def _state(self) -> ClaimState:  # noqa: PLR0911 - first match wins; one line a rule
        if len(self.effects) > 1 and not self.effects <= self._accepted:
            return ClaimState.CONFLICTED
        if self._contradicted or self.effects & self._ended:
            return ClaimState.CONFLICTED
        if self.effects or self.last_word == Verdict.HAPPENED:
            return ClaimState.COMPLETED
        if self.last_word == Verdict.CLOSE:
            return ClaimState.CLOSED
        if self._released:
            return ClaimState.RELEASED
        if not self._newest_has_ended:
            return ClaimState.IN_FLIGHT
        if all(self._proven_no(f, conditional=True) for f in self.generation_of):
            return ClaimState.NOT_EXECUTED
        return ClaimState.UNKNOWN

    @property
    def _contradicted(self) -> bool:
        """It is said to have happened, no fact shows an effect, and every attempt is proven no. An
        object that the decision names outweighs a look-up that found nothing, which may have looked
        in the wrong place, but not what the attempts themselves report."""
        if self.last is None or self.last_word != Verdict.HAPPENED:
            return False
        if self._named | self._unnamed | self._found:
            return False
        disproven = self._disproven_by_report if self.last.object else self._disproven_by_facts
        return all(disproven(fence) for fence in self.generation_of)

    @cached_property
    def effects(self) -> frozenset[str]:
        """Every effect that somebody saw or decided: provider objects, and completions that named
        none."""
        seen = self._found | {
            e.object
            for e in self.decided
            if e.word == Verdict.HAPPENED and e.object and e.seq > self.reopened
        }
        told = self._named | self._unnamed
        # The only completion named nothing, and a look-up found objects: then it is those.
        if len(told) == 1 and self._unnamed and seen:
            return frozenset(seen)
        return frozenset(told | seen)

    @property
    def _found(self) -> set[str]:
        return {o for e in self.sightings if e.word in FOUND for o in e.objects}

    @property
    def _ended(self) -> set[str]:
        """Objects that a provider shows as ended after they were an effect: a payout that was paid
        and failed. That it was there stays true, and so does that it did not last: a person says
        what holds, by reopening the claim or, of several effects, by settling it."""
        settled = self._newest_seq(e for e in self.decided if e.word == Verdict.SETTLE)
        return {
            o
            for e in self.sightings
            if e.word == SightingWord.FOUND_DIFFERENT and e.seq > settled
            for o in e.objects
        }

    @property
    def _completions(self) -> list[LoggedEvent]:
        return [e for e in self.reports if e.word == Outcome.COMPLETED]

    @property
    def _named(self) -> set[str]:
        return {e.object for e in self._completions if e.object}

    @property
    def _unnamed(self) -> set[str]:
        """Completions without an object, as effects of their own.

        A replay is the effect of its generation that somebody else reported; if only replays were
        reported, together they are one effect.
        """
        unnamed: set[str] = set()
        for generation in set(self.generation_of.values()):
            completions = [e for e in self._completions if e.generation == generation]
            naming = {e.fence for e in completions if e.object}
            silent = {e.fence for e in completions} - naming
            replays = {e.fence for e in completions if e.replayed} & silent
            originals = silent - replays
            unnamed |= {f"attempt {fence}" for fence in originals}
            if replays and not originals and not naming:
                unnamed.add(f"generation {generation}")
        return unnamed

    @property
    def _accepted(self) -> set[str]:
        return {
            o
            for e in self.decided
            if e.word == Verdict.SETTLE and e.seq > self.reopened
            for o in e.objects
        }

    def _disproven_by_report(self, fence: int) -> bool:
        return any(
            (e.fence == fence and e.word in PROVEN_NO)
            # A stored refusal is what every attempt with that key got or would get.
            or (e.word == Outcome.REFUSED_STORED and e.generation == self.generation_of[fence])
            for e in self.reports
        )

    def _disproven_by_facts(self, fence: int, *, conditional: bool = True) -> bool:
        return self._disproven_by_report(fence) or any(
            e.word == SightingWord.ABSENT
            and e.fence >= fence
            and (not e.conditional or (conditional and e.seq > self.absence_lapsed))
            for e in self.sightings
        )

    def _proven_no(self, fence: int, *, conditional: bool) -> bool:
        return self._disproven_by_facts(fence, conditional=conditional) or any(
            e.word == Verdict.NOT_HAPPENED and e.fence >= fence and e.seq > self.reopened
            for e in self.decided
        )

    @property
    def _released(self) -> bool:
        """A release stands until it lapses, or until the newest attempt reports that it did
        nothing: then the old key goes on and nobody's permission is needed."""
        last = self.last
        if last is None or last.word not in RELEASES or last.fence != self.newest:
            return False
        withdrawn = any(
            e.fence == self.newest and e.word in PROVEN_NO and e.seq > last.seq
            for e in self.reports
        )
        return last.seq > self.release_lapsed and not withdrawn

    @property
    def _newest_has_ended(self) -> bool:
        ends = (EventKind.REPORTED, EventKind.LAPSED, EventKind.DECIDED)
        return any(e.fence == self.newest and e.kind in ends for e in self.events)

    @property
    def _key_is_burnt(self) -> bool:
        """The provider has stored a refusal under this key: it stays so, even after a reopening."""
        # An attempt from a ledger kept elsewhere has a key of its own, a negative generation here.
        generation = max([1, *self.generation_of.values()])
        return any(
            e.word == Outcome.REFUSED_STORED and e.generation == generation
            for e in self._of(EventKind.REPORTED)
        )

    def _open_attempts(self) -> tuple[int, ...]:
        completed = {e.fence for e in self._completions}
        return tuple(
            fence
            for fence in sorted(self.generation_of)
            if fence not in completed and not self._proven_no(fence, conditional=False)
        )
