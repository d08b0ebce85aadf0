"""What is told late, and in which order it is told, through the database's own functions.

Grants and decisions have an order of their own. Facts have none: whoever was frozen, cut off or
slow may tell them in any order, and the claim comes to the same end. (`World` compares the row with
the fold after each of them as well.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.fold import Folded
from effects.core.messages import ClaimRequest
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, SightingWord, Verdict
from effects.models import Tool, Workspace
from ledger import claiming
from tests.laws.stories import FIRST
from tests.laws.world import World
from tests.support.clock import START, FrozenClock, a_clock_of_our_own

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_SECONDS = 30
FACTS_MAX = 6
S, V, SEEN = ClaimState, Verdict, SightingWord
_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A report of one attempt, or what a look-up saw up to that attempt."""

    fence: int
    says: Outcome | SightingWord
    named: tuple[str, ...] = ()
    replayed: bool | None = None


def words(value: object) -> str:
    """How a row of a table is named."""
    if isinstance(value, Fact):
        named = "".join(f" {name}" for name in value.named)
        replayed = " replayed" if value.replayed else ""
        return f"{value.fence} {value.says}{named}{replayed}"
    return getattr(value, "__name__", str(value))


@dataclass(frozen=True, slots=True)
class Told:
    """One claim, and what is told of it."""

    world: World
    claim_id: UUID

    def lapse(self) -> None:
        self.world.clock.advance(LEASE_SECONDS)
        self.world.touch(self.claim_id)

    def decide(self, verdict: Verdict, named: str | None = None) -> None:
        self.world.decide(self.claim_id, verdict, hold_seconds=0, provider_object=named)
        self.world.touch(self.claim_id)

    def grant_again(self) -> None:
        assert ask(self.world).claim_id == self.claim_id

    def tell(self, fact: Fact) -> ClaimState:
        if isinstance(fact.says, SightingWord):
            return self.world.observe(self.claim_id, fact.says, fact.fence, objects=fact.named)
        named = fact.named[0] if fact.named else None
        return self.world.report(
            self.claim_id, fact.fence, fact.says, named, replayed=fact.replayed
        )

    @property
    def end(self) -> Folded:
        return self.world.check(self.claim_id)


def ask(world: World) -> Any:
    return world.ask(
        ClaimRequest(
            tool=world.tool.name,
            effect_class=world.policy.effect_class,
            arguments=FIRST.arguments,
            conversation="conversation",
            turn_index=FIRST.turn_index,
            response_id=FIRST.response_id,
            call_id=FIRST.call_id,
        )
    )


@contextmanager
def a_world(*, keyed: bool = True) -> Iterator[Told]:
    """A claim whose first attempt runs; nothing of it is left behind."""
    with transaction.atomic():
        claiming.forget_tools()
        workspace = Workspace.objects.create(
            name="Order", slug=f"order-{next(_numbers)}", created_at=START
        )
        tool = Tool.objects.create(
            workspace=workspace,
            name="pay",
            effect_class=EffectClass.KEYED_WRITE if keyed else EffectClass.UNKEYED_WRITE,
            window_seconds=3600 if keyed else None,
            margin_seconds=90,
            lease_seconds=LEASE_SECONDS,
            attempt_seconds_max=120,
            attempts_max=3,
        )
        world = World(tool=tool, clock=FrozenClock(replace=False))
        granted = ask(world)
        yield Told(world, granted.claim_id)
        transaction.set_rollback(True)
    claiming.forget_tools()


@pytest.fixture(autouse=True)
def own_clock(transactional_db: None) -> Iterator[None]:
    with a_clock_of_our_own():
        yield


# A frozen worker tells the truth late


def lapsed(told: Told) -> None:
    told.lapse()


def declared_lost(told: Told) -> None:
    told.decide(V.LOST)


def released(told: Told) -> None:
    told.lapse()
    told.decide(V.RELEASE_SAME)


def a_second_attempt(told: Told) -> None:
    released(told)
    told.grant_again()


def a_second_attempt_with_a_new_key(told: Told) -> None:
    told.lapse()
    told.decide(V.RELEASE_NEW)
    told.grant_again()


def closed(told: Told) -> None:
    told.lapse()
    told.decide(V.CLOSE)


def said_to_have_happened(told: Told) -> None:
    told.lapse()
    told.decide(V.HAPPENED)


def said_to_be_pi_1(told: Told) -> None:
    told.lapse()
    told.decide(V.HAPPENED, "pi_1")


def said_not_to_have_happened(told: Told) -> None:
    told.lapse()
    told.decide(V.NOT_HAPPENED)


