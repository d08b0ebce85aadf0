"""How many reads an account may make: a share of its transactions, over thirty days.

Source: https://docs.stripe.com/rate-limits: 500 read requests for each transaction on average over
the last 30 days, and at least 10,000. Whoever polls with few transactions is over it first. Connect
platforms have other figures, which are not published, and are counted like everybody here.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.provider.messages import Json
from reconcile.sandbox.provider.store import Store

READS_PER_TRANSACTION: Final = 500
READS_MIN: Final = 10_000
DAYS: Final = 30
DAY_SECONDS: Final = 24 * 60 * 60
TABLE: Final = "reads"
TRANSACTION_TABLES: Final = ("charges", "payouts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One account in one mode: what it read, and what it may read, in the last thirty days."""

    scope: str
    reads: int
    transactions: int
    allowed: int

    @property
    def is_over(self) -> bool:
        return self.reads > self.allowed

    def to_json(self) -> Json:
        return {
            "scope": self.scope,
            "reads": self.reads,
            "transactions": self.transactions,
            "allowed": self.allowed,
        }


class ReadAllocation:
    """Counts in memory, by day; `keep` writes it down now and then, as a counter need not be exact.

    `reads_min` is the allowance that does not depend on transactions.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._changed = False
        self._days: dict[str, Counter[int]] = {
            scope: Counter({int(day): count for day, count in row.items()})
            for scope, row in store.table(TABLE).items()
        }
        self.reads_min = READS_MIN

    def count(self, scope: str, now: float) -> None:
        """One more read."""
        with self._lock:
            self._days.setdefault(scope, Counter())[int(now // DAY_SECONDS)] += 1
            self._changed = True

    def of(self, scope: str, now: float) -> Allocation:
        """What the account has used of what it may use. Call it under the store's lock."""
        since = now - DAYS * DAY_SECONDS
        with self._lock:
            days = self._days.get(scope, Counter())
            reads = sum(n for day, n in days.items() if day > since // DAY_SECONDS)
        transactions = sum(
            row["created"] > since
            for table in TRANSACTION_TABLES
            for row in self._store.table(f"{scope}/{table}").values()
        )
        allowed = max(self.reads_min, READS_PER_TRANSACTION * transactions)
        return Allocation(scope=scope, reads=reads, transactions=transactions, allowed=allowed)

    def is_over(self, scope: str, now: float) -> bool:
        """Whether the next read is one too many. Cheap while there were few reads in all."""
        with self._lock:
            if self._days.get(scope, Counter()).total() <= self.reads_min:
                return False
        with self._store.lock:
            return self.of(scope, now).is_over

    def every(self, now: float) -> list[Allocation]:
        """All accounts that ever read anything."""
        with self._store.lock:
            return [self.of(scope, now) for scope in sorted(self._days)]

    def keep(self) -> None:
        """Write the counts down, if there are new ones."""
        with self._lock:
            if not self._changed:
                return
            self._changed = False
            rows = {
                scope: {str(d): n for d, n in days.items()} for scope, days in self._days.items()
            }
        with self._store.batch() as batch:
            for scope, row in rows.items():
                batch.put(TABLE, scope, row)
