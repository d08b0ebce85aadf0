"""Finding out about a claim: read what is known, ask the provider, judge, record, plan the next.

The reading and the recording are short transactions of the ledger's; between them nothing is held.
Running it twice costs a question and changes nothing: what counts is a set of facts. Whoever asks
about many claims at once (`reconcile.runs.working`) takes the same steps, with one reading for all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects.core.fold import fold
from effects.core.vocabulary import ClaimState, SightingWord
from ledger import append, queries, redacting
from ledger.models_sealed import SealedText
from ledger.observing import Observed, observe_unchanged
from reconcile import pace
from reconcile.adapters.base import Look, Lookup, Probe
from reconcile.adapters.door import NotAllowed
from reconcile.facts import Read, claim_facts, earlier_looks, looks_so_far, probe
from reconcile.judge import ClaimFacts, Judgement, judge
from reconcile.lookups import LOOKUPS
from reconcile.runs import ending, single
from reconcile.schedule import SETTLED, Plan, before_the_window_closes, next_look

if TYPE_CHECKING:
    from effects.models import Connection
    from ledger.models import Claim, Event

AFTER_A_DECISION: Final = timedelta(seconds=1)
"""How long after a held decision takes effect the claim is asked about again."""
OBJECTS_NAMED_MAX: Final = 100
SOON: Final = timedelta(seconds=1)
"""A turn at the account that comes so soon is waited for; else the look-up is put off."""
RECOVERS: Final = "The provider is given time to recover."
OUTDATED: Final = (
    "The call changed while the provider was asked, so its answer is kept as evidence and the "
    "provider is asked again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who wants to know: the schedule, a webhook, or a person by their id; and in which run."""

    trigger: str = "schedule"
    user_id: int | None = None
    run_id: int | None = None

    @property
    def by_a_person(self) -> bool:
        return self.user_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What became of one look-up. `word` None: nobody was asked, and `why` says why not.

    `settles`: the answer settles the claim by rule, or would if the run were not dry. `evidence` is
    the number of the event that keeps it.
    """

    why: str
    state: ClaimState
    word: SightingWord | None = None
    judgement: Judgement | None = None
    settles: bool = False
    evidence: int | None = None
    route: str = ""
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """Why nobody is asked about a claim now, and when it is time to look again, if ever."""

    read: Read
    why: str
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A claim as it was read, and what to ask where. `asked` is a `Look` where nobody needs to be
    asked to know that the connection cannot be used."""

    read: Read
    connection: Connection
    lookup: Lookup
    facts: ClaimFacts
    asked: Probe | Look


def investigate(workspace_id: int, claim_id: UUID, asking: Asking) -> Looked:
    """One look-up for one claim, and the plan for the next. It is kept as a run of one call.

    Raises `ClaimNotFound`. Must not run inside a transaction: it waits for the provider.
    """
    asked = prepare(workspace_id, claim_id)
    if isinstance(asked, Unasked):
        return put_off(asked)
    now = asked.read.now
    if not asking.by_a_person and (free_at := turn(asked.connection.pk)) is not None:
        return put_off(Unasked(read=asked.read, why=RECOVERS, next_at=free_at))
    look = look_at(asked)
    note_answers(asked.connection.pk, [look], look.reads, now)
    looked = conclude(asked, look, asking)
    single.record(asked, asking, looked, began=now, reads=look.reads)
    return looked


# One step after the other, for whoever asks about many


def prepare(workspace_id: int, claim_id: UUID) -> Question | Unasked:
    """Everything that the question about a claim needs, or why nobody is asked about it now.

    Raises `ClaimNotFound`.
    """
    read = read_claim(workspace_id, claim_id)
    connection = read.tool.connection
    lookup = LOOKUPS.get(read.tool.lookup_kind)
    if connection is None or lookup is None:
        return Unasked(read=read, why="No look-up is set up for this tool.")
    if read.claim.pending_at is not None and read.claim.pending_at > read.now:
        # Any new fact would cancel the decision that somebody has just made.
        decided_at = read.claim.pending_at + AFTER_A_DECISION
        return Unasked(read=read, why="A decision is waiting to take effect.", next_at=decided_at)
    facts = claim_facts(read)
    try:
        asked: Probe | Look = probe(read, connection, facts)
    except NotAllowed as error:
        asked = _misplaced(read, connection, error)
    return Question(read=read, connection=connection, lookup=lookup, facts=facts, asked=asked)


def put_off(unasked: Unasked) -> Looked:
    """Plans the look-up that is not made now; None: there is nothing to ask."""
    read, at = unasked.read, unasked.next_at
    if at is not None and read.state not in SETTLED:
        at = before_the_window_closes(at, read.now, read.claim.window_until)
    append.schedule_lookup(read.claim.pk, at, known_at=read.now)
    return Looked(why=unasked.why, state=read.state, next_at=at)


