"""What is open in one workspace, as deciding about notifications looks at it.

It reads what the queue reads: the ledger's work lists, as the clock leaves them at one instant. So
a number in a message is the number that the linked list shows. As many statements for thousands of
calls as for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from effects.models import Connection
from effects.money import Money
from reconcile import cards, pace
from reconcile.models import NotificationAck, NotificationRule
from reconcile.notify.facts import Ack, Condition, Quiet, Rule, Subject, Told
from reconcile.notify.limits import REPEAT_MAX, SUBJECTS_MAX
from reconcile.queue import CLOSING_SOON, NEEDS_A_PERSON, seen_for
from reconcile.views.filters import View

CONNECTIONS_MAX: Final = 100
"""Most connections whose standing one look reads."""

_WITH_SOMEBODY: Final = """EXISTS (SELECT FROM reconcile_take x WHERE x.claim_id = s.id
      AND x.ended_at IS NULL AND x.until > %(at)s)
    OR EXISTS (SELECT FROM reconcile_assignment x WHERE x.claim_id = s.id AND x.ended_at IS NULL)"""
# Nobody has it since it was granted, or since the last take or assignment of it ended.
_NOBODY_SINCE: Final = """greatest(c.granted_at,
    (SELECT max(least(coalesce(x.ended_at, x.until), x.until)) FROM reconcile_take x
      WHERE x.claim_id = s.id),
    (SELECT max(x.ended_at) FROM reconcile_assignment x WHERE x.claim_id = s.id))"""
_OTHERWISE_HERE: Final = """SELECT n.claim_id, max(n.version) AS version
    FROM reconcile_alert a JOIN reconcile_contradiction n ON n.id = a.contradiction_id
    WHERE a.workspace_id = %(workspace_id)s AND a.seen_at IS NULL GROUP BY n.claim_id"""

# The queue's own list, and the calls that somebody was told otherwise about: those may be settled.
_SUBJECTS: Final = f"""WITH {seen_for(View.OPEN)},
otherwise AS MATERIALIZED ({_OTHERWISE_HERE}),
open_ones AS (
  SELECT s.id, s.state::text AS state, {NEEDS_A_PERSON} AS needs,
    s.snoozed OR coalesce(s.pending_at > %(at)s, false) AS resting,
    CASE WHEN {_WITH_SOMEBODY} THEN NULL ELSE {_NOBODY_SINCE} END AS untaken_since,
    p.id AS waits, p.expires_at AS waits_until, e.ended_at
  FROM seen s JOIN ledger_claim c ON c.id = s.id
  LEFT JOIN reconcile_proposal p ON p.claim_id = s.id AND p.status = 'open'
    AND p.expires_at > %(at)s
  LEFT JOIN reconcile_askingended e ON e.claim_id = s.id AND e.open
)
SELECT c.id, coalesce(o.state, c.state::text) AS state, coalesce(o.needs, false) AS needs,
  coalesce(o.resting, false) AS resting, o.untaken_since, o.waits, o.waits_until, o.ended_at,
  n.version AS otherwise, c.effect_class::text AS effect_class, t.name AS tool,
  c.window_until - make_interval(secs => t.margin_seconds) AS deadline,
  k.amount, k.currency, k.places, k.summary
FROM (SELECT id FROM open_ones UNION SELECT claim_id FROM otherwise) listed
JOIN ledger_claim c ON c.id = listed.id
JOIN effects_tool t ON t.id = c.tool_id
LEFT JOIN open_ones o ON o.id = c.id
LEFT JOIN otherwise n ON n.claim_id = c.id
LEFT JOIN reconcile_card k ON k.claim_id = c.id
WHERE c.workspace_id = %(workspace_id)s
ORDER BY c.window_until - make_interval(secs => t.margin_seconds) <= %(at)s NULLS LAST,
  c.window_until - make_interval(secs => t.margin_seconds) NULLS LAST,
  k.amount DESC NULLS LAST, c.id
LIMIT %(limit)s"""  # noqa: S608 - every word of it is ours

# The newest time for each of what is true now; older ones silence nothing.
_TOLD: Final = """SELECT rule_id, subject, situation, max(at) FROM reconcile_notificationitem
WHERE rule_id = ANY(%s) AND subject = ANY(%s) GROUP BY rule_id, subject, situation"""


_ANY_OPEN: Final = """SELECT EXISTS (SELECT FROM ledger_claim WHERE workspace_id = %s
  AND id = ANY(%s) AND state IN ('unknown', 'conflicted', 'in_flight'))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One workspace at one instant. `shown` has what people read of a call, by its key; `cut` says
    that there are more open calls than one look reads."""

    at: datetime
    subjects: tuple[Subject, ...]
    shown: dict[str, Shown]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is said of a subject: one line, and the state of a call ("" for a connection)."""

    summary: str
    state: str = ""


