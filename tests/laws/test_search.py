"""Every order of events in one claim's small world: no law breaks; each broken rule is found."""

# ruff: noqa: SLF001 - a rule is broken where it lives.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cached_property

import pytest

from effects.core import clock, fold, states
from effects.core.vocabulary import ClaimState, EventKind, Outcome, SightingWord
from reconcile import judge
from tests.laws.search import Found, rows_of_the_table, rows_reached, search
from tests.laws.search_world import Size

KEYED = Size(keyed=True, decisions=0)
KEYED_WITH_A_PERSON = Size(keyed=True, decisions=1, holds=(0,), errors=False)
UNKEYED = Size(keyed=False, decisions=1)


def explain(found: Found) -> str:
    return "\n".join(
        f"{complaint}:\n    " + "\n    ".join(trace) for complaint, trace in found.broken.items()
    )


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(KEYED, id="a key, nobody decides"),
        pytest.param(UNKEYED, id="no key, one decision"),
        pytest.param(replace(UNKEYED, budget=1), id="no key, one attempt allowed"),
    ],
)
def test_no_order_of_events_breaks_a_law(size):
    found = search(size)

    assert not found.broken, explain(found)
    assert found.states > 1_000


# Each rule, broken on purpose


Break = Callable[[pytest.MonkeyPatch], None]


def conditional_absence_counts_as_firm(patch: pytest.MonkeyPatch) -> None:
    rule = fold._Folding._proven_no
    patch.setattr(
        fold._Folding, "_proven_no", lambda self, f, conditional: rule(self, f, conditional=True)
    )


def late_completions_of_old_fences_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def completions(self):
        return [e for e in self.reports if e.word == Outcome.COMPLETED and e.fence == self.newest]

    patch.setattr(fold._Folding, "_completions", property(completions))


def a_lease_that_ends_proves_no(patch: pytest.MonkeyPatch) -> None:
    rule = fold._Folding._disproven_by_facts

    def disproven(self, fence, *, conditional=True):
        lapsed = any(e.kind is EventKind.LAPSED and e.fence == fence for e in self.events)
        return lapsed or rule(self, fence, conditional=conditional)

    patch.setattr(fold._Folding, "_disproven_by_facts", disproven)


def one_refusal_settles_all_attempts(patch: pytest.MonkeyPatch) -> None:
    rule = fold._Folding._disproven_by_facts

    def disproven(self, fence, *, conditional=True):
        return any(rule(self, f, conditional=conditional) for f in self.generation_of)

    patch.setattr(fold._Folding, "_disproven_by_facts", disproven)


def a_permission_outlives_the_window(patch: pytest.MonkeyPatch) -> None:
    rule = clock.permission_ends

    def ends(claim, folded):
        return rule(replace(claim, window_until=None), folded)

    patch.setattr(clock, "permission_ends", ends)


def a_release_never_lapses(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clock, "permission_ends", lambda claim, folded: None)


def a_dead_lease_stays_in_flight(patch: pytest.MonkeyPatch) -> None:
    rule = clock._next_step

    def step(claim, folded, now):
        found = rule(claim, folded, now)
        return None if found and found.event.kind is EventKind.LAPSED else found

    patch.setattr(clock, "_next_step", step)


def one_object_named_twice_is_two_effects(patch: pytest.MonkeyPatch) -> None:
    rule = vars(fold._Folding)["effects"].func

    def effects_of(self):
        twice = {e.object for e in self._completions if e.object and e.fence > 1}
        return rule(self) | {f"{named} again" for named in twice}

    effects = cached_property(effects_of)
    effects.__set_name__(fold._Folding, "effects")
    patch.setattr(fold._Folding, "effects", effects)


def two_objects_are_called_one(patch: pytest.MonkeyPatch) -> None:
    rule = fold._Folding._state

    def state(self):
        found = rule(self)
        return ClaimState.COMPLETED if found is ClaimState.CONFLICTED else found

    patch.setattr(fold._Folding, "_state", state)


