"""A running provider for each test, and the real stripe SDK pointed at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.sandbox.provider.server import Provider
from tests.reconcile.sandbox.customer import Customer


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with Provider(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def customer(provider: Provider) -> Iterator[Customer]:
    shopper = Customer(provider.url)
    yield shopper
    shopper.close()
