"""How runs come to be: from what is due, or from what a person chose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection as database
from django.db import transaction

from effects.models import Connection, Tool
from effects.times import CHECKS_BEFORE_DEADLINE
from ledger import append, queries
from ledger.append import DueLookup
from reconcile.models import Run, RunItem

ITEMS_MAX: Final = 5000
"""Most calls of one run."""
HANDED_OVER: Final = timedelta(seconds=30)
"""A run that no worker has begun after this long is handed over again."""
CLOSING: Final = max(CHECKS_BEFORE_DEADLINE)

_FAILED: Final = (RunItem.Result.ERROR, RunItem.Result.LIMITED, RunItem.Result.SKIPPED)

_ASKED_WHERE: Final = """
SELECT c.id, t.connection_id, c.window_until FROM ledger_claim c
JOIN effects_tool t ON t.id = c.tool_id
WHERE c.id = ANY(%s) AND t.connection_id IS NOT NULL AND t.lookup_kind <> ''
"""
# Every call that is not settled stands in the list for people.
_UNKNOWN: Final = """
SELECT c.id FROM ledger_due d JOIN ledger_claim c ON c.id = d.claim_id
JOIN effects_tool t ON t.id = c.tool_id
WHERE d.workspace_id = %(workspace)s AND d.why = 'person' AND c.state = 'unknown'
  AND (%(tool)s::bigint IS NULL OR t.id = %(tool)s)
  AND (%(connection)s::bigint IS NULL OR t.connection_id = %(connection)s)
ORDER BY c.id LIMIT %(limit)s
"""
_OF_WORKSPACE: Final = "SELECT id FROM ledger_claim WHERE workspace_id = %s AND id = ANY(%s)"


class CannotStart(Exception):
    """Why no run was made, in a sentence for the person who wanted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which calls a run is about: those of a tool or an account that are unknown, the named ones,
    or, with none of these, everything that is unknown in the workspace."""

    tool_id: int | None = None
    connection_id: int | None = None
    claim_ids: tuple[UUID, ...] = ()

    @property
    def kept(self) -> dict[str, Any]:
        said = {
            "tool": self.tool_id,
            "connection": self.connection_id,
            "ids": [str(one) for one in self.claim_ids[:ITEMS_MAX]],
        }
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that somebody wants. `again_of` is the run whose failures it repeats."""

    workspace_id: int
    scope: Scope
    trigger: Run.Trigger = Run.Trigger.PERSON
    user_id: int | None = None
    dry: bool = False
    words: str = ""
    again_of: Run | None = None


# From what is due


def from_due(due: Sequence[DueLookup]) -> list[Run]:
    """One run for each account that has something due, those first whose windows are closing.

    A call whose tool cannot be asked has nothing more to be asked about, and enters no run.
    """
    now = queries.clock()
    where = _asked_where([one.claim_id for one in due])
    for one in due:
        if one.claim_id not in where:
            append.schedule_lookup(one.claim_id, None, known_at=now)
    groups: dict[tuple[int, int, bool], list[UUID]] = defaultdict(list)
    for one in due:
        if one.claim_id in where:
            connection_id, window_until = where[one.claim_id]
            closing = window_until is not None and now < window_until <= now + CLOSING
            groups[one.workspace_id, connection_id, not closing].append(one.claim_id)
    names = Connection.objects.in_bulk({connection_id for _, connection_id, _ in groups})
    return [
        _made(
            Run(
                workspace_id=workspace_id,
                connection_id=connection_id,
                trigger=Run.Trigger.SCHEDULE if calm else Run.Trigger.BEFORE_DEADLINE,
                scope={"connection": connection_id},
                words=f"due now at {names[connection_id].name}, {_calls(len(claim_ids))}"[:200],
            ),
            claim_ids,
            now,
        )
        for (workspace_id, connection_id, calm), claim_ids in sorted(
            groups.items(), key=lambda item: item[0][2]
        )
    ]