def an_absence_counts_although_a_worker_may_still_send(patch: pytest.MonkeyPatch) -> None:
    def said_its_end(attempt, asked_at):
        ended_at = attempt.ended_at or asked_at - timedelta(seconds=1)
        return replace(attempt, ended_at=ended_at, marker_sent=True)

    _judge_with(patch, said_its_end)


def an_absence_counts_while_the_provider_works(patch: pytest.MonkeyPatch) -> None:
    _judge_with(patch, lambda a, asked_at: replace(a, ended_at=a.ended_at and asked_at))


def _judge_with(patch: pytest.MonkeyPatch, change: Callable[..., judge.AttemptFacts]) -> None:
    rule = judge.judge

    def judged(facts, look, earlier):
        attempts = tuple(change(attempt, look.asked_at) for attempt in facts.open_attempts)
        return rule(replace(facts, open_attempts=attempts), look, earlier)

    patch.setattr(judge, "judge", judged)


def the_table_forgets_a_row(patch: pytest.MonkeyPatch) -> None:
    row = (EventKind.SIGHTING, SightingWord.FOUND)
    patch.setitem(states.FACTS, row, frozenset({ClaimState.CONFLICTED}))


BROKEN: dict[str, tuple[Break, Size, str]] = {
    "conditional absence as firm": (
        conditional_absence_counts_as_firm,
        KEYED,
        "a false 'did not happen'",
    ),
    "late completion of an old fence ignored": (
        late_completions_of_old_fences_are_ignored,
        KEYED_WITH_A_PERSON,
        "a truth that was told",
    ),
    "a lease's end proves no": (
        a_lease_that_ends_proves_no,
        UNKEYED,
        "the number of facts matters",
    ),
    "one refusal settles every attempt": (
        one_refusal_settles_all_attempts,
        KEYED_WITH_A_PERSON,
        "a false 'did not happen'",
    ),
    "a permission outlives the window": (
        a_permission_outlives_the_window,
        KEYED_WITH_A_PERSON,
        "two effects, and no person chose that",
    ),
    "a release never lapses": (a_release_never_lapses, UNKEYED, "stuck: released for ever"),
    "a dead lease stays in flight": (
        a_dead_lease_stays_in_flight,
        UNKEYED,
        "stuck: in_flight for ever",
    ),
    "one object named twice is two effects": (
        one_object_named_twice_is_two_effects,
        KEYED_WITH_A_PERSON,
        "one effect, read whole, and the claim is conflicted",
    ),
    "two objects are called one": (two_objects_are_called_one, UNKEYED, "several effects"),
    "absence counts beside a silent worker without a key": (
        an_absence_counts_although_a_worker_may_still_send,
        UNKEYED,
        "a false 'did not happen'",
    ),
    "absence counts while the provider works": (
        an_absence_counts_while_the_provider_works,
        UNKEYED,
        "a false 'did not happen'",
    ),
    "the table forgets a row": (the_table_forgets_a_row, UNKEYED, "the table does not know"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found_with_its_shortest_trace(rule, monkeypatch):
    break_it, size, complaint = BROKEN[rule]
    break_it(monkeypatch)

    found = search(size, first_only=True)

    assert any(complaint in said for said in found.broken), explain(found)
    assert all(len(trace) <= 12 for trace in found.broken.values()), explain(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "never"),
    [
        pytest.param(
            Size(keyed=True, decisions=1, errors=False),
            {"decided happened -> conflicted", "sighting found_many -> completed"},
            id="a key, one decision",
        ),
        pytest.param(
            Size(keyed=True, attempts=3, decisions=0, budget=3, errors=False),
            None,
            id="a key, three attempts",
        ),
        pytest.param(
            Size(keyed=False, attempts=3, decisions=1, budget=3), None, id="no key, three attempts"
        ),
        pytest.param(
            Size(keyed=False, decisions=2, errors=False), None, id="no key, two decisions"
        ),
    ],
)
def test_no_order_of_events_breaks_a_law_in_a_larger_world(size, never):
    found = search(size)

    assert not found.broken, explain(found)
    if never is not None:
        assert rows_of_the_table() - rows_reached(found.rows) == never
