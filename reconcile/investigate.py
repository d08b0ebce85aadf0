"""Finding out about one claim: read what is known, ask the provider, judge, record, plan the next.

The reading and the recording are short transactions of the ledger's; between them nothing is held.
Running it twice costs a question and changes nothing: what counts is a set of facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects.core.fold import fold
from effects.core.vocabulary import ClaimState, SightingWord
from ledger import append, queries
from reconcile import pace
from reconcile.adapters.base import Look
from reconcile.adapters.door import NotAllowed
from reconcile.facts import Read, claim_facts, earlier_looks, looks_so_far, probe
from reconcile.judge import ClaimFacts, Judgement, judge
from reconcile.lookups import LOOKUPS
from reconcile.schedule import Plan, next_look

if TYPE_CHECKING:
    from effects.models import Connection
    from ledger.models import Claim, Event

AFTER_A_DECISION: Final = timedelta(seconds=1)
"""How long after a held decision takes effect the claim is asked about again."""
OBJECTS_NAMED_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who wants to know: the schedule, a webhook, or a person by their id."""

    trigger: str = "schedule"
    user_id: int | None = None

    @property
    def by_a_person(self) -> bool:
        return self.user_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What became of one look-up. `word` None: nobody was asked, and `why` says why not."""

    why: str
    state: ClaimState
    word: SightingWord | None = None
    judgement: Judgement | None = None
    next_at: datetime | None = None


def investigate(workspace_id: int, claim_id: UUID, asking: Asking) -> Looked:
    """One look-up for one claim, and the plan for the next.

    Raises `ClaimNotFound`. Must not run inside a transaction: it waits for the provider.
    """
    read = read_claim(workspace_id, claim_id)
    connection = read.tool.connection
    lookup = LOOKUPS.get(read.tool.lookup_kind)
    if connection is None or lookup is None:
        return _not_asked(read, "No look-up is set up for this tool.", next_at=None)
    if read.claim.pending_at is not None and read.claim.pending_at > read.now:
        # Any new fact would cancel the decision that somebody has just made.
        decided_at = read.claim.pending_at + AFTER_A_DECISION
        return _not_asked(read, "A decision is waiting to take effect.", next_at=decided_at)
    if not asking.by_a_person and (free_at := pace.may_ask(connection.pk, read.now)) > read.now:
        return _not_asked(read, "The provider is given time to recover.", next_at=free_at)

    facts = claim_facts(read)
    try:
        look = lookup.look(probe(read, connection, facts))
    except NotAllowed as error:
        look = _misplaced(read, connection, error)
    if look.http_status is not None or look.word is SightingWord.LOOKUP_FAILED:
        pace.note(connection.pk, look.word, read.now)
    pace.count_reads(connection.pk, look.reads, read.now)

    judgement = judge(facts, look, earlier_looks(read.events))
    state = append.observe(workspace_id, claim_id, observation(read, look, judgement, asking))
    next_at = _plan_next(read, facts, look, judgement, state)
    append.schedule_lookup(claim_id, next_at, known_at=read.now)
    return Looked(
        why=judgement.why, state=state, word=look.word, judgement=judgement, next_at=next_at
    )


def read_claim(workspace_id: int, claim_id: UUID) -> Read:
    """The claim with all its events, as the clock leaves it now. Raises `ClaimNotFound`."""
    # The clock is read first: a request that leaves after it can only make the answer newer.
    now = queries.clock()
    claim = queries.claim(workspace_id, claim_id)
    events = _all_events(claim)
    state, _ = queries.shown_state(claim, now=now)
    return Read(
        claim=claim,
        events=events,
        folded=fold(queries.as_logged(event) for event in events),
        state=state,
        arguments_text=queries.arguments_text(claim),
        now=now,
    )


def _all_events(claim: Claim) -> list[Event]:
    events: list[Event] = []
    while True:
        after = events[-1].seq if events else 0
        page = queries.events(claim, after_seq=after)
        events += page
        if len(page) < queries.EVENTS_PER_PAGE_MAX:
            return events


def _not_asked(read: Read, why: str, *, next_at: datetime | None) -> Looked:
    append.schedule_lookup(read.claim.pk, next_at, known_at=read.now)
    return Looked(why=why, state=read.state, next_at=next_at)


def _misplaced(read: Read, connection: Connection, error: NotAllowed) -> Look:
    return Look(
        word=SightingWord.MISCONFIGURED,
        why=f"The connection {connection.name!r} cannot be used: {error}",
        route="Connection",
        asked_at=read.now,
        right_place=False,
    )


def observation(read: Read, look: Look, judgement: Judgement, asking: Asking) -> append.Observation:
    """One judged answer as the ledger keeps it."""
    return append.Observation(
        word=look.word,
        fence=read.claim.fence,
        counts=judgement.counts,
        conditional=judgement.conditional,
        objects=look.objects[:OBJECTS_NAMED_MAX],
        data=_shown(look, judgement, asking),
        raw=look.raw,
    )


def _shown(look: Look, judgement: Judgement, asking: Asking) -> dict[str, Any]:
    """What people are shown beside the sighting. Nothing in it is ever folded."""
    shown = {
        "route": look.route,
        "query": look.query,
        "asked_at": look.asked_at.isoformat(),
        "delay_class": look.delay_class,
        "matched_by": look.matched_by,
        "interval_from": look.interval_from.isoformat() if look.interval_from else None,
        "interval_to": look.interval_to.isoformat() if look.interval_to else None,
        "account": look.account,
        "mode": look.mode,
        "pages_complete": look.pages_complete,
        "request_id": look.request_id,
        "http_status": look.http_status,
        "status": look.status,
        "others": list(look.others[:OBJECTS_NAMED_MAX]),
        "requested": dict(look.requested),
        "found": dict(look.found),
        "strength": judgement.strength,
        "meaning": judgement.meaning,
        "why": judgement.why,
        "trigger": asking.trigger,
        "user_id": asking.user_id,
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [], {})}


def _plan_next(
    read: Read,
    facts: ClaimFacts,
    look: Look,
    judgement: Judgement,
    state: ClaimState,
) -> datetime | None:
    plan = Plan(
        now=queries.clock(),
        tries=looks_so_far(read.events) + 1,
        word=look.word,
        state=state,
        first_granted_at=read.first_granted_at,
        horizon=timedelta(days=read.tool.horizon_days),
        lookups_max=read.tool.lookups_max,
        window_until=read.claim.window_until,
        strong_from=facts.absence_strong_from,
        look_again_at=judgement.look_again_at,
        retry_after_seconds=look.retry_after_seconds,
    )
    return next_look(plan)
