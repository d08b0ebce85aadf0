"""A worker's part of a run: one reading for many calls, then each call by itself.

Progress lives in the database. What one worker leaves undone, another finds there: a run that a
person wants is taken up again, and of a run of the schedule the rest is due again by itself. No
transaction is open while a provider is asked, and each call is recorded in its own.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import batched
from typing import Final
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection as database
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce

from effects.core.problems import ClaimNotFound
from effects.core.redact import redacted
from effects.models import Tool
from ledger import queries
from ledger.observing import schedule_lookups
from reconcile import investigate as asking_one
from reconcile import pace
from reconcile.adapters.base import Look, Probe, Scan
from reconcile.ghosts import noting
from reconcile.investigate import RECOVERS, Asking, Looked, Question, Unasked
from reconcile.models import Run, RunItem
from reconcile.runs import recording
from reconcile.runs.making import HANDED_OVER

logger = logging.getLogger(__name__)

LEASE: Final = timedelta(seconds=150)
"""A run whose worker gave no sign of life for so long is taken up by another. It must outlive one
reading, during which there is none."""
SECONDS_MAX: Final = 60.0
"""How long one worker stays at a run before it hands it on, so that no run holds a worker."""
SIGN_SECONDS: Final = 1.0
DEATHS_MAX: Final = 3
"""When so many workers in a row died at a run without finishing a call, it is interrupted."""
SHARED_MAX: Final = 1000
"""Most calls that one reading is made for."""
STOPPED_PAUSE: Final = timedelta(minutes=1)
"""When what a stopped run of the schedule left is due again."""
SPREAD_MAX: Final = timedelta(hours=1)
"""Calls that are asked about one by one come back one after the other, over at most this."""
BY_ITSELF: Final = (Run.Trigger.SCHEDULE, Run.Trigger.BEFORE_DEADLINE)

_OPEN: Final = (Run.State.WAITING, Run.State.RUNNING)

_TOOL_OF: Final = "SELECT id, tool_id FROM ledger_claim WHERE id = ANY(%s)"

type Items = dict[UUID, RunItem]


class Stop(Exception):
    """Somebody asked for the run's end, or another worker has it."""


class Rest(Exception):
    """The account is to be left alone until `free_at`."""

    def __init__(self, free_at: datetime) -> None:
        super().__init__(free_at.isoformat())
        self.free_at = free_at


@dataclass(slots=True, kw_only=True)
class Work:
    """One worker's turn at one run. The instants are of its own running clock, in seconds."""

    run: Run
    ends_at: float
    signed_at: float = 0.0

    @property
    def scheduled(self) -> bool:
        return self.run.trigger in BY_ITSELF

    @property
    def asking(self) -> Asking:
        run = self.run
        return Asking(trigger=run.trigger, user_id=run.started_by_id, run_id=run.pk)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def alive(self) -> None:
        """A sign of life, which keeps the run for this worker. Raises `Stop`."""
        if not self._sign():
            raise Stop

    def still_at_it(self) -> None:
        """The same where there is no stopping: an answer that was given is recorded."""
        if time.monotonic() >= self.signed_at + SIGN_SECONDS:
            self._sign()

    def _sign(self) -> bool:
        self.signed_at = time.monotonic()
        mine = Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING, stop_asked_at=None)
        return bool(mine.update(due_at=queries.clock() + LEASE))


# Which run, and when it is over


def due(limit: int) -> list[int]:
    """Runs that wait for a worker, longest due first."""
    rows = Run.objects.filter(due_at__lte=queries.clock(), state=Run.State.WAITING)
    return list(rows.order_by("due_at").values_list("pk", flat=True)[:limit])


def bury(limit: int) -> None:
    """Looks after runs whose worker died, or that no worker began.

    What the schedule's run left is due again by itself, so that run ends here, and leaves nothing
    behind if it never began. A run that a person wants waits for the next worker.
    """
    overdue = Run.objects.filter(due_at__lte=queries.clock(), state__in=_OPEN)
    by_itself = overdue.filter(trigger__in=BY_ITSELF)
    never_began = by_itself.filter(started_at=None).values_list("pk", flat=True)[:limit]
    Run.objects.filter(pk__in=list(never_began)).delete()
    for run in by_itself.exclude(started_at=None)[:limit]:
        _end(run, Run.State.INTERRUPTED, "Its worker died. What it left is asked about by itself.")
    wanted = overdue.filter(state=Run.State.RUNNING).exclude(trigger__in=BY_ITSELF)
    for run in wanted[:limit]:
        _after_a_death(run)


