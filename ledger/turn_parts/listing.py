"""Turns as a list: the newest of a workspace, or those of one conversation, each with how it ended.

A turn has no row of its own: it is what claims and streams with the same scope tell of. The newest
are found by the newest claims and streams, a limited number of them for each page, and details are
asked for a page's turns together. No arguments, results or bytes are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from effects.core.identity import INDEX_MAX, digest
from effects.core.vocabulary import ClaimState, Terminal
from ledger.models import Call, Claim, Due, Stream
from ledger.turn_parts.id_times import first_id, made_at
from ledger.turn_parts.lines import end_words
from ledger.turn_parts.loading import turnless

__all__ = ["Filter", "TurnPage", "TurnRow", "newest", "turnless", "turns_of"]

TURNS_PER_PAGE: Final = 50
LOOKED_AT_MAX: Final = 400
"""Most claims, and most streams, that are looked at for one page of turns."""
CONVERSATION_TURNS_PER_PAGE: Final = 200
COUNTED_MAX: Final = 5000
"""Most claims, responses and announced calls of a page's turns that are counted."""
ENDS_SHOWN_MAX: Final = 4
BROKEN: Final = (Terminal.CUT, Terminal.ERROR_EVENT, Terminal.CANCELLED)


class Filter(StrEnum):
    ALL = "all"
    CUT = "cut"
    ORPHAN = "orphan"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        return {"all": "All", "cut": "Cut", "orphan": "Orphans", "unknown": "Unknown call"}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """One turn. `ends` are its responses' ends in words, in their order; `states` counts its claims
    by the state that is true now, `unclaimed` the whole calls that nobody claimed here. `orphans`:
    whole calls of responses that did not end well, where no other response of the turn did."""

    conversation: str
    index: int
    at: datetime
    ends: tuple[str, ...]
    cut: bool
    states: tuple[tuple[ClaimState, int], ...]
    unclaimed: int
    orphans: int

    @property
    def ends_left_out(self) -> int:
        return max(0, len(self.ends) - ENDS_SHOWN_MAX)

    @property
    def ends_shown(self) -> tuple[str, ...]:
        return self.ends[-ENDS_SHOWN_MAX:]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """`older`: the instant to go on from, where there is more; `looked_at`: how many claims or
    responses this page is made from, where that limit ended it. `counted_all`: false where its
    turns have more calls than are counted here."""

    rows: tuple[TurnRow, ...]
    older: datetime | None = None
    looked_at: int | None = None
    counted_all: bool = True


@dataclass(frozen=True, slots=True)
class _Sign:
    """A claim or stream: which turn it is of, and when it came."""

    scope: bytes
    at: datetime


def newest(workspace_id: int, kind: Filter, *, before: datetime | None, now: datetime) -> TurnPage:
    """The newest turns of a workspace, of those that came before `before`."""
    groups = [_stream_signs(workspace_id, kind, before)] if kind is not Filter.UNKNOWN else []
    if kind in {Filter.ALL, Filter.UNKNOWN}:
        groups.append(_claim_signs(workspace_id, kind, before))
    # What lies beyond the last one of a group that was cut off by the limit is not known here.
    full = [signs[-1].at for signs in groups if len(signs) == LOOKED_AT_MAX]
    floor = max(full, default=None)
    latest: dict[bytes, datetime] = {}
    for sign in sorted((one for group in groups for one in group), key=_by_time, reverse=True):
        if floor is None or sign.at >= floor:
            latest.setdefault(sign.scope, sign.at)
    places = list(latest.items())
    shown = places[:TURNS_PER_PAGE]
    if before is not None:
        shown = _not_shown_before(workspace_id, kind, shown, before)
    rows, counted_all = _rows(workspace_id, dict(shown), now=now)
    if kind is Filter.ORPHAN:
        rows = [row for row in rows if row.orphans]
    older = places[TURNS_PER_PAGE - 1][1] if len(places) > TURNS_PER_PAGE else floor
    looked_at = LOOKED_AT_MAX if older is not None and older == floor else None
    return TurnPage(rows=tuple(rows), older=older, looked_at=looked_at, counted_all=counted_all)


def _by_time(sign: _Sign) -> datetime:
    return sign.at


def _stream_signs(workspace_id: int, kind: Filter, before: datetime | None) -> list[_Sign]:
    found = Stream.objects.filter(workspace_id=workspace_id, scope__isnull=False)
    if kind in {Filter.CUT, Filter.ORPHAN}:
        found = found.filter(terminal__in=BROKEN)
    if before is not None:
        found = found.filter(received_at__lt=before)
    rows = found.order_by("-received_at").values_list("scope", "received_at")[:LOOKED_AT_MAX]
    return [_Sign(bytes(scope or b""), at) for scope, at in rows]


def _claim_signs(workspace_id: int, kind: Filter, before: datetime | None) -> list[_Sign]:
    """Claims in the order of their ids, which is that of the time at which they were made."""
    if kind is Filter.UNKNOWN:
        due = Due.objects.filter(workspace_id=workspace_id, why=Due.Why.PERSON)
        if before is not None:
            due = due.filter(claim_id__lt=first_id(before))
        ids = list(due.order_by("-claim_id").values_list("claim_id", flat=True)[:LOOKED_AT_MAX])
        found = Claim.objects.filter(pk__in=ids, scope__isnull=False)
    else:
        found = Claim.objects.filter(workspace_id=workspace_id, scope__isnull=False)
        if before is not None:
            found = found.filter(pk__lt=first_id(before))
    rows = found.order_by("-pk").values_list("scope", "pk")[:LOOKED_AT_MAX]
    return [_Sign(bytes(scope or b""), made_at(claim_id)) for scope, claim_id in rows]


