"""Strangers that scans and webhooks meet, and when one of them turns out to have a call.

A stranger is a ghost only where the record knows neither its marker nor its object: not in the
connection's workspace, and not in another one that is asked at the same account. A call may be
recorded later than its effect is seen, so new ghosts are looked for again, and leave by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection as database
from django.db.models import F

from effects.core.identity import read_marker
from effects.models import Connection
from ledger import queries
from reconcile.adapters.base import Stranger
from reconcile.models import Ghost

OPEN_MAX: Final = 2000
"""Most new ghosts of one connection. A shop that also sells without agents has a stranger for every
sale; beyond this number those without our marker are not listed."""
LOOKED_AT_MAX: Final = 1000
"""Most strangers of one scan that are looked at."""
SEEN_AGAIN: Final = timedelta(minutes=1)
LOOK_FIRST: Final = timedelta(seconds=30)
LOOK_LONGEST: Final = timedelta(hours=6)
AGE_SHARE: Final = 5
"""A ghost is looked for again after a fifth of the time that it is known."""
WORD_CHARACTERS_MAX: Final = 60
LOOKED_FOR_MAX: Final = 100
"""Most ghosts that one tick looks for."""

CALLS_BEFORE: Final = timedelta(days=1)
"""An effect without a marker is compared with calls from so long before it was made on."""

# Workspaces whose look-ups ask at the same account hold its calls together.
_BY_MARKER: Final = """
SELECT c.id FROM ledger_claim c WHERE c.id = ANY(%(claims)s) AND c.workspace_id IN (
  SELECT o.workspace_id FROM effects_connection o JOIN effects_connection me
    ON o.base_url = me.base_url AND o.account = me.account WHERE me.id = %(connection)s)
"""
# What was told, found or decided about calls of tools that are asked there. No index of the record
# names objects, because it would cost every call; ids are ordered by time, and a call with two
# events is one that completed at once, whose object stands in its own row.
_BY_OBJECT: Final = """
WITH calls AS (
  SELECT c.id, c.object, c.version FROM ledger_claim c WHERE c.id >= uuidv7(%(since)s::interval)
    AND c.tool_id IN (
      SELECT t.id FROM effects_tool t JOIN effects_connection o ON o.id = t.connection_id
      JOIN effects_connection me ON o.base_url = me.base_url AND o.account = me.account
      WHERE me.id = %(connection)s))
SELECT c.object, c.id FROM calls c WHERE c.object = ANY(%(objects)s)
UNION ALL
SELECT named.object, c.id FROM calls c JOIN ledger_event e ON e.claim_id = c.id
CROSS JOIN LATERAL unnest(e.objects_seen || e.object) AS named(object)
WHERE c.version > 2 AND named.object = ANY(%(objects)s)
"""


def note_strangers(connection: Connection, strangers: Iterable[Stranger], seen_at: datetime) -> int:
    """Keeps the strangers of which no call is known; answers how many ghosts are new.

    One that is known is seen again, whatever was said about it. Takes at most LOOKED_AT_MAX.
    """
    met = {one.id: one for one in list(strangers)[:LOOKED_AT_MAX]}
    if not met:
        return 0
    known = Ghost.objects.filter(connection=connection, object_id__in=list(met))
    seen_again = dict(known.values_list("object_id", "status"))
    # Readings follow each other by seconds; that it is still there is written once in a while.
    earlier = known.filter(last_seen_at__lte=seen_at - SEEN_AGAIN)
    earlier.update(last_seen_at=seen_at, times_seen=F("times_seen") + 1)
    for object_id, status in seen_again.items():
        if (now_says := _short(met[object_id].status)) != status:
            known.filter(object_id=object_id).update(status=now_says)
    fresh = [one for object_id, one in met.items() if object_id not in seen_again]
    accounted = _calls_of(connection, fresh, seen_at)
    ghosts = [one for one in fresh if one.id not in accounted]
    room = OPEN_MAX - Ghost.objects.filter(connection=connection, state=Ghost.State.NEW).count()
    # Ours first: whoever wrote our marker meant a call.
    ghosts = [one for one in ghosts if one.marker] + [one for one in ghosts if not one.marker]
    made = Ghost.objects.bulk_create(
        [_ghost(connection, one, seen_at) for one in ghosts[: max(room, 0)]], ignore_conflicts=True
    )
    return len(made)


def look_again(limit: int = LOOKED_FOR_MAX) -> int:
    """Searches the record for calls of ghosts that are due; answers how many have one now."""
    now = queries.clock()
    due = Ghost.objects.filter(look_at__lte=now).order_by("look_at").select_related("connection")
    by_connection: dict[Connection, list[Ghost]] = defaultdict(list)
    for ghost in due[:limit]:
        by_connection[ghost.connection].append(ghost)
    found = 0
    for connection, ghosts in by_connection.items():
        calls = _calls_of(connection, [_stranger(ghost) for ghost in ghosts], now)
        for ghost in ghosts:
            found += _looked_for(ghost, calls.get(ghost.object_id), now)
    return found


def _looked_for(ghost: Ghost, claim_id: UUID | None, now: datetime) -> int:
    still = Ghost.objects.filter(pk=ghost.pk, state=ghost.state)
    if claim_id is not None:
        return still.update(state=Ghost.State.LINKED, claim_id=claim_id, look_at=None)
    pause = min(max((now - ghost.first_seen_at) / AGE_SHARE, LOOK_FIRST), LOOK_LONGEST)
    still.update(look_at=now + pause)
    return 0


def _ghost(connection: Connection, one: Stranger, seen_at: datetime) -> Ghost:
    return Ghost(
        connection=connection,
        object_id=one.id,
        noun=_short(one.noun),
        status=_short(one.status),
        marker=_short(one.marker),
        amount=_short(one.amount),
        made_at=one.created_at,
        first_seen_at=seen_at,
        last_seen_at=seen_at,
        look_at=seen_at + LOOK_FIRST,
    )


def _stranger(ghost: Ghost) -> Stranger:
    return Stranger(
        id=ghost.object_id, noun=ghost.noun, created_at=ghost.made_at, marker=ghost.marker
    )


def _short(text: str) -> str:
    return text.replace("\x00", "")[:WORD_CHARACTERS_MAX]


def _calls_of(
    connection: Connection, strangers: Sequence[Stranger], now: datetime
) -> dict[str, UUID]:
    """The calls that account for strangers, by the object's id."""
    marked = {one.id: found[0] for one in strangers if (found := read_marker(one.marker))}
    with database.cursor() as cursor:
        cursor.execute(_BY_MARKER, {"claims": list(marked.values()), "connection": connection.pk})
        claims = {row[0] for row in cursor.fetchall()}
        accounted = {name: claim_id for name, claim_id in marked.items() if claim_id in claims}
        others = [one for one in strangers if one.id not in accounted]
        if others:
            first = min((one.created_at for one in others if one.created_at), default=now)
            since = f"{(first - CALLS_BEFORE - now).total_seconds():.0f} seconds"
            names = [one.id for one in others]
            cursor.execute(
                _BY_OBJECT, {"connection": connection.pk, "objects": names, "since": since}
            )
            accounted |= dict(cursor.fetchall())
    return accounted
