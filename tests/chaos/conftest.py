"""One place for each file of cells: it starts once, is broken many times, and is verified."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.tools import STORM_BOUNDS
from tests.chaos.place import Place, a_place
from tests.races.actors import Stage, a_stage
from tests.support.cut import Line, line_to

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture(scope="module")
def provider_line(provider: Provider) -> Iterator[Line]:
    """The way on which look-ups reach the provider; it can be cut."""
    with line_to(int(provider.url.rsplit(":", 1)[1])) as line:
        yield line


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
    process_env: dict[str, str],
    provider_line: Line,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Place]:
    with (
        django_db_blocker.unblock(),
        a_place(
            tmp_path_factory.mktemp("place") / "var",
            provider_url=provider_line.url,
            schema_of=process_env["DATABASE_URL"],
        ) as place,
    ):
        yield place


@pytest.fixture
def stage(place: Place, tmp_path: Path) -> Iterator[Stage]:
    """A workspace, agents and a provider of its own, in the place."""
    name = f"crash-{next(_numbers)}"
    # Long enough for whatever has to start again meanwhile: it is the clock that ends a lease here.
    bounds = replace(STORM_BOUNDS, lease_seconds=60, attempt_seconds_max=120)
    with a_stage(tmp_path / "provider", place.api_url, name=name, bounds=bounds) as stage:
        yield stage