def turn(connection_id: int, *, urgent: bool = False) -> datetime | None:
    """Takes a turn at the account, waiting for one that comes soon. Else from when on it may be
    asked; no turn is taken then."""
    while True:
        now = queries.clock()
        free_at = pace.may_ask(connection_id, now, urgent=urgent)
        if free_at <= now:
            return None
        if free_at > now + SOON:
            return free_at
        time.sleep((free_at - now).total_seconds())


def look_at(question: Question) -> Look:
    """One question and its answer. Waits for the provider."""
    if isinstance(question.asked, Look):
        return question.asked
    return question.lookup.look(question.asked)


def note_answers(connection_id: int, looks: Sequence[Look], reads: int, now: datetime) -> None:
    """Counts what one reading brought and cost. One that answered for any call was not in vain."""
    said = [
        look
        for look in looks
        if look.http_status is not None or look.word is SightingWord.LOOKUP_FAILED
    ]
    best = next((look for look in said if look.word not in pace.IN_VAIN), said[0] if said else None)
    if best is not None:
        pace.note(connection_id, best.word, now, retry_after_seconds=best.retry_after_seconds)
    pace.count_reads(connection_id, reads, now)
    pace.spend(connection_id, reads - 1, now)


def conclude(question: Question, look: Look, asking: Asking, *, dry: bool = False) -> Looked:
    """Judges one answer and records it. `dry`: it is kept as evidence and settles nothing, and no
    plan is changed by it.

    Nor does it settle anything where the claim has changed while the provider was asked: what it
    was judged by is no longer so, and the next look-up sees what is.
    """
    read, facts = question.read, question.facts
    workspace_id, claim_id = read.claim.workspace_id, read.claim.pk
    judgement = judge(facts, look, earlier_looks(read.events))
    seen = observation(read, look, judgement, asking)
    if dry:
        would = {"dry_run": True, "would_settle": judgement.counts}
        seen = replace(seen, counts=False, conditional=False, data={**seen.data, **would})
    kept = observe_unchanged(workspace_id, claim_id, seen, version=read.claim.version)
    next_at = None
    if not dry:
        next_at = _plan_next(question, look, judgement, kept)
        append.schedule_lookup(claim_id, next_at, known_at=read.now)
        if next_at is None and kept.state not in SETTLED:
            ending.ended(workspace_id, claim_id, queries.clock(), why=_why_it_ends(read))
        else:
            ending.goes_on(claim_id)
    return Looked(
        why=judgement.why if kept.unchanged or not seen.counts else OUTDATED,
        state=kept.state,
        word=look.word,
        judgement=judgement,
        settles=judgement.counts if dry else kept.counts,
        evidence=kept.seq,
        route=look.route,
        next_at=next_at,
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
        # What was hidden before it was stored is opened for the question alone.
        arguments_text=redacting.exact(
            workspace_id, claim_id, SealedText.Name.ARGUMENTS, queries.arguments_text(claim)
        ),
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
        "right_place": look.right_place,
        "pages_complete": look.pages_complete,
        "partly": look.partly or None,
        "request_id": look.request_id,
        "api_version": look.api_version,
        "http_status": look.http_status,
        "status": look.status,
        "others": list(look.others[:OBJECTS_NAMED_MAX]),
        "requested": dict(look.requested),
        "found": dict(look.found),
        **judgement.recorded,
        "trigger": asking.trigger,
        "user_id": asking.user_id,
        "run": asking.run_id,
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [], {})}


def _plan_next(
    question: Question, look: Look, judgement: Judgement, kept: Observed
) -> datetime | None:
    now = queries.clock()
    if not kept.unchanged and judgement.counts:
        return now
    read = question.read
    anew = ending.restarted_at(read.claim.pk)
    plan = Plan(
        now=now,
        tries=looks_so_far([e for e in read.events if anew is None or e.at > anew]) + 1,
        word=look.word,
        state=kept.state,
        begun_at=anew or read.first_granted_at,
        horizon=timedelta(days=read.tool.horizon_days),
        lookups_max=read.tool.lookups_max,
        window_until=read.claim.window_until,
        strong_from=question.facts.absence_strong_from,
        look_again_at=judgement.look_again_at,
        retry_after_seconds=look.retry_after_seconds,
        heard_lately=ending.webhooks_arrive(question.connection.pk, now),
    )
    return next_look(plan)


def _why_it_ends(read: Read) -> str:
    ends = (ending.restarted_at(read.claim.pk) or read.first_granted_at) + timedelta(
        days=read.tool.horizon_days
    )
    if queries.clock() >= ends - AFTER_A_DECISION:
        return f"It was asked about for {read.tool.horizon_days} days, the tool's horizon."
    return f"It was asked about {read.tool.lookups_max} times, the most that the tool allows."
