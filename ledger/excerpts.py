"""Parts of one claim's record, read in the same time however long the record is.

A claim that was tried fifty thousand times has more events than any page can hold. Two indexes
leave out the first attempt's own events, which every claim has, so the road of an agent never
writes to them (reconcile/migrations/0015_call.py): `event_told` finds what was seen, noted and
decided by its kind, `event_later_attempts` the events of an attempt after the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import QuerySet

from effects.core.vocabulary import EventKind, Verdict
from ledger.models import Attempt, Claim, Decision, Event
from ledger.queries import FATE_OF, Fate

ROWS_MAX: Final = 1000
"""Most rows that one excerpt reads."""

# The view `ledger_attempt` once more, for attempts after the first: that their fence is more than 1
# is said of every event, because only then may the planner use the index that leaves out the first.
LATER_ATTEMPTS: Final = """
SELECT g.claim_id, g.fence, g.generation, g.at AS granted_at,
       (SELECT min(s.at) FROM ledger_event s
         WHERE s.claim_id = g.claim_id AND s.kind = 'sent' AND s.fence = g.fence AND s.fence > 1
       ) AS sent_at,
       coalesce(r.at, l.at) AS ended_at, r.word AS outcome, r.object, r.replayed, r.marker_sent,
       g.data AS granted_data, r.data
  FROM ledger_event g
  LEFT JOIN LATERAL (
    SELECT e.at, e.word, e.object, e.replayed, e.marker_sent, e.data FROM ledger_event e
     WHERE e.claim_id = g.claim_id AND e.kind = 'reported' AND e.fence = g.fence AND e.fence > 1
     ORDER BY array_position(
       ARRAY['completed', 'refused_stored', 'refused', 'not_sent', 'unknown']::ledger_event_word[],
       e.word), e.object NULLS LAST, e.seq
     LIMIT 1) r ON true
  LEFT JOIN LATERAL (
    SELECT e.at FROM ledger_event e
     WHERE e.claim_id = g.claim_id AND e.kind = 'lapsed' AND e.fence = g.fence AND e.fence > 1
     ORDER BY e.seq LIMIT 1) l ON true
 WHERE g.claim_id = %(claim_id)s AND g.kind = 'granted' AND g.fence > 1
   AND g.fence BETWEEN %(first)s AND %(last)s
 ORDER BY g.fence
"""


def attempts(claim: Claim, *, first: int, last: int) -> list[Attempt]:
    """The attempts with the numbers `first` to `last`, oldest first; at most `ROWS_MAX`."""
    last = min(last, first + ROWS_MAX - 1)
    found = list(Attempt.objects.filter(claim_id=claim.pk, fence=1)) if first <= 1 <= last else []
    if last > 1:
        asked = {"claim_id": claim.pk, "first": first, "last": last}
        found += Attempt.objects.raw(LATER_ATTEMPTS, asked)
    return found


def newest(
    claim: Claim, kinds: Iterable[EventKind], *, limit: int, before: int | None = None
) -> list[Event]:
    """The newest events of these kinds, newest first, those before the number `before`."""
    found = Event.objects.filter(claim_id=claim.pk, kind__in=list(kinds), seq__lte=claim.version)
    if before is not None:
        found = found.filter(seq__lt=before)
    return list(found.order_by("-seq")[: min(limit, ROWS_MAX)])


def stretch(claim: Claim, *, before: int, limit: int) -> list[Event]:
    """The events just before the number `before`, in their order."""
    found = Event.objects.filter(claim_id=claim.pk, seq__lt=before, seq__lte=claim.version)
    return list(found.order_by("-seq")[: min(limit, ROWS_MAX)])[::-1]


def how_many(claim: Claim, kind: EventKind) -> int:
    """How many events of one kind the claim has: answers or notes, never attempts."""
    return Event.objects.filter(claim_id=claim.pk, kind=kind, seq__lte=claim.version).count()


def reopened_at(claim: Claim) -> int:
    """The number of the newest event by which a person reopened the claim, or 0."""
    found = _decided(claim).filter(word=Verdict.REOPEN).order_by("-seq")
    return found.values_list("seq", flat=True).first() or 0


def decided_through(claim: Claim) -> int:
    """The number of the newest attempt that a decision in force has ended, or 0."""
    return _decided(claim).order_by("-seq").values_list("fence", flat=True).first() or 0


def _decided(claim: Claim) -> QuerySet[Event]:
    return Event.objects.filter(claim_id=claim.pk, kind=EventKind.DECIDED, seq__lte=claim.version)


def decisions(claim: Claim, *, limit: int) -> list[Decision]:
    """The newest decisions about the claim, oldest first, withdrawals included."""
    found = Decision.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk)
    kept = found.select_related("decided_by", "approved_by").order_by("-chain_number")
    return list(kept[: min(limit, ROWS_MAX)])[::-1]


def fates(decisions: Sequence[Decision], events: Iterable[Event]) -> dict[int, Fate]:
    """What became of these decisions, by the events about them; see `ledger.queries.fates`."""
    found = {
        event.decision_id: FATE_OF[EventKind(event.kind)]
        for event in sorted(events, key=lambda event: event.seq)
        if event.decision_id and event.kind in FATE_OF
    }
    for decision in decisions:
        if decision.withdraws is not None:
            found[decision.withdraws] = Fate.WITHDRAWN
        elif decision.verdict == Verdict.ALLOW:
            found[decision.pk] = Fate.IN_FORCE
    return found
