"""Connections of an agent to PostgreSQL: one question, one answer, and a time by which it is there.

psycopg connects; questions go over its public wrapper of libpq. Its cursors would wait for a silent
server for ever, and a claim is asked in half the time without them.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import conninfo, pq

from effects.client.postgres_values import reader, written
from effects.core.problems import (
    BadRequest,
    LedgerBehind,
    LedgerProblem,
    LedgerUnavailable,
    StaleFence,
    TokenRefused,
)

__all__ = ["Connections", "Statement"]

TRIES_MAX: Final = 4
"""How often a statement that lost a deadlock or a serialization race is asked."""
IDLE_SECONDS_TRUSTED: Final = 1.0
"""A connection that was idle for longer is looked at before it is used."""
RETRY_AFTER_SECONDS: Final = 2
RETRY_AFTER_BEHIND_SECONDS: Final = 60

OTHERS_WON: Final = frozenset({"40001", "40P01"})
NOT_FOUND: Final = "P0002"
NOT_PREPARED: Final = frozenset({"26000", "42P05"})
"""The prepared statement is another session's, or nobody's: a pooler hands sessions about."""
REFUSED: Final = "CF401"
BEHIND: Final = "CF503"
NO_RIGHT: Final = "42501"
LOGIN_REFUSED: Final = (
    "password authentication failed",
    "SASL authentication failed",  # PgBouncer
    "no password supplied",
    "is not permitted to log in",
)
"""How a server says that it knows the role, or the password, not; a login has no SQLSTATE here."""

TEXT, BINARY = 0, 1


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with `$1`, `$2`, ... for its values.

    `name` is its own in a session, `kinds` are the types of its values: bytes and UUID travel in
    binary form, everything else as text.
    """

    name: bytes
    command: bytes
    kinds: tuple[type, ...]

    @property
    def formats(self) -> list[int]:
        return [BINARY if kind in {bytes, UUID} else TEXT for kind in self.kinds]


