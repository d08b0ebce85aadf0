"""From a lost answer to a settled claim, at GoCardless, PayPal, Checkout.com and Salesforce."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests

from effects.core.messages import ClaimAnswer
from effects.core.vocabulary import ClaimState, EffectClass
from effects.models import Connection, Tool
from ledger import queries
from reconcile.adapters import rest
from reconcile.judge import Meaning
from tests.reconcile.finding_out import LEASE_SECONDS, WORKING_SECONDS, Shop, id_of, open_shop
from tests.reconcile.sandbox.shoppers import MERCHANT, ORGANISATION, Shopper

pytestmark = pytest.mark.django_db(transaction=True)

AMOUNT = 4200


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One provider: where it is asked, how its tool sends, and how its look-up is entered."""

    kind: str
    lookup_kind: str
    lookup: dict[str, Any]
    account: str
    secret: str
    send: Callable[[Shopper, ClaimAnswer, dict[str, Any], str], requests.Response]
    arguments: Callable[[Shopper], dict[str, Any]] = field(default=lambda _shopper: {})


def _refund(shopper: Shopper, answer: ClaimAnswer, said: dict[str, Any], fault: str) -> Any:
    key, marker = str(answer.key), str(answer.marker)
    return shopper.give_back(key, said["capture_id"], marker, value="42.00", fault=fault)


CASES = (
    Case(
        kind="gocardless",
        lookup_kind="gocardless.payments",
        lookup={"map": {"pending_submission": "found"}},
        account="CRHALDEN",
        secret="sandbox_halden",
        send=lambda s, a, _, fault: s.debit(str(a.key), str(a.marker), fault=fault),
    ),
    Case(
        kind="paypal",
        lookup_kind="paypal.refunds",
        lookup={},
        account=MERCHANT,
        secret=f"{MERCHANT}:client_secret",
        send=_refund,
        arguments=lambda shopper: {"capture_id": shopper.paid_order()[1]},
    ),
    Case(
        kind="checkout",
        lookup_kind="checkout.payments",
        lookup={},
        account="",
        secret="sk_sbox_halden",
        send=lambda s, a, _, fault: s.charge(str(a.key), str(a.marker), fault=fault),
    ),
    Case(
        kind="salesforce",
        lookup_kind="salesforce.records",
        lookup={
            "object": "Refund__c",
            "external_id": "Counterfoil__c",
            "amount": "Amount__c",
            "sees_all_records": True,
        },
        account=ORGANISATION,
        secret=f"{ORGANISATION}:client_secret",
        send=lambda s, a, _, fault: s.upsert(str(a.marker), fault=fault),
    ),
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    rest.forget()
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def shopper(shop: Shop) -> Iterator[Shopper]:
    one = Shopper(shop.customer.url)
    yield one
    one.close()


@pytest.fixture(params=CASES, ids=lambda case: case.kind)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Case:
    one: Case = request.param
    monkeypatch.setenv("TEST_PROVIDER_SECRET", one.secret)
    return one


def a_tool(shop: Shop, case: Case, **lookup: Any) -> Tool:
    connection = Connection.objects.create(
        workspace=shop.workspace,
        name="the provider",
        kind=case.kind,
        base_url=f"{shop.customer.url}/{case.kind}",
        account=case.account,
        secret_name="TEST_PROVIDER_SECRET",
    )
    return Tool.objects.create(
        workspace=shop.workspace,
        connection=connection,
        name=f"act at {case.kind}",
        effect_class=EffectClass.KEYED_WRITE,
        contract=case.kind,
        window_seconds=6 * 3600,
        lease_seconds=LEASE_SECONDS,
        lookup_kind=case.lookup_kind,
        lookup={**case.lookup, **lookup},
        amount_field="amount",
        currency_field="currency",
    )


def sent(shop: Shop, shopper: Shopper, case: Case, tool: Tool, fault: str) -> UUID:
    """A call whose answer never came."""
    said = {"amount": AMOUNT, "currency": "eur", **case.arguments(shopper)}
    answer = shop.claim(tool, arguments=json.dumps(said))
    with pytest.raises(requests.ConnectionError):
        case.send(shopper, answer, said, fault)
    shop.unknown(answer)
    return id_of(answer)


def effects_of(shopper: Shopper, claim_id: UUID) -> list[str]:
    ours = (one for one in shopper.truth() if claim_id.hex in str(one["marker"]))
    return [one["object_id"] for one in ours]


def test_an_effect_whose_answer_was_lost_is_known_to_have_happened(
    shop: Shop, shopper: Shopper, case: Case
) -> None:
    claim_id = sent(shop, shopper, case, a_tool(shop, case), "drop_after_commit")

    looked = shop.look(claim_id)

    assert looked.state is ClaimState.COMPLETED
    assert [queries.claim(shop.workspace.pk, claim_id).object] == effects_of(shopper, claim_id)


def test_nothing_settles_only_where_the_entry_says_that_the_provider_is_not_late(
    shop: Shop, shopper: Shopper, case: Case
) -> None:
    tool = a_tool(shop, case)
    claim_id = sent(shop, shopper, case, tool, "drop_before")
    shop.past(LEASE_SECONDS + WORKING_SECONDS + 60)

    unsure = shop.look(claim_id)
    assert unsure.judgement is not None
    assert (unsure.state, unsure.judgement.meaning) == (ClaimState.UNKNOWN, Meaning.UNCLEAR)

    Tool.objects.filter(pk=tool.pk).update(lookup={**tool.lookup, "delay_class": "none"})
    sure = shop.look(claim_id)

    assert sure.state is ClaimState.NOT_EXECUTED
    assert effects_of(shopper, claim_id) == []


# The other two let nothing happen twice: an external id makes one record, and no more can be given
# back than was captured.
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.kind in {"gocardless", "checkout"}],
    ids=lambda c: c.kind,
    indirect=True,
)
def test_a_second_effect_is_a_conflict(shop: Shop, shopper: Shopper, case: Case) -> None:
    tool = a_tool(shop, case)
    answer = shop.claim(tool)
    case.send(shopper, answer, {}, "")
    # Somebody sends it once more with a key of his own.
    case.send(shopper, answer.model_copy(update={"key": "another key"}), {}, "")
    shop.unknown(answer)

    looked = shop.look(id_of(answer))

    assert (looked.state, len(effects_of(shopper, id_of(answer)))) == (ClaimState.CONFLICTED, 2)
