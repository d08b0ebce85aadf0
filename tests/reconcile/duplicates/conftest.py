"""What the tests of duplicates share."""

import pytest

from reconcile.duplicates import finding


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are searched as soon as they are there: nobody else writes in a test."""
    monkeypatch.setattr(finding, "LAG_SECONDS", -1.0)
