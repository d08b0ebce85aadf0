"""What there is to tell an agent about one call. Pure: the same facts give the same news.

An agent that waits is told of states that it cannot have made itself, of windows that closed over
an open question, and of decisions that it was too quick for. Its own report is no news to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from effects.core.messages import ClaimAnswer
from effects.core.vocabulary import ClaimState, EventKind, Reason


class NewsType(StrEnum):
    """The `type` of a message: the call's state, or what else is to be said."""

    COMPLETED = "call.completed"
    NOT_EXECUTED = "call.not_executed"
    RELEASED = "call.released"
    CONFLICTED = "call.conflicted"
    CLOSED = "call.closed"
    UNKNOWN = "call.unknown"  # again: what was said before is withdrawn
    EXPIRED_UNANSWERED = "call.expired_unanswered"
    DECISION_OVERTAKEN = "call.decision_overtaken"


TEST: Final = "address.test"
"""The type of a message that somebody sends to see whether an address takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One event of the call, as far as news depend on it."""

    seq: int
    kind: EventKind
    fence: int
    at: datetime
    decision_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """A decision that found the call further on. `by`: "attempt", whose number is `fence`, took
    it up before this could be told; or "fact": something was learnt in the minute in which it was
    held, so it never took effect."""

    decision_id: int
    by: str
    fence: int
    at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "decision_id": self.decision_id,
            "by": self.by,
            "fence": self.fence,
            "at": self.at.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    type: NewsType
    said: list[Any]
    overtaken: Overtaken | None = None


def news_of(
    answer: ClaimAnswer,
    happenings: Sequence[Happening],
    *,
    cues: frozenset[int],
    told_before: list[Any] | None,
) -> News | None:
    """What is new in `answer`, or None.

    `happenings` are the call's events in their order, `cues` the numbers of those that gave rise to
    the question. `told_before` is `News.said` of the newest message about this call.
    """
    overtaken = _overtaken(happenings, cues)
    decided = any(h.kind is EventKind.DECIDED for h in happenings if h.seq in cues)
    kind = _type(answer, decided=decided, told_before=told_before)
    if kind is None and overtaken is not None:
        kind = NewsType.DECISION_OVERTAKEN
    if kind is None:
        return None
    said = _said(kind, answer, overtaken)
    return None if said == told_before else News(type=kind, said=said, overtaken=overtaken)


_OF_STATE: Final = {
    ClaimState.COMPLETED: NewsType.COMPLETED,
    ClaimState.NOT_EXECUTED: NewsType.NOT_EXECUTED,
    ClaimState.RELEASED: NewsType.RELEASED,
    ClaimState.CONFLICTED: NewsType.CONFLICTED,
    ClaimState.CLOSED: NewsType.CLOSED,
}


def _type(answer: ClaimAnswer, *, decided: bool, told_before: list[Any] | None) -> NewsType | None:
    if answer.state is not ClaimState.UNKNOWN:
        return None if answer.state is None else _OF_STATE.get(answer.state)
    if answer.reason is Reason.EXPIRED_UNANSWERED:
        return NewsType.EXPIRED_UNANSWERED
    # That nobody knows yet is no news, unless another state was told, or somebody chose it.
    return NewsType.UNKNOWN if decided or _told_a_state(told_before) else None


def _told_a_state(told_before: list[Any] | None) -> bool:
    """A decision that was overtaken says nothing about how the call stands, so that nobody knows
    takes nothing of it back."""
    return told_before is not None and told_before[0] != NewsType.DECISION_OVERTAKEN


def _overtaken(happenings: Sequence[Happening], cues: frozenset[int]) -> Overtaken | None:
    cued = [h for h in happenings if h.seq in cues and h.decision_id is not None]
    newest = cued[-1] if cued else None
    if newest is None or newest.decision_id is None:
        return None
    if newest.kind is EventKind.DECISION_CANCELLED:
        return Overtaken(
            decision_id=newest.decision_id, by="fact", fence=newest.fence, at=newest.at
        )
    for later in happenings:
        if later.seq > newest.seq and later.kind is EventKind.GRANTED:
            return Overtaken(
                decision_id=newest.decision_id, by="attempt", fence=later.fence, at=later.at
            )
    return None


def _said(kind: NewsType, answer: ClaimAnswer, overtaken: Overtaken | None) -> list[Any]:
    decision = answer.decision.decision_id if answer.decision else None
    return [
        str(kind),
        str(answer.reason or ""),
        answer.provider_object,
        decision,
        answer.generation,
        overtaken.as_json() if overtaken else None,
    ]
