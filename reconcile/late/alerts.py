"""Who was told something that is contradicted since: made, mailed, listed, marked as seen.

A contradiction is noted by the ledger's own transaction; the tick turns it into one alert for each
recipient. Running it twice makes none twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.core.mail import send_mail
from django.db import connection, transaction
from django.db.models import QuerySet

from effects import mail
from effects.core.vocabulary import EventKind, Verdict
from effects.models import Membership
from ledger import queries
from reconcile.investigate import read_claim
from reconcile.late.models import Alert, Contradiction

if TYPE_CHECKING:
    from ledger.models import Decision, Event
    from reconcile.facts import Read

logger = logging.getLogger(__name__)

RAISED_MAX: Final = 100
"""Most contradictions that one tick turns into alerts."""
MAILED_MAX: Final = 1
"""Most mails of one tick: a mail server may take its ten seconds, and a tick has one minute."""
MAILED_WITHIN: Final = timedelta(days=1)
"""Older alerts are not mailed any more: the list has them."""
SAYS_AN_OUTCOME: Final = (Verdict.HAPPENED, Verdict.NOT_HAPPENED, Verdict.CLOSE, Verdict.SETTLE)
"""Decisions that tell the world what became of a call, and so can turn out wrong."""
AN_AGENT: Final = "its agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many decisions the provider contradicted later. `of` counts those in force."""

    contradicted: int
    of: int

    @property
    def percent(self) -> float | None:
        return 100 * self.contradicted / self.of if self.of else None


def tick() -> None:
    """Makes the alerts that are due, and mails those that can be."""
    raise_due(RAISED_MAX)
    mail_due(MAILED_MAX)


def raise_due(limit: int) -> int:
    """Makes the alerts of contradictions that have none yet; answers how many it looked at."""
    with transaction.atomic():
        waiting = Contradiction.objects.filter(raised_at=None).order_by("pk")
        found = list(waiting.select_for_update(skip_locked=True)[:limit])
        now = queries.clock()
        for contradiction in found:
            Alert.objects.bulk_create(_alerts(contradiction, now), ignore_conflicts=True)
        Contradiction.objects.filter(pk__in=[one.pk for one in found]).update(raised_at=now)
    return len(found)


def _alerts(contradiction: Contradiction, now: datetime) -> Iterator[Alert]:
    common = {
        "contradiction": contradiction,
        "workspace_id": contradiction.workspace_id,
        "at": now,
    }
    read = read_claim(contradiction.workspace_id, contradiction.claim_id)
    before = [event for event in read.events if event.seq < contradiction.version]
    decision = _decision_in(read, before)
    if decision is not None:
        people = dict.fromkeys((decision.decided_by_id, decision.approved_by_id))
        for person_id in people:
            if person_id is not None:
                yield Alert(person_id=person_id, decision_id=decision.pk, **common)
    granted = [event for event in before if event.kind == EventKind.GRANTED]
    worker = (granted[-1].data or {}).get("worker") if granted else None
    yield Alert(
        agent=str(worker or AN_AGENT)[:255],
        decision_id=decision.pk if decision else None,
        **common,
    )


def _decision_in(read: Read, events: Sequence[Event]) -> Decision | None:
    """The newest decision in force that said what became of the call; a reopening withdraws it."""
    words = {*SAYS_AN_OUTCOME, Verdict.REOPEN}
    said = [e for e in events if e.kind == EventKind.DECIDED and e.word in words]
    if not said or said[-1].word == Verdict.REOPEN:
        return None
    every = queries.decisions(read.claim)
    return next((one for one in every if one.pk == said[-1].decision_id), None)


def mail_due(limit: int) -> int:
    """Mails people what turned out otherwise; answers how many mails were taken."""
    if not mail.is_configured():
        return 0
    now = queries.clock()
    waiting = Alert.objects.filter(
        person__isnull=False, mailed_at=None, seen_at=None, at__gt=now - MAILED_WITHIN
    )
    sent = 0
    for alert in waiting.select_related("person", "workspace", "contradiction")[:limit]:
        # Marked first: a mail that goes out twice is worse than one that the list has to say.
        if Alert.objects.filter(pk=alert.pk, mailed_at=None).update(mailed_at=now):
            sent += _mail(alert)
    return sent


def _mail(alert: Alert) -> bool:
    person, told = alert.person, alert.contradiction
    members = Membership.objects.filter(user=person, workspace=alert.workspace)
    if person is None or not person.is_active or not person.email or not members.exists():
        return False
    # A link and nothing of the call itself: a mailbox is not this desk.
    text = (
        f"A call of {alert.workspace.name} turned out otherwise than you decided:\n\n"
        f"{queries.link(told.claim_id)}\n"
    )
    try:
        send_mail(f"Told otherwise ({alert.workspace.name})", text, None, [person.email])
    except OSError:  # smtplib's own errors are OSErrors too
        logger.exception("The mail of alert %s was not taken by the mail server.", alert.pk)
        return False
    return True


# Reading


def alerts_since(workspace_id: int, after: int = 0) -> QuerySet[Alert]:
    """The workspace's alerts with a number above `after`, oldest first, seen or not."""
    found = Alert.objects.filter(workspace_id=workspace_id, pk__gt=after)
    return found.select_related("contradiction", "person", "seen_by").order_by("pk")


def open_count(workspace_id: int) -> int:
    return Alert.objects.filter(workspace_id=workspace_id, seen_at=None).count()


def mark_seen(workspace_id: int, alert_id: int, user_id: int) -> bool:
    """The recipient knows. False: there is no such alert, or somebody marked it before."""
    waiting = Alert.objects.filter(workspace_id=workspace_id, pk=alert_id, seen_at=None)
    return bool(waiting.update(seen_at=queries.clock(), seen_by_id=user_id))


_LATER_CONTRADICTED: Final = """
SELECT count(*) FILTER (WHERE EXISTS (
         SELECT FROM reconcile_alert a WHERE a.workspace_id = d.workspace_id
           AND a.decision_id = d.id)),
       count(*)
  FROM ledger_decision d
 WHERE d.workspace_id = %s AND d.decided_at >= %s AND d.verdict::text = ANY(%s)
   AND EXISTS (SELECT FROM ledger_event e
                WHERE e.claim_id = d.claim_id AND e.kind = 'decided' AND e.decision_id = d.id)
"""


def later_contradicted(workspace_id: int, *, since: datetime) -> Share:
    """Of the decisions made since then that are in force and said an outcome, how many the
    provider contradicted later. A contradiction whose alerts are not made yet is not counted."""
    verdicts = [str(verdict) for verdict in SAYS_AN_OUTCOME]
    with connection.cursor() as cursor:
        cursor.execute(_LATER_CONTRADICTED, [workspace_id, since, verdicts])
        contradicted, of = cursor.fetchone()
    return Share(contradicted=contradicted, of=of)
