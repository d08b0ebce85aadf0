"""A workspace with a rule, people who have mailboxes, and a receiver on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger import queries
from reconcile.models import NotificationChannel, NotificationRule
from reconcile.notify import saving
from tests.reconcile.notify.chat import Chat, chat
from tests.support import desk


@pytest.fixture
def halden(db: None) -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(halden: Workspace) -> Tool:
    return desk.a_keyed_tool(halden)


@pytest.fixture
def lea(halden: Workspace) -> Any:
    user = desk.a_person(halden, Role.LEAD, "lea")
    user.email = "lea@example.com"
    user.save()
    return user


@pytest.fixture
def room(settings: Any) -> Iterator[Chat]:
    with chat() as ours:
        settings.COUNTERFOIL_PRIVATE_ORIGINS = [ours.origin]
        yield ours


def a_channel(workspace: Workspace, kind: str, user: Any, **said: Any) -> NotificationChannel:
    usual = {"name": f"By {kind}", "names_calls": True}
    made = NotificationChannel(workspace=workspace, kind=kind)
    saving.save_channel(made, usual | said, user=user, now=queries.clock())
    return made


def a_rule(
    workspace: Workspace, user: Any, *channels: NotificationChannel, **said: Any
) -> NotificationRule:
    usual: dict[str, Any] = {
        "name": "Closing soon",
        "condition": "closing",
        "within_seconds": 48 * 3600,
        "repeat_seconds": 4 * 3600,
    }
    made = NotificationRule(workspace=workspace, **(usual | said))
    saving.save_rule(made, channels, read_version=None, user=user, now=queries.clock())
    return made