def look(workspace_id: int, at: datetime, *, connections: bool = True) -> Look:
    """Everything in the workspace that a rule may speak of. Waits for the counters of connections,
    so not in a transaction, unless `connections` is false. Amounts that nobody read yet are."""
    cards.fill(workspace_id=workspace_id)
    rows = _rows(workspace_id, at)
    found = [_subject(row) for row in rows[:SUBJECTS_MAX]]
    shown = {
        subject.key: Shown(summary=row["summary"] or f"A call of {row['tool']}", state=row["state"])
        for subject, row in zip(found, rows, strict=False)
    }
    if connections:
        for key, name, why in _left_alone(workspace_id):
            found.append(Subject(key=key, ended=f"left alone: {why}"[:100]))
            shown[key] = Shown(summary=f"Connection {name} is left alone: {why}"[:200])
    return Look(at=at, subjects=tuple(found), shown=shown, cut=len(rows) > SUBJECTS_MAX)


def _left_alone(workspace_id: int) -> list[tuple[str, str, str]]:
    kept = Connection.objects.filter(workspace_id=workspace_id).order_by("pk")
    names = dict(kept.values_list("pk", "name")[:CONNECTIONS_MAX])
    alone = pace.left_alone(names) if names else {}
    return [(f"connection:{pk}", names[pk], why) for pk, why in alone.items()]


def rule_of(kept: NotificationRule) -> Rule:
    """A stored rule as deciding reads it. Its tool has to be loaded, or is asked for."""
    quiet = None
    if kept.quiet_from is not None and kept.quiet_until is not None:
        quiet = Quiet(
            start=kept.quiet_from,
            end=kept.quiet_until,
            zone=kept.zone,
            wake_below=None if kept.wake_seconds is None else timedelta(seconds=kept.wake_seconds),
        )
    return Rule(
        id=kept.pk or 0,
        condition=Condition(kept.condition),
        repeat=timedelta(seconds=kept.repeat_seconds),
        within=timedelta(seconds=kept.within_seconds or 0),
        amount=kept.amount,
        currency=kept.currency,
        tool=kept.tool.name if kept.tool else "",
        effect_class=kept.effect_class,
        amount_from=kept.amount_from,
        quiet=quiet,
    )


def rules_in_force(workspace_id: int) -> list[NotificationRule]:
    """The rules that tell anybody anything, with their tools."""
    kept = NotificationRule.objects.filter(
        workspace_id=workspace_id, retired_at=None, paused_at=None
    )
    return list(kept.select_related("tool", "workspace").order_by("pk"))


def told(rule_ids: Iterable[int], subjects: Iterable[Subject]) -> list[Told]:
    """What was told before about these subjects under these rules."""
    with connection.cursor() as cursor:
        cursor.execute(_TOLD, [list(rule_ids), [subject.key for subject in subjects]])
        return [
            Told(rule_id=rule_id, key=key, situation=situation, at=at)
            for rule_id, key, situation, at in cursor.fetchall()
        ]


def acks(rule_ids: Sequence[int], at: datetime) -> list[Ack]:
    """Every acknowledgement that is in force, or that ended so lately that it is followed by a
    word: the longest repeat speaks again of older ones by itself."""
    kept = NotificationAck.objects.filter(rule_id__in=rule_ids, until__gt=at - REPEAT_MAX)
    return [
        Ack(
            rule_id=one.rule_id,
            key=one.subject,
            situation=one.situation,
            at=one.at,
            until=one.until,
        )
        for one in kept
    ]


def any_open(workspace_id: int, claim_ids: list[UUID]) -> bool:
    """Whether one of these calls still waits for somebody, as the record has it."""
    with connection.cursor() as cursor:
        cursor.execute(_ANY_OPEN, [workspace_id, claim_ids])
        return bool(cursor.fetchone()[0])


# Inside


def _rows(workspace_id: int, at: datetime) -> list[dict[str, Any]]:
    parameters: dict[str, Any] = {
        "workspace_id": workspace_id,
        "at": at,
        "soon": at + CLOSING_SOON,
        "limit": SUBJECTS_MAX + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SUBJECTS, parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def key_of(claim_id: UUID) -> str:
    """How deciding names a call."""
    return f"call:{claim_id}"


def _subject(row: dict[str, Any]) -> Subject:
    return Subject(
        key=key_of(row["id"]),
        claim_id=row["id"],
        tool=row["tool"],
        effect_class=row["effect_class"],
        money=None
        if row["amount"] is None
        else Money(
            amount=row["amount"].normalize(), currency=row["currency"], places=row["places"]
        ),
        deadline=row["deadline"],
        needs=row["needs"],
        resting=row["resting"],
        untaken_since=row["untaken_since"],
        otherwise=_otherwise(row),
        ended=f"asking ended {row['ended_at'].isoformat()}" if row["ended_at"] else "",
        waits=f"request {row['waits']}" if row["waits"] else "",
        waits_until=row["waits_until"],
    )


def _otherwise(row: dict[str, Any]) -> str:
    if row["otherwise"] is not None:
        return f"told otherwise at {row['otherwise']}"
    return "conflicted" if row["state"] == "conflicted" else ""
