from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from effects.client import Ledger
from tests.effects.client.scripted_ledger import ScriptedLedger, client_of, scripted_ledger

if TYPE_CHECKING:
    from tests.effects.client.ways import Way


@pytest.fixture
def scripted() -> Iterator[ScriptedLedger]:
    """A ledger that answers as the test says."""
    with scripted_ledger() as ledger:
        yield ledger


@pytest.fixture
def ledger(scripted: ScriptedLedger) -> Iterator[Ledger]:
    """A client of the scripted ledger."""
    with client_of(scripted.url) as client:
        yield client


@pytest.fixture(params=["http", "postgres"])
def way(request: pytest.FixtureRequest, transactional_db: None) -> Way:
    """Each way from a client to a real ledger."""
    # The other fixtures are used where there is no server: see test_wheel.
    from tests.effects.client.ways import OverHttp, ToPostgres  # noqa: PLC0415

    if request.param == "postgres":
        return ToPostgres()
    return OverHttp(request.getfixturevalue("live_api"))
