"""Verifying a workspace's chain of decisions, link by link, and keeping that it was done."""

from __future__ import annotations

from typing import Final

from django.db import connection

from ledger.queries import clock
from reconcile.audit.models import ChainCheck

FAULTS_NAMED_MAX: Final = 5

_SIZE: Final = """
SELECT count(*), (SELECT hash FROM ledger_decision WHERE workspace_id = %(workspace)s
                   ORDER BY chain_number DESC LIMIT 1)
  FROM ledger_decision WHERE workspace_id = %(workspace)s
"""
_FAULTS: Final = """
SELECT decision_id, fault FROM ledger_verify_chain_v1(%s) ORDER BY decision_id LIMIT %s
"""
_FAULT_WORDS: Final = {
    "number": "its number in the chain does not follow",
    "previous_hash": "it does not follow from the decision before it",
    "hash": "its content is not what was hashed",
}


def verify(workspace_id: int, *, asked_by: int | None = None) -> ChainCheck:
    """Reads every decision of the workspace and works its hash out again."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZE, {"workspace": workspace_id})
        many, head = cursor.fetchone()
        cursor.execute(_FAULTS, [workspace_id, FAULTS_NAMED_MAX])
        found = cursor.fetchall()
    said = [f"dec_{decision_id}: {_FAULT_WORDS.get(fault, fault)}" for decision_id, fault in found]
    return ChainCheck.objects.create(
        workspace_id=workspace_id,
        at=clock(),
        decisions=many,
        head=head,
        fault="; ".join(said)[:500],
        asked_by_id=asked_by,
    )


def last_check(workspace_id: int) -> ChainCheck | None:
    """When the chain was verified last, and what was found."""
    found = ChainCheck.objects.filter(workspace_id=workspace_id).select_related("asked_by")
    return found.order_by("-pk").first()
