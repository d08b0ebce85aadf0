"""The claim's half of the exhaustive search: its events and its clock, moved by the product's code.

Time is counted in ticks from now, so that two claims that differ only in when they happened are one
state. Facts between two acts are kept sorted and once, because the law says that neither their
order nor their number matters; that this is so is asked of the fold each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from effects.core import clock, decision
from effects.core import fold as folding
from effects.core.decision import Asked, Policy, StoredClaim, Told
from effects.core.fold import Folded, LoggedEvent
from effects.core.identity import Identities
from effects.core.states import is_allowed
from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
    Verdict,
)

NOW = datetime(2027, 1, 1, tzinfo=UTC)
TICK = timedelta(hours=1)
LEASE_TICKS, MARGIN_TICKS, LAPSE_TICKS = 1, 1, 2
TICKS_UNTIL_QUIET = 12
"""Longer than every lease, window, minute and permission together."""

ACTS = frozenset(
    {EventKind.GRANTED, EventKind.DECIDED, EventKind.RELEASE_LAPSED, EventKind.ABSENCE_LAPSED}
)
FOUND = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})
RELEASES = (Verdict.RELEASE_SAME, Verdict.RELEASE_NEW)
NONCE, OTHER_NONCE = b"mine", b"other"
WHO = Identities(
    scope=b"scope",
    turn=b"turn",
    slot=None,
    local=None,
    call=None,
    caller=None,
    repeat=None,
    business=None,
    arguments=b"arguments",
    weak_call_id=False,
)

Row = tuple[ClaimState, EventKind, str | None, ClaimState]
Log = tuple[int, ...]
"""A claim's events in their order, each by its number in `EVENTS`."""


class Broken(Exception):
    """A law does not hold; the message says which."""


class Held(NamedTuple):
    """A decision in its minute; it takes effect in so many ticks."""

    verdict: Verdict
    object: str | None
    objects: tuple[str, ...]
    ticks: int


class Claim(NamedTuple):
    """`windows`: ticks until the provider forgets each generation's key; empty without keys.
    `decided`: ticks since the last decision took effect, kept while it permits something."""

    log: Log
    lease: int
    windows: tuple[int, ...]
    grant_ends: int | None
    decided: int | None
    held: Held | None
    budget: int


class Events:
    """Every event that occurred in a search, once, without its place in a log."""

    def __init__(self) -> None:
        self.all: list[LoggedEvent] = []
        self.numbers: dict[LoggedEvent, int] = {}
        self._logs: dict[Log, tuple[LoggedEvent, ...]] = {}
        self._placed: dict[tuple[int, int], LoggedEvent] = {}

    def number(self, event: LoggedEvent) -> int:
        known = self.numbers.get(event)
        if known is None:
            assert event.seq == 0, "an event without its place"
            known = self.numbers[event] = len(self.all)
            self.all.append(event)
        return known

    def of(self, log: Log) -> tuple[LoggedEvent, ...]:
        """The log as the product reads it: numbered from 1."""
        known = self._logs.get(log)
        if known is None:
            known = self._logs[log] = tuple(
                self._at(number, seq) for seq, number in enumerate(log, start=1)
            )
        return known

    def _at(self, number: int, seq: int) -> LoggedEvent:
        known = self._placed.get((number, seq))
        if known is None:
            known = self._placed[number, seq] = replace(self.all[number], seq=seq)
        return known


EVENTS = Events()


def newest_grant(log: Log) -> LoggedEvent:
    """Fences only grow, so the last grant is the newest."""
    return next(e for e in reversed(EVENTS.of(log)) if e.kind is EventKind.GRANTED)


def last_reopened(log: Log) -> int:
    return max((e.seq for e in EVENTS.of(log) if e.word == Verdict.REOPEN), default=0)


def decided(log: Log, *verdicts: Verdict) -> int:
    """How often a person's word of these kinds took effect."""
    return sum(e.kind is EventKind.DECIDED and e.word in verdicts for e in EVENTS.of(log))


