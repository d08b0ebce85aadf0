"""Which text for customers counts for a call, and how admins change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import QuerySet

from ledger.queries import clock
from reconcile.customer.kinds import Tell, fault_of, filled
from reconcile.customer.models import CustomerText

if TYPE_CHECKING:
    from reconcile.queries import Call

HISTORY_SHOWN_MAX: Final = 30


class Faulty(Exception):
    """The text cannot be used; the exception's own text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The text that counts. `row` None: the built-in one. `tool_only`: written for this tool."""

    kind: Tell
    text: str
    row: CustomerText | None = None
    tool_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What may be told about one call. `passed_over`: a text was not used, because something that
    it names is not known of this call."""

    text: str
    kind: Tell
    passed_over: bool = False


def in_force(workspace_id: int, tool_id: int | None) -> dict[Tell, tuple[InForce, ...]]:
    """For each kind the texts that count, the closest first: the tool's, everybody's, built in."""
    newest: dict[tuple[str, int | None], CustomerText] = {}
    rows = CustomerText.objects.filter(workspace_id=workspace_id).select_related("written_by")
    tools = {None, tool_id}
    for row in rows.order_by("kind", "tool_id", "-pk").distinct("kind", "tool_id"):
        if row.tool_id in tools:
            newest[row.kind, row.tool_id] = row
    found: dict[Tell, tuple[InForce, ...]] = {}
    for kind in Tell:
        owners = dict.fromkeys((tool_id, None))
        written = [newest[str(kind), one] for one in owners if (str(kind), one) in newest]
        texts = [
            InForce(kind=kind, text=one.text, row=one, tool_only=one.tool_id is not None)
            for one in written
            if one.text
        ]
        found[kind] = (*texts, InForce(kind=kind, text=kind.built_in))
    return found


def words_for(call: Call, kind: Tell) -> Words:
    """What the customer of this call may be told. Nothing here says that it was told."""
    values = values_of(call)
    texts = in_force(call.claim.workspace_id, call.claim.tool_id)[kind]
    for number, one in enumerate(texts):
        said = filled(one.text, values)
        if said is not None:
            return Words(text=said, kind=kind, passed_over=number > 0)
    raise AssertionError("a built-in text names nothing, so it can always be filled")


def values_of(call: Call) -> Mapping[str, str]:
    """What the placeholders stand for in this call; empty where it is not known."""
    return {
        "amount": f"{call.money.figure} {call.money.currency}" if call.money else "",
        "customer": call.customer,
        "summary": call.summary,
        "tool": call.tool.name,
        "when": f"{call.claim.granted_at:%d %b %Y, %H:%M} UTC",
        "reference": str(call.claim.pk)[-8:],
    }


def write(workspace_id: int, *, tool_id: int | None, kind: Tell, text: str, user_id: int) -> bool:
    """Puts a text in force; an empty one goes back to the text before it in line.

    False: that very text is in force already. Raises `Faulty`.
    """
    fault = fault_of(text)
    if fault:
        raise Faulty(fault)
    newest = _texts_of(workspace_id, tool_id).filter(kind=str(kind)).order_by("-pk").first()
    if (newest.text if newest else "") == text:
        return False
    CustomerText.objects.create(
        workspace_id=workspace_id,
        tool_id=tool_id,
        kind=str(kind),
        text=text,
        written_by_id=user_id,
        written_at=clock(),
    )
    return True


def history(workspace_id: int, tool_id: int | None) -> list[CustomerText]:
    """Who wrote what, newest first."""
    found = _texts_of(workspace_id, tool_id).select_related("written_by")
    return list(found.order_by("-pk")[:HISTORY_SHOWN_MAX])


def _texts_of(workspace_id: int, tool_id: int | None) -> QuerySet[CustomerText]:
    found = CustomerText.objects.filter(workspace_id=workspace_id)
    return found.filter(tool=None) if tool_id is None else found.filter(tool_id=tool_id)
