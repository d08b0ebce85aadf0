"""What a connection says, what a change of it is, and the one way to save it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from effects.models import Connection, ConnectionChange
from effects.sealing import opened, seal

FIELD_WORDS: Final = {
    "name": "Name",
    "kind": "Kind",
    "base_url": "Address",
    "account": "Account",
    "secret_name": "Variable with the secret",
    "secret_entered_at": "Secret entered",
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
    """All settings as plain JSON: of a secret its variable's name, or when it was entered."""
    entered = connection.secret_entered_at
    written = f"{entered.astimezone(UTC):%-d %b %Y %H:%M:%S.%f} UTC" if entered else ""
    kept = {name: str(getattr(connection, name)) for name in FIELD_WORDS}
    return kept | {"secret_entered_at": written}


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Difference]:
    """What one version changed, in the order of the form; nothing for the first one."""
    if before is None:
        return []
    return [
        Difference(field=words, before=before.get(name) or "none", after=after.get(name) or "none")
        for name, words in FIELD_WORDS.items()
        if before.get(name) != after.get(name)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Who saves a connection, when and why. `secret` is empty where the kept one stays, or where
    its variable is named; `read_version` is the version that the person saw, None for a new one."""

    user: User
    now: datetime
    reason: str
    secret: str = ""
    read_version: int | None = None


def save_connection(connection: Connection, saving: Saving) -> ConnectionChange:
    """Saves a connection as its next version, with the row that says what, who and why.

    Raises `ConnectionMoved`.
    """
    with transaction.atomic():
        before = None
        if saving.read_version is not None:
            kept = Connection.objects.select_for_update().get(pk=connection.pk)
            if kept.version != saving.read_version:
                raise ConnectionMoved
            before = snapshot(kept)
            connection.version = saving.read_version + 1
            if kept.secret_name != connection.secret_name:
                connection.secret_seen_at = None
        if connection.secret_name:
            connection.secret_sealed = connection.secret_entered_at = None
        connection.save()
        if saving.secret:
            _seal(connection, saving)
        return ConnectionChange.objects.create(
            connection=connection,
            version=connection.version,
            changed_at=saving.now,
            changed_by=saving.user,
            reason=saving.reason,
            before=before,
            after=snapshot(connection),
        )


def _seal(connection: Connection, saving: Saving) -> None:
    """A secret is sealed for its row, so the row has to be there first."""
    connection.secret_sealed = seal(saving.secret, place=place_of_secret(connection))
    connection.secret_entered_at = saving.now
    connection.save(update_fields=["secret_sealed", "secret_entered_at"])


def place_of_secret(connection: Connection) -> str:
    return f"connection:{connection.pk}"


def secret_of(connection: Connection) -> str:
    """The secret, where this process may have it: sealed, or in its environment. Empty without.

    Raises `CannotOpen`.
    """
    if connection.secret_sealed is not None:
        return opened(bytes(connection.secret_sealed), place=place_of_secret(connection))
    return os.environ.get(connection.secret_name, "") if connection.secret_name else ""
