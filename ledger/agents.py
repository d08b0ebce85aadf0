"""Database roles of agents that speak to PostgreSQL themselves: made, listed and closed here.

A role may execute the agent functions (`ledger/sql/agent_*_v1.sql`) and nothing else. Which
workspace it opens is written beside it and looked up there at every call.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any, Final, LiteralString
from urllib.parse import quote, urlencode

import psycopg
from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from effects.core.identity import encoded
from effects.models import Workspace
from effects.redaction.models import RedactionState
from ledger import restore_fence
from ledger.functions import call
from ledger.models import AgentRole
from ledger.queries import clock

ROLE_CHARACTERS_MAX: Final = 63
SECRET_BYTES: Final = 24
CONNECTIONS_DEFAULT: Final = 50

FUNCTIONS: Final[tuple[LiteralString, ...]] = (
    "ledger_agent_tool_v1",
    "ledger_agent_claim_v1",
    "ledger_agent_claim_batch_v1",
    "ledger_agent_status_v1",
    "ledger_agent_report_v1",
    "ledger_agent_sent_v1",
    "ledger_agent_heartbeat_v1",
)
"""All that an agent's role may execute."""

SETTINGS: Final[dict[LiteralString, LiteralString]] = {
    "default_transaction_isolation": "read committed",
    "statement_timeout": "8s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
}
"""What a session of an agent begins with. It may change them; nothing but its own patience rests
on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgentRole:
    """A role as it was just made; `url` holds its password, which nobody can show again."""

    role: str
    url: str


def create(
    workspace: Workspace,
    name: str,
    *,
    address: str | None = None,
    connections_max: int = CONNECTIONS_DEFAULT,
) -> NewAgentRole:
    """Makes a database role for agents of the workspace.

    `address` is where agents find the database, ``host`` or ``host:port``; without it, where we
    do. Raises ValueError for a role without a name, `LedgerBehind` while the database is older than
    its mark, and django.db.ProgrammingError where our own role may not make roles.
    """
    if not name.strip():
        raise ValueError("A role needs a name: who or what will use it.")
    restore_fence.guard()
    slug = re.sub(r"[^a-z0-9]+", "_", workspace.slug.lower())[: ROLE_CHARACTERS_MAX - 24]
    role = f"counterfoil_{slug}_{secrets.token_hex(4)}"
    password = secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        _create_in_database(role, password, connections_max)
        # Held, so that the version which the role begins with is not counted up unseen.
        RedactionState.objects.get_or_create(workspace=workspace)
        redaction = RedactionState.objects.select_for_update().get(workspace=workspace)
        AgentRole.objects.create(
            role=role,
            workspace=workspace,
            name=name.strip(),
            part=encoded(workspace.pk),
            desk_url=settings.COUNTERFOIL_DESK_URL,
            created_at=clock(),
            redaction_version=redaction.version,
        )
        restore_fence.confirm()
    return NewAgentRole(role=role, url=_url(role, password, address))


def roles(workspace: Workspace) -> list[AgentRole]:
    """Every role of the workspace, revoked ones included, newest first."""
    return list(AgentRole.objects.filter(workspace=workspace).order_by("-created_at", "-pk"))


def revoke(workspace: Workspace, role: str) -> bool:
    """Closes a role for ever, from the next call on, sessions that are open included. False: there
    is no such open role."""
    with transaction.atomic():
        found = AgentRole.objects.filter(workspace=workspace, role=role, revoked_at=None)
        if found.update(revoked_at=clock()) != 1:
            return False
        named = sql.Identifier(role)
        _execute(sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM {}").format(_functions(), named))
        _execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(named))
    return True


def _create_in_database(role: str, password: str, connections_max: int) -> None:
    named = sql.Identifier(role)
    create_role = "CREATE ROLE {} LOGIN NOINHERIT CONNECTION LIMIT {} PASSWORD {}"
    _execute(
        sql.SQL(create_role).format(named, sql.Literal(connections_max), _verifier(role, password))
    )
    for setting, value in SETTINGS.items():
        statement = sql.SQL("ALTER ROLE {} SET {} = {}")
        _execute(statement.format(named, sql.Identifier(setting), sql.Literal(value)))
    _execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(_functions(), named))
    ((may_look,),) = call("SELECT has_schema_privilege(%s, 'public', 'USAGE')", [role])
    if not may_look:
        _execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(named))


def _functions() -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(function) for function in FUNCTIONS)


def _verifier(role: str, password: str) -> sql.Literal:
    """What the server keeps of a password: the password itself would stand in its log."""
    pgconn = _raw().pgconn
    encrypted = pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    return sql.Literal(encrypted.decode())


def _execute(statement: sql.Composed) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(_raw()))


def _raw() -> psycopg.Connection[Any]:
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw


def _url(role: str, password: str, address: str | None) -> str:
    known = connection.settings_dict
    host, port = str(known["HOST"]), str(known["PORT"])
    where = address if address is not None else f"{host}:{port}".removesuffix(":")
    query = ""
    if where.startswith("/"):  # A Unix socket's folder has no place among the hosts of a URL.
        query = "?" + urlencode({"host": host} | ({"port": port} if port else {}))
        where = ""
    return f"postgresql://{role}:{password}@{where}/{quote(str(known['NAME']), safe='')}{query}"
