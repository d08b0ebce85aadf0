"""The one way out to a database: one SELECT in a transaction that cannot write, within limits.

The same rules of addresses hold as for the web (`door`): the name is resolved once, the address is
checked, and the connection goes to the address that was checked.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from django.db import connection as own_database
from psycopg import sql
from psycopg.rows import dict_row

from reconcile.adapters.base import Place
from reconcile.adapters.door import (
    CONNECT_SECONDS_MAX,
    NoAnswer,
    NotAllowed,
    checked_address,
    origin_of,
)

ROWS_MAX: Final = 5000
"""Most rows of one answer; more are not read, and the reading says so."""
_TLS_OPTIONS: Final = frozenset({"sslmode", "sslrootcert"})

# The order matters: first how far the replica has come, then the rows. Each statement sees what is
# committed when it starts, so the rows are at least as new as the instant that was read.
_WHERE_AND_HOW_LATE: Final = """
SELECT current_user::text AS role, current_database()::text AS database,
       pg_is_in_recovery() AS is_replica, pg_last_xact_replay_timestamp() AS replayed_until
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one SELECT brought.

    `replayed_until` is the commit time of the last transaction that a replica has replayed, by the
    primary's clock; None on a primary, and on a replica that has replayed none. `complete` is False
    where there were more than `ROWS_MAX` rows.
    """

    rows: tuple[dict[str, Any], ...]
    role: str
    database: str
    is_replica: bool
    replayed_until: datetime | None
    complete: bool


def select(
    place: Place, query: str, parameters: Mapping[str, Any], *, statement_seconds: int
) -> Rows:
    """Run one registered SELECT. Raises `NotAllowed` and `NoAnswer`, as `door.get` does.

    The query stands in brackets inside a SELECT of ours, where only a query may stand: a statement
    that changes something is a syntax error there. Its parameters are sent apart from it, and so it
    is one statement (https://www.postgresql.org/docs/current/protocol-flow.html, Extended Query).
    The transaction is READ ONLY, which the server enforces whatever a function in it tries.
    """
    assert not own_database.in_atomic_block, "A database was asked inside a transaction of ours."
    conninfo = _conninfo(place)
    asked = sql.SQL("SELECT * FROM (\n{}\n) AS asked LIMIT {}").format(
        # It was entered by an admin, and is held back by all of the above.
        sql.SQL(query.strip().rstrip(";")),
        sql.Literal(ROWS_MAX + 1),
    )
    try:
        with psycopg.connect(**conninfo, row_factory=dict_row) as database:
            database.read_only = True
            database.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            timeout = sql.Literal(statement_seconds * 1000)
            database.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(timeout))
            known = database.execute(_WHERE_AND_HOW_LATE).fetchone()
            assert known is not None, "a SELECT without FROM gives one row"
            with database.cursor() as cursor:
                rows = cursor.stream(asked, parameters)
                # Rows that nobody fetches keep the connection locked: they are sent back.
                with closing(cast("Generator[dict[str, Any]]", rows)):
                    found = _read(rows, bytes_max=place.way.limits.bytes)
    except psycopg.Error as error:
        raise _meant(error, place) from None
    return Rows(
        rows=tuple(found[:ROWS_MAX]),
        role=known["role"],
        database=known["database"],
        is_replica=known["is_replica"],
        replayed_until=known["replayed_until"] if known["is_replica"] else None,
        complete=len(found) <= ROWS_MAX,
    )


def _read(rows: Iterator[dict[str, Any]], *, bytes_max: int) -> list[dict[str, Any]]:
    """The rows, with values as JSON knows them. Raises `NoAnswer` for more than `bytes_max`."""
    found, size = [], 0
    for row in rows:
        plain = {name: _plain(value) for name, value in row.items()}
        size += len(json.dumps(plain, default=str))
        if size > bytes_max:
            raise NoAnswer(f"The answer is longer than the limit of {bytes_max} bytes.")
        found.append(plain)
    return found


def _plain(value: Any) -> Any:
    """A value of a column as the rules of objects read it: text, an exact number, JSON."""
    match value:
        case None | bool() | int() | str() | Decimal() | dict() | list():
            return value
        case float():
            return Decimal(repr(value))
        case datetime() | date():
            return value.isoformat()
        case bytes() | memoryview():
            return bytes(value).hex()
        case _:
            return str(value)


def _conninfo(place: Place) -> dict[str, Any]:
    """Where libpq is to go. Raises `NotAllowed` for an address or a secret that is none."""
    parts = urlsplit(place.base_url)
    if origin_of(place.base_url) != place.way.origin or parts.scheme != "postgresql":
        raise NotAllowed("The address of a database is postgresql://host:port/database.")
    name = unquote(parts.path.removeprefix("/"))
    if not name or "/" in name or parts.query or parts.fragment:
        raise NotAllowed("The address of a database is postgresql://host:port/database.")
    role, password, tls = _credentials(place)
    host, port = parts.hostname or "", parts.port or 5432
    return {
        # Unencrypted only where the operator of this installation allowed the origin by name.
        **({"sslmode": "prefer"} if place.way.private else _VERIFIED),
        **tls,
        "host": host,
        "hostaddr": checked_address(host, port, private=place.way.private),
        "port": port,
        "dbname": name,
        "user": role,
        "password": password,
        # psycopg waits in whole seconds, and two at least.
        "connect_timeout": int(min(CONNECT_SECONDS_MAX, place.way.limits.seconds)),
        "application_name": "counterfoil look-up",
        # What the environment of the worker says of other databases does not count here.
        "options": "",
        # A server that vanished without a word is noticed by the system, not by nobody.
        "keepalives_idle": 5,
        "keepalives_interval": 5,
        "keepalives_count": 2,
    }


def _credentials(place: Place) -> tuple[str, str, dict[str, str]]:
    """Role, password and TLS options: the secret is the password of the role that the connection
    names as its account, or a whole DSN of the same database."""
    if not place.secret.startswith(("postgresql://", "postgres://")):
        if not place.account:
            raise NotAllowed("The connection's account names the role; it is empty.")
        return place.account, place.secret, {}
    try:
        dsn = urlsplit(place.secret)
        port = dsn.port or 5432
    except ValueError:
        raise NotAllowed("The secret looks like a DSN and cannot be read as one.") from None
    parts = urlsplit(place.base_url)
    there = (dsn.hostname, port, dsn.path)
    if there != (parts.hostname, parts.port or 5432, parts.path):
        raise NotAllowed("The DSN in the secret leads elsewhere than the connection's address.")
    role, options = unquote(dsn.username or ""), dict(parse_qsl(dsn.query))
    if place.account and role != place.account:
        raise NotAllowed(f"The DSN in the secret is of another role than {place.account}.")
    if odd := sorted(set(options) - _TLS_OPTIONS):
        raise NotAllowed(f"The DSN in the secret says {odd[0]}, which is not used here.")
    return role, unquote(dsn.password or ""), options


_VERIFIED: Final = {"sslmode": "verify-full", "sslrootcert": "system"}
_CODES_OF_SETUP: Final = ("28", "3D", "42", "25001", "25006", "0A", "22", "54")
"""Classes of SQLSTATE that mend only by people: no right to enter, no such database, a query that
is wrong or writes (https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_REFUSALS: Final = ("password authentication failed", "does not exist", "no pg_hba.conf entry")
"""What libpq tells of a refusal to enter, which comes without a SQLSTATE."""


def _meant(error: psycopg.Error, place: Place) -> NotAllowed | NoAnswer:
    """A database's error as the door tells it."""
    said = str(error.diag.message_primary or error).strip() or type(error).__name__
    code = error.sqlstate or ""
    if code.startswith(_CODES_OF_SETUP) or isinstance(error, psycopg.ProgrammingError):
        return NotAllowed(f"The database does not let us ask so: {said}.")
    if any(refusal in said for refusal in _REFUSALS):
        return NotAllowed(f"The database does not let us in: {said}.")
    return NoAnswer(f"No whole answer came from {place.way.origin}: {said}.")
