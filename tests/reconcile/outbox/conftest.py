"""A workspace whose agent waits for news at an address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger import queries
from reconcile.outbox.models import AgentAddress
from tests.reconcile.outbox.receiver import SECRET, Receiver, receiver
from tests.support import desk

SECRET_NAME = "TEST_AGENT_SECRET"


@pytest.fixture
def halden(db: None) -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(halden: Workspace) -> Tool:
    return desk.a_keyed_tool(halden)


@pytest.fixture
def ana(halden: Workspace):
    return desk.a_person(halden, Role.SUPPORT, "ana")


@pytest.fixture
def agent() -> Iterator[Receiver]:
    with receiver() as ours:
        yield ours


@pytest.fixture
def address(
    halden: Workspace,
    agent: Receiver,
    settings,
    monkeypatch: pytest.MonkeyPatch,
) -> AgentAddress:
    settings.COUNTERFOIL_PRIVATE_ORIGINS = [agent.url.removesuffix("/news")]
    monkeypatch.setenv(SECRET_NAME, SECRET)
    return AgentAddress.objects.create(
        workspace=halden,
        name="Billing agent",
        url=agent.url,
        secret_name=SECRET_NAME,
        made_at=queries.clock(),
    )
