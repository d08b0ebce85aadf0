"""What a timeout of a tool would lead to, walked through on a call that is made up in memory. Pure.

Nothing here decides anything by itself: the state is the fold's, the look-ups are the schedule's,
the actions are those of the call page, and the words for the model are the ledger's own. So what
this shows is what would happen, as long as the tool stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from effects.core.fold import Folded, LoggedEvent, fold
from effects.core.status import Shown, status_answer
from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    Reason,
    Role,
    SightingWord,
)
from effects.models import Tool
from effects.money import Money
from reconcile.actions import Action, safe_actions
from reconcile.facts import MARKED, server_working
from reconcile.judge_facts import AttemptFacts, ClaimFacts
from reconcile.schedule import Plan, next_look
from reconcile.second_person import Team
from reconcile.situation import AttemptSeen, Evidence, Situation, Strength

MADE_UP: Final = UUID("00000000-0000-7000-8000-000000000000")
"""The id of the call that does not exist."""
OBJECT: Final = "object_made_up"
REQUEST_SECONDS: Final = 30
"""After so long the agent's request is taken to have timed out."""
LOOKS_SHOWN_MAX: Final = 6
LOOKS_WALKED_MAX: Final = 1_000
DAY: Final = timedelta(hours=24)


class Moment(StrEnum):
    """Where in the call the connection is lost, or the worker."""

    NOT_SENT = "not_sent"
    AFTER_SEND = "after_send"
    COMMITTED = "committed"
    WINDOW_CLOSED = "window_closed"
    FROZEN = "frozen"


