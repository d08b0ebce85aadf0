"""A set of calls as a person chose it in the list: frozen, with what each was seen at.

A row of the list carries a signed word: this call, at this version, in this state, before this
person. What a browser sends back is what the page showed, or it is nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.core import signing
from django.db import connection, transaction

from effects.core.vocabulary import ClaimState
from ledger.queries import clock
from reconcile import listing, queries
from reconcile.action_names import ActionName
from reconcile.bulk.acts import BulkAction
from reconcile.bulk.agreeing import Disagrees, evidence_for
from reconcile.bulk.models import Bulk, BulkItem
from reconcile.views.filters import Filters
from reconcile.views.rows import Row, Seen

ITEMS_MAX: Final = 1_000
"""Most calls of one bulk."""
RESOLVED_MAX: Final = 200
"""Most calls that are resolved in one go: the evidence of each is read before it is offered."""
DISAGREEING_NAMED_MAX: Final = 3
DRAFTS_KEPT_MAX: Final = 20
"""Most bulks of one person that were frozen and not started; older ones are thrown away."""

_BY_TOOL: Final = """
SELECT t.name, count(*) FROM ledger_claim c JOIN effects_tool t ON t.id = c.tool_id
 WHERE c.workspace_id = %s AND c.id = ANY(%s) GROUP BY t.name ORDER BY t.name
"""

_signer = signing.Signer(salt="counterfoil.selection")


class Unusable(Exception):
    """No bulk can be made of what was chosen; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a person sent: an act, and the calls, in the order of the list.

    `whole_view`: not the calls that are named, but all that match `filters`. `form` is the digest
    of the form's token, `session` that of the session.
    """

    action: BulkAction
    filters: Filters
    named: Sequence[Seen] = ()
    whole_view: bool = False
    form: bytes
    session: bytes


def word_for(seen: Seen | Row, user_id: int) -> str:
    """The signed word that a row of the list carries."""
    return _signer.sign(f"{seen.claim_id}.{seen.version}.{seen.state}.{user_id}")


def read_words(words: Iterable[str], user_id: int) -> list[Seen]:
    """The calls that the words name, each once. Raises `Unusable` for a word that is not ours."""
    found: dict[UUID, Seen] = {}
    for word in words:
        try:
            claim_id, version, state, said_to = _signer.unsign(word).split(".")
        except (signing.BadSignature, ValueError) as broken:
            raise Unusable("This selection was not made by this page. Select again.") from broken
        if int(said_to) != user_id:
            raise Unusable("This selection was made by somebody else. Select again.")
        seen = Seen(claim_id=UUID(claim_id), version=int(version), state=ClaimState(state))
        found.setdefault(seen.claim_id, seen)
    return list(found.values())


def freeze(workspace_id: int, chosen: Chosen, *, user_id: int) -> Bulk:
    """Writes the set down as a draft; the same form sent twice is one draft. Raises `Unusable`."""
    calls = _calls(workspace_id, chosen)
    form = hashlib.sha256(
        chosen.form + f"{chosen.action} {[(c.claim_id.hex, c.version) for c in calls]}".encode()
    ).digest()
    earlier = Bulk.objects.filter(workspace_id=workspace_id, made_by_id=user_id, form=form).first()
    if earlier is not None:
        return earlier
    if chosen.action.resolves:
        _agree(workspace_id, chosen.action, calls)
    with transaction.atomic():
        _forget_drafts(user_id)
        bulk, is_new = Bulk.objects.get_or_create(
            made_by_id=user_id,
            form=form,
            defaults={
                "workspace_id": workspace_id,
                "action": str(chosen.action),
                "view": chosen.filters.address()[:1000],
                "session": chosen.session,
                "made_at": clock(),
            },
        )
        if is_new:
            BulkItem.objects.bulk_create(
                BulkItem(
                    bulk=bulk,
                    number=number,
                    claim_id=seen.claim_id,
                    seen_version=seen.version,
                    seen_state=str(seen.state),
                )
                for number, seen in enumerate(calls, start=1)
            )
    return bulk


def _calls(workspace_id: int, chosen: Chosen) -> list[Seen]:
    limit = RESOLVED_MAX if chosen.action.resolves else ITEMS_MAX
    if chosen.whole_view:
        calls = listing.matching(workspace_id, chosen.filters, limit=limit + 1)
    else:
        calls = list(chosen.named)
    if not calls:
        raise Unusable("No call is selected. Select at least one, then choose what to do.")
    if len(calls) > limit:
        raise Unusable(
            f"{chosen.action.label} takes at most {limit:,} calls in one go, and more are "
            "selected. Narrow the list by a filter, or take them page by page."
        )
    if sum(_calls_by_tool(workspace_id, calls).values()) != len(calls):
        raise Unusable("Not every selected call belongs to this workspace. Select again.")
    return calls


def _calls_by_tool(workspace_id: int, calls: Sequence[Seen]) -> dict[str, int]:
    """How many of these calls of the workspace each tool has, by its name."""
    with connection.cursor() as cursor:
        cursor.execute(_BY_TOOL, [workspace_id, [seen.claim_id for seen in calls]])
        return dict(cursor.fetchall())


def _agree(workspace_id: int, act: BulkAction, calls: Sequence[Seen]) -> None:
    """Resolving many needs one tool, and for each call strong evidence that agrees."""
    names = list(_calls_by_tool(workspace_id, calls))
    if len(names) > 1:
        raise Unusable(
            "Calls of one tool can be resolved in one go; these are of several: "
            f"{', '.join(names[:DISAGREEING_NAMED_MAX])}."
        )
    wrong: list[str] = []
    for seen in calls:
        situation = queries.call(workspace_id, seen.claim_id).situation
        try:
            evidence_for(ActionName(act), situation)
        except Disagrees as disagrees:
            wrong.append(f"call …{str(seen.claim_id)[-8:]}: {disagrees}")
    if wrong:
        more = (
            f" {len(wrong) - DISAGREEING_NAMED_MAX} more." if wrong[DISAGREEING_NAMED_MAX:] else ""
        )
        raise Unusable(
            f"\u201c{act.label}\u201d needs strong, agreeing evidence for each call, and "
            f"{len(wrong)} of {len(calls)} have none. "
            + " ".join(wrong[:DISAGREEING_NAMED_MAX])
            + more
        )


def _forget_drafts(user_id: int) -> None:
    drafts = Bulk.objects.filter(made_by_id=user_id, started_at=None).order_by("-pk")
    old = list(drafts.values_list("pk", flat=True)[DRAFTS_KEPT_MAX - 1 : DRAFTS_KEPT_MAX + 200])
    Bulk.objects.filter(pk__in=old, started_at=None).delete()