def _after_a_death(run: Run) -> None:
    if run.deaths + 1 >= DEATHS_MAX:
        why = f"{DEATHS_MAX} workers died at it in a row. What it left was not asked about."
        _end(run, Run.State.INTERRUPTED, why)
        return
    dead = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, due_at=run.due_at)
    dead.update(state=Run.State.WAITING, due_at=queries.clock(), deaths=F("deaths") + 1)


def hand_over(run_ids: Sequence[int], pause: timedelta) -> None:
    """They are sent to workers; one that nobody has begun after `pause` is due again."""
    if run_ids:
        waiting = Run.objects.filter(pk__in=run_ids, state=Run.State.WAITING)
        waiting.update(due_at=queries.clock() + pause)


def work(run_id: int, *, came_back: bool = False) -> bool:
    """One worker's turn. True: there is more to do, and the run wants the next worker at once.

    `came_back`: the broker brings the task again because the worker that had it is known dead.
    """
    if came_back:
        for lost in Run.objects.filter(pk=run_id, state=Run.State.RUNNING):
            _after_a_death(lost)
    run = _taken(run_id, queries.clock())
    if run is None:
        return False
    one = Work(run=run, ends_at=time.monotonic() + SECONDS_MAX)
    free_at = None
    try:
        _ask_all(one)
    except Stop:
        _stop(run)
        return False
    except Rest as rest:
        free_at = rest.free_at
    if not waiting_in(run).exists():
        _end(run, Run.State.DONE)
        return False
    # Its time is up, or the account needs a rest: what is left is for the next worker.
    Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
        state=Run.State.WAITING,
        due_at=free_at or queries.clock() + HANDED_OVER,
        note=RECOVERS if free_at else "",
    )
    return free_at is None


def waiting_in(run: Run) -> QuerySet[RunItem]:
    return RunItem.objects.filter(run=run, result=RunItem.Result.WAITING)


def _taken(run_id: int, now: datetime) -> Run | None:
    """The run, if it waits for a worker: of two that are sent at once one gets it."""
    waiting = Run.objects.filter(pk=run_id, state=Run.State.WAITING)
    stopped = waiting.exclude(stop_asked_at=None).first()
    if stopped is not None:
        _stop(stopped)
    taken = waiting.update(
        state=Run.State.RUNNING,
        started_at=Coalesce("started_at", Value(now)),
        due_at=now + LEASE,
        note="",
    )
    return Run.objects.get(pk=run_id) if taken else None


def _end(run: Run, state: Run.State, note: str = "") -> None:
    still = Run.objects.filter(pk=run.pk, state__in=_OPEN)
    still.update(state=state, ended_at=queries.clock(), due_at=None, note=note)


def _stop(run: Run) -> None:
    """Ends a run that somebody stopped. One that another worker has is left to that one."""
    asked = Run.objects.filter(pk=run.pk, stop_asked_at__isnull=False)
    if not asked.exists():
        return
    left = list(waiting_in(run).values_list("claim_id", flat=True))
    if run.trigger in BY_ITSELF and left:
        now = queries.clock()
        schedule_lookups(left, now + STOPPED_PAUSE, known_at=now)
    _end(run, Run.State.STOPPED)


# Its calls


def _ask_all(one: Work) -> None:
    """Asks about every call that waits, as far as the time goes. Raises `Stop` and `Rest`."""
    one.alive()
    items = {item.claim_id: item for item in waiting_in(one.run).order_by("pk")}
    _lease(one, list(items))
    for claim_ids in _alike(items):
        for batch in batched(claim_ids, SHARED_MAX):
            if one.is_over:
                return
            one.alive()
            _lease(one, batch)
            _ask_about(one, {claim_id: items[claim_id] for claim_id in batch})


def _lease(one: Work, claim_ids: Sequence[UUID]) -> None:
    """What was due has arrived: from here on only this worker's death makes it due again."""
    if one.scheduled:
        now = queries.clock()
        schedule_lookups(claim_ids, now + LEASE, known_at=now)


def _alike(items: Items) -> list[list[UUID]]:
    """The calls by what one reading could answer: one account, one look-up, one configuration."""
    with database.cursor() as cursor:
        cursor.execute(_TOOL_OF, [list(items)])
        tool_of = dict(cursor.fetchall())
    tools = Tool.objects.in_bulk(set(tool_of.values()))
    groups: dict[tuple[int | None, str, str], list[UUID]] = defaultdict(list)
    for claim_id in items:
        tool = tools.get(tool_of.get(claim_id, 0))
        config = json.dumps(tool.lookup, sort_keys=True) if tool else ""
        where = tool.connection_id if tool else None
        groups[where, tool.lookup_kind if tool else "", config].append(claim_id)
    return list(groups.values())


