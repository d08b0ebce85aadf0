"""A shop with calls of which nobody knows what became, and runs that ask about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reconcile.models import Run, RunItem
from reconcile.runs import making, working
from reconcile.runs.making import NewRun, Scope
from tests.reconcile.finding_out import Shop, open_shop


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


READING = (".list", ".retrieve", ".search")


@dataclass(slots=True, kw_only=True)
class Runs:
    """Runs of one shop, worked at in this process."""

    shop: Shop

    def lost(self, tool: Any = None) -> UUID:
        """A call whose payment never arrived."""
        return self.shop.unknown(self.shop.claim(tool or self.shop.charge))

    def paid(self) -> UUID:
        """A call whose payment was made, and whose answer was lost."""
        answer = self.shop.claim(self.shop.charge)
        self.shop.pay(answer)
        return self.shop.unknown(answer)

    def start(self, *claim_ids: UUID, **changes: Any) -> Run:
        return making.start(
            NewRun(workspace_id=self.shop.workspace.pk, scope=Scope(claim_ids=claim_ids), **changes)
        )

    def worked(self, run: Run) -> Run:
        assert working.work(run.pk) is False
        run.refresh_from_db()
        return run

    def results(self, run: Run) -> dict[str, int]:
        return dict(Counter(RunItem.objects.filter(run=run).values_list("result", flat=True)))

    def item(self, run: Run, claim_id: UUID) -> RunItem:
        return RunItem.objects.get(run=run, claim_id=claim_id)

    def reads(self) -> int:
        """How many reading requests the provider has counted itself."""
        asked = self.shop.customer.control("GET", "/requests")["requests"]
        return sum(row["operation"].endswith(READING) for row in asked)


@pytest.fixture
def runs(shop: Shop) -> Runs:
    return Runs(shop=shop)
