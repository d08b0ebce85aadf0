"""The queue as a file: its columns, and its rows read in portions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse

from effects.exporting import Column, Kind
from reconcile import takes
from reconcile.assign import assignments
from reconcile.views.rows import Placed, Row, rows_of

ROWS_AT_ONCE: Final = 500

_ARGUMENTS: Final = """
SELECT id, key, object, arguments FROM ledger_claim WHERE workspace_id = %s AND id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One call as the file says it. `arguments` are those that stand in the claim itself, as they
    were received; None: they are longer, and the file names where they are."""

    row: Row
    key: str
    provider_object: str | None
    arguments: str | None
    taken_by: User | None
    assigned_to: User | None

    @property
    def arguments_address(self) -> str | None:
        if self.arguments is not None:
            return None
        path = reverse("call-body", args=[self.row.claim_id, 0, "arguments"])
        return f"{settings.COUNTERFOIL_DESK_URL}{path}"


def rows(workspace_id: int, found: Sequence[Placed], at: datetime) -> Iterator[Exported]:
    """The calls in the order of the list, each as it is when its portion is read."""
    for start in range(0, len(found), ROWS_AT_ONCE):
        portion = found[start : start + ROWS_AT_ONCE]
        ids = [place.claim_id for place in portion]
        kept = _kept(workspace_id, ids)
        taken = takes.current_of(workspace_id, ids, at)
        given = assignments.current_of(workspace_id, ids)
        for row in rows_of(workspace_id, portion):
            key, provider_object, arguments = kept[row.claim_id]
            take, assignment = taken.get(row.claim_id), given.get(row.claim_id)
            yield Exported(
                row=row,
                key=key,
                provider_object=provider_object,
                arguments=arguments,
                taken_by=take.taken_by if take else None,
                assigned_to=assignment.assigned_to if assignment else None,
            )


def _kept(workspace_id: int, ids: list[UUID]) -> dict[UUID, tuple[str, str | None, str | None]]:
    with connection.cursor() as cursor:
        cursor.execute(_ARGUMENTS, [workspace_id, ids])
        return {claim_id: (key, thing, text) for claim_id, key, thing, text in cursor.fetchall()}


def _name(user: User | None) -> str | None:
    return (user.get_full_name() or user.get_username()) if user else None


type _Call = Column[Exported]

COLUMNS: Final[tuple[_Call, ...]] = (
    Column(name="call", title="Call", read=lambda one: one.row.claim_id),
    Column(name="state", title="State", read=lambda one: one.row.state),
    Column(name="reason", title="Reason", read=lambda one: one.row.reason),
    Column(name="tool", title="Tool", read=lambda one: one.row.tool.name),
    Column(name="class", title="Class", read=lambda one: one.row.effect_class),
    Column(name="what", title="What", read=lambda one: one.row.summary),
    Column(
        name="amount",
        title="Amount",
        kind=Kind.NUMBER,
        read=lambda one: one.row.money.amount if one.row.money else None,
    ),
    Column(
        name="currency",
        title="Currency",
        read=lambda one: one.row.money.currency if one.row.money else None,
    ),
    Column(name="customer", title="Customer", read=lambda one: one.row.customer or None),
    Column(name="began_at", title="Began", kind=Kind.TIME, read=lambda one: one.row.granted_at),
    Column(
        name="window_until",
        title="Window closes",
        kind=Kind.TIME,
        read=lambda one: one.row.window_until,
    ),
    Column(name="ended", title="How it ended", read=lambda one: one.row.ended),
    Column(
        name="evidence",
        title="Last evidence",
        read=lambda one: one.row.evidence.word if one.row.evidence else None,
    ),
    Column(
        name="strength",
        title="Strength",
        read=lambda one: one.row.evidence.strength if one.row.evidence else None,
    ),
    Column(
        name="evidence_at",
        title="Evidence of",
        kind=Kind.TIME,
        read=lambda one: one.row.evidence.at if one.row.evidence else None,
    ),
    Column(
        name="next_check_at",
        title="Next check",
        kind=Kind.TIME,
        read=lambda one: one.row.check_at,
    ),
    Column(name="taken_by", title="Taken by", read=lambda one: _name(one.taken_by)),
    Column(name="assigned_to", title="Assigned to", read=lambda one: _name(one.assigned_to)),
    Column(name="conversation", title="Conversation", read=lambda one: one.row.conversation),
    Column(name="turn", title="Turn", kind=Kind.NUMBER, read=lambda one: one.row.turn_index),
    Column(name="key", title="Idempotency key"),
    Column(name="provider_object", title="Provider object"),
    Column(name="version", title="Version", kind=Kind.NUMBER, read=lambda one: one.row.version),
    Column(name="arguments", title="Arguments as received", kind=Kind.JSON),
    Column(name="arguments_address", title="Where longer arguments are"),
)
