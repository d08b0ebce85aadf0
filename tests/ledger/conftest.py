"""The cast of the ledger's tests: two workspaces, three tools, and agents that hold tokens."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from effects.core.vocabulary import EffectClass, TokenScope
from effects.models import Tool, Workspace
from ledger import auth
from tests.support.agents import Agent, in_process

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = (TokenScope.CLAIM, TokenScope.READ)


@pytest.fixture
def shop(db: None) -> Workspace:
    return Workspace.objects.create(name="Shop", slug="shop", created_at=BEGINNING)


@pytest.fixture
def neighbour(db: None) -> Workspace:
    return Workspace.objects.create(name="Neighbour", slug="neighbour", created_at=BEGINNING)


@pytest.fixture
def refund(shop: Workspace) -> Tool:
    """A keyed write whose provider honours a key for a day."""
    return Tool.objects.create(
        workspace=shop,
        name="refund",
        effect_class=EffectClass.KEYED_WRITE,
        contract="stripe.v1",
        window_seconds=86_400,
    )


@pytest.fixture
def email(shop: Workspace) -> Tool:
    """An unkeyed write."""
    return Tool.objects.create(workspace=shop, name="email", effect_class=EffectClass.UNKEYED_WRITE)


@pytest.fixture
def lookup(shop: Workspace) -> Tool:
    """A read, which needs no claim."""
    return Tool.objects.create(workspace=shop, name="lookup", effect_class=EffectClass.READ)


@pytest.fixture
def hire(client: Client) -> Callable[..., Agent]:
    """Makes an agent of a workspace, in the test's own process."""

    def make(workspace: Workspace, *scopes: TokenScope) -> Agent:
        _, plain = auth.issue(workspace, "an agent", scopes or EVERYTHING, user=None)
        return Agent(token=plain, send=in_process(client))

    return make


@pytest.fixture
def agent(hire: Callable[..., Agent], shop: Workspace, refund: Tool) -> Agent:
    return hire(shop)


@pytest.fixture
def stranger(hire: Callable[..., Agent], neighbour: Workspace) -> Agent:
    """An agent of another workspace."""
    return hire(neighbour)


@pytest.fixture
def person(django_user_model: type[User]) -> User:
    return django_user_model.objects.create_user("ada")


@pytest.fixture
def pass_time(db: None) -> Callable[..., None]:
    """Moves the database's clock forward; the test's transaction takes the change away again."""
    moved = timedelta()

    def forward(**duration: float) -> None:
        nonlocal moved
        moved += timedelta(**duration)
        seconds = moved.total_seconds()
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql"
                f" VOLATILE AS $$ SELECT clock_timestamp() + interval '{seconds} s' $$"
            )

    return forward
