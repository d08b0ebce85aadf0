"""The kinds of bodies that are kept apart, and how each is emptied.

A body is emptied only where nothing can need it any more: the call is decided and its truth is not
open, no window and no grant is open, and nobody has it on a list. Digest, size and reason stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SETTLED: Final = """
 c.state IN ('completed', 'not_executed', 'closed') AND NOT c.open_truth AND c.pending_at IS NULL
 AND c.lease_until < %(now)s AND coalesce(c.window_until < %(now)s, true)
 AND coalesce(c.grant_until < %(now)s, true)
 AND NOT EXISTS (SELECT FROM ledger_due d WHERE d.claim_id = c.id AND d.why IN ('lookup', 'person'))
"""
"""A claim `c` about which nothing is open at `now`."""

QUIET_SINCE: Final = "greatest(c.granted_at, c.completed_at, c.decided_at)"
OLD: Final = "< %(now)s - make_interval(days => r.days)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of body.

    `looked` selects the ids after `after`, in their order, as text. `due` selects, locked, which of
    `ids` are to be emptied: id, workspace, bytes and days. `empty` are the statements that empty
    `ids`. `kept` counts what a workspace keeps: how many, bytes, the oldest; `due_now` how many
    would be emptied. `first` stands before every id.
    """

    name: str
    word: str
    says: str
    first: str
    looked: str
    due: str
    empty: tuple[str, ...]
    kept: str
    due_now: str


NO_UUID: Final = "00000000-0000-0000-0000-000000000000"
_LOOKED_CLAIMS: Final = """
SELECT id::text FROM ledger_claim WHERE id > %(after)s::uuid ORDER BY id LIMIT %(limit)s
"""


def _in_claims(name: str) -> tuple[str, str, str]:
    """`due`, `kept` and `due_now` of a body that lies in its claim or, if it is long, beside it."""
    body = f"""(c.{name} IS NOT NULL OR EXISTS (SELECT FROM ledger_payload p WHERE
        p.claim_id = c.id AND p.name = '{name}' AND p.body IS NOT NULL))"""
    size = f"""coalesce(octet_length(c.{name}), 0) + coalesce((SELECT sum(octet_length(p.body))
        FROM ledger_payload p WHERE p.claim_id = c.id AND p.name = '{name}'), 0)"""  # noqa: S608 - our own names
    due = f"""
    SELECT c.id::text, c.workspace_id, {size}, r.days
      FROM ledger_claim c
      JOIN ledger_retentionrule r ON r.workspace_id = c.workspace_id AND r.kind = '{name}'
     WHERE c.id = ANY(%(ids)s::uuid[]) AND {body} AND {SETTLED} AND {QUIET_SINCE} {OLD}
       FOR UPDATE OF c SKIP LOCKED
    """  # noqa: S608 - our own names
    kept = f"""
    SELECT count(*), coalesce(sum({size}), 0), min(c.granted_at) FROM ledger_claim c
     WHERE c.workspace_id = %(workspace_id)s AND {body}
    """  # noqa: S608 - our own names
    due_now = f"""
    SELECT count(*) FROM ledger_claim c
      JOIN ledger_retentionrule r ON r.workspace_id = c.workspace_id AND r.kind = '{name}'
     WHERE c.workspace_id = %(workspace_id)s AND {body} AND {SETTLED} AND {QUIET_SINCE} {OLD}
    """  # noqa: S608 - our own names
    return due, kept, due_now


def _emptied_claims(name: str, seq: str) -> tuple[str, ...]:
    return (
        f"""
        INSERT INTO ledger_payload (workspace_id, claim_id, seq, name, body, digest, size_bytes,
          emptied_at, emptied_reason)
        SELECT c.workspace_id, c.id, {seq}, '{name}', NULL, sha256(convert_to(c.{name}, 'UTF8')),
            octet_length(c.{name}), %(now)s, %(reason)s
          FROM ledger_claim c WHERE c.id = ANY(%(ids)s::uuid[]) AND c.{name} IS NOT NULL
        ON CONFLICT (claim_id, seq, name) DO NOTHING
        """,  # noqa: S608 - our own names
        f"UPDATE ledger_claim SET {name} = NULL WHERE id = ANY(%(ids)s::uuid[])",  # noqa: S608 - our own names
        f"""
        UPDATE ledger_payload SET body = NULL, emptied_at = %(now)s, emptied_reason = %(reason)s
         WHERE claim_id = ANY(%(ids)s::uuid[]) AND name = '{name}' AND body IS NOT NULL
        """,  # noqa: S608 - our own names
        f"""
        UPDATE ledger_sealedtext SET body = NULL, emptied_at = %(now)s
         WHERE claim_id = ANY(%(ids)s::uuid[]) AND name = '{name}' AND body IS NOT NULL
        """,  # noqa: S608 - our own names
    )


_arguments_due, _arguments_kept, _arguments_due_now = _in_claims("arguments")
_result_due, _result_kept, _result_due_now = _in_claims("result")

