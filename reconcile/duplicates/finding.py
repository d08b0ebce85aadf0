"""Which calls may be one thing done twice: the record is searched as it grows.

Three rules find three things. The same call executed again (one claim, more executions). The same
business identity, or the same arguments in one conversation, under another key. And the same
customer and amount within some minutes, which is a hint and no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID

from django.db import transaction

from effects.core.problems import ClaimNotFound
from ledger import asked_again, queries
from ledger.functions import call
from reconcile.cards import cards_of
from reconcile.duplicates import constants, grouping
from reconcile.duplicates.executions import CLAIMS_MAX
from reconcile.models import DuplicateGroup, FindingMark

SEARCHED_MAX: Final = 300
"""Most new claims, and most new requests, of one search of a workspace."""
REFRESHED_MAX: Final = 25
"""Most open groups that one search looks at again."""
REFRESH_SECONDS: Final = 300
SAME_AMOUNT_MINUTES: Final = 10
LAG_SECONDS = 5.0
"""How long after a row was made it is searched: numbers are given before they are committed, and a
row that appears below the mark would never be looked at."""
ZERO: Final = UUID(int=0)

_Rule = DuplicateGroup.Rule

_ALIKE: Final[LiteralString] = """
WITH me AS (SELECT * FROM ledger_claim WHERE workspace_id = %s AND id = %s)
SELECT id FROM (
  SELECT id, granted_at FROM me
  UNION SELECT c.id, c.granted_at FROM me JOIN ledger_claim c
    ON c.repeat = me.repeat AND c.workspace_id = me.workspace_id
  UNION SELECT c.id, c.granted_at FROM me JOIN ledger_claim c
    ON c.business = me.business AND c.workspace_id = me.workspace_id
) found ORDER BY granted_at, id LIMIT %s
"""
_NEW_CLAIMS: Final[LiteralString] = """
SELECT id FROM ledger_claim
 WHERE id > %s AND id < uuidv7(make_interval(secs => %s)) AND workspace_id = %s
 ORDER BY id LIMIT %s
"""
_SAME_AMOUNT: Final[LiteralString] = """
SELECT c.id FROM reconcile_card mine
  JOIN ledger_claim me ON me.id = mine.claim_id
  JOIN reconcile_card k ON k.workspace_id = mine.workspace_id AND k.customer = mine.customer
   AND k.amount = mine.amount AND k.currency = mine.currency
  JOIN ledger_claim c ON c.id = k.claim_id
   AND c.granted_at BETWEEN me.granted_at - make_interval(mins => %s)
                        AND me.granted_at + make_interval(mins => %s)
 WHERE mine.claim_id = %s AND mine.workspace_id = %s AND mine.customer <> ''
   AND mine.amount IS NOT NULL
 ORDER BY c.granted_at, c.id LIMIT %s
"""


def alike(workspace_id: int, claim_id: UUID) -> list[UUID]:
    """The claim and those with its business identity, or its arguments in its conversation."""
    return [found for (found,) in call(_ALIKE, (workspace_id, claim_id, CLAIMS_MAX))]


def same_amount(workspace_id: int, claim_id: UUID) -> list[UUID]:
    """The claim and those of the same customer and amount within some minutes of it."""
    minutes = SAME_AMOUNT_MINUTES
    values = (minutes, minutes, claim_id, workspace_id, CLAIMS_MAX)
    return [found for (found,) in call(_SAME_AMOUNT, values)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one search did. `more`: there is more to search, so it should go on at once."""

    searched: int = 0
    groups: int = 0
    refreshed: int = 0
    more: bool = False