def _not_shown_before(
    workspace_id: int,
    kind: Filter,
    places: Sequence[tuple[bytes, datetime]],
    before: datetime,
) -> list[tuple[bytes, datetime]]:
    """Without the turns that stand on a page before this one, by something newer of theirs."""
    scopes = [scope for scope, _ in places]
    streams = Stream.objects.filter(workspace_id=workspace_id, scope__in=scopes)
    claims = Claim.objects.filter(workspace_id=workspace_id, scope__in=scopes)
    if kind in {Filter.CUT, Filter.ORPHAN}:
        streams, claims = streams.filter(terminal__in=BROKEN), claims.none()
    elif kind is Filter.UNKNOWN:
        streams, claims = streams.none(), claims.filter(due__why=Due.Why.PERSON)
    newer = set(streams.filter(received_at__gte=before).values_list("scope", flat=True))
    newer |= set(claims.filter(pk__gte=first_id(before)).values_list("scope", flat=True))
    seen = {bytes(scope or b"") for scope in newer}
    return [place for place in places if place[0] not in seen]


# One conversation


def turns_of(workspace_id: int, conversation: str, first: int, *, now: datetime) -> TurnPage:
    """The turns of a conversation from index `first` on, by their index; so many indices are looked
    for at once. They are found by their turn's digest, so none is scanned."""
    if "\x00" in conversation:
        return TurnPage(rows=())
    last = min(first + CONVERSATION_TURNS_PER_PAGE, INDEX_MAX + 1)
    scopes = [digest("scope", workspace_id, conversation, index) for index in range(first, last)]
    rows, counted_all = _rows(workspace_id, dict.fromkeys(scopes), now=now)
    ordered = sorted(rows, key=lambda row: row.index)
    return TurnPage(rows=tuple(ordered), counted_all=counted_all)


# Rows


def _rows(
    workspace_id: int, places: Mapping[bytes, datetime | None], *, now: datetime
) -> tuple[list[TurnRow], bool]:
    """The turns of these scopes, newest first, in three questions; and whether all was counted."""
    scopes = list(places)
    if not scopes:
        return [], True
    told = Stream.objects.filter(workspace_id=workspace_id, scope__in=scopes).order_by("id")
    streams = list(told[:COUNTED_MAX])
    made = Claim.objects.filter(workspace_id=workspace_id, scope__in=scopes).order_by("id")
    claims = list(made.select_related("tool").only(*_OF_CLAIM)[:COUNTED_MAX])
    calls: list[Call] = []
    if streams:
        found = Call.objects.filter(stream__in=streams).order_by("pk")
        calls = list(found.only(*_OF_CALL)[:COUNTED_MAX])
    of_stream: dict[int, list[Call]] = {}
    for call in calls:
        of_stream.setdefault(call.stream_id, []).append(call)
    by_stream, by_claim = _grouped(streams), _grouped(claims)
    rows = [
        _row(by_stream.get(scope, []), by_claim.get(scope, []), of_stream, place, now=now)
        for scope, place in places.items()
        if scope in by_stream or scope in by_claim
    ]
    counted_all = max(len(streams), len(claims), len(calls)) < COUNTED_MAX
    return sorted(rows, key=lambda row: row.at, reverse=True), counted_all


_OF_CLAIM: Final = (
    *("scope", "conversation", "turn_index", "position", "call_id", "state", "lease_until"),
    *("granted_at", "tool__name"),
)
_OF_CALL: Final = ("stream", "position", "tool", "call_id", "complete")


def _grouped[T: (Stream, Claim)](rows: Iterable[T]) -> dict[bytes, list[T]]:
    found: dict[bytes, list[T]] = {}
    for row in rows:
        found.setdefault(bytes(row.scope or b""), []).append(row)
    return found


def _row(
    streams: Sequence[Stream],
    claims: Sequence[Claim],
    calls: Mapping[int, Sequence[Call]],
    place: datetime | None,
    *,
    now: datetime,
) -> TurnRow:
    ended_well = any(stream.terminal == Terminal.SUCCESS for stream in streams)
    announced = [call for stream in streams for call in calls.get(stream.pk, []) if call.complete]
    names = {claim.call_id for claim in claims if claim.call_id}
    seats = {(claim.position, claim.tool.name) for claim in claims}
    unclaimed = [
        call
        for call in announced
        if call.call_id not in names and (call.position, call.tool) not in seats
    ]
    states = Counter(_state(claim, now) for claim in claims)
    one: Stream | Claim = streams[0] if streams else claims[0]
    moments = [stream.received_at for stream in streams] + [claim.granted_at for claim in claims]
    return TurnRow(
        conversation=one.conversation or "",
        index=one.turn_index or 0,
        at=place or max(moments),
        ends=tuple(end_words(stream.terminal) for stream in streams),
        cut=any(stream.terminal in BROKEN for stream in streams),
        states=tuple((state, states[state]) for state in ClaimState if states[state]),
        unclaimed=len({(call.position, call.tool) for call in unclaimed}),
        orphans=0 if ended_well else len({(call.position, call.tool) for call in announced}),
    )


def _state(claim: Claim, now: datetime) -> ClaimState:
    """The state that is true now, as far as the row alone says: a lease that is over is over."""
    state = ClaimState(claim.state)
    over = state is ClaimState.IN_FLIGHT and claim.lease_until <= now
    return ClaimState.UNKNOWN if over else state