def _asked_where(claim_ids: Sequence[UUID]) -> Mapping[UUID, tuple[int, datetime | None]]:
    with database.cursor() as cursor:
        cursor.execute(_ASKED_WHERE, [list(claim_ids)])
        return {claim_id: (where, until) for claim_id, where, until in cursor.fetchall()}


# From what a person chose


def start(new: NewRun) -> Run:
    """Makes the run; a worker takes it as soon as it is told, or with the next tick.

    Raises `CannotStart`.
    """
    claim_ids = _chosen(new.workspace_id, new.scope)
    if not claim_ids:
        raise CannotStart("Nothing was started: no call of this workspace fits what was chosen.")
    if len(claim_ids) > ITEMS_MAX:
        raise CannotStart(
            f"Nothing was started: a run has at most {ITEMS_MAX:,} calls, and more fit. Choose one "
            "tool or one connection."
        )
    connection_ids = {where for where, _ in _asked_where(claim_ids).values()}
    words = new.words or f"{_words(new.workspace_id, new.scope)}, {_calls(len(claim_ids))}"
    return _made(
        Run(
            workspace_id=new.workspace_id,
            connection_id=connection_ids.pop() if len(connection_ids) == 1 else None,
            trigger=new.trigger,
            scope=new.scope.kept,
            words=words[:200],
            dry=new.dry,
            started_by_id=new.user_id,
            again_of=new.again_of,
        ),
        claim_ids,
        queries.clock(),
    )


def again(run: Run, *, user_id: int) -> Run:
    """A new run about what failed in an old one, was not asked, or never had its turn.

    Raises `CannotStart`.
    """
    if run.is_open:
        raise CannotStart("Nothing was started: this run has not ended.")
    failed = (*_FAILED, RunItem.Result.WAITING)
    items = RunItem.objects.filter(run=run, result__in=failed).order_by("pk")
    claim_ids = tuple(items.values_list("claim_id", flat=True))
    if not claim_ids:
        raise CannotStart("Nothing was started: nothing failed in this run.")
    return start(
        NewRun(
            workspace_id=run.workspace_id,
            scope=Scope(claim_ids=claim_ids),
            user_id=user_id,
            dry=run.dry,
            words=f"what failed in run {run.pk}, {_calls(len(claim_ids))}",
            again_of=run,
        )
    )


def _chosen(workspace_id: int, scope: Scope) -> list[UUID]:
    with database.cursor() as cursor:
        if scope.claim_ids:
            cursor.execute(_OF_WORKSPACE, [workspace_id, list(scope.claim_ids)])
            found = {row[0] for row in cursor.fetchall()}
            return [one for one in dict.fromkeys(scope.claim_ids) if one in found]
        values = {
            "workspace": workspace_id,
            "tool": scope.tool_id,
            "connection": scope.connection_id,
            "limit": ITEMS_MAX + 1,
        }
        cursor.execute(_UNKNOWN, values)
        return [row[0] for row in cursor.fetchall()]


def _words(workspace_id: int, scope: Scope) -> str:
    if scope.claim_ids:
        return "calls by their ids"
    if scope.tool_id is not None:
        tool = Tool.objects.filter(workspace_id=workspace_id, pk=scope.tool_id).first()
        return f"unknown calls of {tool.name[:150] if tool else 'a tool'}"
    if scope.connection_id is not None:
        found = Connection.objects.filter(workspace_id=workspace_id, pk=scope.connection_id)
        account = found.first()
        return f"unknown calls at {account.name if account else 'an account'}"
    return "all unknown calls"


def _calls(number: int) -> str:
    return f"{number:,} call{'' if number == 1 else 's'}"


def _made(run: Run, claim_ids: Iterable[UUID], now: datetime) -> Run:
    run.made_at, run.due_at = now, now + HANDED_OVER
    with transaction.atomic():
        run.save()
        RunItem.objects.bulk_create(
            [RunItem(run=run, claim_id=claim_id) for claim_id in claim_ids], batch_size=1000
        )
    return run