DONE = Fact(fence=1, says=Outcome.COMPLETED, named=("pi_1",))
DONE_UNNAMED = Fact(fence=1, says=Outcome.COMPLETED)
DONE_REPLAYED = Fact(fence=1, says=Outcome.COMPLETED, replayed=True)
OTHERWISE = Fact(fence=1, says=Outcome.COMPLETED, named=("pi_2",))
NOT_SENT = Fact(fence=1, says=Outcome.NOT_SENT)
REFUSED = Fact(fence=1, says=Outcome.REFUSED)
REFUSED_STORED = Fact(fence=1, says=Outcome.REFUSED_STORED)
UNSURE = Fact(fence=1, says=Outcome.UNKNOWN)
ABSENT = Fact(fence=1, says=SEEN.ABSENT)
ENDED = Fact(fence=1, says=SEEN.FOUND_DIFFERENT, named=("pi_1",))
SECOND_DONE = Fact(fence=2, says=Outcome.COMPLETED, named=("pi_1",))
SECOND_NOT_SENT = Fact(fence=2, says=Outcome.NOT_SENT)
SECOND_UNSURE = Fact(fence=2, says=Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("acts", "late", "state"),
    [
        (lapsed, DONE, S.COMPLETED),
        (lapsed, NOT_SENT, S.NOT_EXECUTED),
        (lapsed, REFUSED, S.NOT_EXECUTED),
        (lapsed, REFUSED_STORED, S.NOT_EXECUTED),
        (lapsed, UNSURE, S.UNKNOWN),
        (declared_lost, DONE, S.COMPLETED),
        (declared_lost, DONE_UNNAMED, S.COMPLETED),
        (declared_lost, NOT_SENT, S.NOT_EXECUTED),
        (declared_lost, REFUSED, S.NOT_EXECUTED),
        (declared_lost, REFUSED_STORED, S.NOT_EXECUTED),
        (declared_lost, UNSURE, S.UNKNOWN),
        (released, DONE, S.COMPLETED),
        (closed, DONE, S.COMPLETED),
        (closed, NOT_SENT, S.CLOSED),
        (closed, UNSURE, S.CLOSED),
        (said_to_have_happened, DONE, S.COMPLETED),
        (said_to_have_happened, UNSURE, S.COMPLETED),
        (said_to_have_happened, NOT_SENT, S.CONFLICTED),
        (said_to_be_pi_1, DONE, S.COMPLETED),
        (said_to_be_pi_1, OTHERWISE, S.CONFLICTED),
        (said_to_be_pi_1, UNSURE, S.COMPLETED),
        (said_to_be_pi_1, ABSENT, S.COMPLETED),
        (said_to_have_happened, ABSENT, S.CONFLICTED),
        # The object that a person named is their word; that nothing was sent is a report.
        (said_to_be_pi_1, NOT_SENT, S.CONFLICTED),
        # What ended is no effect of a call that had none; a person's word that it was one stands.
        (lapsed, ENDED, S.UNKNOWN),
        (said_to_be_pi_1, ENDED, S.CONFLICTED),
        (said_not_to_have_happened, ENDED, S.NOT_EXECUTED),
        (said_not_to_have_happened, DONE, S.COMPLETED),
        (said_not_to_have_happened, NOT_SENT, S.NOT_EXECUTED),
        (said_not_to_have_happened, UNSURE, S.NOT_EXECUTED),
    ],
    ids=words,
)
def test_a_worker_that_was_given_up_tells_what_it_did(acts, late, state) -> None:
    with a_world() as told:
        acts(told)
        assert told.tell(late) is state
        assert told.tell(late) is state, "the same report again is the same fact"