def canonical(log: Log) -> Log:  # noqa: C901 - one case for each kind of event
    """The same log with the facts between two acts sorted, each once, and without those that say
    nothing beside others: where a lease ended that is over, and silence beside a report."""
    events = [EVENTS.all[number] for number in log]
    newest = max(e.fence for e in events if e.kind is EventKind.GRANTED)
    ended = {e.fence for e in events if e.kind is EventKind.REPORTED}
    spoken = {e.fence for e in events if e.kind is EventKind.REPORTED and e.word != Outcome.UNKNOWN}
    lapsed = max((n for n, e in enumerate(events) if e.kind is EventKind.ABSENCE_LAPSED), default=0)
    kept: list[int] = []
    facts: set[int] = set()
    seen: set[str] = set()
    for place, (number, event) in enumerate(zip(log, events, strict=True)):
        if (event.conditional and place < lapsed) or event.kind is EventKind.ABSENCE_LAPSED:
            continue  # what held only for a while, and its end
        if event.kind in ACTS:
            kept += sorted(facts)
            facts.clear()
            kept.append(number)
            if event.word == Verdict.REOPEN:
                seen.clear()
        elif event.kind is EventKind.LAPSED:
            if event.fence == newest and event.fence not in ended:
                facts.add(number)
        elif event.kind is EventKind.SIGHTING and event.word in FOUND:
            if not seen.issuperset(event.objects):
                facts.add(number)
            seen.update(event.objects)
        elif event.word != Outcome.UNKNOWN or event.fence not in spoken:
            facts.add(number)
    return (*kept, *sorted(facts))


