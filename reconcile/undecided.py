"""How many calls of each tool are undecided now."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from django.db import connection

from effects.core.vocabulary import EffectClass

# What is undecided is on the list of the clock or of people. The few rows of that list lead to the
# claims by their primary key, where counting by state would read every claim that ever was.
_UNDECIDED: Final = """
SELECT c.tool_id, c.effect_class::text, count(*)
  FROM ledger_claim c
 WHERE c.id = ANY(ARRAY(SELECT claim_id FROM ledger_due
         WHERE workspace_id = %s AND why IN ('clock', 'person')))
   AND c.workspace_id = %s
   AND c.state IN ('unknown', 'released', 'in_flight', 'conflicted')
 GROUP BY c.tool_id, c.effect_class
"""


def undecided_calls(workspace_id: int) -> dict[int, dict[EffectClass, int]]:
    """Undecided calls by tool and by the class that each was granted with.

    A call in flight counts once the ledger has filed its lease, some seconds after its grant.
    """
    found: defaultdict[int, dict[EffectClass, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(_UNDECIDED, [workspace_id, workspace_id])
        for tool_id, effect_class, count in cursor.fetchall():
            found[tool_id][EffectClass(effect_class)] = count
    return dict(found)