def _ask_about(one: Work, items: Items) -> None:
    questions = []
    for claim_id, item in items.items():
        one.still_at_it()
        with _alone(one, item):
            question = asking_one.prepare(one.run.workspace_id, claim_id)
            if isinstance(question, Unasked):
                looked = _not_asked(one, question)
                recording.record(one.run.pk, looked, item, queries.clock(), dry=one.run.dry)
            elif isinstance(question.asked, Look):
                _conclude(one, item, question, question.asked)
            else:
                questions.append(question)
    if not questions:
        return
    many = questions[0].lookup.look_many
    if many is None:
        _one_by_one(one, items, questions)
    else:
        _with_one_reading(one, items, questions, many)


def _one_by_one(one: Work, items: Items, questions: Sequence[Question]) -> None:
    for place, question in enumerate(questions):
        if one.is_over:
            return
        one.alive()
        if (free_at := _turn(one, question)) is not None:
            _rest(one, items, questions[place:], free_at)
            return
        item = items[question.read.claim.pk]
        with _alone(one, item):
            look = asking_one.look_at(question)
            _note(one, question, [look], look.reads)
            _conclude(one, item, question, look)


def _with_one_reading(
    one: Work, items: Items, questions: Sequence[Question], many: Callable[[Sequence[Probe]], Scan]
) -> None:
    one.alive()
    if (free_at := _turn(one, questions[0])) is not None:
        _rest(one, items, questions, free_at)
        return
    connection = questions[0].connection
    try:
        scan = many([one.asked for one in questions if isinstance(one.asked, Probe)])
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        logger.exception("one reading for %d calls at %s failed", len(questions), connection)
        for question in questions:
            _fail(one, items[question.read.claim.pk], error)
        return
    _note(one, questions[0], list(scan.looks.values()), scan.reads)
    noting.note_strangers(connection, scan.strangers, queries.clock())
    for question in questions:
        one.still_at_it()
        claim_id = question.read.claim.pk
        look = scan.looks.get(claim_id)
        with _alone(one, items[claim_id]):
            if look is None:
                raise LookupError("the reading brought no answer about this call")
            _conclude(one, items[claim_id], question, look)


def _turn(one: Work, question: Question) -> datetime | None:
    # Near the end of an allowance only what nobody waits for is slowed.
    urgent = one.run.trigger != Run.Trigger.SCHEDULE
    return asking_one.turn(question.connection.pk, urgent=urgent)


def _rest(one: Work, items: Items, questions: Sequence[Question], free_at: datetime) -> None:
    """The account is left alone. What the schedule wanted is put off; a person's run goes on then.

    Raises `Rest` for the latter.
    """
    if not one.scheduled:
        raise Rest(free_at)
    shared = questions[0].lookup.look_many is not None
    rate = pace.rate_of(questions[0].connection.pk, queries.clock())
    pause = timedelta(0) if shared else timedelta(seconds=1 / rate.per_second)
    for place, question in enumerate(questions):
        at = free_at + min(place * pause, SPREAD_MAX)
        looked = asking_one.put_off(Unasked(read=question.read, why=RECOVERS, next_at=at))
        item = items[question.read.claim.pk]
        recording.record(one.run.pk, looked, item, queries.clock(), dry=one.run.dry)


def _not_asked(one: Work, unasked: Unasked) -> Looked:
    if one.scheduled:
        return asking_one.put_off(unasked)
    return Looked(why=unasked.why, state=unasked.read.state)


def _note(one: Work, question: Question, looks: Sequence[Look], reads: int) -> None:
    asking_one.note_answers(question.connection.pk, looks, reads, queries.clock())
    Run.objects.filter(pk=one.run.pk).update(reads=F("reads") + reads)


def _conclude(one: Work, item: RunItem, question: Question, look: Look) -> None:
    looked = asking_one.conclude(question, look, one.asking, dry=one.run.dry)
    recording.record(one.run.pk, looked, item, queries.clock(), dry=one.run.dry)
    if one.run.deaths:
        one.run.deaths = 0
        one.run.save(update_fields=["deaths"])


@contextmanager
def _alone(one: Work, item: RunItem) -> Iterator[None]:
    """What goes wrong with one call is written down there, and the others go on."""
    try:
        yield
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if not isinstance(error, ClaimNotFound):
            logger.exception("call %s of run %d", item.claim_id, one.run.pk)
        _fail(one, item, error)


def _fail(one: Work, item: RunItem, error: Exception) -> None:
    said = redacted(f"{type(error).__name__}: {error}".replace("\x00", " "))
    recording.fail(one.run.pk, item, said, queries.clock())
