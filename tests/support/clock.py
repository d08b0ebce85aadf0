"""A ledger clock that tests move.

Production's `ledger_clock()` is replaced as a whole; it never reads a setting, because anybody who
may ask the ledger may set one. Inside a rolled-back test the replacement disappears by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import connection

from ledger.functions import call

START = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)

FROZEN = """
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT current_setting('tests.now')::timestamptz $$
"""
SHIFTED = """
CREATE TABLE IF NOT EXISTS tests_clock (shift interval NOT NULL);
INSERT INTO tests_clock SELECT '0' WHERE NOT EXISTS (SELECT FROM tests_clock);
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT clock_timestamp() + (SELECT shift FROM tests_clock) $$
"""
PRODUCTION = """
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ select clock_timestamp() $$
"""


@contextmanager
def a_clock_of_our_own() -> Iterator[None]:
    """Gives this process's connection a clock that no other process sees or waits for.

    Replacing the one function in two open transactions would make the second wait for the first.
    """
    schema = f"clock_of_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}, public")
        cursor.execute(FROZEN)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"SET search_path = public; DROP SCHEMA {schema} CASCADE")


class FrozenClock:
    """Stands still until it is moved. For one connection only; it replaces the clock unless the
    connection has `a_clock_of_our_own`."""

    def __init__(self, now: datetime = START, *, replace: bool = True) -> None:
        if replace:
            # Committed, it would stand still in every test that comes after this one.
            assert connection.in_atomic_block, "A frozen clock would outlive this test."
            with connection.cursor() as cursor:
                cursor.execute(FROZEN)
        self.now = now
        self._told: datetime | None = None
        self.tell()

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        self.tell()
        return self.now

    def let_pass(self, seconds: float) -> None:
        """Moves without telling the database yet: histories tick more often than they ask."""
        self.now += timedelta(seconds=seconds)

    def tell(self) -> None:
        if self._told != self.now:
            call("SELECT set_config('tests.now', %s, false)", [self.now.isoformat()])
            self._told = self.now


class ShiftedClock:
    """Runs, for every process on the database, ahead of the real one by what it was moved."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(SHIFTED)

    def advance(self, seconds: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tests_clock SET shift = shift + make_interval(secs => %s)", [seconds]
            )

    def restore(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(PRODUCTION + "; DROP TABLE tests_clock")
