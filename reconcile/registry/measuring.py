"""Measuring: the record is counted hour by hour in the background, never by a page.

Each hour's claims are one range of the claims' own ids, which begin with the time, so nothing reads
what was counted before. The running hour and the one before are counted again each time: a claim
may still become unknown. One that does so later still (an attempt of more than an hour) is counted
by what it was; the queue counts it rightly.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from django.db import connection, transaction

from effects.models import MeasureMark, Tool, ToolHour, ToolMeasured
from ledger.functions import call
from reconcile.registry import arguments, wire
from reconcile.registry.measured import DAYS, NAMED_MAX, RECENT_MAX, Measured, from_json, to_json

HOURS_AT_ONCE: Final = 24
"""Most hours that one turn counts; after a long rest the next turns go on."""
HOURS_OPEN: Final = 2
"""The newest hours, which are counted again each time."""
KEPT: Final = timedelta(days=DAYS + 1)
CALLS_AT_ONCE: Final = 50_000
_HOUR: Final = timedelta(hours=1)
LAG: Final = timedelta(seconds=5)
"""Rows get their number before they are committed: younger ones are left for the next turn."""
NAMES_AT_ONCE: Final = 200
"""Most tools whose facts one turn puts together."""
AGAIN_AFTER: Final = timedelta(hours=1)
"""Facts of a tool without new traffic are put together again so often: its week moves on."""

_COUNT: Final[LiteralString] = """
INSERT INTO effects_toolhour AS kept
  (workspace_id, name, hour, calls, written, unknown, recent, recent_unknown, first_at, last_at)
SELECT c.workspace_id, t.name, %s, count(*), count(*) FILTER (WHERE c.effect_class <> 'read'),
       count(*) FILTER (WHERE k.unknown), (array_agg(c.id ORDER BY c.id DESC))[1:%s],
       coalesce((array_agg(c.id ORDER BY c.id DESC) FILTER (WHERE k.unknown))[1:%s], '{}'),
       min(c.granted_at), max(c.granted_at)
  FROM ledger_claim c
  JOIN effects_tool t ON t.id = c.tool_id
 CROSS JOIN LATERAL (SELECT
         c.state = 'unknown'
      OR (c.state = 'in_flight' AND c.lease_until <= ledger_clock())
      -- A call that simply went well has two events, and neither has to be read.
      OR (NOT (c.state = 'completed' AND c.version <= 2) AND EXISTS (
           SELECT FROM ledger_event e WHERE e.claim_id = c.id
              AND (e.kind = 'lapsed' OR (e.kind = 'reported' AND e.word = 'unknown')))) AS unknown
       ) k
 WHERE c.id >= %s AND c.id < %s
 GROUP BY c.workspace_id, t.name
    ON CONFLICT (workspace_id, name, hour) DO UPDATE SET
       calls = excluded.calls, written = excluded.written, unknown = excluded.unknown,
       recent = excluded.recent, recent_unknown = excluded.recent_unknown,
       first_at = least(kept.first_at, excluded.first_at),
       last_at = greatest(kept.last_at, excluded.last_at)
"""
_ANNOUNCED: Final[LiteralString] = """
WITH new AS (SELECT * FROM ledger_call WHERE id > %s ORDER BY id LIMIT %s),
     ripe AS (SELECT * FROM new
               WHERE id < coalesce((SELECT min(id) FROM new WHERE at > %s), 9223372036854775807)),
     kept AS (
       INSERT INTO effects_toolhour AS kept (workspace_id, name, hour, announced, first_at, last_at)
       SELECT workspace_id, tool, date_trunc('hour', at, 'UTC'), count(*), min(at), max(at)
         FROM ripe WHERE tool IS NOT NULL AND tool <> '' GROUP BY 1, 2, 3
           ON CONFLICT (workspace_id, name, hour) DO UPDATE SET
              announced = kept.announced + excluded.announced,
              first_at = least(kept.first_at, excluded.first_at),
              last_at = greatest(kept.last_at, excluded.last_at))
SELECT max(id) FROM ripe
"""


def measure(now: datetime) -> None:
    """One turn: counts what is new, and puts the facts of the tools together that it is about."""
    this_hour = _hour_of(now)
    open_from = this_hour - timedelta(hours=HOURS_OPEN - 1)
    with transaction.atomic():
        mark, _ = MeasureMark.objects.select_for_update().get_or_create(
            pk=1, defaults={"hour": this_hour - timedelta(days=DAYS)}
        )
        begun_at = max(mark.hour, this_hour - timedelta(days=DAYS))
        behind = _hours(begun_at, open_from)
        # What is new comes first: after a rest nobody waits for last week's figures.
        for hour in (*_hours(open_from, this_hour + _HOUR), *behind[:HOURS_AT_ONCE]):
            _count(hour)
        mark.hour = min(begun_at + HOURS_AT_ONCE * _HOUR, open_from)
        ((last,),) = call(_ANNOUNCED, (mark.call_id, CALLS_AT_ONCE, now - LAG))
        mark.call_id = last or mark.call_id
        mark.save()
        ToolHour.objects.filter(hour__lt=now - KEPT).delete()
    for workspace_id, names in _to_put_together(now).items():
        put_together(workspace_id, names, now)


def uuid_at(moment: datetime) -> UUID:
    """The least id that a claim made at this moment can have: ids begin with milliseconds."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def _count(hour: datetime) -> None:
    ids = (uuid_at(hour), uuid_at(hour + _HOUR))
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [hour, RECENT_MAX, NAMED_MAX, *ids])


