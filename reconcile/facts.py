"""From a claim's events to what a look-up must know: the facts to judge by, and the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from effects import registry
from effects.core.canonical import Refused, parse_arguments
from effects.core.fold import Folded
from effects.core.identity import marker
from effects.core.vocabulary import (
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
    Verdict,
)
from effects.sealing import CannotOpen
from reconcile.adapters.base import Delay, KeyLife, Look, MatchedBy, Place, Probe
from reconcile.adapters.door import NotAllowed, Way, origin_of
from reconcile.connecting.saving import secret_of
from reconcile.judge import AttemptFacts, ClaimFacts, Sighting
from reconcile.situation import SERVER_WORKING_SECONDS_ASSUMED, Strength

if TYPE_CHECKING:
    from effects.models import Connection, Tool
    from ledger.models import Claim, Event

BEGINS_ANEW: Final = frozenset(
    {
        EventKind.REPORTED,
        EventKind.LAPSED,
        EventKind.RELEASE_LAPSED,
        EventKind.ABSENCE_LAPSED,
        EventKind.DECIDED,
    }
)
"""Events after which the ledger makes the next look-up due at once."""
MARKED: Final = "marker_in_every_request"
WEBHOOK: Final = "webhook"
"""The trigger of a sighting that a provider sent on its own, and of a read that it gave rise to."""
ELSEWHERE: Final = "elsewhere"
"""The trigger of a sighting that a ledger kept elsewhere told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One claim as it was read: `events` in their order, `folded` what they amount to, `state` as
    the clock leaves it at `now`, `arguments_text` None where it was emptied."""

    claim: Claim
    events: Sequence[Event]
    folded: Folded
    state: ClaimState
    arguments_text: str | None
    now: datetime

    @property
    def tool(self) -> Tool:
        return self.claim.tool

    @property
    def first_granted_at(self) -> datetime:
        return self.events[0].at


def server_working(tool: Tool) -> timedelta:
    """The longest that the provider may still work on a request; ours where nobody published it."""
    published = tool.server_working_seconds_max
    return timedelta(seconds=SERVER_WORKING_SECONDS_ASSUMED if published is None else published)


def claim_facts(read: Read) -> ClaimFacts:
    """What the judge must know of the claim."""
    claim = read.claim
    known = {e.object for e in read.events if e.object}
    known |= {o for e in read.events if e.counts for o in e.objects_seen or ()}
    return ClaimFacts(
        effect_class=EffectClass(claim.effect_class),
        state=read.state,
        generation=claim.generation,
        open_attempts=tuple(_attempt(read, fence) for fence in read.folded.open_attempts),
        window_until=claim.window_until,
        margin=timedelta(seconds=read.tool.margin_seconds),
        server_working=server_working(read.tool),
        effects=frozenset(read.folded.effects & known),
        unnamed_effects=bool(read.folded.effects - known),
        every_request_marked=read.tool.lookup.get(MARKED) is True,
    )


def _attempt(read: Read, fence: int) -> AttemptFacts:
    own = [e for e in read.events if e.fence == fence]
    granted = next(e for e in own if e.kind == EventKind.GRANTED)
    reports = [e for e in own if e.kind == EventKind.REPORTED]
    said = {e.marker_sent for e in reports}
    return AttemptFacts(
        fence=fence,
        generation=granted.generation,
        lease_over_at=_lease_over_at(read, fence, granted_at=granted.at),
        ended_at=min((e.at for e in reports), default=None),
        marker_sent=True if True in said else False if False in said else None,
        server_error=any(_http_status(e.data) >= 500 for e in reports),
    )


def _lease_over_at(read: Read, fence: int, *, granted_at: datetime) -> datetime:
    """When the attempt's lease ended or will end, at the latest."""
    if fence == read.claim.fence:
        return read.claim.lease_until
    lapsed = (e.at for e in read.events if e.kind == EventKind.LAPSED and e.fence == fence)
    # A person's decision ends a lease without a trace of when it would have ended by itself.
    longest = granted_at + timedelta(seconds=read.tool.attempt_seconds_max)
    return next(lapsed, longest)


def _http_status(data: Mapping[str, Any] | None) -> int:
    status = (data or {}).get("http_status")
    return status if isinstance(status, int) else 0


def earlier_looks(events: Iterable[Event]) -> tuple[Sighting, ...]:
    """Every sighting of the record, in the order in which they were recorded."""
    in_order = list(events)
    reopened = _newest_seq(in_order, EventKind.DECIDED, Verdict.REOPEN)
    lapsed = _newest_seq(in_order, EventKind.ABSENCE_LAPSED, None)
    return tuple(
        _sighting(event, reopened=reopened, lapsed=lapsed)
        for event in in_order
        if event.kind == EventKind.SIGHTING and event.word
    )


def _newest_seq(events: Iterable[Event], kind: EventKind, word: str | None) -> int:
    return max((e.seq for e in events if e.kind == kind and e.word == word), default=0)


