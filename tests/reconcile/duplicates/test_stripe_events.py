"""Stripe's events, read at a provider that speaks its contract: the key that really arrived."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from ledger import queries
from reconcile.duplicates import on_the_wire
from reconcile.models import ImportedEvidence
from tests.reconcile.finding_out import Shop, open_shop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


def bring(shop: Shop, connection: str = "stripe") -> None:
    since = queries.clock() - timedelta(days=1)
    call_command(
        "import_evidence",
        "stripe",
        workspace=shop.workspace.slug,
        connection=connection,
        since=since,
    )


@pytest.mark.case("P04")
def test_stripes_events_show_which_key_arrived_with_the_request(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    assert shop.pay(answer)
    bring(shop)
    bring(shop)
    kept = ImportedEvidence.objects.filter(claim_id=answer.claim_id)
    assert {one.facts["key"] for one in kept} == {answer.key}
    assert len({one.name for one in kept}) == kept.count()
    check = on_the_wire.of_tool(shop.charge)
    assert check is not None
    assert str(check.word) == "identical"
    assert shop.customer.truth()  # one payment, and the import made none


def test_another_kind_of_connection_is_refused(shop: Shop) -> None:
    with pytest.raises(CommandError, match="no connection to Stripe"):
        bring(shop, "http")
