"""What must be true of the record, each as a check that lists every place where it is not.

A check reads and never repairs: a record that was changed behind the ledger's back is evidence, and
what repairs it by itself destroys that evidence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from effects.core.fold import LoggedEvent, fold
from effects.core.vocabulary import ClaimState
from ledger.models import Claim, Event
from ledger.queries import as_logged

SQL_FOLDER: Final = Path(__file__).resolve().parent.parent / "sql"
CLAIMS_PER_BATCH: Final = 500
NO_CLAIM: Final = UUID(int=0)
CLOCK: Final = "ledger_clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where an invariant does not hold: of what, and what is wrong."""

    of: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant, as a sentence that is true of a sound record."""

    id: str
    sentence: str
    find: Callable[[], Iterable[Difference]]


# The record against its own events


def refolded() -> Iterator[Difference]:
    """Every claim whose row differs from the fold of its events, in the order of their ids."""
    after = NO_CLAIM
    while batch := _claims_with_events(after):
        for claim, events in batch:
            yield from compare(claim, events)
        after = batch[-1][0].pk


def _claims_with_events(after: UUID) -> list[tuple[Claim, list[LoggedEvent]]]:
    # One snapshot for both readings: agents go on writing while the record is verified, and a row
    # read before its newest event would look like a difference.
    with _snapshot():
        claims = list(Claim.objects.filter(pk__gt=after).order_by("pk")[:CLAIMS_PER_BATCH])
        events = defaultdict(list)
        found = Event.objects.filter(claim_id__in=[claim.pk for claim in claims])
        for event in found.order_by("claim_id", "seq"):
            events[event.claim_id].append(as_logged(event))
    return [(claim, events[claim.pk]) for claim in claims]


@contextmanager
def _snapshot() -> Iterator[None]:
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def compare(claim: Claim, events: list[LoggedEvent]) -> Iterator[Difference]:
    """One row against what its events amount to."""
    if not events:
        yield Difference(of=str(claim.pk), says="the claim has no event")
        return
    folded = fold(events)
    granted = [event for event in events if event.kind == "granted"]
    newest = max(granted, key=lambda event: event.fence)
    pairs: dict[str, tuple[object, object]] = {
        "state": (claim.state, folded.state),
        "fresh_key": (claim.fresh_key, folded.fresh_key),
        "open_truth": (claim.open_truth, bool(folded.open_attempts)),
        "version": (claim.version, max(event.seq for event in events)),
        "fence": (claim.fence, newest.fence),
        # An attempt from a ledger kept elsewhere has a key of its own: a negative generation.
        "generation": (claim.generation, max([1, *(event.generation for event in granted)])),
        "completed_at is set": (
            claim.completed_at is not None,
            folded.state is ClaimState.COMPLETED,
        ),
    }
    for name, (row, law) in pairs.items():
        if row != law:
            yield Difference(of=str(claim.pk), says=f"{name} is {row}, its events say {law}")


# Invariants that one question to the database answers. Each row of an answer is a difference:
# first of what, then what is wrong.

ONE_GRANT_PER_FENCE: Final = """
SELECT claim_id, format('attempt %s was granted %s times', fence, count(*))
  FROM ledger_event WHERE kind = 'granted' GROUP BY claim_id, fence HAVING count(*) > 1
"""

FENCES_WITHOUT_GAPS: Final = """
SELECT c.id, format('the fence is %s; attempts %s to %s were granted, %s of them',
                    c.fence, e.low, e.high, e.many)
  FROM ledger_claim c
  LEFT JOIN LATERAL (SELECT min(fence) AS low, max(fence) AS high, count(DISTINCT fence) AS many
                       FROM ledger_event WHERE claim_id = c.id AND kind = 'granted') e ON true
 WHERE (e.low, e.high, e.many) IS DISTINCT FROM (1, c.fence, c.fence::bigint)
"""

EVENTS_WITHOUT_GAPS: Final = """
SELECT claim_id, format('%s events, numbered %s to %s', count(*), min(seq), max(seq))
  FROM ledger_event GROUP BY claim_id HAVING min(seq) <> 1 OR max(seq) <> count(*)
"""

ATTEMPTS_WITHIN_BUDGET: Final = """
SELECT c.id, format('%s attempts; the budget with its releases is %s', e.many, c.budget)
  FROM ledger_claim c
  JOIN LATERAL (SELECT count(*) AS many FROM ledger_event
                 WHERE claim_id = c.id AND kind = 'granted'
                   AND data->'ungranted' IS NULL) e ON true
 WHERE e.many > c.budget