def _sighting(event: Event, *, reopened: int, lapsed: int) -> Sighting:
    data = event.data or {}
    strength = data.get("strength")
    weighed = Strength(strength) if strength in list(Strength) else Strength.SAYS_NOTHING
    # An absence that held as long as the key was honoured is none any more once that has passed.
    over = bool(event.conditional) and event.seq < lapsed
    return Sighting(
        number=event.seq,
        look=look_again(event),
        fence=event.fence,
        strength=Strength.STRONG if event.counts and strength is None else weighed,
        counts=bool(event.counts) and not over,
        conditional=bool(event.conditional),
        too_early=data.get("too_early") is True,
        heard=not _asked_by_us(event),
        rejected=event.seq < reopened,
    )


def look_again(event: Event) -> Look:
    """The answer that a sighting keeps. It is dated by when it was recorded: a read that is to
    confirm it must have begun after that."""
    data = event.data or {}
    return Look(
        word=SightingWord(str(event.word)),
        why=str(data.get("why") or ""),
        route=str(data.get("route") or ""),
        query=str(data.get("query") or ""),
        asked_at=event.at,
        delay_class=_one_of(Delay, data.get("delay_class"), Delay.UNKNOWN),
        matched_by=_one_of(MatchedBy, data.get("matched_by"), MatchedBy.MARKER),
        interval_from=_instant(data.get("interval_from")),
        interval_to=_instant(data.get("interval_to")),
        account=str(data.get("account") or ""),
        mode=str(data.get("mode") or ""),
        right_place=data.get("right_place") is not False,
        pages_complete=data.get("pages_complete") is True,
        partly=data.get("partly") is True,
        status=str(data.get("status") or ""),
        objects=tuple(event.objects_seen or ()),
        others=tuple(_texts(data.get("others"))),
        requested=_pairs(data.get("requested")),
        found=_pairs(data.get("found")),
    )


def _one_of[Word: StrEnum](words: type[Word], said: object, otherwise: Word) -> Word:
    return next((word for word in words if word == said), otherwise)


def _instant(said: object) -> datetime | None:
    try:
        return datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None


def _texts(said: object) -> list[str]:
    return [str(one) for one in said] if isinstance(said, list) else []


def _pairs(said: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else {}


def looks_so_far(events: Sequence[Event]) -> int:
    """How often the provider was asked since something last ended: an attempt, a permission, a
    person's deliberation. A turn that was put off because the account needed a rest is no look."""
    looks = 0
    for event in reversed(events):
        if event.kind in BEGINS_ANEW:
            break
        # What a provider sent on its own, or told another ledger, was no question of ours.
        looks += event.kind == EventKind.SIGHTING and _asked_by_us(event)
    return looks


def _asked_by_us(event: Event) -> bool:
    return (event.data or {}).get("trigger") not in {WEBHOOK, ELSEWHERE}


def probe(read: Read, connection: Connection, facts: ClaimFacts) -> Probe:
    """The question about the claim, for the adapter of its tool."""
    claim, tool = read.claim, read.tool
    open_generations = {attempt.generation for attempt in facts.open_attempts}
    # What a key is known to have done can still turn out otherwise: only a refusal is known to have
    # left nothing behind.
    open_generations |= {
        e.generation
        for e in read.events
        if e.kind == EventKind.REPORTED and e.word == Outcome.COMPLETED
    }
    return Probe(
        claim_id=claim.pk,
        generations=tuple(
            KeyLife(
                generation=generation,
                key=claim.key_sent(generation),
                marker=marker(claim.pk, generation),
                open=generation in open_generations,
            )
            for generation in range(1, claim.generation + 1)
        ),
        since=read.first_granted_at,
        asked_at=read.now,
        place=place_of(connection),
        config=tool.lookup,
        arguments=_arguments(read.arguments_text),
        amount=registry.amount(tool, read.arguments_text),
        customer=registry.customer(tool, read.arguments_text),
        unmarked=any(attempt.marker_sent is not True for attempt in facts.open_attempts),
        settled_from=facts.absence_strong_from,
        named=tuple(
            dict.fromkeys(
                e.object for e in read.events if e.kind == EventKind.REPORTED and e.object
            )
        ),
        api_version=_version_before(read.events),
    )


def _version_before(events: Iterable[Event]) -> str:
    """The version in which the claim was first asked about: its answers stay comparable, whatever
    version a later release of ours would ask in."""
    said = ((e.data or {}).get("api_version") for e in events if e.kind == EventKind.SIGHTING)
    return next((version for version in said if isinstance(version, str)), "")


def place_of(connection: Connection) -> Place:
    """Where a connection leads, with its secret.

    Raises `NotAllowed` for a base address that is none, and for a secret that cannot be opened.
    """
    origin = origin_of(connection.base_url)
    allowed = {origin_of(url) for url in settings.COUNTERFOIL_PRIVATE_ORIGINS}
    try:
        secret = secret_of(connection)
    except CannotOpen as error:
        raise NotAllowed(f"The secret of {connection.name} cannot be opened. {error}") from error
    return Place(
        way=Way(origin=origin, private=origin in allowed),
        base_url=connection.base_url,
        mode=connection.workspace.mode,
        account=connection.account,
        secret=secret,
    )


def _arguments(text: str | None) -> dict[str, Any] | None:
    try:
        return dict(parse_arguments(text))
    except (Refused, RecursionError):
        return None
