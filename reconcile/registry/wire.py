"""What imported records of providers and gateways show of a tool's requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, LiteralString

from ledger.functions import call
from reconcile.duplicates.on_the_wire import granted_keys
from reconcile.registry.measured import NAMED_MAX

RECORDS_MAX: Final = 20_000
"""Most imported records of one workspace that are looked at, the newest."""
READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing (RFC 9110, 9.2.1)."""

_RECORDS: Final[LiteralString] = """
SELECT c.tool_id, c.id::text, c.key, c.sent_key, c.generation, e.facts->>'key',
       coalesce(e.facts->>'key_seen', '') = 'true', upper(e.facts->>'method'),
       coalesce((e.facts->>'retry_count')::int, 0)
  FROM (SELECT claim_id, facts FROM reconcile_importedevidence
         WHERE workspace_id = %s AND claim_id IS NOT NULL
           AND source IN ('provider', 'stripe', 'gateway')
         ORDER BY id DESC LIMIT %s) e
  JOIN ledger_claim c ON c.id = e.claim_id
 WHERE c.workspace_id = %s AND c.tool_id = ANY(%s)
"""


def seen_of(workspace_id: int, tool_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By tool: the facts of `Measured` that imported records tell."""
    rows = call(_RECORDS, (workspace_id, RECORDS_MAX, workspace_id, list(tool_ids)))
    by_tool: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for tool_id, *seen in rows:
        by_tool[tool_id].append(tuple(seen))
    return {tool_id: facts_of(seen) for tool_id, seen in by_tool.items()}


def facts_of(seen: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """The facts of one tool's requests, each a row as `_RECORDS` answers it without the tool. Pure.

    A row is the claim, its key, the key that a ledger kept elsewhere sent, its generation, the key
    on the wire, whether anybody looked for one, the method, and the library's own retries.
    """
    looked = [one for one in seen if one[5]]
    keys: defaultdict[str, set[str]] = defaultdict(set)
    missing, differing, posts = [], [], []
    for claim, key, sent, generation, carried, was_looked_at, method, _ in seen:
        if method is not None and method not in READING_METHODS:
            posts.append(claim)
        if not was_looked_at:
            continue
        if carried is None:
            missing.append(claim)
            continue
        plain = carried.strip('"')
        if plain not in granted_keys(key, sent, generation):
            differing.append(claim)
        # Under one grant there is one key: a second one was made from something that changes.
        if generation == 1:
            keys[claim].add(plain)
    return {
        "requests": len(looked),
        "keyed_requests": sum(one[4] is not None for one in looked),
        "missing": _named(missing),
        "differing": _named(differing),
        "changing": _named([claim for claim, carried in keys.items() if len(carried) > 1]),
        "posts": _named(posts),
        "posts_seen": len(posts),
        "repeated_inside": sum(one[7] > 0 for one in seen),
    }


def _named(claims: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(claims))[:NAMED_MAX]