"""

TWO_OBJECTS_ARE_A_CONFLICT: Final = """
SELECT c.id, format('%s different provider objects were reported, and the claim is %s',
                    e.objects, c.state)
  FROM ledger_claim c
  JOIN LATERAL (
    SELECT count(DISTINCT object) AS objects FROM ledger_event
     WHERE claim_id = c.id AND kind = 'reported' AND word = 'completed' AND object IS NOT NULL
       AND seq > coalesce((SELECT max(seq) FROM ledger_event
                            WHERE claim_id = c.id AND kind = 'decided' AND word = 'reopen'), 0)
  ) e ON true
 WHERE e.objects > 1 AND c.state <> 'conflicted'
   AND NOT EXISTS (SELECT FROM ledger_event
                    WHERE claim_id = c.id AND kind = 'decided' AND word = 'settle')
"""

OTHER_CONTENT_IS_A_CONFLICT: Final = """
SELECT format('item %s', i.id), format('its id %s of %s holds other content: it is %s',
                                       i.event_id, i.source, i.state)
  FROM ledger_ingestitem i
  LEFT JOIN ledger_ingestitem f ON f.id = i.conflicts_with
 WHERE NOT i.holds_id AND i.state <> 'unreadable'
   AND (i.state <> 'conflict' OR f.id IS NULL OR f.digest = i.digest
        OR (f.source, f.event_id, f.holds_id) IS DISTINCT FROM (i.source, i.event_id, true))
"""

UNGUARDED_TABLES: Final = """
SELECT t.name, 'no enabled trigger refuses a change'
  FROM (VALUES ('ledger_event'), ('ledger_decision')) AS t (name)
 WHERE NOT EXISTS (
   SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
    WHERE g.tgrelid = t.name::regclass AND p.proname = 'ledger_refuse_change'
      AND g.tgenabled IN ('O', 'A')
      AND g.tgtype & 2 = 2      -- before
      AND g.tgtype & 8 = 8      -- delete
      AND g.tgtype & 16 = 16)   -- update
"""

# The role of the second person is on the decision as it was then, and part of the chain.
ONE_PERSON_WHERE_TWO_WERE_NEEDED: Final = """
SELECT format('decision %s', id), CASE
    WHEN approved_by_id = decided_by_id THEN 'its author approved it'
    WHEN approved_by_id IS NOT NULL AND approver_role NOT IN ('support', 'lead', 'admin')
      THEN format('a %s approved it', approver_role)
    WHEN approved_by_id IS NOT NULL AND approver_role = 'support'
      THEN format('support approved %s', verdict)
    ELSE 'one person released with a new key, and not as the only one' END
  FROM ledger_decision
 WHERE approved_by_id = decided_by_id
    OR approver_role NOT IN ('support', 'lead', 'admin')
    OR approver_role = 'support' AND verdict IN ('release_new', 'settle', 'reopen', 'allow')
    OR verdict = 'release_new' AND decided_by_id IS NOT NULL AND approved_by_id IS NULL
       AND NOT alone
"""

BROKEN_CHAINS: Final = """
SELECT format('decision %s', v.decision_id), format('the chain breaks at its %s', v.fault)
  FROM effects_workspace w CROSS JOIN LATERAL ledger_verify_chain_v1(w.id) v
"""


def rows_of(sql: str) -> Callable[[], Iterator[Difference]]:
    """A check that asks one question."""

    def find() -> Iterator[Difference]:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            for of, says in cursor.fetchall():
                yield Difference(of=str(of), says=str(says))

    return find


# Rows without a foreign key of the database must still have their parent, in the same workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One column that names a parent, and whether child and parent carry a workspace to compare."""

    table: str
    column: str
    parent: str
    parent_key: str
    compare_workspace: bool


def links() -> list[Link]:
    """Every foreign key of the ledger's models that the database does not enforce, or that could
    cross a workspace; taken from the models, so that a new column cannot be forgotten."""
    from django.apps import apps  # noqa: PLC0415 - the registry is full only when commands run

    found = []
    for model in apps.get_app_config("ledger").get_models():
        if not model._meta.managed:  # noqa: SLF001 - Django's documented model API
            continue
        mine = {field.name for field in model._meta.concrete_fields}  # noqa: SLF001
        for field in model._meta.concrete_fields:  # noqa: SLF001
            parent: Any = field.related_model
            if parent is None or field.column is None:
                continue
            theirs = {other.name for other in parent._meta.concrete_fields}  # noqa: SLF001
            found.append(
                Link(
                    table=model._meta.db_table,  # noqa: SLF001
                    column=field.column,
                    parent=parent._meta.db_table,  # noqa: SLF001
                    parent_key=parent._meta.pk.column,  # noqa: SLF001
                    compare_workspace="workspace" in mine & theirs,
                )
            )
    return found