def search(workspace_id: int) -> Found:
    """Looks at what the record has grown by, and again at open groups. Safe to run twice at once:
    the second waits for the first."""
    with transaction.atomic():
        mark, _ = FindingMark.objects.select_for_update().get_or_create(
            workspace_id=workspace_id, defaults={"claim_id": ZERO}
        )
        since = (mark.claim_id, -LAG_SECONDS, workspace_id, SEARCHED_MAX)
        new = [claim_id for (claim_id,) in call(_NEW_CLAIMS, since)]
        asked = asked_again.claims_since(
            workspace_id, mark.asked_id, limit=SEARCHED_MAX, lag_seconds=LAG_SECONDS
        )
        touched = list(dict.fromkeys([*new, *(claim_id for _, claim_id in asked)]))
        groups = sum(_group_around(workspace_id, claim_id) for claim_id in touched)
        mark.claim_id = new[-1] if new else mark.claim_id
        mark.asked_id = asked[-1][0] if asked else mark.asked_id
        mark.save()
    return Found(
        searched=len(touched),
        groups=groups,
        refreshed=refresh_open(workspace_id),
        more=SEARCHED_MAX in {len(new), len(asked)},
    )


def _group_around(workspace_id: int, claim_id: UUID) -> int:
    """Keeps the groups that a claim belongs to; says how many."""
    try:
        return sum(1 for found in _rules(workspace_id, claim_id) if _keep(workspace_id, *found))
    except ClaimNotFound:
        return 0


def _rules(workspace_id: int, claim_id: UUID) -> Iterator[tuple[_Rule, bytes, list[UUID]]]:
    claim = queries.claim(workspace_id, claim_id)
    asked = asked_again.of_claims(workspace_id, [claim_id])
    same_place = [
        one
        for one in asked
        if (one.conversation, one.turn_index) == (claim.conversation, claim.turn_index)
    ]
    if claim.fence > 1 or same_place:
        yield _Rule.SAME_CALL, claim_id.bytes, [claim_id]
    like = alike(workspace_id, claim_id)
    if len(like) > 1 or len(same_place) < len(asked):
        identity = claim.business or claim.repeat
        yield _Rule.SAME_THING, bytes(identity) if identity else claim_id.bytes, like
    if claim.tool.amount_field and claim.tool.customer_field:
        cards_of(workspace_id, [claim_id])
        equal = same_amount(workspace_id, claim_id)
        if len(equal) > 1 and not set(equal) <= set(like):
            yield _Rule.SAME_AMOUNT, _digest(equal[0], "amount"), equal


def _digest(first: UUID, word: str) -> bytes:
    return hashlib.sha256(word.encode() + first.bytes).digest()[:16]


def _keep(workspace_id: int, rule: _Rule, identity: bytes, claim_ids: Sequence[UUID]) -> bool:
    """Makes the group, or adds to it the claims that are new in it. A group that somebody settled
    is new again when another call joins it."""
    known = DuplicateGroup.objects.filter(
        workspace_id=workspace_id, rule=rule, identity=identity
    ).first()
    members = _joined(known.claim_ids if known else (), claim_ids)
    weighed = grouping.weigh(workspace_id, members, constants.in_force(workspace_id))
    now = queries.clock()
    values = grouping.columns(workspace_id, weighed, now) | {"claim_ids": members}
    if known is None:
        DuplicateGroup.objects.create(
            workspace_id=workspace_id, rule=rule, identity=identity, found_at=now, **values
        )
        return True
    if members != known.claim_ids:
        values |= {"version": known.version + 1, "state": DuplicateGroup.State.NEW}
    DuplicateGroup.objects.filter(pk=known.pk).update(**values)
    return False


def _joined(known: Iterable[UUID], found: Iterable[UUID]) -> list[UUID]:
    return list(dict.fromkeys([*known, *found]))[:CLAIMS_MAX]


def refresh_open(workspace_id: int) -> int:
    """Looks again at the open groups that nobody has looked at for longest: their calls may have
    been settled since, or evidence came in."""
    rows = call(
        "SELECT id FROM reconcile_duplicategroup WHERE workspace_id = %s AND diagnosed_at"
        " < ledger_clock() - make_interval(secs => %s) AND (state <> 'not_a_duplicate'"
        " OR diagnosed_at = 'epoch') ORDER BY diagnosed_at LIMIT %s",
        (workspace_id, REFRESH_SECONDS, REFRESHED_MAX),
    )
    by = constants.in_force(workspace_id)
    for group in DuplicateGroup.objects.filter(pk__in=[number for (number,) in rows]):
        grouping.refresh(group, by=by)
    return len(rows)