class Connections:
    """The connections of one process, the most recently used one first.

    `password` is for an address that holds none. The address is kept with its password and shown
    without. Raises ValueError for a text that is no address of PostgreSQL.
    """

    def __init__(
        self,
        url: str,
        *,
        password: str | Callable[[], str],
        connect_seconds: float,
        connections_max: int,
    ) -> None:
        try:
            self._parts = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The error's own text may hold the password.
            raise ValueError(
                "This is no address of a PostgreSQL database. It looks like"
                " postgresql://role:password@host:5432/database."
            ) from None
        self._password = password
        self._connect_seconds = connect_seconds
        self._connections_max = connections_max
        self._prepares = True
        self._closed = False
        self._readers: dict[bytes, list[tuple[int, Callable[[bytes], Any]]]] = {}
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[_Link] = []
        self._open = 0

    @property
    def address(self) -> str:
        """Where this leads to, without the password."""
        named = self._parts.get
        host, port = named("host") or "", named("port") or ""
        return f"postgresql://{named('user') or ''}@{host}:{port}/{named('dbname') or ''}"

    def ask(
        self, statement: Statement, values: Sequence[Any], *, seconds: float
    ) -> list[list[Any]] | None:
        """The rows that the statement answers; None where it found no such claim.

        Raises a `LedgerProblem`; `LedgerUnavailable` where no usable answer came within `seconds`.
        """
        until = time.monotonic() + seconds
        texts = [written(value) for value in values]
        for left in reversed(range(TRIES_MAX)):
            prepares = self._prepares  # Another thread may find out meanwhile.
            result = self._run(statement, texts, prepares=prepares, until=until)
            if result.status == pq.ExecStatus.TUPLES_OK:
                return self._rows(statement, result)
            state = _field(result, pq.DiagnosticField.SQLSTATE)
            if state in NOT_PREPARED and prepares:
                # Nothing was executed. From here on each statement comes with its text.
                self._prepares = False
            elif state not in OTHERS_WON or not left:
                problem = _problem_in(result, state)
                if problem is None:
                    return None
                raise problem
        raise LedgerUnavailable(f"The ledger at {self.address} did not come to an answer.")

    def _rows(self, statement: Statement, result: pq.abc.PGresult) -> list[list[Any]]:
        readers = self._readers.get(statement.name)
        if readers is None:
            columns = range(result.nfields)
            readers = [(column, reader(result.ftype(column))) for column in columns]
            self._readers[statement.name] = readers
        value = result.get_value
        return [
            [None if (raw := value(row, at)) is None else read(raw) for at, read in readers]
            for row in range(result.ntuples)
        ]

    def close(self) -> None:
        self._closed = True
        if self._pid == os.getpid():
            with self._changed:
                idle, self._idle = self._idle, []
                self._open -= len(idle)
            for link in idle:
                link.close()

    def _begin_in_child(self) -> None:
        """A forked child must not write into its parent's connections, nor say goodbye on them."""
        _PARENTS.append(self._idle)
        self._pid = os.getpid()
        self._changed = threading.Condition()  # Another thread may have held the old one.
        self._idle = []
        self._open = 0

    def _run(
        self,
        statement: Statement,
        texts: Sequence[bytes | None],
        *,
        prepares: bool,
        until: float,
    ) -> pq.abc.PGresult:
        link = self._take(until)
        usable = False
        try:
            result = link.run(statement, texts, prepares=prepares, until=until)
            usable = link.is_usable
        except (psycopg.Error, OSError) as error:
            raise LedgerUnavailable(
                f"The ledger at {self.address} gave no answer ({type(error).__name__}: {error})."
                " Ask again later."
            ) from error
        finally:
            self._give_back(link, usable=usable)
        return result

    def _take(self, until: float) -> _Link:
        if self._pid != os.getpid():
            self._begin_in_child()
        with self._changed:
            link = self._idle_link()
            while link is None and self._open >= self._connections_max:
                if not self._changed.wait(until - time.monotonic()):
                    raise LedgerUnavailable(
                        f"All {self._connections_max} connections to {self.address} are in use."
                    )
                link = self._idle_link()
            if link is not None:
                return link
            self._open += 1
        try:
            return self._connect()
        except BaseException:
            with self._changed:
                self._open -= 1
                self._changed.notify()
            raise

    def _idle_link(self) -> _Link | None:
        """The idle connection that was used last, if it still lives."""
        if self._closed:
            raise LedgerUnavailable(f"The connection to {self.address} was closed.")
        while self._idle:
            link = self._idle.pop()
            if link.is_alive():
                return link
            self._open -= 1
            link.close()
        return None

    def _give_back(self, link: _Link, *, usable: bool) -> None:
        gone = [] if usable and not self._closed else [link]
        with self._changed:
            if not usable:
                # What ended this one has probably ended them all, and a try is not for each.
                gone += self._idle
                self._idle.clear()
            self._open -= len(gone)
            if not gone:
                link.idle_since = time.monotonic()
                self._idle.append(link)
            self._changed.notify()
        for each in gone:
            each.close()

    def _connect(self) -> _Link:
        parts: dict[str, Any] = {
            "connect_timeout": max(2, round(self._connect_seconds)),
            "fallback_application_name": "counterfoil",
            **self._parts,
            "client_encoding": "utf8",
        }
        if self._password and not parts.get("password"):
            known = self._password
            parts["password"] = known if isinstance(known, str) else known()
        try:
            return _Link(psycopg.connect(autocommit=True, **parts))
        except psycopg.Error as error:
            says = str(error).strip()
            if any(sign in says for sign in LOGIN_REFUSED):
                raise TokenRefused(
                    f"The ledger's database at {self.address} does not let this role in."
                ) from error
            raise LedgerUnavailable(
                f"The ledger's database at {self.address} cannot be reached ({says})."
                " Ask again later."
            ) from error


_PARENTS: Final[list[Any]] = []
"""Connections that belong to the process before a fork: never used, and never closed from here."""