def unlinked() -> Iterator[Difference]:
    """Rows whose parent is missing or in another workspace."""
    for link in links():
        yield from rows_of(_unlinked_sql(link))()


def _unlinked_sql(link: Link) -> str:
    elsewhere = " OR p.workspace_id <> c.workspace_id" if link.compare_workspace else ""
    # Names come from our own models, never from outside.
    return f"""
SELECT format('{link.table}.{link.column} = %s', c.{link.column}),
       CASE WHEN p.{link.parent_key} IS NULL THEN 'there is no such row in {link.parent}'
            ELSE 'the row in {link.parent} is another workspace''s' END
  FROM {link.table} c LEFT JOIN {link.parent} p ON p.{link.parent_key} = c.{link.column}
 WHERE c.{link.column} IS NOT NULL AND (p.{link.parent_key} IS NULL{elsewhere})
 LIMIT 1000
"""  # noqa: S608 - see above


# The functions in the database against the files that made them


_FUNCTION = re.compile(
    r"create(?: or replace)? function (?P<name>ledger_\w+)\s*\(.*?as \$\$(?P<body>.*?)\$\$",
    re.DOTALL,
)


def functions_as_written() -> dict[str, str]:
    """The body of every function of the record, by name, from the files that migrations run."""
    found = {}
    for path in sorted(SQL_FOLDER.glob("*.sql")):
        for match in _FUNCTION.finditer(path.read_text()):
            found[match["name"]] = match["body"]
    return found


def changed_functions(*, clock_may_move: bool) -> Iterator[Difference]:
    """Functions that are not the ones that the migrations made.

    A replaced clock would decide leases and windows by somebody's wish; tests and demos do that on
    purpose, and say so with `clock_may_move`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, prosrc FROM pg_proc"
            " WHERE proname LIKE 'ledger\\_%' AND pronamespace = current_schema()::regnamespace"
        )
        installed = dict(cursor.fetchall())
    for name, body in functions_as_written().items():
        if clock_may_move and name == CLOCK:
            continue
        if name not in installed:
            yield Difference(of=name, says="the function is missing")
        elif installed[name] != body:
            yield Difference(of=name, says="the function is not the one that the migrations made")


def checks(*, clock_may_move: bool) -> tuple[Check, ...]:
    """Every invariant that this version knows, in the order in which it is best read."""
    return (
        Check(
            id="I3",
            sentence="Each attempt of a claim was granted once.",
            find=rows_of(ONE_GRANT_PER_FENCE),
        ),
        Check(
            id="I4",
            sentence="The fences of a claim are 1 to n without gaps, and the row holds the newest.",
            find=rows_of(FENCES_WITHOUT_GAPS),
        ),
        Check(
            id="I4",
            sentence="The events of a claim are numbered from 1 without gaps.",
            find=rows_of(EVENTS_WITHOUT_GAPS),
        ),
        Check(
            id="I5",
            sentence="A claim was granted no more often than its budget and the releases taken up.",
            find=rows_of(ATTEMPTS_WITHIN_BUDGET),
        ),
        Check(
            id="I7",
            sentence="Two provider objects of one claim are a conflict until a person settles it.",
            find=rows_of(TWO_OBJECTS_ARE_A_CONFLICT),
        ),
        Check(
            id="I10",
            sentence="The row of every claim is the fold of its events.",
            find=refolded,
        ),
        Check(
            id="I13",
            sentence="One id of one source is one content; any other is kept as a conflict.",
            find=rows_of(OTHER_CONTENT_IS_A_CONFLICT),
        ),
        Check(
            id="I12",
            sentence="Events and decisions are never changed and never removed.",
            find=rows_of(UNGUARDED_TABLES),
        ),
        Check(
            id="functions",
            sentence="The ledger's functions, its clock among them, are the migrations' own.",
            find=lambda: changed_functions(clock_may_move=clock_may_move),
        ),
        Check(
            id="I15",
            sentence="Nobody approved their own request, and who approved had the role then.",
            find=rows_of(ONE_PERSON_WHERE_TWO_WERE_NEEDED),
        ),
        Check(
            id="I18",
            sentence="The decisions of each workspace form one unbroken chain.",
            find=rows_of(BROKEN_CHAINS),
        ),
        Check(
            id="I19",
            sentence="Every row belongs to the workspace of its parent.",
            find=unlinked,
        ),
    )
