"""A running sandbox provider for each test, and a customer who uses it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.adapters import stripe as stripe_adapter
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


@pytest.fixture(autouse=True)
def nobody_remembers_accounts() -> None:
    stripe_adapter.forget_accounts()