def _hours(since: datetime, until: datetime) -> list[datetime]:
    """The hours from `since` on that begin before `until`."""
    return [since + n * _HOUR for n in range(int((until - since) / _HOUR))]


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


# One tool's facts


def _to_put_together(now: datetime) -> dict[int, list[str]]:
    """Tools with traffic of lately, tools that were changed, and those that wait for longest."""
    lately = ToolHour.objects.filter(hour__gte=_hour_of(now) - timedelta(hours=HOURS_OPEN - 1))
    found = list(lately.values_list("workspace_id", "name").distinct()[:NAMES_AT_ONCE])
    old = ToolMeasured.objects.filter(measured_at__lt=now - AGAIN_AFTER).order_by("measured_at")
    found += old.values_list("workspace_id", "name")[:NAMES_AT_ONCE]
    known = set(ToolMeasured.objects.values_list("workspace_id", "name"))
    # Hours were counted and nobody put them together yet: the first turns after a long rest.
    counted = ToolHour.objects.order_by("-hour").values_list("workspace_id", "name")
    found += [one for one in dict.fromkeys(counted[:10_000]) if one not in known]
    by_workspace: dict[int, list[str]] = {}
    for workspace_id, name in list(dict.fromkeys(found))[:NAMES_AT_ONCE]:
        by_workspace.setdefault(workspace_id, []).append(name)
    return by_workspace


def put_together(workspace_id: int, names: Iterable[str], now: datetime) -> None:
    """Keeps the facts of these tools as they are now."""
    wanted = list(names)
    hours: dict[str, list[ToolHour]] = {name: [] for name in wanted}
    kept = ToolHour.objects.filter(
        workspace_id=workspace_id, name__in=wanted, hour__gt=now - timedelta(days=DAYS)
    )
    for row in kept.order_by("-hour"):
        hours[row.name].append(row)
    tools = {
        tool.name: tool for tool in Tool.objects.filter(workspace_id=workspace_id, name__in=wanted)
    }
    # A name that a model made up once, or a tool that nobody calls or keeps any more.
    gone = [name for name in wanted if not hours[name] and name not in tools]
    ToolMeasured.objects.filter(workspace_id=workspace_id, name__in=gone).delete()
    wanted = [name for name in wanted if name not in gone]
    seen = wire.seen_of(workspace_id, [tool.pk for tool in tools.values()])
    rows = [
        ToolMeasured(
            workspace_id=workspace_id,
            name=name,
            measured_at=now,
            facts=to_json(_facts(hours[name], tools.get(name), seen)),
        )
        for name in wanted
    ]
    ToolMeasured.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["workspace", "name"],
        update_fields=["measured_at", "facts"],
    )


def _facts(hours: list[ToolHour], tool: Tool | None, seen: dict[int, dict[str, Any]]) -> Measured:
    recent = [str(claim) for row in hours for claim in row.recent][:RECENT_MAX]
    unknown = [str(claim) for row in hours for claim in row.recent_unknown][:NAMED_MAX]
    of_arguments = arguments.facts_of(tool, recent) if tool is not None else {}
    return Measured(
        calls=sum(row.calls for row in hours),
        written=sum(row.written for row in hours),
        unknown=sum(row.unknown for row in hours),
        announced=sum(row.announced for row in hours),
        first_at=min((row.first_at for row in hours if row.first_at), default=None),
        last_at=max((row.last_at for row in hours if row.last_at), default=None),
        recent=tuple(recent),
        recent_unknown=tuple(unknown),
        tool_version=tool.version if tool else 0,
        **of_arguments,
        **(seen.get(tool.pk, {}) if tool else {}),
    )


def measured_of(workspace_id: int, names: Iterable[str] | None = None) -> dict[str, Measured]:
    """What was measured, by the tool's name: of these, or of the tools with most traffic."""
    kept = ToolMeasured.objects.filter(workspace_id=workspace_id)
    if names is not None:
        kept = kept.filter(name__in=list(names))
    return {row.name: from_json(row.facts) for row in kept[:2_000]}