@dataclass(slots=True, kw_only=True)
class Law:
    """The product's law under one tool's contract. Everything asked of it is remembered, and claims
    go by their number, because the search asks the same a million times."""

    keyed: bool
    window_ticks: int
    rows: set[Row] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)
    _numbers: dict[Claim, int] = field(default_factory=dict)
    _folds: dict[Log, Folded] = field(default_factory=dict)
    _grown: dict[tuple[int, int], int] = field(default_factory=dict)
    _later: dict[tuple[int, int], int] = field(default_factory=dict)
    _told: dict[tuple[int, bool], Told] = field(default_factory=dict)

    @property
    def policy(self) -> Policy:
        return Policy(
            effect_class=EffectClass.KEYED_WRITE if self.keyed else EffectClass.UNKEYED_WRITE,
            lease=LEASE_TICKS * TICK,
            window=self.window_ticks * TICK if self.keyed else None,
            margin=MARGIN_TICKS * TICK,
        )

    def number(self, claim: Claim) -> int:
        known = self._numbers.get(claim)
        if known is None:
            known = self._numbers[claim] = len(self.claims)
            self.claims.append(claim)
        return known

    def first(self, budget: int) -> int:
        """A claim that was granted just now."""
        log = (EVENTS.number(_grant(fence=1, generation=1)),)
        windows = (self.window_ticks,) if self.keyed else ()
        return self.number(Claim(log, LEASE_TICKS, windows, None, None, None, budget))

    def fold(self, log: Log) -> Folded:
        known = self._folds.get(log)
        if known is None:
            known = self._folds[log] = folding.fold(EVENTS.of(log))
        return known

    def folded(self, number: int) -> Folded:
        return self.fold(self.claims[number].log)

    def clock_of(self, claim: Claim) -> clock.ClaimClock:
        def at(ticks: int | None) -> datetime | None:
            return None if ticks is None else NOW + ticks * TICK

        held = claim.held
        window = claim.windows[newest_grant(claim.log).generation - 1] if claim.windows else None
        return clock.ClaimClock(
            events=EVENTS.of(claim.log),
            lease_until=NOW + claim.lease * TICK,
            window_until=at(window),
            margin=MARGIN_TICKS * TICK,
            release_lapse=LAPSE_TICKS * TICK,
            pending=held
            and clock.Pending(
                verdict=held.verdict,
                effective_at=NOW + held.ticks * TICK,
                object=held.object,
                objects=held.objects,
            ),
            decided_at=None if claim.decided is None else NOW - claim.decided * TICK,
            grant_until=at(claim.grant_ends),
            completed_at=NOW,
        )

    # What changes a claim

    def grown(self, claim: Claim, event: LoggedEvent) -> int:
        """The claim with one more event, and what it permits now: `ledger_append_v1`."""
        key = (self.number(claim), EVENTS.number(event))
        if key not in self._grown:
            log = self._checked(claim.log, event)
            self._grown[key] = self.number(self._permit(claim._replace(log=log)))
        return self._grown[key]

    def _permit(self, claim: Claim) -> Claim:
        folded = self.fold(claim.log)
        released = folded.state is ClaimState.RELEASED
        claim = claim._replace(
            decided=claim.decided if released else None,
            lease=claim.lease if self._runs(claim.log) else 0,
        )
        ends = clock.permission_ends(self.clock_of(claim), folded)
        return claim._replace(grant_ends=None if ends is None else max(0, (ends - NOW) // TICK))

    def _runs(self, log: Log) -> bool:
        """Whether the newest attempt has not ended: only then does its lease say anything."""
        newest = newest_grant(log).fence
        ends = (EventKind.REPORTED, EventKind.LAPSED, EventKind.DECIDED)
        return not any(e.fence == newest and e.kind in ends for e in EVENTS.of(log))

    def still_runs(self, claim: Claim) -> bool:
        return claim.lease > 0 and self._runs(claim.log)

    def _checked(self, log: Log, event: LoggedEvent) -> Log:
        """The canonical log after this event, once the table and the order were asked."""
        raw = (*log, EVENTS.number(event))
        before, after = self.fold(log), self.fold(raw)
        row = (before.state, event.kind, event.word, after.state)
        if row not in self.rows:
            if not is_allowed(*row):
                raise Broken(
                    f"the table does not know that {event.kind} {event.word or ''} leads "
                    f"from {before.state} to {after.state}"
                )
            self.rows.add(row)
        short = canonical(raw)
        if self.fold(short) != after:
            raise Broken("the order or the number of facts matters")
        return short

    def later(self, number: int, ticks: int) -> int:
        """The claim after so much time in which nobody touched it: `ledger_advance_v1`."""
        key = (number, ticks)
        if key not in self._later:
            self._later[key] = self.number(self._advanced(self.claims[number], ticks))
        return self._later[key]

    def _advanced(self, claim: Claim, ticks: int) -> Claim:
        moved, _ = clock.advance(self.clock_of(claim), NOW + ticks * TICK)
        log = claim.log
        for event in moved.events[len(claim.log) :]:
            log = self._checked(log, replace(event, seq=0))
        age = None
        if self.fold(log).state is ClaimState.RELEASED and moved.decided_at is not None:
            age = (NOW - moved.decided_at) // TICK + ticks
        ends = moved.grant_until
        held = claim.held
        return Claim(
            log=log,
            lease=max(0, claim.lease - ticks) if self._runs(log) else 0,
            windows=tuple(max(0, window - ticks) for window in claim.windows),
            grant_ends=None if ends is None else max(0, (ends - NOW) // TICK - ticks),
            decided=age,
            held=held._replace(ticks=held.ticks - ticks) if held and moved.pending else None,
            budget=claim.budget,
        )

    def told(self, number: int, *, same_nonce: bool) -> Told:
        """What a redelivery of the same request is told now."""
        key = (number, same_nonce)
        if key not in self._told:
            claim = self.claims[number]
            newest = newest_grant(claim.log)
            stored = StoredClaim(
                id="claim",
                tool=1,
                identities=WHO,
                clock=self.clock_of(claim),
                granted_at=NOW,
                budget=claim.budget,
                fence=newest.fence,
                generation=newest.generation,
                position=0,
                response_id=None,
                call_id=None,
                nonce=NONCE,
            )
            asked = Asked(identities=WHO, tool=1, nonce=NONCE if same_nonce else OTHER_NONCE)
            self._told[key] = decision.decide_claim(asked, [stored], [], self.policy, NOW)
        return self._told[key]

    def granted(self, claim: Claim, told: Told) -> int:
        """The claim after the next attempt was granted: `ledger_regrant_v1`."""
        released = self.fold(claim.log).state is ClaimState.RELEASED
        windows = claim.windows
        if told.generation > newest_grant(claim.log).generation and self.keyed:
            windows = (*windows, self.window_ticks)
        claim = claim._replace(lease=LEASE_TICKS, windows=windows, budget=claim.budget + released)
        return self.grown(claim, _grant(fence=told.fence, generation=told.generation))

    def reported(self, claim: Claim, report: LoggedEvent) -> int:
        """One attempt's report: a decision in its minute is cancelled; said again it is nothing."""
        if EVENTS.number(report) in claim.log:
            return self.number(claim)
        return self.grown(claim._replace(held=None), report)


def _grant(*, fence: int, generation: int) -> LoggedEvent:
    return LoggedEvent(seq=0, kind=EventKind.GRANTED, fence=fence, generation=generation)
