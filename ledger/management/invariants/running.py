"""What is true of a ledger that runs, and of nothing that is written in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, LiteralString

from ledger import restore_fence
from ledger.functions import call
from ledger.management.invariants.base import Check, Difference

TRANSACTION_SECONDS_MAX: Final = 5.0
# Backups read in one long transaction under a role of their own, and harm nobody.
LONG_TRANSACTIONS: LiteralString = """
SELECT 'process ' || pid,
       'its transaction has been open for '
         || extract(epoch FROM clock_timestamp() - xact_start)::int || ' s, now ' || state
  FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user
   AND backend_type = 'client backend' AND pid <> pg_backend_pid()
   AND xact_start < clock_timestamp() - make_interval(secs => %s)
"""


def _long_transactions() -> Iterator[Difference]:
    for of, says in call(LONG_TRANSACTIONS, [TRANSACTION_SECONDS_MAX]):
        yield Difference(of=of, says=says)


def _set_back() -> Iterator[Difference]:
    if restore_fence.is_on() and (why := restore_fence.why_behind()) is not None:
        yield Difference(of=str(restore_fence.mark_path()), says=why)


CHECKS: Final = (
    Check(
        id="I16",
        sentence="The database is not older than this machine has seen it.",
        find=_set_back,
    ),
    Check(
        id="I23",
        sentence="No transaction of ours has been open for more than 5 s.",
        find=_long_transactions,
    ),
)
