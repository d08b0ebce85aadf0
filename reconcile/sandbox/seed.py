"""The demo's data: a workspace with one person for each role, its connections and its tools."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.contrib.auth.models import User

from effects.core.vocabulary import Role, TokenScope
from effects.models import Connection, Membership, Tool, Workspace
from effects.tools import save_tool
from ledger import auth, queries
from reconcile.models import NotificationRule, WebhookAddress
from reconcile.notify.saving import save_rule
from reconcile.sandbox.tools import (
    CONNECTION_OF,
    PLAIN_SECRET_NAME,
    STRIPE_CONNECTION,
    STRIPE_SECRET_NAME,
    WEBHOOK_SECRET_NAME,
    Bounds,
    ToolName,
    tool_fields,
)

WORKSPACE_NAME: Final = "Halden Outdoor"
WORKSPACE_SLUG: Final = "demo"
TOKEN_NAME: Final = "Sandbox agents"  # noqa: S105 - what people call it.
TOKEN_FILE: Final = "sandbox-agents.token"  # noqa: S105 - the file's name.
RULE_NAME: Final = "Windows that close soon"
LOGINS_FILE: Final = "demo-logins.txt"
PASSWORD_BYTES: Final = 9
PUBLIC_ID_BYTES: Final = 24


@dataclass(slots=True)
class Seeded:
    """What is there now. `passwords` by login, for those that were made or are still the first."""

    workspace: Workspace
    token_path: Path
    passwords: dict[str, str] = field(default_factory=dict)


def seed(
    folder: Path,
    provider_url: str,
    bounds: Bounds,
    *,
    slug: str = WORKSPACE_SLUG,
    roles: Iterable[Role] = tuple(Role),
) -> Seeded:
    """Make what is missing and leave what is there. `folder` keeps the token and the logins.

    The connections' address is always brought up to date: the provider's port may have changed.
    `roles` must hold the admin, who registers the tools.
    """
    workspace, _ = Workspace.objects.get_or_create(
        slug=slug, defaults={"name": WORKSPACE_NAME, "created_at": queries.clock()}
    )
    folder.mkdir(parents=True, exist_ok=True)
    passwords = _people(workspace, folder / LOGINS_FILE, roles)
    admin = User.objects.get(memberships__workspace=workspace, memberships__role=Role.ADMIN)
    connections = _connections(workspace, provider_url)
    _webhook_address(connections[STRIPE_CONNECTION])
    for name in ToolName:
        _tool(workspace, name, bounds, connections.get(CONNECTION_OF.get(name, "")), admin)
    _example_rule(workspace, admin)
    token_path = _token(workspace, folder / TOKEN_FILE, admin)
    return Seeded(workspace=workspace, token_path=token_path, passwords=passwords)


def _people(workspace: Workspace, path: Path, roles: Iterable[Role]) -> dict[str, str]:
    """One person for each role. Their first passwords stay readable in a private file."""
    known = _read_logins(path)
    for role in roles:
        login = str(role)
        user, made = User.objects.get_or_create(username=login)
        if made or not user.has_usable_password():
            known[login] = secrets.token_urlsafe(PASSWORD_BYTES)
            user.set_password(known[login])
            user.save()
        Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": role})
        if login in known and not user.check_password(known[login]):
            del known[login]  # Somebody chose another one since.
    _write_private(path, "".join(f"{login} {word}\n" for login, word in known.items()))
    return known


def _read_logins(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _connections(workspace: Workspace, provider_url: str) -> dict[str, Connection]:
    wanted = {
        STRIPE_CONNECTION: {
            "kind": Connection.Kind.STRIPE,
            "account": "acct_halden",
            "secret_name": STRIPE_SECRET_NAME,
        },
        "Sandbox bank": {"kind": Connection.Kind.HTTP, "secret_name": PLAIN_SECRET_NAME},
    }
    return {
        name: Connection.objects.update_or_create(
            workspace=workspace, name=name, defaults={**fields, "base_url": provider_url}
        )[0]
        for name, fields in wanted.items()
    }


def _webhook_address(connection: Connection) -> None:
    """Where the sandbox's provider sends its webhooks; whoever starts both sides tells it."""
    WebhookAddress.objects.get_or_create(
        connection=connection,
        defaults={
            "public_id": secrets.token_urlsafe(PUBLIC_ID_BYTES),
            "secret_name": WEBHOOK_SECRET_NAME,
        },
    )


def _tool(
    workspace: Workspace,
    name: ToolName,
    bounds: Bounds,
    connection: Connection | None,
    admin: User,
) -> None:
    known = Tool.objects.filter(workspace=workspace, name=name).first()
    if known is not None and known.registered:
        return  # An admin may have changed it; that is what the demo is for.
    tool = known or Tool(workspace=workspace, name=name)
    for field_name, value in tool_fields(name, bounds).items():
        setattr(tool, field_name, value)
    tool.connection = connection
    save_tool(
        tool,
        read_version=known.version if known else None,
        user=admin,
        reason="The sandbox registered its tools.",
        now=queries.clock(),
    )


def _example_rule(workspace: Workspace, admin: User) -> None:
    """One rule without a channel: what it tells is listed on the desk, and nothing leaves."""
    if NotificationRule.objects.filter(workspace=workspace).exists():
        return  # Also one that somebody retired: it does not come back.
    rule = NotificationRule(
        workspace=workspace,
        name=RULE_NAME,
        condition=NotificationRule.Condition.CLOSING,
        within_seconds=2 * 3600,
        repeat_seconds=4 * 3600,
    )
    save_rule(rule, (), read_version=None, user=admin, now=queries.clock())


def _token(workspace: Workspace, path: Path, admin: User) -> Path:
    """A token for the agents, kept in a file that only its owner reads."""
    if path.exists():
        try:
            known = auth.bearer(path.read_text(encoding="utf-8").strip(), TokenScope.CLAIM)
        except (auth.TokenRefused, auth.ScopeMissing):
            known = None  # Revoked, or of another database: a new one takes its place.
        if known is not None and known.workspace_id == workspace.pk:
            return path
    _, text = auth.issue(workspace, TOKEN_NAME, [TokenScope.CLAIM, TokenScope.READ], admin)
    _write_private(path, text + "\n")
    return path


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