class _Link:
    """One open connection. Whoever has taken it from its `Connections` alone uses it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._prepared: dict[bytes, list[int]] = {}
        self.idle_since = time.monotonic()

    @property
    def is_usable(self) -> bool:
        """Whether it may be used for the next question: alive, and in no transaction."""
        return self._pgconn.transaction_status == pq.TransactionStatus.IDLE

    def is_alive(self) -> bool:
        """Asked before a connection that was idle is used: has the server ended it meanwhile?

        A server has nothing to say to an idle connection but its end, or news of its settings, for
        which a new connection is no loss.
        """
        if time.monotonic() < self.idle_since + IDLE_SECONDS_TRUSTED:
            return True
        return not _is_ready(self._pgconn.socket, writes=False, seconds=0)

    def close(self) -> None:
        self._connection.close()

    def run(
        self,
        statement: Statement,
        texts: Sequence[bytes | None],
        *,
        prepares: bool,
        until: float,
    ) -> pq.abc.PGresult:
        """The statement's result, be it an error. Raises psycopg.Error and OSError (TimeoutError)
        where none came; the connection is then in no known state."""
        pgconn = self._pgconn
        if not prepares:
            pgconn.send_query_params(
                statement.command, texts, param_formats=statement.formats, result_format=BINARY
            )
            return self._result(until)
        formats = self._prepared.get(statement.name)
        if formats is None:
            pgconn.send_prepare(statement.name, statement.command)
            result = self._result(until)
            if result.status != pq.ExecStatus.COMMAND_OK:
                return result
            formats = self._prepared[statement.name] = statement.formats
        pgconn.send_query_prepared(
            statement.name, texts, param_formats=formats, result_format=BINARY
        )
        return self._result(until)

    def _result(self, until: float) -> pq.abc.PGresult:
        pgconn = self._pgconn
        while pgconn.flush():
            self._wait(until, writes=True)
            pgconn.consume_input()
        result = None
        while True:
            while pgconn.is_busy():
                self._wait(until, writes=False)
                pgconn.consume_input()
            following = pgconn.get_result()
            if following is None:
                break
            result = following
        if result is None:
            raise psycopg.OperationalError("the server gave no result")
        return result

    def _wait(self, until: float, *, writes: bool) -> None:
        if not _is_ready(self._pgconn.socket, writes=writes, seconds=until - time.monotonic()):
            raise TimeoutError("the server is silent")


def _is_ready(socket: int, *, writes: bool, seconds: float) -> bool:
    """Whether the socket can be read (or, if asked, written) within `seconds`."""
    seconds = max(0.0, seconds)
    if not hasattr(select, "poll"):  # Windows has none; elsewhere select knows 1024 files only.
        return any(select.select([socket], [socket] if writes else [], [], seconds))
    ready = select.poll()
    ready.register(socket, select.POLLIN | (select.POLLOUT if writes else 0))
    return bool(ready.poll(seconds * 1000))


# Refusals


def _field(result: pq.abc.PGresult, field: pq.DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode(errors="replace")


def _problem_in(result: pq.abc.PGresult, state: str) -> LedgerProblem | None:
    """What an error of the server means to the agent; None for "no such claim"."""
    says = _field(result, pq.DiagnosticField.MESSAGE_PRIMARY)
    hint = _field(result, pq.DiagnosticField.MESSAGE_HINT)
    if state == NOT_FOUND:
        return StaleFence(says) if hint == "fence" else None
    return _problem(state, says, hint)


def _problem(state: str, says: str, hint: str) -> LedgerProblem:
    if state == REFUSED:
        return TokenRefused(says)
    if state == BEHIND:
        kind = LedgerBehind if hint == "behind" else LedgerUnavailable
        after = RETRY_AFTER_BEHIND_SECONDS if hint == "behind" else RETRY_AFTER_SECONDS
        return kind(says, retry_after_seconds=after)
    if state == NO_RIGHT:
        return TokenRefused(f"This role is no agent's, or no more: {says}.")
    if state == "22023":  # Raised by the agent functions themselves, in words of ours.
        return BadRequest(says)
    if state.startswith(("22", "23", "54")):
        # The server's own words may hold values, which may be secrets.
        return BadRequest(f"The ledger's database refused what was said (SQLSTATE {state}).")
    why = f"SQLSTATE {state}" + (f", {says}" if state.startswith("42") else "")
    return LedgerUnavailable(
        f"The ledger's database gave no usable answer ({why}). Ask again later.",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )
