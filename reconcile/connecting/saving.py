"""What a connection says, what a change of it is, and the one way to save it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from effects.models import Connection, ConnectionChange

FIELD_WORDS: Final = {
    "name": "Name",
    "kind": "Kind",
    "base_url": "Address",
    "account": "Account",
    "secret_name": "Variable with the secret",
}


class ConnectionMoved(Exception):
    """Somebody saved the connection after this version of it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting before and after, in words."""

    field: str
    before: str
    after: str


def snapshot(connection: Connection) -> dict[str, Any]:
    """All settings as plain JSON. The secret is not among them: only its name is kept anywhere."""
    return {name: str(getattr(connection, name)) for name in FIELD_WORDS}


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Difference]:
    """What one version changed, in the order of the form; nothing for the first one."""
    if before is None:
        return []
    return [
        Difference(field=words, before=before.get(name) or "none", after=after.get(name) or "none")
        for name, words in FIELD_WORDS.items()
        if before.get(name) != after.get(name)
    ]


def save_connection(
    connection: Connection, *, read_version: int | None, user: User, reason: str, now: datetime
) -> ConnectionChange:
    """Saves a connection as its next version, with the row that says what, who and why.

    `read_version` is the version that the person saw, None for a new one. Raises `ConnectionMoved`.
    """
    with transaction.atomic():
        before = None
        if read_version is not None:
            kept = Connection.objects.select_for_update().get(pk=connection.pk)
            if kept.version != read_version:
                raise ConnectionMoved
            before = snapshot(kept)
            connection.version = read_version + 1
            if kept.secret_name != connection.secret_name:
                connection.secret_seen_at = None
        connection.save()
        return ConnectionChange.objects.create(
            connection=connection,
            version=connection.version,
            changed_at=now,
            changed_by=user,
            reason=reason,
            before=before,
            after=snapshot(connection),
        )
