"""A bulk from its start to its end: one call after the other, stopped or taken back by people.

The work may be delivered twice, lost or killed: who runs a bulk holds a lock on it, and each call's
outcome is a row, so whoever comes next goes on where the last one was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.models import Count

from effects.core.problems import ClaimNotFound
from ledger.queries import clock
from reconcile import decide as deciding
from reconcile.bulk.acts import (
    BulkAction,
    Outcome,
    Result,
    ask_together,
    perform,
    tell_who_was_given,
)
from reconcile.bulk.models import Bulk, BulkItem

SLICE_SECONDS: Final = 60
"""How long one delivery of the work goes on before it hands over to the next."""
REASON_CHARACTERS_MAX: Final = 1_000
UNFINISHED_MAX: Final = 20

_LOCK_CLASS: Final = 1667657329  # with the bulk's number: one worker at a time

log = logging.getLogger(__name__)


class NotStarted(Exception):
    """The bulk is not started; `errors` has one sentence for each field."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many calls of a bulk had which outcome."""

    by_outcome: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_outcome.values())

    def of(self, *outcomes: str) -> int:
        return sum(self.by_outcome.get(outcome, 0) for outcome in outcomes)

    @property
    def left(self) -> int:
        return self.of(Outcome.WAITING)


def counts(bulk: Bulk) -> Counts:
    found = bulk.items.values_list("outcome").annotate(many=Count("pk"))
    return Counts(by_outcome=dict(found))


def start(
    bulk: Bulk, *, reason: str, typed: str = "", options: dict[str, Any] | None = None
) -> bool:
    """Lets a frozen bulk begin. False: it had begun already, and nothing changed.

    `options` are those of its action; nothing else is read. Raises `NotStarted`.
    """
    if bulk.started_at is not None:
        return False
    act = BulkAction(bulk.action)
    errors: dict[str, str] = {}
    if act.decides and not reason:
        errors["reason"] = "Say why, in a few words: it is kept with each decision."
    if len(reason) > REASON_CHARACTERS_MAX:
        errors["reason"] = f"At most {REASON_CHARACTERS_MAX:,} characters."
    many = bulk.items.count()
    if act.decides and typed != str(many):
        errors["typed"] = f"Type {many}, the number of calls, exactly as it is shown."
    if act is BulkAction.ASSIGN and not (options or {}).get("to"):
        errors["to"] = "Choose who is to look after the calls."
    if errors:
        raise NotStarted(errors)
    kept = {"to": (options or {})["to"]} if act is BulkAction.ASSIGN else {}
    draft = Bulk.objects.filter(pk=bulk.pk, started_at=None)
    return bool(draft.update(started_at=clock(), reason=reason, options=kept))


def stop(bulk: Bulk, *, user_id: int) -> bool:
    """What has not begun is left out. False: it had ended, or was stopped already."""
    running = Bulk.objects.filter(
        pk=bulk.pk, started_at__isnull=False, ended_at=None, stopped_at=None
    )
    return bool(running.update(stopped_at=clock(), stopped_by_id=user_id))


def undo(bulk: Bulk, *, user_id: int, item_id: int | None = None) -> tuple[int, int]:
    """Takes the decisions of the bulk back, or that of one call: how many were, and how many were
    in force or gone by then. What is still to be done is stopped first."""
    if item_id is None:
        stop(bulk, user_id=user_id)
    made = bulk.items.filter(outcome=Outcome.DONE, decision_id__isnull=False)
    if item_id is not None:
        made = made.filter(pk=item_id)
    back = late = 0
    # The newest first: their minute is the longest, and the oldest may be over already.
    for item in made.order_by("at"):
        assert item.decision_id is not None, "filtered above"
        if deciding.undo(bulk.workspace_id, item.claim_id, item.decision_id, user_id):
            said = f"dec_{item.decision_id} was taken back."
            _keep(item, Result(outcome=Outcome.UNDONE, said=said, decision_id=item.decision_id))
            back += 1
        else:
            late += 1
    return back, late


def run(bulk_id: int, *, seconds: float = SLICE_SECONDS) -> bool:
    """Works on a bulk for a while; answers whether more is to be done.

    False as well where somebody else is at it: they go on.
    """
    with _alone(bulk_id) as alone:
        if not alone:
            return False
        bulk = Bulk.objects.filter(pk=bulk_id, started_at__isnull=False, ended_at=None).first()
        if bulk is None:
            return False
        if not _work(bulk, until=time.monotonic() + seconds):
            return True
        if _stopped(bulk):
            left = bulk.items.filter(outcome=Outcome.WAITING)
            left.update(outcome=Outcome.STOPPED, said="Not begun: the bulk was stopped.")
        if Bulk.objects.filter(pk=bulk_id, ended_at=None).update(ended_at=clock()):
            tell_who_was_given(bulk)
        return False


def _work(bulk: Bulk, *, until: float) -> bool:
    """One call after the other; answers whether none is left to be begun with."""
    to_ask: list[BulkItem] = []
    in_time = True
    for item in bulk.items.filter(outcome=Outcome.WAITING).order_by("number"):
        if _stopped(bulk):
            to_ask.clear()  # Nobody has been asked yet, so stopping leaves all of them out.
            break
        in_time = time.monotonic() <= until
        if not in_time:
            break
        result = _performed(bulk, item)
        if result.outcome == Outcome.WAITING:
            to_ask.append(item)
        else:
            _keep(item, result)
    ask_together(bulk, to_ask)
    return in_time


def unfinished() -> list[int]:
    """The bulks that were started and have not ended, oldest first."""
    found = Bulk.objects.filter(started_at__isnull=False, ended_at=None).order_by("pk")
    return list(found.values_list("pk", flat=True)[:UNFINISHED_MAX])


def _performed(bulk: Bulk, item: BulkItem) -> Result:
    try:
        return perform(bulk, item)
    except ClaimNotFound:
        return Result(outcome=Outcome.REFUSED, said="The call is gone from this workspace.")
    except Exception:  # one call that fails must not hold up the others, nor be tried for ever
        log.exception("bulk %s failed on call %s", bulk.pk, item.claim_id)
        said = "This desk failed on it. Its own page says whether anything was recorded."
        return Result(outcome=Outcome.REFUSED, said=said)


def _keep(item: BulkItem, result: Result) -> None:
    item.outcome, item.said, item.at = result.outcome, result.said[:500], clock()
    item.decision_id = result.decision_id
    item.save(update_fields=["outcome", "said", "at", "decision_id"])


def _stopped(bulk: Bulk) -> bool:
    return Bulk.objects.filter(pk=bulk.pk, stopped_at__isnull=False).exists()


@contextmanager
def _alone(bulk_id: int) -> Iterator[bool]:
    """Whether this is the only worker at the bulk; the lock goes with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS, bulk_id])
        (alone,) = cursor.fetchone()
    try:
        yield bool(alone)
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, bulk_id])
