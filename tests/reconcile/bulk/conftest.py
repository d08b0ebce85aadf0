"""The cast of the bulks: a workspace, a tool with a key, a lead, and three lost calls."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from tests.support import desk


@pytest.fixture
def halden() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(halden: Workspace) -> Tool:
    return desk.a_keyed_tool(halden)


@pytest.fixture
def lea(halden: Workspace) -> User:
    return desk.a_person(halden, Role.LEAD, "lea")


@pytest.fixture
def three(charge: Tool) -> list[UUID]:
    return [desk.a_lost_call(charge) for _ in range(3)]
