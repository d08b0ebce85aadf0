"""Everything that one turn's page, drawing and answer are made from, read in a fixed number of
questions: never one for each claim or event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from effects.core.identity import INDEX_MAX, digest
from effects.core.vocabulary import ClaimState, EffectClass, EventKind
from effects.models import Tool
from ledger import queries
from ledger.models import Call, Claim, Decision, Event, Stream

CLAIMS_MAX: Final = 256
STREAMS_MAX: Final = 50
CALLS_MAX: Final = 1024
"""Most announced calls of all responses of a turn."""
EVENTS_MAX: Final = 8000
"""Most events of a turn that are read: claims with few of them whole, of the others the first."""
LEAST_OF_EACH: Final = 20
"""So many first events are read of every claim, however many the others have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """What is stored of a turn. `index` None: the calls that name no turn, the newest of them.

    `whole` are the claims of which every event is here. `states` are those that are true now.
    """

    conversation: str
    index: int | None
    now: datetime
    claims: Sequence[Claim] = ()
    states: Mapping[UUID, ClaimState] = field(default_factory=dict)
    streams: Sequence[Stream] = ()
    announced: Sequence[Call] = ()
    events: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    whole: frozenset[UUID] = frozenset()
    reads: frozenset[str] = frozenset()
    decisions: Mapping[int, Decision] = field(default_factory=dict)
    people: Mapping[int, str] = field(default_factory=dict)
    more_claims: bool = False
    more_streams: bool = False
    more_calls: bool = False

    @property
    def events_left_out(self) -> int:
        # An event that was written between two of our questions is not missing.
        return sum(max(0, c.version - len(self.events[c.pk])) for c in self.claims)

    @property
    def more(self) -> bool:
        return self.more_claims or self.more_streams or self.more_calls


def is_a_turn(conversation: str, index: int | None) -> bool:
    """Whether a turn can have this name at all."""
    return "\x00" not in conversation and (index is None or 0 <= index <= INDEX_MAX)


def load(workspace_id: int, conversation: str, index: int | None, *, now: datetime) -> TurnFacts:
    """What is known of a turn; of an unknown one, nothing."""
    if not is_a_turn(conversation, index):
        return TurnFacts(conversation=conversation, index=index, now=now)
    claims, streams = _claims(workspace_id, conversation, index), []
    if index is not None:
        scope = digest("scope", workspace_id, conversation, index)
        told = Stream.objects.filter(workspace_id=workspace_id, scope=scope)
        streams = list(told.order_by("id")[: STREAMS_MAX + 1])
    shown = streams[:STREAMS_MAX]
    calls = Call.objects.filter(stream__in=shown).order_by("position", "stream_id")
    announced = list(calls[: CALLS_MAX + 1]) if shown else []
    kept = claims[:CLAIMS_MAX]
    events, whole = _events(kept)
    decisions = _decisions(kept, events)
    return TurnFacts(
        conversation=conversation,
        index=index,
        now=now,
        claims=kept,
        states=_states(kept, events, whole, decisions, now=now),
        streams=shown,
        announced=announced[:CALLS_MAX],
        events=events,
        whole=whole,
        reads=_reads(workspace_id, {call.tool for call in announced if call.tool}),
        decisions=decisions,
        people=_people(decisions.values(), events.values()),
        more_claims=len(claims) > CLAIMS_MAX,
        more_streams=len(streams) > STREAMS_MAX,
        more_calls=len(announced) > CALLS_MAX,
    )


def turnless(workspace_id: int, conversation: str) -> QuerySet[Claim]:
    """The calls that name a conversation, and no turn of it."""
    return Claim.objects.filter(
        workspace_id=workspace_id, conversation=conversation, turn_index=None
    )


def _claims(workspace_id: int, conversation: str, index: int | None) -> list[Claim]:
    if index is None:
        found = turnless(workspace_id, conversation).order_by("-id")
    else:
        scope = digest("scope", workspace_id, conversation, index)
        found = Claim.objects.filter(workspace_id=workspace_id, scope=scope)
        found = found.order_by("position", "id")
    # Arguments and results may be large, and are on the page of the call.
    return list(found.select_related("tool").defer("arguments", "result")[: CLAIMS_MAX + 1])


def _events(claims: Sequence[Claim]) -> tuple[dict[UUID, list[Event]], frozenset[UUID]]:
    """The events of the claims, and the claims of which none is missing."""
    found: dict[UUID, list[Event]] = {claim.pk: [] for claim in claims}
    room, whole = EVENTS_MAX - LEAST_OF_EACH * len(claims), []
    for claim in sorted(claims, key=lambda one: one.version):
        room -= max(claim.version - LEAST_OF_EACH, 0)
        if room < 0:
            break
        whole.append(claim.pk)
    first = Q(claim_id__in=list(found), seq__lte=LEAST_OF_EACH)
    for event in Event.objects.filter(Q(claim_id__in=whole) | first).order_by("claim_id", "seq"):
        found[event.claim_id].append(event)
    return found, frozenset(whole)


def _decisions(
    claims: Sequence[Claim], events: Mapping[UUID, Sequence[Event]]
) -> dict[int, Decision]:
    named = {event.decision_id for own in events.values() for event in own}
    named |= {claim.pending_decision_id for claim in claims}
    ids = [one for one in named if one is not None]
    if not ids:
        return {}
    found = Decision.objects.filter(pk__in=ids, claim_id__in=list(events))
    return {one.pk: one for one in found.select_related("decided_by")}


def _states(
    claims: Sequence[Claim],
    events: Mapping[UUID, Sequence[Event]],
    whole: frozenset[UUID],
    decisions: Mapping[int, Decision],
    *,
    now: datetime,
) -> dict[UUID, ClaimState]:
    found = {}
    for claim in claims:
        state = ClaimState(claim.state)
        if claim.pk in whole:
            log = tuple(queries.as_logged(event) for event in events[claim.pk])
            held = decisions.get(claim.pending_decision_id or 0)
            state, _ = queries.shown_state(claim, now=now, log=log, held=held)
        elif state is ClaimState.IN_FLIGHT and claim.lease_until <= now:
            # Too long to be folded here: whatever else is in it, a lease that is over is over.
            state = ClaimState.UNKNOWN
        found[claim.pk] = state
    return found


def _reads(workspace_id: int, names: set[str]) -> frozenset[str]:
    if not names:
        return frozenset()
    reads = Tool.objects.filter(
        workspace_id=workspace_id, name__in=names, effect_class=EffectClass.READ
    )
    return frozenset(reads.values_list("name", flat=True))


def _people(decisions: Iterable[Decision], events: Iterable[Sequence[Event]]) -> dict[int, str]:
    """Names of those who decided and of those who wrote notes."""
    users = {one.decided_by for one in decisions if one.decided_by is not None}
    noted = {
        (event.data or {}).get("user_id")
        for own in events
        for event in own
        if event.kind in {EventKind.NOTED, EventKind.HOLD_EXTENDED}
    }
    missing = {one for one in noted if isinstance(one, int)} - {user.pk for user in users}
    if missing:
        users |= set(User.objects.filter(pk__in=missing))
    return {user.pk: user.get_full_name() or user.get_username() for user in users}