TITLES: Final = {
    Moment.NOT_SENT: "Nothing was sent",
    Moment.AFTER_SEND: "The answer is lost after the send",
    Moment.COMMITTED: "The provider did it, the answer is lost, a look-up finds it",
    Moment.WINDOW_CLOSED: "Nobody decides until the window has closed",
    Moment.FROZEN: "The worker freezes and reports nothing",
}
STORIES: Final = {
    Moment.NOT_SENT: "The connection is refused before one byte of the request is out, and the "
    "worker says so.",
    Moment.AFTER_SEND: f"The request is out; after {REQUEST_SECONDS} s there is no answer, and the "
    "worker reports that it does not know.",
    Moment.COMMITTED: "As before, but the effect is there. Nothing tells the two apart until the "
    "provider is asked.",
    Moment.WINDOW_CLOSED: "As after a lost answer, seen when a repeat is no longer the same "
    "request at the provider.",
    Moment.FROZEN: "No report comes, and the lease runs out. The worker may wake up and send after "
    "all.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """The look-ups that would be made by themselves, as time after the call was granted.

    `first` are the first of them, `more` is how many follow, the last of them at `last`.
    `proves_from`: from then on a complete look-up that finds nothing could count.
    """

    first: tuple[timedelta, ...] = ()
    more: int = 0
    last: timedelta | None = None
    proves_from: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What one moment leads to, seen `after` so long."""

    moment: Moment
    after: timedelta
    state: ClaimState
    reason: Reason | None
    looks: Looks
    actions: tuple[Action, ...]
    for_model: dict[str, Any]

    @property
    def title(self) -> str:
        if self.moment is Moment.COMMITTED and self.state is ClaimState.UNKNOWN:
            return "The provider did it, the answer is lost, nobody can be asked"
        return TITLES[self.moment]

    @property
    def story(self) -> str:
        return STORIES[self.moment]

    @property
    def offered(self) -> tuple[Action, ...]:
        return tuple(one for one in self.actions if one.offered)

    @property
    def refused(self) -> tuple[Action, ...]:
        return tuple(one for one in self.actions if not one.offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """For whom actions are worked out, and about how much money."""

    role: Role
    team: Team
    money: Money | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    """The made-up call at one moment: what its record would hold, and when it is looked at."""

    moment: Moment
    tool: Tool
    granted_at: datetime
    seen_at: datetime
    events: tuple[LoggedEvent, ...]
    outcome: Outcome | None = None
    ended_at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()
    folded: Folded = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", fold(self.events))

    @property
    def keyed(self) -> bool:
        return self.tool.effect_class == EffectClass.KEYED_WRITE

    @property
    def window_until(self) -> datetime | None:
        seconds = self.tool.window_seconds
        if not self.keyed or seconds is None:
            return None
        return self.granted_at + timedelta(seconds=seconds)

    @property
    def lease_until(self) -> datetime:
        return self.granted_at + timedelta(seconds=self.tool.lease_seconds)

    @property
    def reason(self) -> Reason | None:
        lapsed = any(event.kind is EventKind.LAPSED for event in self.events)
        unknown = self.folded.state is ClaimState.UNKNOWN
        return Reason.LEASE_OVER if lapsed and unknown else None


def simulate(tool: Tool, viewer: Viewer, now: datetime) -> tuple[Outlook, ...]:
    """Every moment, in order. A read has none of them: it takes no claim, and may run again."""
    if tool.effect_class == EffectClass.READ:
        return ()
    return tuple(_outlook(_story(moment, tool, now), viewer) for moment in Moment)


def _outlook(story: _Story, viewer: Viewer) -> Outlook:
    return Outlook(
        moment=story.moment,
        after=story.seen_at - story.granted_at,
        state=story.folded.state,
        reason=story.reason,
        looks=_looks(story),
        actions=safe_actions(_situation(story, viewer), role=viewer.role, team=viewer.team),
        for_model=status_answer(_shown(story)).for_model or {},
    )


# The record that there would be


def _story(moment: Moment, tool: Tool, now: datetime) -> _Story:
    timed_out = now + timedelta(seconds=REQUEST_SECONDS)
    match moment:
        case Moment.NOT_SENT:
            return _reported(moment, tool, Outcome.NOT_SENT, now, now + timedelta(seconds=1))
        case Moment.AFTER_SEND:
            return _reported(moment, tool, Outcome.UNKNOWN, now, timed_out)
        case Moment.COMMITTED:
            return _found(_reported(moment, tool, Outcome.UNKNOWN, now, timed_out))
        case Moment.WINDOW_CLOSED:
            story = _reported(moment, tool, Outcome.UNKNOWN, now, timed_out)
            closed = (story.window_until or now + DAY) + timedelta(seconds=1)
            return replace(story, seen_at=closed)
        case Moment.FROZEN:
            return _Story(
                moment=moment,
                tool=tool,
                granted_at=now,
                seen_at=now + timedelta(seconds=tool.lease_seconds + 1),
                events=(_GRANTED, _LAPSED),
            )


_GRANTED: Final = LoggedEvent(seq=1, kind=EventKind.GRANTED, fence=1, generation=1)
_LAPSED: Final = LoggedEvent(seq=2, kind=EventKind.LAPSED, fence=1, generation=1)


def _reported(
    moment: Moment, tool: Tool, outcome: Outcome, granted_at: datetime, ended_at: datetime
) -> _Story:
    report = LoggedEvent(seq=2, kind=EventKind.REPORTED, word=outcome, fence=1, generation=1)
    return _Story(
        moment=moment,
        tool=tool,
        granted_at=granted_at,
        seen_at=ended_at + timedelta(seconds=1),
        events=(_GRANTED, report),
        outcome=outcome,
        ended_at=ended_at,
    )


def _found(story: _Story) -> _Story:
    """The story with an answer that shows the effect, where the tool has a look-up to get one."""
    if not _can_look_up(story.tool):
        return story
    sighting = LoggedEvent(
        seq=3,
        kind=EventKind.SIGHTING,
        word=SightingWord.FOUND,
        fence=1,
        generation=1,
        object=OBJECT,
        objects=(OBJECT,),
        counts=True,
    )
    evidence = Evidence(
        number=3,
        word=SightingWord.FOUND,
        fence=1,
        at=story.seen_at,
        strength=Strength.STRONG,
        counts=True,
        objects=(OBJECT,),
    )
    return replace(
        story,
        seen_at=story.seen_at + timedelta(seconds=1),
        events=(*story.events, sighting),
        evidence=(evidence,),
    )


# The same facts, as each of the four functions asks for them


def _situation(story: _Story, viewer: Viewer) -> Situation:
    tool = story.tool
    attempt = AttemptSeen(
        fence=1,
        granted_at=story.granted_at,
        outcome=story.outcome,
        ended_at=story.ended_at,
    )
    return Situation(
        now=story.seen_at,
        claim_id=MADE_UP,
        state=story.folded.state,
        reason=story.reason,
        effect_class=EffectClass(tool.effect_class),
        version=len(story.events),
        fence=1,
        budget=tool.attempts_max,
        open_truth=bool(story.folded.open_attempts),
        attempts=(attempt,),
        lease_until=story.lease_until,
        lease_seconds=tool.lease_seconds,
        window_until=story.window_until,
        margin_seconds=tool.margin_seconds,
        attempt_seconds_max=tool.attempt_seconds_max,
        can_look_up=_can_look_up(tool),
        provider=tool.connection.name if tool.connection else "the provider",
        object=OBJECT if story.evidence else None,
        evidence=story.evidence,
        money=viewer.money,
    )


def _shown(story: _Story) -> Shown:
    return Shown(
        claim_id=MADE_UP,
        tool=story.tool.name,
        effect_class=EffectClass(story.tool.effect_class),
        state=story.folded.state,
        reason=story.reason,
        fence=1,
        generation=1,
        lease_until=story.lease_until,
        window_until=story.window_until,
        margin=timedelta(seconds=story.tool.margin_seconds),
        flags=(),
        provider_object=OBJECT if story.evidence else None,
        result=None,
        result_stored=None,
        decision=None,
        now=story.seen_at,
        link=None,
    )


def _looks(story: _Story) -> Looks:
    if not _can_look_up(story.tool) or not story.folded.open_attempts:
        return Looks()
    proves_from = _facts(story).absence_strong_from
    if story.outcome is None and not story.keyed:
        # A worker that never said how it ended may still send, and no key stops it.
        proves_from = None
    at = [moment - story.granted_at for moment in _walk(story, proves_from)]
    return Looks(
        first=tuple(at[:LOOKS_SHOWN_MAX]),
        more=max(0, len(at) - LOOKS_SHOWN_MAX),
        last=at[-1] if at else None,
        proves_from=proves_from - story.granted_at if proves_from else None,
    )


def _walk(story: _Story, proves_from: datetime | None) -> Iterator[datetime]:
    """Each look-up, where none of them finds anything and none of them settles the call."""
    tool = story.tool
    at: datetime | None = story.ended_at or story.lease_until
    for tries in range(1, LOOKS_WALKED_MAX):
        if at is None:
            return
        yield at
        at = next_look(
            Plan(
                now=at,
                tries=tries,
                word=SightingWord.LOOKUP_FAILED,
                state=story.folded.state,
                begun_at=story.granted_at,
                horizon=timedelta(days=tool.horizon_days),
                lookups_max=tool.lookups_max,
                window_until=story.window_until,
                strong_from=proves_from,
            )
        )


def _facts(story: _Story) -> ClaimFacts:
    attempt = AttemptFacts(
        fence=1,
        generation=1,
        lease_over_at=story.lease_until,
        ended_at=story.ended_at,
        marker_sent=True,
        server_error=False,
    )
    return ClaimFacts(
        effect_class=EffectClass(story.tool.effect_class),
        state=story.folded.state,
        generation=1,
        open_attempts=(attempt,),
        window_until=story.window_until,
        margin=timedelta(seconds=story.tool.margin_seconds),
        server_working=server_working(story.tool),
        every_request_marked=story.tool.lookup.get(MARKED) is True,
    )


def _can_look_up(tool: Tool) -> bool:
    return bool(tool.lookup_kind) and tool.connection_id is not None