ARGUMENTS: Final = Kind(
    name="arguments",
    word="Arguments",
    says="what agents asked for; also of requests that were held back or met another claim",
    first=NO_UUID,
    looked=_LOOKED_CLAIMS,
    due=_arguments_due,
    empty=(
        *_emptied_claims("arguments", "0"),
        (
            "UPDATE ledger_case SET arguments = NULL"
            " WHERE claim_id = ANY(%(ids)s::uuid[]) AND closed_at IS NOT NULL"
        ),
        (
            "UPDATE ledger_heldrequest SET arguments = NULL"
            " WHERE blocker_id = ANY(%(ids)s::uuid[]) AND answered_at IS NOT NULL"
        ),
    ),
    kept=_arguments_kept,
    due_now=_arguments_due_now,
)
RESULT: Final = Kind(
    name="result",
    word="Results",
    says="what tools returned; an agent that asks again is told that the call happened, without it",
    first=NO_UUID,
    looked=_LOOKED_CLAIMS,
    due=_result_due,
    empty=_emptied_claims(
        "result",
        "coalesce((SELECT min(e.seq) FROM ledger_event e WHERE e.claim_id = c.id"
        " AND e.kind = 'reported' AND e.word = 'completed'), c.version)",
    ),
    kept=_result_kept,
    due_now=_result_due_now,
)

_RAW: Final = f"""
  FROM ledger_payload p JOIN ledger_claim c ON c.id = p.claim_id
  JOIN ledger_retentionrule r ON r.workspace_id = p.workspace_id AND r.kind = 'evidence'
 WHERE p.name = 'raw' AND p.body IS NOT NULL AND {SETTLED} AND {QUIET_SINCE} {OLD}
"""
EVIDENCE: Final = Kind(
    name="evidence",
    word="Provider answers",
    says="the raw bytes of what providers answered; what was made of them stays",
    first="0",
    looked="""
    SELECT id::text FROM ledger_payload WHERE id > %(after)s::bigint ORDER BY id LIMIT %(limit)s
    """,
    due=f"SELECT p.id::text, p.workspace_id, octet_length(p.body), r.days {_RAW}"
    " AND p.id = ANY(%(ids)s::bigint[]) FOR UPDATE OF p, c SKIP LOCKED",
    empty=(
        """
        UPDATE ledger_sealedtext s SET body = NULL, emptied_at = %(now)s FROM ledger_payload p
         WHERE p.id = ANY(%(ids)s::bigint[]) AND s.claim_id = p.claim_id AND s.name = 'raw'
           AND s.text_digest = p.digest
        """,
        """
        UPDATE ledger_payload SET body = NULL, emptied_at = %(now)s, emptied_reason = %(reason)s
         WHERE id = ANY(%(ids)s::bigint[])
        """,
    ),
    kept="""
    SELECT count(*), coalesce(sum(octet_length(p.body)), 0), min(c.granted_at)
      FROM ledger_payload p JOIN ledger_claim c ON c.id = p.claim_id
     WHERE p.workspace_id = %(workspace_id)s AND p.name = 'raw' AND p.body IS NOT NULL
    """,
    due_now=f"SELECT count(*) {_RAW} AND p.workspace_id = %(workspace_id)s",
)


def _of_items(name: str, word: str, says: str, doors: str) -> Kind:
    these = f"i.raw IS NOT NULL AND i.door IN ({doors})"
    due = f"""
      FROM ledger_ingestitem i LEFT JOIN ledger_claim c ON c.id = i.claim_id
      JOIN ledger_retentionrule r ON r.workspace_id = i.workspace_id AND r.kind = '{name}'
     WHERE {these} AND i.state NOT IN ('received', 'parked', 'failed') AND i.last_seen_at {OLD}
       AND (c.id IS NULL OR {SETTLED})
    """
    return Kind(
        name=name,
        word=word,
        says=says,
        first="0",
        looked="""
        SELECT id::text FROM ledger_ingestitem WHERE id > %(after)s::bigint
         ORDER BY id LIMIT %(limit)s
        """,
        due=f"SELECT i.id::text, i.workspace_id, octet_length(i.raw), r.days {due}"
        " AND i.id = ANY(%(ids)s::bigint[]) FOR UPDATE OF i SKIP LOCKED",
        empty=(
            (
                "UPDATE ledger_ingestitem SET raw = NULL, emptied_at = %(now)s"
                " WHERE id = ANY(%(ids)s::bigint[])"
            ),
        ),
        kept=f"""
        SELECT count(*), coalesce(sum(octet_length(i.raw)), 0), min(i.received_at)
          FROM ledger_ingestitem i WHERE i.workspace_id = %(workspace_id)s AND {these}
        """,  # noqa: S608 - our own names
        due_now=f"SELECT count(*) {due} AND i.workspace_id = %(workspace_id)s",
    )


EVENTS: Final = _of_items(
    "events",
    "Events from elsewhere",
    "the bytes of events and spans that other ledgers and exporters sent",
    "'events', 'traces'",
)
STREAMS: Final = _of_items(
    "streams",
    "Recorded streams",
    "the bytes of what models' responses were told to be",
    "'streams'",
)

KINDS: Final = (ARGUMENTS, RESULT, EVIDENCE, EVENTS, STREAMS)
