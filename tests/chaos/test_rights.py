"""A role that owns nothing serves everything, and cannot touch what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from effects.checks import check_rights
from effects.core.vocabulary import ClaimState
from ledger import append
from reconcile import tasks
from reconcile.adapters import stripe as stripe_adapter
from reconcile.sandbox.provider.server import Provider
from tests.chaos import place as places
from tests.chaos.place import Place, connected
from tests.reconcile.finding_out import Shop, shop_of
from tests.reconcile.sandbox.customer import Customer
from tests.support.clock import ShiftedClock
from tests.support.stack import ROOT

ROLE = "counterfoil_app"
ROLES = ROOT / "docs" / "roles.sql"


@pytest.fixture(scope="module")
def serving_url(place: Place) -> str:
    """The database as the serving role reaches it, granted by the statements of the docs."""
    place.psql("-c", f"create role {ROLE} login password 'app'")
    place.psql("-v", f"app={ROLE}", "-f", str(ROLES))
    place.psql("-c", f"grant pg_read_all_stats to {ROLE}")
    port, name = place.cluster.port, "counterfoil"
    return f"postgresql://{ROLE}:app@127.0.0.1:{port}/{name}"


@pytest.fixture
def shop(
    serving_url: str, provider: Provider, place: Place, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    clock = ShiftedClock()  # Replacing the clock is the owner's affair.
    place.psql("-v", f"app={ROLE}", "-f", str(ROLES))
    monkeypatch.setenv("TEST_STRIPE_KEY", "rk_test_halden")
    stripe_adapter.forget_accounts()
    customer = Customer(provider.url)
    with ExitStack() as stack:
        stack.callback(customer.close)
        stack.callback(clock.restore)
        stack.enter_context(connected(serving_url))
        monkeypatch.setattr("django.conf.settings.COUNTERFOIL_PRIVATE_ORIGINS", [provider.url])
        yield shop_of(customer, clock)


def test_the_serving_role_claims_reports_finds_out_and_verifies(shop: Shop) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer)
    claim_id = shop.unknown(answer)
    append.sweep(10)
    assert append.take_due_lookups(10, tasks.HANDED_OVER_SECONDS)
    assert shop.look(claim_id).state is ClaimState.COMPLETED
    assert places.unsound() == []
    assert check_rights(None, databases=["default"]) == []


@pytest.mark.parametrize(
    "statement",
    [
        "update ledger_event set at = at",
        "delete from ledger_event",
        "truncate ledger_event cascade",
        "update ledger_agentrole set workspace_id = workspace_id + 1",
        "alter table ledger_event disable trigger all",
        "drop trigger ledger_event_append_only on ledger_event",
        "create or replace function ledger_clock() returns timestamptz return now()",
    ],
)
def test_the_serving_role_cannot_change_what_was_recorded(serving_url: str, statement: str) -> None:
    with (
        psycopg.connect(serving_url) as session,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        session.execute(statement)