@pytest.mark.parametrize(
    ("acts", "first", "second", "state"),
    [
        (a_second_attempt, DONE, SECOND_DONE, S.COMPLETED),
        (a_second_attempt, DONE_REPLAYED, SECOND_DONE, S.COMPLETED),
        (a_second_attempt, DONE_UNNAMED, SECOND_DONE, S.CONFLICTED),
        (a_second_attempt, OTHERWISE, SECOND_DONE, S.CONFLICTED),
        (a_second_attempt, NOT_SENT, SECOND_DONE, S.COMPLETED),
        (a_second_attempt, REFUSED, SECOND_DONE, S.COMPLETED),
        (a_second_attempt, UNSURE, SECOND_DONE, S.COMPLETED),
        # A payout that was paid and failed: it was there, and it did not last.
        (a_second_attempt, ENDED, SECOND_DONE, S.CONFLICTED),
        (a_second_attempt, ENDED, SECOND_NOT_SENT, S.UNKNOWN),
        (a_second_attempt, DONE, SECOND_NOT_SENT, S.COMPLETED),
        (a_second_attempt, DONE, SECOND_UNSURE, S.COMPLETED),
        (a_second_attempt, NOT_SENT, SECOND_NOT_SENT, S.NOT_EXECUTED),
        (a_second_attempt, UNSURE, SECOND_NOT_SENT, S.UNKNOWN),
        (a_second_attempt, NOT_SENT, SECOND_UNSURE, S.UNKNOWN),
        # A stored refusal ends every attempt that was made under its key.
        (a_second_attempt, REFUSED_STORED, SECOND_UNSURE, S.NOT_EXECUTED),
        (a_second_attempt_with_a_new_key, REFUSED_STORED, SECOND_UNSURE, S.UNKNOWN),
        (a_second_attempt_with_a_new_key, OTHERWISE, SECOND_DONE, S.CONFLICTED),
        (a_second_attempt_with_a_new_key, DONE_REPLAYED, SECOND_DONE, S.CONFLICTED),
        (a_second_attempt_with_a_new_key, NOT_SENT, SECOND_DONE, S.COMPLETED),
    ],
    ids=words,
)
def test_a_frozen_worker_and_its_successor_come_to_one_end_whoever_tells_first(
    acts, first, second, state
) -> None:
    for order in ((first, second), (second, first)):
        with a_world() as told:
            acts(told)
            for fact in order:
                told.tell(fact)
            assert told.end.state is state, order


# Any facts, in any order

ENDINGS = (None, V.LOST, V.CLOSE, V.HAPPENED, V.NOT_HAPPENED)
NAMED = st.sampled_from([(), ("pi_1",), ("pi_2",)])
REPORTS = st.builds(
    Fact,
    fence=st.integers(1, 3),
    says=st.sampled_from(Outcome),
    named=NAMED,
    replayed=st.sampled_from([None, True]),
)
SIGHTINGS = st.one_of(
    st.builds(
        Fact,
        fence=st.integers(1, 3),
        says=st.just(SEEN.FOUND),
        named=st.sampled_from([("pi_1",), ("pi_2",)]),
    ),
    st.builds(Fact, fence=st.integers(1, 3), says=st.just(SEEN.ABSENT)),
    st.builds(
        Fact,
        fence=st.integers(1, 3),
        says=st.just(SEEN.FOUND_MANY),
        named=st.just(("pi_1", "pi_2")),
    ),
    st.builds(
        Fact,
        fence=st.integers(1, 3),
        says=st.just(SEEN.FOUND_DIFFERENT),
        named=st.sampled_from([("pi_1",), ("pi_2",)]),
    ),
)


@st.composite
def stories(draw: st.DrawFn) -> tuple[bool, list[Verdict], Verdict | None, list[Fact], list[Fact]]:
    """With a key or without; how further attempts came; how it was left; facts in two orders.

    An absence is left out while an attempt runs: whether it counts is judged when it is recorded,
    so that one seen during an attempt and one seen after its end are not the same fact.
    """
    releases = draw(st.lists(st.sampled_from([V.RELEASE_SAME, V.RELEASE_NEW]), max_size=2))
    ending = draw(st.sampled_from(ENDINGS))
    attempts = len(releases) + 1
    facts = [
        fact
        for fact in draw(st.lists(REPORTS | SIGHTINGS, min_size=2, max_size=FACTS_MAX))
        if fact.fence <= attempts and not (fact.says is SEEN.ABSENT and ending is None)
    ]
    return draw(st.booleans()), releases, ending, facts, draw(st.permutations(facts))


def end_of(
    facts: Sequence[Fact], *, keyed: bool, releases: Sequence[Verdict], ending: Verdict | None
) -> Folded:
    with a_world(keyed=keyed) as told:
        for release in releases:
            told.lapse()
            told.decide(release if keyed else V.RELEASE_NEW)
            told.grant_again()
        if ending is V.LOST:
            told.decide(ending)
        elif ending is not None:
            told.lapse()
            told.decide(ending, "pi_1" if ending is V.HAPPENED else None)
        for fact in facts:
            told.tell(fact)
        return told.end


@settings(max_examples=60, deadline=None)
@given(story=stories())
def test_the_same_facts_come_to_the_same_end_in_any_order(story) -> None:
    keyed, releases, ending, facts, shuffled = story
    one = end_of(facts, keyed=keyed, releases=releases, ending=ending)
    other = end_of(shuffled, keyed=keyed, releases=releases, ending=ending)
    assert one == other
