"""Calls to the ledger's SQL functions: one statement, one round trip, one commit.

psycopg is used directly under Django's connection, because Django's own cursor neither prepares
statements nor sends parameters apart from the text. A statement that is not prepared is parsed and
planned again each time, and a new cursor learns each time how values are read: together that costs
more than a whole replay.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
from django.db import connection
from psycopg import errors

from effects.core.problems import ClaimNotFound, StaleFence, TokenRefused

TRIES_MAX: Final = 4
"""How often a statement that lost a deadlock or a serialization race is tried."""


def call(statement: LiteralString, parameters: Sequence[Any]) -> list[Any]:
    """The rows that the statement answers, as plain tuples.

    Outside a transaction a loser of a race (SQLSTATE 40001, 40P01) is tried again here, so that
    nobody outside hears of it. Raises Django's database errors otherwise.
    """
    connection.ensure_connection()
    for left in reversed(range(TRIES_MAX)):
        try:
            return _run(statement, parameters)
        except (errors.SerializationFailure, errors.DeadlockDetected):
            if connection.in_atomic_block or not left:
                raise
    raise AssertionError("the last try either answers or raises")


class _Kept(threading.local):
    """The cursor of this thread's connection: one for all calls, each read to its end."""

    cursor: psycopg.Cursor[Any] | None = None

    def of(self, raw: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
        if self.cursor is None or self.cursor.connection is not raw:
            # Django says None, which switches prepared statements off. No number of uses prepares
            # one by itself: only those here are, which ask for it.
            raw.prepare_threshold = sys.maxsize
            self.cursor = psycopg.Cursor(raw)
        return self.cursor


_kept = _Kept()


def _run(statement: LiteralString, parameters: Sequence[Any]) -> list[Any]:
    raw: psycopg.Connection[Any] = connection.connection
    try:
        return _kept.of(raw).execute(statement, parameters, prepare=True).fetchall()
    except (errors.SerializationFailure, errors.DeadlockDetected):
        raise
    except psycopg.Error as error:
        _close_if_broken(raw)
        with connection.wrap_database_errors:
            raise error from error.__cause__


def _close_if_broken(raw: psycopg.Connection[Any]) -> None:
    """A lost connection is given back to Django, which then opens a new one for the next call."""
    if raw.broken and not connection.in_atomic_block:
        connection.close()


def call_for_claim(
    claim_id: UUID, statement: LiteralString, parameters: Sequence[Any]
) -> tuple[Any, ...]:
    """The one row that a function of one claim answers.

    Raises `ClaimNotFound` for another workspace's claim, `StaleFence` for an attempt that the
    claim never had, `TokenRefused` where the statement asks about a token that is not open.
    """
    try:
        rows = call(statement, parameters)
    except Exception as error:
        cause = error.__cause__ or error
        if not isinstance(cause, errors.NoDataFound):
            raise
        if cause.diag.message_hint == "fence":
            raise StaleFence(cause.diag.message_primary, claim_id=str(claim_id)) from None
        raise ClaimNotFound(f"No claim {claim_id} in this workspace.") from None
    if not rows:
        raise TokenRefused
    (row,) = rows
    assert isinstance(row, tuple)
    return row
