"""What one operation costs the database: commits, and bytes of write-ahead log without page images.

Page images are switched off while it is counted, and a checkpoint comes first: how many there are
depends on how long ago the last checkpoint was, not on the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg

OPERATIONS: Final = 200
WARM: Final = 20
IDLE_SECONDS: Final = 11
"""A session tells its numbers when it ends, or once it has been idle for ten seconds."""


@dataclass(frozen=True, slots=True)
class Cost:
    commits: float
    wal_bytes: float


@contextmanager
def still(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Nothing but the work itself writes: no page images, no vacuum."""
    _configure(connection, "ALTER SYSTEM SET full_page_writes = off")
    _configure(connection, "ALTER SYSTEM SET autovacuum = off")
    connection.execute("CHECKPOINT")
    try:
        yield
    finally:
        _configure(connection, "ALTER SYSTEM RESET full_page_writes")
        _configure(connection, "ALTER SYSTEM RESET autovacuum")


def _configure(connection: psycopg.Connection[Any], statement: Any) -> None:
    connection.execute(statement)
    connection.execute("SELECT pg_reload_conf()")


def measure(
    connection: psycopg.Connection[Any],
    work: Callable[[str], None],
    end: Callable[[], None],
    *,
    seconds_idle: float = 0,
    operations: int = OPERATIONS,
) -> Cost:
    """The cost of one operation. `end` closes the sessions that do the work; where they are not
    ours to close, `seconds_idle` is how long it takes until they have told their numbers."""
    tag = time.time_ns()
    for number in range(WARM):
        work(f"cost{tag}w{number}")
    before = _commits_after(connection, seconds_idle)
    start = _wal_position(connection)
    for number in range(operations):
        work(f"cost{tag}-{number}")
    written = _wal_position(connection) - start
    end()
    commits = _commits_after(connection, seconds_idle or 0.5) - before
    # A session of ours tells at its end what it has done since it began, the first ones among it.
    counted = operations if seconds_idle else WARM + operations
    return Cost(commits=commits / counted, wal_bytes=written / operations)


def _commits_after(connection: psycopg.Connection[Any], seconds: float) -> int:
    """Committed transactions of this database, those that only read among them; ours do not
    count."""
    time.sleep(seconds)
    with psycopg.connect(connection.info.dsn, password=connection.info.password) as asking:
        # Never committed, so that asking is not counted.
        row = asking.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        asking.rollback()
    assert row is not None
    return int(row[0])


def _wal_position(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])
