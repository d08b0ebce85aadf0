"""What is news to an agent: a table, and what is never told twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.messages import ClaimAnswer, DecisionShown
from effects.core.vocabulary import ClaimState, EventKind, Reason, Verdict
from reconcile.outbox import news as outbox_news
from reconcile.outbox.news import Happening, NewsType

CLAIM = UUID("0192f3a4-0000-7000-8000-000000000001")
NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
S, K, N = ClaimState, EventKind, NewsType


def answer(state: ClaimState, reason: Reason | None = None, decision: int | None = None):
    shown = decision and DecisionShown(
        decision_id=decision,
        verdict=Verdict.RELEASE_SAME,
        reason="because",
        decided_at=NOW,
        effective_at=NOW,
        pending=False,
    )
    return ClaimAnswer(claim_id=CLAIM, state=state, reason=reason, decision=shown or None)


def news_of(*about: Any, **more: Any) -> Any:
    return outbox_news.news_of(*about, **more)


def happened(seq: int, kind: EventKind, *, fence: int = 1, decision: int | None = None):
    at = NOW + timedelta(seconds=seq)
    return Happening(seq=seq, kind=kind, fence=fence, at=at, decision_id=decision)


GRANTED = happened(1, K.GRANTED)
DECIDED = happened(3, K.DECIDED, decision=7)
TAKEN_UP = happened(4, K.GRANTED, fence=2)
CANCELLED = happened(3, K.DECISION_CANCELLED, decision=7)


@pytest.mark.parametrize(
    ("state", "reason", "cue", "before", "type_"),
    [
        (S.COMPLETED, None, DECIDED, None, N.COMPLETED),
        (S.NOT_EXECUTED, None, DECIDED, None, N.NOT_EXECUTED),
        (S.RELEASED, None, DECIDED, None, N.RELEASED),
        (S.CLOSED, None, DECIDED, None, N.CLOSED),
        (S.CONFLICTED, None, happened(3, K.SIGHTING), None, N.CONFLICTED),
        (S.UNKNOWN, Reason.EXPIRED_UNANSWERED, GRANTED, None, N.EXPIRED_UNANSWERED),
        # Nobody knows yet: that is where every lost call begins.
        (S.UNKNOWN, Reason.LEASE_OVER, happened(2, K.LAPSED), None, None),
        # A person chose it: reopened, or the worker declared lost.
        (S.UNKNOWN, None, DECIDED, None, N.UNKNOWN),
        # What was said before is withdrawn.
        (S.UNKNOWN, Reason.RELEASE_LAPSED, happened(5, K.RELEASE_LAPSED), ["x"], N.UNKNOWN),
        (S.IN_FLIGHT, None, GRANTED, None, None),
    ],
)
def test_states_that_an_agent_cannot_have_made_itself_are_news(state, reason, cue, before, type_):
    news = news_of(
        answer(state, reason), [GRANTED, cue], cues=frozenset({cue.seq}), told_before=before
    )
    assert (news and news.type) == type_


def test_the_same_is_not_told_twice_and_another_reason_is_told():
    events, cues = [GRANTED, DECIDED], frozenset({3})
    first = news_of(answer(S.COMPLETED), events, cues=cues, told_before=None)
    assert news_of(answer(S.COMPLETED), events, cues=cues, told_before=first.said) is None

    later = answer(S.COMPLETED, Reason.TOLD_OTHERWISE)
    again = news_of(later, events, cues=cues, told_before=first.said)
    assert again.type is N.COMPLETED
    assert again.said != first.said


def test_a_release_that_the_agent_took_up_before_it_was_told_is_said_to_be_overtaken():
    news = news_of(
        answer(S.IN_FLIGHT, decision=7),
        [GRANTED, DECIDED, TAKEN_UP],
        cues=frozenset({3}),
        told_before=None,
    )
    assert news.type is N.DECISION_OVERTAKEN
    assert (news.overtaken.decision_id, news.overtaken.by, news.overtaken.fence) == (
        7,
        "attempt",
        2,
    )


@pytest.mark.parametrize("state", [S.COMPLETED, S.IN_FLIGHT, S.UNKNOWN])
def test_a_decision_that_a_fact_overtook_in_its_minute_is_said_so_whatever_came_of_it(state):
    news = news_of(
        answer(state),
        [GRANTED, happened(2, K.DECISION_HELD, decision=7), CANCELLED],
        cues=frozenset({3}),
        told_before=None,
    )
    assert news.type is (N.COMPLETED if state is S.COMPLETED else N.DECISION_OVERTAKEN)
    assert (news.overtaken.decision_id, news.overtaken.by) == (7, "fact")


def test_an_unknown_call_takes_nothing_back_of_a_decision_that_was_said_to_be_overtaken():
    events = [GRANTED, DECIDED, TAKEN_UP, happened(5, K.LAPSED, fence=2)]
    taken_up = answer(S.IN_FLIGHT, decision=7)
    told = news_of(taken_up, events[:3], cues=frozenset({3}), told_before=None)
    lost = answer(S.UNKNOWN, Reason.LEASE_OVER, decision=7)
    assert told.type is N.DECISION_OVERTAKEN
    assert news_of(lost, events, cues=frozenset({5}), told_before=told.said) is None


def test_a_decision_that_nothing_followed_is_overtaken_by_nobody():
    news = news_of(answer(S.CLOSED), [GRANTED, DECIDED], cues=frozenset({3}), told_before=None)
    assert news.overtaken is None


@given(
    state=st.sampled_from(list(ClaimState)),
    reason=st.none() | st.sampled_from(list(Reason)),
    kinds=st.lists(st.sampled_from(list(EventKind)), max_size=6),
    cued=st.sets(st.integers(0, 7)),
)
def test_every_situation_has_an_answer_and_telling_it_once_is_enough(state, reason, kinds, cued):
    events = [happened(n, kind, decision=n) for n, kind in enumerate(kinds, start=1)]
    said = answer(state, reason)
    news = news_of(said, events, cues=frozenset(cued), told_before=None)
    if news is not None:
        assert news_of(said, events, cues=frozenset(cued), told_before=news.said) is None
