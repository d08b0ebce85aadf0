"""Reads both sides for the scoreboard: the provider's truth files, and the ledger's claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.db import connection

from effects.core.vocabulary import ClaimState, EffectClass
from ledger import queries
from reconcile.judge import Meaning
from reconcile.sandbox.provider.counters import COUNTERS_NAME
from reconcile.sandbox.provider.speaking import TRUTHS
from reconcile.sandbox.scoreboard import ClaimWord, Row, rows

PROVIDER_FOLDER: Final = "sandbox"
"""Inside the data folder: the provider's journal and its truth."""

TRUTH_FILES: Final = tuple(f"{name}.jsonl" for name in TRUTHS)
READS_MAX: Final = 5

# The claims of a workspace as the clock leaves them now, with what a look-up last made of them.
_CLAIMS: Final = """
SELECT c.id, c.version, t.name, c.effect_class::text, c.arguments,
  (ledger_seen_v1(c, ledger_clock())).state::text,
  EXISTS (SELECT FROM ledger_event e
    WHERE e.claim_id = c.id AND e.kind = 'sighting' AND e.counts),
  t.lookup_kind <> '',
  (SELECT e.data->>'meaning' FROM ledger_event e
    WHERE e.claim_id = c.id AND e.kind = 'sighting' ORDER BY e.seq DESC LIMIT 1),
  (SELECT count(*) FROM ledger_decision d JOIN ledger_event e
      ON e.claim_id = d.claim_id AND e.decision_id = d.id AND e.kind = 'decided'
    WHERE d.claim_id = c.id AND d.verdict IN ('not_happened', 'release_new')),
  (SELECT count(*) FROM ledger_decision d WHERE d.claim_id = c.id AND d.verdict = 'allow')
FROM ledger_claim c JOIN effects_tool t ON t.id = c.tool_id
WHERE c.workspace_id = %s
ORDER BY c.id
"""
# A look-up that said one of these waits for nothing that will come by itself.
_LEFT_TO_PEOPLE: Final = {
    Meaning.DUPLICATED,
    Meaning.DIFFERS,
    Meaning.PARTLY,
    Meaning.UNCLEAR,
}


def read_truth(folder: Path) -> list[dict[str, Any]]:
    """Every effect in the provider's truth files. A line that is just being written is left out."""
    effects = []
    for name in TRUTH_FILES:
        path = folder / name
        if path.exists():
            lines = path.read_bytes().rpartition(b"\n")[0].splitlines()
            effects += [json.loads(line) for line in lines]
    return effects


def read_counters(folder: Path) -> dict[str, Any]:
    """The provider's own figures; empty where it never ran."""
    try:
        read: Any = json.loads((folder / COUNTERS_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def counter_lines(counters: Mapping[str, Any]) -> list[str]:
    """The same for people, one sentence each."""
    if not counters:
        return []
    hooks = counters["webhooks"]
    figures = ", ".join(f"{count} {words}" for words, count in hooks.items())
    lines = [f"webhooks: {figures}"]
    lines += [
        f"reads of {one['scope']} in 30 days: {one['reads']} of {one['allowed']} allowed "
        f"({one['transactions']} transactions)"
        for one in counters["reads"]
    ]
    return [*lines, f"search is {counters['search_lag_seconds']:g} s late"]


def read_claims(workspace_id: int) -> list[ClaimWord]:
    """Every claim of the workspace, as the ledger would answer for it now."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMS, [workspace_id])
        return [_claim_word(workspace_id, *row) for row in cursor.fetchall()]


def read_board(workspace_id: int, folder: Path) -> list[Row]:
    """Both sides at one moment.

    They cannot be read in one step, so the claims are read before and after the truth; a claim that
    changed meanwhile is read again, and at last said to be in flight, which claims nothing.
    """
    before = read_claims(workspace_id)
    truth = read_truth(folder)
    after = read_claims(workspace_id)
    for _ in range(READS_MAX):
        if _versions(before) == _versions(after):
            return rows(after, truth)
        before, truth = after, read_truth(folder)
        after = read_claims(workspace_id)
    steady = set(_versions(before).items())
    return rows([_unless_steady(claim, steady) for claim in after], truth)


def _versions(claims: list[ClaimWord]) -> dict[Any, tuple[int, ClaimState]]:
    return {claim.claim_id: (claim.version, claim.state) for claim in claims}


def _unless_steady(claim: ClaimWord, steady: set[Any]) -> ClaimWord:
    if (claim.claim_id, (claim.version, claim.state)) in steady:
        return claim
    return ClaimWord(
        claim_id=claim.claim_id,
        version=claim.version,
        order=claim.order,
        tool=claim.tool,
        effect_class=claim.effect_class,
        state=ClaimState.IN_FLIGHT,
    )


def _claim_word(workspace_id: int, *row: Any) -> ClaimWord:
    (claim_id, version, tool, effect_class, arguments, state, by_rule, *rest) = row
    has_lookup, meaning, decided, allowed = rest
    if arguments is None:
        arguments = queries.arguments_text(queries.claim(workspace_id, claim_id))
    state = ClaimState(state)
    unsettled = state is ClaimState.UNKNOWN and (not has_lookup or meaning in _LEFT_TO_PEOPLE)
    return ClaimWord(
        claim_id=claim_id,
        version=version,
        order=_order(arguments, claim_id),
        tool=tool,
        effect_class=EffectClass(effect_class),
        state=state,
        by_rule=bool(by_rule) and state in {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED},
        needs_person=unsettled or state is ClaimState.CONFLICTED,
        allowed=decided + allowed,
    )


def _order(arguments: str | None, claim_id: Any) -> str:
    try:
        said: Any = json.loads(arguments or "")
    except ValueError:
        said = None
    order = said.get("order") if isinstance(said, Mapping) else None
    return str(order or claim_id)
